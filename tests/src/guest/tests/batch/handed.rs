// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts the packets that the stack hands to a driver, by the kernel's trace event `net_dev_start_xmit`
//! (include/trace/events/net.h).
//!
//! A queueing discipline counts what it lets go of, which is not the same: what finds the driver's queue stopped comes
//! back to it, a large packet in pieces already, and is freed without a word when the carrier goes (`dev_requeue_skb`,
//! `qdisc_reset` in net/sched/sch_generic.c).

use std::fs::{self, OpenOptions};
use std::io::Write;

use anyhow::{Context, ensure};

use crate::guest::Result;

const EVENT: &str = "/sys/kernel/tracing/events/net/net_dev_start_xmit";

/// Packets that are one, and large ones by the number of their segments.
const TRIGGERS: [&str; 2] = [
    "hist:keys=name if gso_segs == 0",
    "hist:keys=name:vals=gso_segs if gso_segs > 0",
];

/// Counts from its making until it is dropped.
pub(super) struct Handed(());

impl Handed {
    /// Starts to count.
    ///
    /// # Errors
    ///
    /// When the kernel has no histograms of trace events.
    pub(super) fn new() -> Result<Self> {
        for trigger in TRIGGERS {
            write(trigger).with_context(|| format!("setting the trigger {trigger:?}"))?;
        }
        Ok(Self(()))
    }

    /// Returns the packets handed to an interface, whatever its namespace.
    ///
    /// # Errors
    ///
    /// When the kernel shows something else than histograms.
    pub(super) fn to(&self, dev: &str) -> Result<u64> {
        let text = fs::read_to_string(format!("{EVENT}/hist"))?;
        packets(&text, dev).with_context(|| format!("no histograms:\n{text}"))
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        for trigger in TRIGGERS {
            // The next test finds a count that it does not look at.
            let _ = write(&format!("!{trigger}"));
        }
    }
}

fn write(trigger: &str) -> Result {
    let mut file = OpenOptions::new()
        .append(true)
        .open(format!("{EVENT}/trigger"))?;
    Ok(file.write_all(trigger.as_bytes())?)
}

/// Adds up: segments where they are shown, otherwise hits.
fn packets(text: &str, dev: &str) -> Result<u64> {
    let mut sum = 0;
    let parts = text.matches("trigger info:").count();
    ensure!(parts == TRIGGERS.len(), "{parts} histograms");
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1).copied()
        };
        if after("name:") == Some(dev) {
            let value = after("gso_segs:").or_else(|| after("hitcount:"));
            sum += value.context("no count")?.parse::<u64>()?;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::packets;

    /// From `events/net/net_dev_start_xmit/hist` of Linux 6.12.
    const SHOWN: &str = "\
# event histogram
#
# trigger info: hist:keys=name:vals=hitcount:sort=hitcount:size=2048 if gso_segs == 0 [active]
#

{ name: ib1                                                             } hitcount:          4
{ name: ib0                                                             } hitcount:         10

Totals:
    Hits: 14
    Entries: 2
    Dropped: 0
# event histogram
#
# trigger info: hist:keys=name:vals=hitcount,gso_segs:sort=hitcount:size=2048 if gso_segs > 0 [active]
#

{ name: ib0                                                             } hitcount:          3  gso_segs:         50

Totals:
    Hits: 3
    Entries: 1
    Dropped: 0
";

    #[test]
    fn large_packets_count_by_their_segments() {
        assert_eq!(packets(SHOWN, "ib0").unwrap(), 60);
        assert_eq!(packets(SHOWN, "ib1").unwrap(), 4);
        assert_eq!(packets(SHOWN, "ib").unwrap(), 0);
        assert!(packets("", "ib0").is_err());
    }
}
