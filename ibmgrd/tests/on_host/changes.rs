// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon beside `ibctl apply`, which is played here with the same parts: what it sets is not taken
//! for drift, and what it leaves behind is brought to an end.

use std::path::Path;
use std::time::Duration;

use ibmgr_api::status::Standing;
use ibmgr_api::{Declared, Desired, HostPlan, Match, Origin, Policy, Rule};
use ibmgrd_engine::{
    Journal, JournalError, Port as _, Query, Record, apply, keys_of, plan_host, resolve,
};
use ibmgrd_hw::port::KernelPort;
use ibmgrd_state::{FileJournal, Store, lock};
use nix::mount::{MsFlags, mount};

use crate::support::{Home, Net, wait};

const DECLARED: &str = "[[link]]\nmatch = { name = \"v0\" }\nmtu = 1400\n";

/// Wants other values of `v0` than the files do.
fn plan(port: &mut KernelPort) -> HostPlan {
    let origin = Origin::whole("test");
    let declared = |knob: &str, value: &str| {
        let key: ibmgr_api::Key = knob.parse().unwrap();
        let value = key.knob().domain.parse(value).unwrap();
        let (policy, origin) = (Policy::Heal, origin.clone());
        (
            key,
            Declared {
                value,
                policy,
                origin,
            },
        )
    };
    let rule = Rule {
        origin: origin.clone(),
        matches: Match {
            name: vec!["v0".parse().unwrap()],
            ..Match::default()
        },
        settings: [declared("mtu", "1300"), declared("txqueuelen", "55")].into(),
        children: Vec::new(),
    };
    let desired = Desired { rules: vec![rule] };
    let links = port.observe_all(&Query::named(keys_of(&desired))).unwrap();
    plan_host(&resolve(&desired, &links), &links)
}

fn store(home: &Home, port: &mut KernelPort) -> Store {
    Store::new(&home.path("state"), port.namespace_cookie().unwrap())
}

/// Applies as `ibctl apply` does.
fn change(home: &Home, confirm_within: Option<Duration>) -> FileJournal {
    let _turn = lock::hold(&home.path("lock")).unwrap();
    let mut port = KernelPort::new();
    let plan = plan(&mut port);
    let mut journal = store(home, &mut port).begin("fabric.toml", confirm_within);
    let report = apply(&mut port, &mut journal, &plan);
    assert_eq!(report.code(), None, "{report:?}");
    journal
}

/// Keeps so many notes, and then ends as a killed process does.
struct Killed {
    journal: FileJournal,
    left: usize,
}

impl Journal for Killed {
    fn note(&mut self, record: Record<'_>) -> Result<(), JournalError> {
        if self.left == 0 {
            std::panic::panic_any(());
        }
        self.left -= 1;
        self.journal.note(record)
    }
}

#[test]
fn what_apply_set_is_no_drift_until_it_is_taken_back() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let daemon = home.start(&[]);
    let mut journal = change(&home, Some(Duration::from_secs(60)));
    wait("the daemon to know of it", || {
        let mtu = daemon.knob("v0", "mtu");
        if mtu.declared == "1300" && mtu.standing == Standing::Holds {
            Ok(())
        } else {
            Err(Box::new(mtu))
        }
    });
    assert_eq!(net.sysfs("v0", "mtu"), "1300");
    assert_eq!(
        *daemon.knob("v0", "mtu").origin.file,
        *"ibctl apply fabric.toml"
    );
    // It is kept as if a file said so.
    journal.confirm().unwrap();
    net.run("ip link set v0 mtu 1234");
    net.wait_sysfs("v0", "mtu", "1300");
    // The files win again when they are applied anew.
    let (status, body) = daemon.http("POST /v1/reload");
    assert_eq!(status, 200, "{body}");
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
}

#[test]
fn what_nobody_confirmed_is_taken_back_even_after_a_restart() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let daemon = home.start(&[]);
    // While it runs.
    change(&home, Some(Duration::from_secs(2)));
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "55");
    net.wait_sysfs("v0", "tx_queue_len", "1000");
    net.wait_sysfs("v0", "mtu", "1400");
    home.wait_log(&[
        "checkpoint",
        "fabric.toml",
        "was not confirmed in time, and is taken back",
    ]);
    drop(daemon);
    // While it does not.
    change(&home, Some(Duration::from_millis(50)));
    std::thread::sleep(Duration::from_millis(80));
    let daemon = home.start(&[]);
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "1000");
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    assert!(daemon.status().ok);
    drop(daemon);
    // Begun before it starts, ended by it.
    change(&home, Some(Duration::from_secs(2)));
    let _daemon = home.start(&[]);
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "55", "there is time left");
    net.wait_sysfs("v0", "tx_queue_len", "1000");
}

#[test]
fn a_change_that_was_killed_at_any_note_is_brought_to_an_end() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    for left in 1..=7 {
        net.run("ip link set v0 mtu 1500");
        net.run("ip link set v0 txqueuelen 1000");
        let mut port = KernelPort::new();
        let plan = plan(&mut port);
        let journal = store(&home, &mut port).begin("fabric.toml", None);
        let mut journal = Killed { journal, left };
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let run = std::panic::AssertUnwindSafe(|| apply(&mut port, &mut journal, &plan));
        let ended = std::panic::catch_unwind(run);
        std::panic::set_hook(hook);
        let was_killed = ended.is_err();
        assert_eq!(was_killed, left < 7, "two writes have seven notes");
        let daemon = home.start(&[]);
        wait("all to be well", || {
            let status = daemon.status();
            if status.ok {
                Ok(())
            } else {
                Err(Box::new(status))
            }
        });
        // Once everything was read back it is finished, before that it is taken back.
        let expected = if left < 6 {
            ("1400", "1000")
        } else {
            ("1300", "55")
        };
        let now = (net.sysfs("v0", "mtu"), net.sysfs("v0", "tx_queue_len"));
        assert_eq!(
            (now.0.as_str(), now.1.as_str()),
            expected,
            "after {left} notes"
        );
    }
}

#[test]
fn nothing_is_changed_while_the_disk_is_full() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let state = home.path("state");
    std::fs::create_dir(&state).unwrap();
    let options = Some("size=64k");
    mount(
        Some("tmpfs"),
        &state,
        Some("tmpfs"),
        MsFlags::empty(),
        options,
    )
    .unwrap();
    let daemon = home.start(&[]);
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    let filler = state.join("filler");
    fill(&filler);
    net.run("ip link set v0 mtu 1300");
    home.wait_log(&["failed", "knob=\"mtu\"", "journal"]);
    let mtu = daemon.knob("v0", "mtu");
    assert_eq!(
        (mtu.standing, mtu.code.as_deref()),
        (Standing::Failed, Some("journal"))
    );
    assert_eq!(net.sysfs("v0", "mtu"), "1300");
    std::fs::remove_file(&filler).unwrap();
    net.wait_sysfs("v0", "mtu", "1400");
    wait("it to hold", || {
        let mtu = daemon.knob("v0", "mtu");
        if mtu.standing == Standing::Holds {
            Ok(())
        } else {
            Err(Box::new(mtu))
        }
    });
    drop(daemon);
    nix::mount::umount(&state).unwrap();
}

fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
}
