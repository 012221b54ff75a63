// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Knobs of NAPI, the kernel's receive polling (Documentation/networking/napi.rst).

use super::{Knob, Phase, live};
use crate::channel::{Carrier, NapiField, SysfsField};
use crate::domain::{Choice, Domain, Unit};

// A write to sysfs reaches every NAPI instance and those to come (net/core/dev.c,
// netdev_set_gro_flush_timeout). What netdev sets ends with the instance: with the interface's going
// down, or a change of its channels. So sysfs goes first where both carry a knob; of `napi-threaded` it
// does not carry all values.
pub(super) const KNOBS: &[Knob] = &[
    live(
        "gro-flush-timeout",
        // `struct napi_config` keeps unsigned long; the timer that uses it is signed.
        Domain::Duration {
            unit: Unit::Nanoseconds,
            max: i64::MAX as u64,
        },
        &[
            Carrier::Sysfs(SysfsField::GroFlushTimeout),
            Carrier::Napi(NapiField::GroFlushTimeout),
        ],
        Phase::Napi,
        "How long GRO holds a packet to merge it with the next.",
        "A few packet times merge more segments and save ACKs, at the price of that much latency. \
         In-tree ib_ipoib stores the value without using it: its polls complete with zero work done.",
    ),
    live(
        "napi-defer-hard-irqs",
        Domain::Number {
            unit: Unit::Count,
            min: 0,
            max: i32::MAX as u64,
        },
        &[
            Carrier::Sysfs(SysfsField::DeferHardIrqs),
            Carrier::Napi(NapiField::DeferHardIrqs),
        ],
        Phase::Napi,
        "Empty polls before completion events are re-armed.",
        "Works together with `gro-flush-timeout`, which times those polls. In-tree ib_ipoib stores the \
         value without using it.",
    ),
    live(
        "irq-suspend-timeout",
        Domain::Duration {
            unit: Unit::Nanoseconds,
            max: i64::MAX as u64,
        },
        &[Carrier::Napi(NapiField::IrqSuspendTimeout)],
        Phase::Napi,
        "How long a busy-polling program may keep events off.",
        "Linux 6.13 and later.",
    ),
    live(
        "napi-threaded",
        Domain::Choice(&[
            Choice {
                name: "off",
                raw: 0,
                aliases: &["0", "no", "false"],
            },
            Choice {
                name: "on",
                raw: 1,
                aliases: &["1", "yes", "true"],
            },
            Choice::new("busy-poll", 2),
        ]),
        &[
            Carrier::Napi(NapiField::Threaded),
            Carrier::Sysfs(SysfsField::Threaded),
        ],
        Phase::Napi,
        "Polls NAPI in kernel threads instead of softirqs.",
        "Threads can be pinned and given a priority. `busy-poll` needs Linux 6.19.",
    ),
];
