// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `org.ibmgr1` on a real bus with a real polkit, asked by `busctl` and `gdbus` alone.

use ibmgr_api::ErrorCode;
use nix::sys::signal::Signal;

use crate::bus::{BANNED, Bus, NOBODY, TRUSTED};
use crate::support::{Daemon, Home, Net, wait};

const LINK: &str = "org.ibmgr1.Link";

struct World {
    net: Net,
    bus: Bus,
}

fn world() -> World {
    let net = Net::with_veth();
    let bus = Bus::start(&net);
    World { net, bus }
}

fn start<'a>(world: &World, home: &'a Home) -> Daemon<'a> {
    let daemon = home.start(&["--dbus"]);
    world.bus.wait_name("org.ibmgr1");
    daemon
}

fn object(world: &World, link: &str) -> String {
    let told = world.bus.manager(NOBODY, &format!("GetLink s {link}"));
    let told = told.unwrap();
    told.trim_start_matches("o ").trim_matches('"').to_owned()
}

#[track_caller]
fn denied(told: Result<String, String>, parts: &[&str]) {
    let why = told.expect_err("it is denied");
    for part in parts {
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn busctl_reads_and_sets() {
    let world = world();
    let (net, bus) = (&world.net, &world.bus);
    let home = Home::with("");
    let _daemon = start(&world, &home);
    let listed = bus.manager(NOBODY, "ListLinks").unwrap();
    assert!(
        listed.starts_with("a(suo) 3 ") && listed.contains("\"v0\""),
        "{listed}"
    );
    let v0 = object(&world, "v0");
    let get = |name: &str| {
        bus.busctl(
            NOBODY,
            &format!("get-property org.ibmgr1 {v0} {LINK} {name}"),
        )
    };
    assert_eq!(get("Name").unwrap(), "s \"v0\"");
    assert_eq!(get("Mtu").unwrap(), "t 1500");
    assert_eq!(get("FeatureRxGro").unwrap(), "b false");
    assert_eq!(get("FeatureRxChecksum").unwrap(), "b true");
    assert_eq!(get("GroFlushTimeout").unwrap(), "t 0");
    bus.busctl(
        0,
        &format!("set-property org.ibmgr1 {v0} {LINK} Mtu t 1400"),
    )
    .unwrap();
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    // The text that `ibctl set` takes goes, too.
    bus.busctl(
        0,
        &format!("set-property org.ibmgr1 {v0} {LINK} GroFlushTimeout s 20us"),
    )
    .unwrap();
    assert_eq!(net.sysfs("v0", "gro_flush_timeout"), "20000");
    assert_eq!(get("GroFlushTimeout").unwrap(), "t 20000");
    let report = bus.manager(
        0,
        "Set sa{sv}a{sv} v0 2 mtu t 1300 txqueuelen s 77 1 why s a%20test",
    );
    let report = report.unwrap();
    assert!(
        report.contains("\"mtu\" \"changed\" \"1300\" \"1400\" \"1300\" \"\""),
        "{report}"
    );
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "77");
    home.wait_log(&["v0", "mtu", "a test", "user 0", "over dbus"]);
    let report = bus
        .call(
            0,
            &format!("org.ibmgr1 {v0} {LINK} Set a{{sv}}a{{sv}} 1 mtu t 1300 0"),
        )
        .unwrap();
    assert!(report.contains("already-so"), "{report}");
}

#[test]
fn what_the_device_lacks_is_no_property() {
    let world = world();
    let bus = &world.bus;
    let home = Home::with("");
    let _daemon = start(&world, &home);
    let v0 = object(&world, "v0");
    let shown = bus.gdbus(
        NOBODY,
        &[
            "introspect",
            "--system",
            "--dest",
            "org.ibmgr1",
            "--object-path",
            &v0,
        ],
    );
    let shown = shown.unwrap();
    for present in [
        "readwrite t Mtu = 1500;",
        "readonly s Name = 'v0';",
        "RpsCpusRx0",
        "readonly b FeatureVlanChallenged",
    ] {
        assert!(shown.contains(present), "{present}: {shown}");
    }
    for absent in ["Batching", "CmCopybreak", "Pkey", "Mode "] {
        assert!(!shown.contains(absent), "{absent}: {shown}");
    }
    let all = bus
        .gdbus(
            NOBODY,
            &[
                "call",
                "--system",
                "--dest",
                "org.ibmgr1",
                "--object-path",
                &v0,
                "--method",
                "org.freedesktop.DBus.Properties.GetAll",
                LINK,
            ],
        )
        .unwrap();
    assert!(
        all.contains("'Mtu': <uint64 1500>") && !all.contains("'Batching'"),
        "{all}"
    );
    denied(
        bus.busctl(0, &format!("get-property org.ibmgr1 {v0} {LINK} Batching")),
        &["Unknown property 'Batching'"],
    );
    let told = bus
        .call(
            NOBODY,
            &format!("org.ibmgr1 {v0} {LINK} Explain s batching"),
        )
        .unwrap();
    assert!(
        told.contains("\"unsupported\"") && told.contains("only the ipoib_batch driver"),
        "{told}"
    );
    let told = bus.manager(NOBODY, "Describe s gro-flush-timeout").unwrap();
    assert!(
        told.contains("\"unit\" s \"ns\"") && told.contains("\"sysfs\""),
        "{told}"
    );
    let knobs = bus.manager(NOBODY, "ListKnobs").unwrap();
    assert!(knobs.contains("\"rps-cpus.NAME\""), "{knobs}");
}

#[test]
fn changes_are_signalled_whoever_made_them() {
    let world = world();
    let (net, bus) = (&world.net, &world.bus);
    let home = Home::with("");
    let _daemon = start(&world, &home);
    let v0 = object(&world, "v0");
    let monitor = bus.monitor(home.path("signals"));
    net.run("ip link set v0 mtu 1450");
    monitor.wait(&[&v0, "PropertiesChanged", LINK, "'Mtu': <uint64 1450>"]);
    net.run("ip link set v0 down");
    monitor.wait(&[
        &v0,
        "PropertiesChanged",
        "'State': <'down'>",
        "'Up': <false>",
    ]);
    net.run("ethtool -K v0 gro on");
    net.run("ethtool -K v0 gro off");
    monitor.wait(&[&v0, "'FeatureRxGro': <false>"]);
    // The kernel tells nothing of this one: who set it does.
    bus.manager(0, "Set sa{sv}a{sv} v0 1 gro-flush-timeout s 5us 0")
        .unwrap();
    monitor.wait(&[&v0, "'GroFlushTimeout': <uint64 5000>"]);
    monitor.wait(&["Happened", "\"knob\":\"gro-flush-timeout\""]);
    net.run("ip link set v0 name w0");
    monitor.wait(&[&v0, "'Name': <'w0'>"]);
    net.run("ip link add d0 type veth peer name d1");
    monitor.wait(&["LinkAdded", "'d0'"]);
    let d0 = object(&world, "d0");
    net.run("ip link del d0");
    monitor.wait(&["LinkRemoved", "'d0'", &d0]);
    wait("the object's end", || {
        match bus.busctl(0, &format!("get-property org.ibmgr1 {d0} {LINK} Name")) {
            Err(_) => Ok(()),
            Ok(name) => Err(name),
        }
    });
}

#[test]
fn polkit_says_who_may_do_what() {
    let mut world = world();
    let home = Home::with("");
    let _daemon = start(&world, &home);
    let v0 = object(&world, "v0");
    let (net, bus) = (&world.net, &mut world.bus);
    let reads = [
        "org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager ListLinks".to_owned(),
        "org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager GetStatus".to_owned(),
        "org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager Export as 1 v0".to_owned(),
        "org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager Plan a(ss) 0".to_owned(),
        format!("org.ibmgr1 {v0} org.freedesktop.DBus.Properties Get ss {LINK} Mtu"),
        format!("org.ibmgr1 {v0} org.freedesktop.DBus.Properties GetAll s {LINK}"),
        format!("org.ibmgr1 {v0} {LINK} Explain s mtu"),
    ];
    let writes = [
        "org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager Set sa{sv}a{sv} v0 1 mtu t 1400 0".to_owned(),
        "org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager Apply a(ss)a{sv} 0 0".to_owned(),
        "org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager Reload".to_owned(),
        format!("org.ibmgr1 {v0} org.freedesktop.DBus.Properties Set ssv {LINK} Mtu t 1400"),
        format!("org.ibmgr1 {v0} {LINK} Set a{{sv}}a{{sv}} 1 mtu t 1400 0"),
    ];
    // Without a change to confirm these fail for whoever may.
    let ends = ["Confirm", "RollBack"]
        .map(|deed| format!("org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager {deed}"));
    for read in &reads {
        for user in [0, TRUSTED, NOBODY] {
            bus.call(user, read)
                .unwrap_or_else(|why| panic!("{user}: {read}: {why}"));
        }
        // GetAll can fail with the bus's own errors only, for which busctl has words of its own.
        let words = if read.contains("GetAll") {
            "Access denied"
        } else {
            "org.ibmgr1.observe"
        };
        denied(bus.call(BANNED, read), &[words]);
    }
    for write in &writes {
        for (user, may) in [
            (NOBODY, "user 65534 may read only"),
            (BANNED, "user 2 may do nothing"),
        ] {
            denied(bus.call(user, write), &[may, "org.ibmgr1.change"]);
        }
        assert_ne!(net.sysfs("v0", "mtu"), "1400", "{write}");
        for user in [0, TRUSTED] {
            bus.call(user, write)
                .unwrap_or_else(|why| panic!("{user}: {write}: {why}"));
        }
        net.run("ip link set v0 mtu 1500");
    }
    for end in &ends {
        denied(
            bus.call(NOBODY, end),
            &["user 65534 may read only", "org.ibmgr1.change"],
        );
        for user in [0, TRUSTED] {
            let why = bus.call(user, end).expect_err("there is none");
            assert!(!why.contains("org.ibmgr1.change"), "{why}");
        }
    }
    home.wait_log(&["denied", "user 65534", "over dbus"]);
    // Without polkit nobody but root is served.
    bus.stop_polkit();
    denied(bus.call(NOBODY, &reads[0]), &["polkit does not answer"]);
    denied(bus.call(TRUSTED, &writes[0]), &["polkit does not answer"]);
    bus.call(0, &writes[0]).unwrap();
    bus.start_polkit();
    bus.call(TRUSTED, &writes[0]).unwrap();
}

#[test]
fn whole_hosts_are_planned_applied_confirmed_and_taken_back() {
    let world = world();
    let (net, bus) = (&world.net, &world.bus);
    let home = Home::with("");
    let _daemon = start(&world, &home);
    let monitor = bus.monitor(home.path("signals"));
    let text = "[[link]]\nmatch={name='v0'}\nmtu=1300\n";
    let source = format!("[('a.toml', \"{}\")]", text.replace('\n', "\\n"));
    let call = |method: &str, args: &[&str]| {
        let method = format!("org.ibmgr1.Manager.{method}");
        let words = [
            "call",
            "--system",
            "--dest",
            "org.ibmgr1",
            "--object-path",
            "/org/ibmgr1",
            "--method",
            &method,
        ];
        bus.gdbus(0, &[&words[..], args].concat())
    };
    let plan = call("Plan", &[&source]).unwrap();
    assert!(plan.contains("\"knob\":\"mtu\""), "{plan}");
    assert_eq!(net.sysfs("v0", "mtu"), "1500");
    let confirm = "{'confirm-within-seconds': <uint32 60>, 'why': <'a trial'>}";
    let done = call("Apply", &[&source, confirm]).unwrap();
    assert!(
        done.contains("\"end\":\"applied\"") && done.contains("confirm-within-seconds"),
        "{done}"
    );
    assert_eq!(net.sysfs("v0", "mtu"), "1300");
    monitor.wait(&["org.ibmgr1.Manager", "'Checkpoint': <'pending'>"]);
    let checkpoint = || {
        bus.busctl(
            NOBODY,
            "get-property org.ibmgr1 /org/ibmgr1 org.ibmgr1.Manager Checkpoint",
        )
        .unwrap()
    };
    assert_eq!(checkpoint(), "s \"pending\"");
    denied(
        call("Apply", &[&source, "{}"]),
        &[ErrorCode::Pending.dbus_name()],
    );
    call("RollBack", &[]).unwrap();
    assert_eq!(net.sysfs("v0", "mtu"), "1500");
    monitor.wait(&["'Checkpoint': <'rolled-back'>"]);
    call("Apply", &[&source, confirm]).unwrap();
    assert!(call("Confirm", &[]).unwrap().contains("a.toml"));
    assert_eq!(
        (net.sysfs("v0", "mtu").as_str(), checkpoint().as_str()),
        ("1300", "s \"applied\"")
    );
    let exported = call("Export", &["['v0']"]).unwrap();
    assert!(exported.contains("mtu = 1300"), "{exported}");
    home.declare(
        "20-more.toml",
        "[[link]]\nmatch = { name = \"v0\" }\ntxqueuelen = 55\n",
    );
    let status = call("Reload", &[]).unwrap();
    assert!(status.contains("20-more.toml"), "{status}");
    net.wait_sysfs("v0", "tx_queue_len", "55");
}

#[test]
fn bad_input_is_told_by_name_and_changes_nothing() {
    let world = world();
    let (net, bus) = (&world.net, &world.bus);
    let home = Home::with("");
    let _daemon = start(&world, &home);
    let v0 = object(&world, "v0");
    let before = net.run("ip -d -j link show");
    for (words, code) in [
        ("Set sa{sv}a{sv} v0 1 mut t 1 0", ErrorCode::UnknownKnob),
        ("Set sa{sv}a{sv} v9 1 mtu t 1400 0", ErrorCode::UnknownLink),
        ("Set sa{sv}a{sv} v/0 1 mtu t 1400 0", ErrorCode::UnknownLink),
        ("Set sa{sv}a{sv} v0 1 mtu t 99999 0", ErrorCode::BadValue),
        ("Set sa{sv}a{sv} v0 1 mtu d 1.5 0", ErrorCode::BadValue),
        ("Set sa{sv}a{sv} v0 1 mtu b true 0", ErrorCode::BadValue),
        (
            "Set sa{sv}a{sv} v0 1 gro-flush-timeout s 5%20apples 0",
            ErrorCode::BadValue,
        ),
        (
            "Set sa{sv}a{sv} v0 1 mode s connected 0",
            ErrorCode::Unsupported,
        ),
        (
            "Set sa{sv}a{sv} v0 2 txqueuelen t 9 mtu t 3 0",
            ErrorCode::BadValue,
        ),
        ("Set sa{sv}a{sv} v0 0 0", ErrorCode::Usage),
        (
            "Set sa{sv}a{sv} v0 1 mtu t 1400 1 viia s sysfs",
            ErrorCode::Usage,
        ),
        (
            "Set sa{sv}a{sv} v0 1 mtu t 1400 1 via s carrier",
            ErrorCode::Usage,
        ),
        (
            "Set sa{sv}a{sv} v0 1 mtu t 1400 1 if-unchanged s 0123",
            ErrorCode::Stale,
        ),
        ("Apply a(ss)a{sv} 1 a.toml [[link]] 0", ErrorCode::BadValue),
        (
            "Apply a(ss)a{sv} 0 1 confirm-within-seconds t 0",
            ErrorCode::Usage,
        ),
        ("Describe s mut", ErrorCode::UnknownKnob),
        ("GetLink s v9", ErrorCode::UnknownLink),
        ("Export as 1 v9", ErrorCode::UnknownLink),
        ("Confirm", ErrorCode::Pending),
    ] {
        // gdbus prints the error's name, busctl its text.
        let told = bus.manager(0, words);
        let why = told.expect_err(words);
        let name = error_name(bus, words);
        assert_eq!(name, code.dbus_name(), "{words}: {why}");
    }
    denied(
        bus.busctl(0, &format!("set-property org.ibmgr1 {v0} {LINK} Name s w0")),
        &["no knob"],
    );
    denied(
        bus.busctl(0, &format!("set-property org.ibmgr1 {v0} {LINK} Mut t 5")),
        &["no property Mut"],
    );
    assert_eq!(net.run("ip -d -j link show"), before);
}

/// Returns the name of the error that the call ends with.
fn error_name(bus: &Bus, words: &str) -> String {
    let told = bus.call_verbosely(words);
    let start = told
        .find("org.ibmgr1.Error.")
        .unwrap_or_else(|| panic!("{words}: {told}"));
    let name = &told[start..];
    let end = name
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
        .unwrap_or(name.len());
    name[..end].to_owned()
}

#[test]
fn the_bus_may_go_and_come_back() {
    let mut world = world();
    let home = Home::with("");
    let mut daemon = start(&world, &home);
    world.bus.restart();
    world.bus.wait_name("org.ibmgr1");
    assert!(object(&world, "v0").starts_with("/org/ibmgr1/link/"));
    // HTTP goes on meanwhile, and the end is clean.
    assert!(daemon.status().ok);
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.ended().success());
}

/// The page, as it was when this program was built.
const PAGE: &str = include_str!("../../../docs/dbus.md");

#[test]
fn the_page_shows_what_the_bus_answers() {
    let world = world();
    world.net.run("ip link set v0 down");
    world.net.run("ip link set v0 name ib0");
    world.net.run("ip link set ib0 up");
    let home = Home::with("");
    let _daemon = start(&world, &home);
    let index = object(&world, "ib0").rsplit('/').next().unwrap().to_owned();
    assert_eq!(index, "3", "the page names this object");
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut is_inside = false;
    for line in PAGE.lines() {
        if line.starts_with("```") {
            is_inside = line == "```console";
        } else if !is_inside {
        } else if let Some(command) = line.strip_prefix("# ") {
            commands.push((command.to_owned(), String::new()));
        } else if let Some(more) = line.strip_prefix("> ") {
            let command = &mut commands.last_mut().expect("a command").0;
            command.push('\n');
            command.push_str(more);
        } else {
            let shown = &mut commands.last_mut().expect("a command").1;
            shown.push_str(line);
            shown.push('\n');
        }
    }
    assert!(commands.len() >= 12, "{commands:?}");
    for (command, shown) in commands {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed, shown, "{command}");
    }
}
