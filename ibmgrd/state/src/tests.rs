// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Journals that are torn, damaged, of another version or boot, on a full disk; and any bytes at all.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use ibmgr_api::{
    Action, Assignment, ChildKind, HostPlan, Key, LinkName, LinkPlan, NewChild, OldChild, Pkey,
    Step, Target, Value, Was,
};
use ibmgrd_engine::{Journal as _, Record};
use proptest::prelude::*;

use crate::{Kept, Standing, StateError, Store, boottime};

fn target(name: &str, index: u32) -> Target {
    Target {
        name: name.parse().unwrap(),
        index,
    }
}

/// Returns a plan with one of each.
fn plan() -> HostPlan {
    let key = |name: &str| name.parse::<Key>().unwrap();
    let step = |name: &str, from: Option<Value>, to: Value| Step {
        key: key(name),
        from,
        to,
        carrier: key(name).knob().carriers[0],
        no_effect: Some("because".into()),
    };
    let was = Was {
        key: key("alias"),
        value: Value::Text("rail \u{fc}\n\"0\"".into()),
        carrier: key("alias").knob().carriers[1],
    };
    let want = Assignment {
        key: key("mtu"),
        value: 2000_u32.into(),
    };
    let pkey = Pkey::new(0x8001).unwrap();
    HostPlan {
        links: vec![LinkPlan {
            target: target("ib0", 2),
            skips: vec![],
            before: vec![was],
        }],
        actions: vec![
            Action::Make {
                child: NewChild {
                    parent: target("ib0", 2),
                    name: "storage".parse::<LinkName>().unwrap(),
                    pkey,
                    kind: ChildKind::Legacy,
                },
                wants: vec![want.clone()],
            },
            Action::Set {
                link: 0,
                step: step("feature.rx-gro", None, true.into()),
            },
            Action::Set {
                link: 0,
                step: step(
                    "gro-flush-timeout",
                    Some(Value::Number(u64::MAX)),
                    Value::Number(0),
                ),
            },
            Action::Remove {
                child: OldChild {
                    child: target("old", 9),
                    parent: target("ib0", 2),
                    pkey,
                    via: ChildKind::Netlink,
                },
                kind: ChildKind::Legacy,
                settings: vec![want],
            },
        ],
        refused: vec![],
    }
}

fn store(root: &Path) -> Store {
    Store::new(root, 7)
}

fn kept(store: &Store) -> Kept {
    store.read().unwrap().unwrap()
}

#[test]
fn what_is_noted_is_read_back() {
    let root = tempfile::tempdir().unwrap();
    let store = store(&root.path().join("ibmgr"));
    assert_eq!(store.read().unwrap(), None);
    let mut journal = store.begin("a.toml", Some(Duration::from_secs(60)));
    let plan = plan();
    journal.note(Record::Begin(&plan)).unwrap();
    let mut expected = vec![];
    for record in [
        Record::Intent(0),
        Record::Done(0),
        Record::Intent(1),
        Record::Verified,
    ] {
        journal.note(record).unwrap();
        expected.push(kept(&store).story.begun.len());
    }
    assert_eq!(expected, [1, 1, 2, 2]);
    let read = kept(&store);
    assert_eq!(read.story.plan, plan);
    assert_eq!(read.about, *journal.about());
    assert_eq!(read.standing(boottime()), Standing::Unfinished);
    journal.note(Record::Applied).unwrap();
    let read = kept(&store);
    assert!(
        matches!(read.standing(boottime()), Standing::Pending { left } if left <= Duration::from_secs(60))
    );
    let later = boottime() + Duration::from_secs(61);
    assert_eq!(read.standing(later), Standing::Overdue);
    store.resume(&read).unwrap().confirm().unwrap();
    assert_eq!(kept(&store).standing(later), Standing::Closed);
    let mode = fs::metadata(store.journal_path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn the_next_change_takes_the_place_of_the_last() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    for what in ["a", "b"] {
        let mut journal = store.begin(what, None);
        journal.note(Record::Begin(&plan())).unwrap();
        journal.note(Record::Applied).unwrap();
        assert_eq!(kept(&store).about.what, what);
        assert_eq!(kept(&store).standing(boottime()), Standing::Closed);
    }
    let files = fs::read_dir(root.path().join("net-7")).unwrap().count();
    assert_eq!(files, 1);
}

#[test]
fn a_torn_note_was_not_kept() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let mut journal = store.begin("a", None);
    journal.note(Record::Begin(&plan())).unwrap();
    journal.note(Record::Intent(0)).unwrap();
    let whole = fs::read(store.journal_path()).unwrap();
    journal.note(Record::Done(0)).unwrap();
    let longer = fs::read(store.journal_path()).unwrap();
    for length in whole.len() + 1..longer.len() {
        // Cut off, and filled with zeros as a file system may do.
        for fill in [0, longer.len() - length] {
            let mut bytes = longer[..length].to_vec();
            bytes.extend(std::iter::repeat_n(0, fill));
            fs::write(store.journal_path(), &bytes).unwrap();
            let read = kept(&store);
            assert!(read.is_torn, "{length}");
            assert_eq!((read.story.begun.len(), read.story.done.len()), (1, 0));
            // What is added stands behind the last whole note.
            store
                .resume(&read)
                .unwrap()
                .note(Record::Intent(1))
                .unwrap();
            let read = kept(&store);
            assert_eq!(
                (read.is_torn, read.story.begun.len()),
                (false, 2),
                "{length}"
            );
        }
    }
}

#[test]
fn a_damaged_note_is_told_and_not_guessed() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let mut journal = store.begin("a", None);
    journal.note(Record::Begin(&plan())).unwrap();
    journal.note(Record::Intent(0)).unwrap();
    journal.note(Record::Done(0)).unwrap();
    let good = fs::read(store.journal_path()).unwrap();
    let second = good.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for (at, line) in [(12, 1), (second + 12, 2)] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        fs::write(store.journal_path(), &bytes).unwrap();
        let error = store.read().unwrap_err();
        assert!(
            matches!(error, StateError::Damaged { line: found, .. } if found == line),
            "{error}"
        );
        assert!(error.to_string().contains("move it away"), "{error}");
    }
    fs::write(store.journal_path(), b"").unwrap();
    assert!(store.read().is_err());
}

#[test]
fn another_version_is_refused_and_another_boot_is_over() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let mut journal = store.begin("a", None);
    journal.note(Record::Begin(&plan())).unwrap();
    let good = fs::read_to_string(store.journal_path()).unwrap();
    let changed = |from: &str, to: &str| {
        let json = good[9..].trim_end().replacen(from, to, 1);
        assert_ne!(json, good[9..].trim_end());
        let line = format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()));
        fs::write(store.journal_path(), line).unwrap();
    };
    changed("\"version\":1", "\"version\":2,\"new\":[]");
    assert!(matches!(
        store.read(),
        Err(StateError::Version { found: 2, .. })
    ));
    changed("\"boot\":\"", "\"boot\":\"other-");
    assert_eq!(store.read().unwrap(), None);
}

#[test]
fn a_full_disk_stops_a_change_and_leaves_no_half_notes() {
    use nix::mount::{MsFlags, mount, umount};
    use nix::sched::{CloneFlags, unshare};

    // In a thread, so that the mount namespace ends with it.
    let worker = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace; run the tests as root");
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
        let root = tempfile::tempdir().unwrap();
        let options = Some("size=16k");
        mount(
            Some("tmpfs"),
            root.path(),
            Some("tmpfs"),
            MsFlags::empty(),
            options,
        )
        .unwrap();
        let store = store(root.path());
        let mut journal = store.begin("a", None);
        journal.note(Record::Begin(&plan())).unwrap();
        let ballast = root.path().join("ballast");
        let _ = fs::write(&ballast, vec![0; 64 * 1024]);
        let mut number = 0;
        let error = loop {
            match journal.note(Record::Intent(number % 4)) {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
            assert!(number < 100_000, "the disk is full");
        };
        assert!(error.to_string().contains("No space left"), "{error}");
        assert!(!kept(&store).is_torn);
        // A new change does not even begin, and the last one's journal stays.
        let failed = store.begin("b", None).note(Record::Begin(&plan()));
        assert!(failed.unwrap_err().to_string().contains("No space left"));
        assert_eq!(kept(&store).about.what, "a");
        fs::remove_file(&ballast).unwrap();
        journal.note(Record::RollBack).unwrap();
        assert!(kept(&store).story.is_rolling_back);
        drop(journal);
        umount(root.path()).unwrap();
    });
    worker.join().unwrap();
}

proptest! {
    #[test]
    fn any_bytes_are_a_journal_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Kept::decode(Path::new("journal"), &bytes);
    }

    #[test]
    fn any_cut_and_flip_is_read_or_told(cut in 0_usize..2000, at in 0_usize..2000, bit in 0_u8..8) {
        let root = tempfile::tempdir().unwrap();
        let store = store(root.path());
        let mut journal = store.begin("a", None);
        journal.note(Record::Begin(&plan())).unwrap();
        for number in 0..4 {
            journal.note(Record::Intent(number)).unwrap();
        }
        let mut bytes = fs::read(store.journal_path()).unwrap();
        bytes.truncate(cut);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << bit;
        }
        match Kept::decode(Path::new("journal"), &bytes) {
            // Whatever is read is a beginning of what was written.
            Ok(Some(kept)) => {
                let begun: Vec<usize> = kept.story.begun.iter().copied().collect();
                prop_assert!(begun.len() <= 4 && begun.iter().enumerate().all(|(n, b)| n == *b));
                prop_assert_eq!(kept.story.plan, plan());
            }
            Ok(None) => prop_assert!(false, "the boot is the same"),
            Err(_) => {}
        }
    }
}
