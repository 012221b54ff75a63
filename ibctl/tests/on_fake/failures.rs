// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Failures of the output and of the connection to the kernel.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use ibctl::Environment;
use ibmgr_api::ErrorCode;
use ibmgrd_engine::PortError;
use ibmgrd_state::Store;

use crate::fake::{Fake, Manner};
use crate::run;

/// Takes some bytes, then fails each time.
struct Breaks {
    room: usize,
    kind: io::ErrorKind,
}

impl Write for Breaks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room);
        self.room -= taken;
        if taken == 0 && !bytes.is_empty() {
            return Err(self.kind.into());
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run_breaking(fake: &Fake, line: &str, room: usize, kind: io::ErrorKind) -> (u8, String) {
    let words = ["ibctl"].into_iter().chain(line.split(' '));
    let args: Vec<OsString> = words.map(OsString::from).collect();
    let mut stderr = Vec::new();
    let status = ibctl::run(
        &args,
        Environment {
            open: &|| Ok::<_, PortError>(fake.clone()),
            lock: None,
            namespace: &|_| Ok(1),
            store: &|namespace| Store::new(Path::new("/nowhere"), namespace),
            socket: None,
            guard: &|_, _| Ok(()),
            stdout: &mut Breaks { room, kind },
            stderr: &mut stderr,
        },
    );
    (status, String::from_utf8(stderr).expect("UTF-8"))
}

#[test]
fn a_reader_that_went_away_is_success() {
    let host = Fake::host();
    for line in [
        "show",
        "show -o json",
        "show ib0",
        "get ib0",
        "get ib0 -o json",
        "explain",
        "explain mode ib0",
        "explain -o json",
        "--help",
        "set ib0 mtu=1500",
        "--version",
    ] {
        for room in [0, 1, 10] {
            let (status, stderr) = run_breaking(&host, line, room, io::ErrorKind::BrokenPipe);
            assert_eq!((status, stderr.as_str()), (0, ""), "{line}, {room} bytes");
        }
    }
}

#[test]
fn a_broken_pipe_does_not_hide_a_failure() {
    let host = Fake::host().with("mtu", Manner::Refuses(22, "EINVAL"));
    for line in ["set ib0 mtu=1500", "set ib0 mtu=many"] {
        let whole = run(&host, line);
        let (status, stderr) = run_breaking(&host, line, 0, io::ErrorKind::BrokenPipe);
        assert_ne!(status, 0, "{line}");
        assert_eq!((status, stderr), (whole.status, whole.stderr), "{line}");
    }
}

#[test]
fn a_full_disk_is_told() {
    let (status, stderr) = run_breaking(&Fake::host(), "show", 3, io::ErrorKind::StorageFull);
    assert_eq!(status, ErrorCode::Kernel.exit_status());
    assert!(
        stderr.starts_with("ibctl: the output could not be written: no storage space"),
        "{stderr}"
    );
}

#[test]
fn a_kernel_that_cannot_be_reached_is_told_with_its_cause() {
    let open = || {
        Err::<Fake, _>(PortError::Io {
            what: "opening a netlink socket".into(),
            source: io::ErrorKind::PermissionDenied.into(),
        })
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let environment = Environment {
        open: &open,
        lock: None,
        namespace: &|_| Ok(1),
        store: &|namespace| Store::new(Path::new("/nowhere"), namespace),
        socket: None,
        guard: &|_, _| Ok(()),
        stdout: &mut stdout,
        stderr: &mut stderr,
    };
    let status = ibctl::run(&["ibctl".into(), "show".into()], environment);
    assert_eq!(status, ErrorCode::Kernel.exit_status());
    assert!(stdout.is_empty());
    assert_eq!(
        String::from_utf8_lossy(&stderr),
        "ibctl: opening a netlink socket failed: permission denied\n"
    );
}
