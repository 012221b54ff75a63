// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Knobs of NAPI, the kernel's receive polling (Documentation/networking/napi.rst).

use super::{Knob, Phase, live};
use crate::channel::{Carrier, NapiField, RtnlField, SysfsField};
use crate::domain::{Choice, Domain, Unit};

// `struct napi_config` keeps unsigned long; the timer that uses it is signed.
const TIMEOUT: Domain = Domain::Duration {
    unit: Unit::Nanoseconds,
    max: i64::MAX as u64,
};

const POLLS: Domain = Domain::Number {
    unit: Unit::Count,
    min: 0,
    max: i32::MAX as u64,
};

const THREADED: Domain = Domain::Choice(&[Choice::OFF, Choice::ON, Choice::new("busy-poll", 2)]);

// A write to sysfs reaches every NAPI instance and those to come (net/core/dev.c,
// netdev_set_gro_flush_timeout). What netdev sets ends with the instance: with the interface's going
// down, or a change of its channels. So sysfs goes first where both carry a knob; of `napi-threaded` it
// does not carry all values. The attributes are our driver's own, for who speaks rtnetlink only.
pub(super) const KNOBS: &[Knob] = &[
    Knob {
        parts: Some("gro-flush-timeout-of"),
        ..live(
            "gro-flush-timeout",
            TIMEOUT,
            &[
                Carrier::Sysfs(SysfsField::GroFlushTimeout),
                Carrier::Napi(NapiField::GroFlushTimeout),
                Carrier::Rtnl(RtnlField::GroFlushTimeout),
            ],
            Phase::Napi,
            "How long GRO holds a packet to merge it with the next.",
            "A few packet times merge more segments and save ACKs, at the price of that much latency. \
             In-tree ib_ipoib stores the value without using it: its polls complete with zero work done.",
        )
    },
    of_one(
        "gro-flush-timeout-of",
        TIMEOUT,
        &[Carrier::OneNapi(NapiField::GroFlushTimeout)],
        "The GRO flush timeout of a single NAPI instance.",
    ),
    Knob {
        parts: Some("napi-defer-hard-irqs-of"),
        ..live(
            "napi-defer-hard-irqs",
            POLLS,
            &[
                Carrier::Sysfs(SysfsField::DeferHardIrqs),
                Carrier::Napi(NapiField::DeferHardIrqs),
                Carrier::Rtnl(RtnlField::DeferHardIrqs),
            ],
            Phase::Napi,
            "Empty polls before completion events are re-armed.",
            "Works together with `gro-flush-timeout`, which times those polls. In-tree ib_ipoib stores the \
             value without using it.",
        )
    },
    of_one(
        "napi-defer-hard-irqs-of",
        POLLS,
        &[Carrier::OneNapi(NapiField::DeferHardIrqs)],
        "The deferral of a single NAPI instance.",
    ),
    Knob {
        parts: Some("irq-suspend-timeout-of"),
        ..live(
            "irq-suspend-timeout",
            TIMEOUT,
            &[Carrier::Napi(NapiField::IrqSuspendTimeout)],
            Phase::Napi,
            "How long a busy-polling program may keep events off.",
            "Linux 6.13 and later.",
        )
    },
    of_one(
        "irq-suspend-timeout-of",
        TIMEOUT,
        &[Carrier::OneNapi(NapiField::IrqSuspendTimeout)],
        "The suspension of a single NAPI instance.",
    ),
    Knob {
        parts: Some("napi-threaded-of"),
        ..live(
            "napi-threaded",
            THREADED,
            &[
                Carrier::Napi(NapiField::Threaded),
                Carrier::Sysfs(SysfsField::Threaded),
            ],
            Phase::Napi,
            "Polls NAPI in kernel threads instead of softirqs.",
            "Threads can be pinned and given a priority. `busy-poll` needs Linux 6.19.",
        )
    },
    of_one(
        "napi-threaded-of",
        THREADED,
        &[Carrier::OneNapi(NapiField::Threaded)],
        "Threaded polling of a single NAPI instance.",
    ),
];

/// A row for single instances.
const fn of_one(
    name: &'static str,
    domain: Domain,
    carriers: &'static [Carrier],
    summary: &'static str,
) -> Knob {
    Knob {
        is_family: true,
        ..live(
            name,
            domain,
            carriers,
            Phase::Napi,
            summary,
            "The instances are `napi-0`, `napi-1` and so on, in the order of their ids; an interface that \
             is down may have none. Where the knob of the whole device is declared, too, that one is \
             for the other instances. Linux 6.13 and later.",
        )
    }
}
