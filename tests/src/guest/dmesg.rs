// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the kernel log and finds what no test may cause.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc::{EPIPE, O_NONBLOCK};

use super::task::Allowed;

/// Texts that mean a defect of the kernel or of a module.
const ALARMS: &[&str] = &[
    "WARNING:",
    "BUG:",
    "BUG ",
    "kernel BUG at",
    "Oops:",
    "general protection fault",
    "Unable to handle kernel",
    "unable to handle page fault",
    "Kernel panic",
    "stack-protector:",
    "self-detected stall",
    "detected stalls on CPUs",
    "rcu_preempt kthread starved",
    "soft lockup",
    "hard LOCKUP",
    "blocked for more than",
    "possible circular locking",
    "possible recursive locking",
    "inconsistent lock state",
    "suspicious RCU usage",
    "held lock freed",
    "sleeping function called from invalid context",
    "scheduling while atomic",
    "leaked",
    "kmemleak",
    "Objects remaining in",
    "Slab cache still has objects",
    "Redzone",
    "Poison overwritten",
    "Object already free",
    "list_add corruption",
    "list_del corruption",
    "refcount_t:",
    "UBSAN:",
    "KASAN:",
    "KFENCE:",
    "unregister_netdevice: waiting for",
    "NETDEV WATCHDOG",
    "timing out;",
    "Budget exhausted after napi rescheduled",
    "hung task",
    "page allocation failure",
    "Out of memory:",
    "segfault at",
];

/// Lines that look alarming and aren't.
const HARMLESS: &[Allowed] = &[
    Allowed {
        text: "module verification failed: signature and/or required key missing",
        because: "our modules are not signed",
    },
    Allowed {
        text: "loading out-of-tree module taints kernel",
        because: "our modules are out of tree",
    },
];

/// Says whether a record is the in-tree driver's known defect at removal: in connected mode it now and
/// then destroys a CQ or SRQ before its deferred connection teardown has run, and the RDMA core warns.
/// Any test that ends in connected mode can meet it; our driver's module has another name.
fn is_stock_removal(text: &str) -> bool {
    text.contains("include/rdma/ib_verbs.h") && text.contains("[ib_ipoib]")
}

/// What follows from it, and is no alarm after it: what the driver gave up on, and the RDMA core
/// missing the queue when the HCA goes.
const AFTER_STOCK_REMOVAL: &[&str] = &["sends not completed", "drivers/infiniband/core/restrack.c"];

/// One record of the kernel log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// Microseconds since boot.
    pub time_usecs: u64,
    /// The text, without its continuation lines (they hold key-value pairs).
    pub text: String,
}

/// The kernel log from one moment on.
#[derive(Debug)]
pub struct Log {
    file: File,
    overflow: bool,
}

impl Log {
    /// Starts at the present end.
    ///
    /// # Errors
    ///
    /// When `/dev/kmsg` can't be opened.
    pub fn from_now() -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open("/dev/kmsg")?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file,
            overflow: false,
        })
    }

    /// Returns what has come since the last call.
    ///
    /// # Errors
    ///
    /// Those of reading `/dev/kmsg`.
    pub fn read(&mut self) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match self.file.read(&mut buffer) {
                Ok(0) => return Ok(records),
                Ok(count) => {
                    let bytes = buffer.get(..count).unwrap_or_default();
                    records.extend(parse(&String::from_utf8_lossy(bytes)));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(records),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Records were overwritten before they could be read.
                Err(error) if error.raw_os_error() == Some(EPIPE) => self.overflow = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Says whether records were lost.
    #[must_use]
    pub fn overflowed(&self) -> bool {
        self.overflow
    }
}

/// Takes one record of `/dev/kmsg` apart: `prio,seq,usecs,flags[,…];text\n KEY=value…`.
#[must_use]
pub fn parse(record: &str) -> Option<Record> {
    let (head, rest) = record.split_once(';')?;
    let time_usecs = head.split(',').nth(2)?.parse().ok()?;
    let text = rest.split('\n').next().unwrap_or_default().to_owned();
    Some(Record { time_usecs, text })
}

/// Returns the records that mean a defect, except those that `allowed` explains.
#[must_use]
pub fn alarms<'a>(records: &'a [Record], allowed: &[Allowed]) -> Vec<&'a Record> {
    let removal = records.iter().any(|record| is_stock_removal(&record.text));
    let explained = |record: &Record| {
        let text = &record.text;
        let follows = AFTER_STOCK_REMOVAL.iter().any(|part| text.contains(part));
        is_stock_removal(text)
            || (removal && follows)
            || HARMLESS
                .iter()
                .chain(allowed)
                .any(|known| text.contains(known.text))
    };
    let alarming = |record: &&Record| {
        ALARMS.iter().any(|alarm| record.text.contains(alarm)) && !explained(record)
    };
    records.iter().filter(alarming).collect()
}

/// Prints records the way that `dmesg` does.
#[must_use]
pub fn print(records: &[Record]) -> String {
    let mut text = String::new();
    for record in records {
        let (whole, part) = (record.time_usecs / 1_000_000, record.time_usecs % 1_000_000);
        text.push_str(&format!("[{whole:5}.{part:06}] {}\n", record.text));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Record {
        Record {
            time_usecs: 0,
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_record_is_taken_apart() {
        let line = "4,1208,96271024,-;ib0: bringing up; really\n SUBSYSTEM=net\n DEVICE=n3\n";
        let wanted = Record {
            time_usecs: 96_271_024,
            text: "ib0: bringing up; really".into(),
        };
        assert_eq!(parse(line), Some(wanted));
        assert_eq!(parse("garbage"), None);
    }

    #[track_caller]
    fn check(text: &str, alarming: bool) {
        assert_eq!(!alarms(&[record(text)], &[]).is_empty(), alarming, "{text}");
    }

    #[test]
    fn defects_are_found() {
        check(
            "WARNING: CPU: 1 PID: 88 at drivers/infiniband/core/cq.c:322 ib_free_cq+0x1",
            true,
        );
        check(
            "BUG: kernel NULL pointer dereference, address: 0000000000000008",
            true,
        );
        check("Oops: Oops: 0002 [#1] PREEMPT SMP NOPTI", true);
        check(
            "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            true,
        );
        check(
            "INFO: task modprobe:77 blocked for more than 20 seconds.",
            true,
        );
        check(
            "BUG kmalloc-64 (Not tainted): Right Redzone overwritten",
            true,
        );
        check("restrack: 3 objects leaked", true);
        check(
            "unregister_netdevice: waiting for ib0 to become free. Usage count = 2",
            true,
        );
        check("DEBUG_LOCKS_WARN_ON(1)", false);
        check("ib0: Budget exhausted after napi rescheduled", true);
    }

    #[test]
    fn ordinary_lines_are_not() {
        check("8021q: adding VLAN 0 to HW filter on device ib0", false);
        check("vhca: loading out-of-tree module taints kernel.", false);
        check(
            "ib0: enabling connected mode will cause multicast packet drops",
            false,
        );
    }

    #[test]
    fn a_task_can_explain_a_line() {
        let known = Allowed {
            text: "Budget exhausted",
            because: "stock's poll loop",
        };
        let records = [
            record("ib0: Budget exhausted after napi rescheduled"),
            record("WARNING: x"),
        ];
        let found = alarms(&records, &[known]);
        assert_eq!(found, [&records[1]]);
    }

    #[test]
    fn stock_removal_in_connected_mode_explains_its_own_traces_only() {
        let core = record(
            "WARNING: CPU: 1 PID: 1556 at drivers/infiniband/core/restrack.c:52 \
             rdma_restrack_clean+0x4d/0x90 [ib_core]",
        );
        let stock = record(
            "WARNING: CPU: 0 PID: 1554 at include/rdma/ib_verbs.h:3945 \
             ipoib_transport_dev_cleanup+0xb9/0xc0 [ib_ipoib]",
        );
        let ours = record("WARNING: CPU: 0 PID: 1 at include/rdma/ib_verbs.h:3945 x [ipoib_batch]");
        assert!(alarms(&[stock.clone(), core.clone()], &[]).is_empty());
        assert_eq!(
            alarms(std::slice::from_ref(&core), &[]).len(),
            1,
            "alone it is a leak"
        );
        assert_eq!(
            alarms(&[ours, core], &[]).len(),
            2,
            "and ours is never excused"
        );
    }
}
