// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Knobs of every network interface.

use super::{Effect, Knob, Phase, live};
use crate::channel::{Carrier, RtnlField, SysfsField};
use crate::domain::{Choice, Domain, Unit};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        effect: Effect::Stops,
        ..live(
            "state",
            Domain::Choice(&[Choice::new("down", 0), Choice::new("up", 1)]),
            &[Carrier::Rtnl(RtnlField::State)],
            Phase::Up,
            "Administrative state.",
            "`up` lets the interface join its broadcast group; it has carrier once that join succeeded. \
             In a command with several knobs `up` is set early and `down` last.",
        )
    },
    Knob {
        effect: Effect::Pause,
        is_brief: true,
        ..live(
            "mtu",
            Domain::Number {
                unit: Unit::Bytes,
                // The kernel's int: loopback has 65536, and some devices have no limits at all.
                min: 0,
                max: i32::MAX as u64,
            },
            &[
                Carrier::Rtnl(RtnlField::Mtu),
                Carrier::Sysfs(SysfsField::Mtu),
            ],
            Phase::Link,
            "Largest packet, without the 4-byte IPoIB header.",
            "Connected mode takes up to 65520. In datagram mode the broadcast group's MTU less 4 bytes is \
             the limit (2044 on most fabrics, 4092 at best); the kernel accepts more, stores it, and uses \
             the group's. The device's own limits apply besides. Below 1280 the kernel takes IPv6 off the \
             interface, and a larger MTU, such as one that is put back, does not bring addresses and \
             routes back that were set by hand.",
        )
    },
    live(
        "txqueuelen",
        Domain::Number {
            unit: Unit::Frames,
            min: 0,
            max: u32::MAX as u64,
        },
        &[
            Carrier::Rtnl(RtnlField::TxQueueLen),
            Carrier::Sysfs(SysfsField::TxQueueLen),
        ],
        Phase::Link,
        "Frames that the default qdisc holds.",
        "Queueing disciplines read it when they are attached; one with a limit of its own ignores it.",
    ),
    live(
        "alias",
        Domain::Text { max_len: 255 },
        &[
            Carrier::Rtnl(RtnlField::Alias),
            Carrier::Sysfs(SysfsField::Alias),
        ],
        Phase::Link,
        "Free text for people and tools.",
        "The empty text removes it.",
    ),
    live(
        "gso-max-size",
        Domain::Number {
            unit: Unit::Bytes,
            min: 0,
            max: 524_280,
        },
        &[Carrier::Rtnl(RtnlField::GsoMaxSize)],
        Phase::Link,
        "Largest packet that segmentation may build.",
        "Larger ones give a batching driver longer trains. The device's own limit applies besides.",
    ),
    live(
        "gro-max-size",
        Domain::Number {
            unit: Unit::Bytes,
            min: 0,
            max: 524_280,
        },
        &[Carrier::Rtnl(RtnlField::GroMaxSize)],
        Phase::Link,
        "Largest packet that receive offload may build.",
        "Takes effect only where the driver passes packets through GRO.",
    ),
];
