// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interfaces that come, go and are renamed; the daemon's own start and end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{Home, Net, expect_line, wait};

const VETHS: &str = "[[link]]\nmatch = { name = \"v*\" }\nmtu = 1400\n";

#[test]
fn interfaces_are_followed_through_their_lives() {
    let net = Net::new();
    let home = Home::with(VETHS);
    let daemon = home.start(&[]);
    assert!(daemon.status().links.is_empty());
    // It appears.
    net.run("ip link add v0 type veth peer name p0");
    net.wait_sysfs("v0", "mtu", "1400");
    home.wait_log(&["appeared", "link=\"v0\""]);
    home.wait_log(&["changed", "link=\"v0\"", "the interface appeared"]);
    // It is made anew under the same name.
    net.run("ip link del v0");
    home.wait_log(&["disappeared", "link=\"v0\""]);
    net.run("ip link add v0 type veth peer name p0");
    net.wait_sysfs("v0", "mtu", "1400");
    // A new name that the declaration is for, and one that it is not for.
    net.run("ip link set p0 name v9");
    net.wait_sysfs("v9", "mtu", "1400");
    net.run("ip link set v9 name other");
    wait("v9 to be let go", || {
        let links = daemon.status().links;
        let is_left = links
            .iter()
            .any(|link| link.link == "other" || link.link == "v9");
        if is_left { Err(links) } else { Ok(()) }
    });
    net.run("ip link set other mtu 1300");
    // Renamed from one such name to another: still the same interface.
    net.run("ip link set v0 name v5");
    home.wait_log(&["renamed", "from=\"v0\"", "to=\"v5\""]);
    net.run("ip link set v5 mtu 1250");
    net.wait_sysfs("v5", "mtu", "1400");
    assert_eq!(
        net.sysfs("other", "mtu"),
        "1300",
        "it is not managed any more"
    );
}

#[test]
fn an_interface_that_leaves_the_namespace_is_left_alone() {
    let net = Net::new();
    let home = Home::with(VETHS);
    let daemon = home.start(&[]);
    net.run("ip link add v0 type veth peer name p0");
    net.wait_sysfs("v0", "mtu", "1400");
    let mut holder = std::process::Command::new("unshare")
        .args(["-n", "sleep", "60"])
        .spawn()
        .unwrap();
    let pid = holder.id();
    wait("another namespace", || {
        let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
        (of(&pid.to_string()) != of("thread-self"))
            .then_some(())
            .ok_or(())
    });
    net.run(&format!("ip link set v0 netns {pid}"));
    home.wait_log(&["disappeared", "link=\"v0\""]);
    let there = format!("nsenter -t {pid} -n ip link");
    net.run(&format!("{there} set v0 mtu 1234"));
    assert!(daemon.status().links.is_empty());
    assert!(net.run(&format!("{there} show v0")).contains("mtu 1234"));
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn the_service_manager_is_told() {
    let _net = Net::with_veth();
    let home = Home::with("[[link]]\nmatch = { name = \"v0\" }\nmtu = 1400\n");
    let path = home.path("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let mut daemon = home.spawn(&[], Some(&path));
    expect_line(&manager, "READY=1");
    daemon.signal(Signal::SIGHUP);
    let reloading = expect_line(&manager, "RELOADING=1");
    let time = reloading
        .lines()
        .find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(time.unwrap().parse::<u64>().unwrap() > 0, "{reloading}");
    expect_line(&manager, "READY=1");
    daemon.signal(Signal::SIGTERM);
    expect_line(&manager, "STOPPING=1");
    assert!(daemon.ended().success());
    assert!(!home.path("http.sock").exists());
}

#[test]
fn the_loop_itself_feeds_the_watchdog() {
    let _net = Net::with_veth();
    let home = Home::with("");
    let path = home.path("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let mut command = home.command();
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "200000")
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    expect_line(&manager, "READY=1");
    for _ in 0..3 {
        expect_line(&manager, "WATCHDOG=1");
    }
    // A loop that stands still is not alive.
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGSTOP).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    manager.set_nonblocking(true).unwrap();
    while manager.recv(&mut [0; 64]).is_ok() {}
    std::thread::sleep(Duration::from_millis(400));
    let heard = manager.recv(&mut [0; 64]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(heard.is_err(), "something else feeds it");
}

#[test]
fn one_daemon_at_a_time_and_old_sockets_are_replaced() {
    let net = Net::with_veth();
    let home = Home::with("[[link]]\nmatch = { name = \"v0\" }\nmtu = 1400\n");
    let mut daemon = home.start(&[]);
    let mode = fs::metadata(home.path("http.sock"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o660);
    let second = home.command().output().unwrap();
    assert_eq!(second.status.code(), Some(7), "{second:?}");
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(told.contains("another ibmgrd answers"), "{told}");
    daemon.signal(Signal::SIGKILL);
    daemon.ended();
    assert!(home.path("http.sock").exists(), "it could not clean up");
    net.run("ip link set v0 mtu 1300");
    let daemon = home.start(&[]);
    assert!(daemon.status().ok);
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
}

#[test]
fn others_may_read_and_not_change() {
    let _net = Net::with_veth();
    let home = Home::with("");
    let _daemon = home.start(&[]);
    let open = |name: &str, mode| {
        fs::set_permissions(home.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    open("", 0o755);
    open("http.sock", 0o666);
    let ask = |line: &str| {
        let script = format!(
            "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{}')\n\
             s.sendall(b'{line} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n')\n\
             d = b''\nwhile True:\n    c = s.recv(4096)\n    if not c: break\n    d += c\nprint(d.decode())",
            home.path("http.sock").display()
        );
        let mut python = std::process::Command::new("python3");
        std::os::unix::process::CommandExt::uid(&mut python, 65534);
        let output = python.args(["-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(ask("GET /v1/status").starts_with("HTTP/1.1 200"));
    let denied = ask("POST /v1/reload");
    assert!(denied.starts_with("HTTP/1.1 403"), "{denied}");
    assert!(denied.contains("application/problem+json"), "{denied}");
    assert!(
        denied.contains("user 65534 may read only: changing takes root"),
        "{denied}"
    );
}
