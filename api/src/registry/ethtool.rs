// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Knobs carried by ethtool (Documentation/networking/ethtool-netlink.rst).

use super::{Effect, Knob, Phase, live};
use crate::channel::{Carrier, ChannelsField, CoalesceField, RingField};
use crate::domain::{Domain, Unit};

/// Returns a coalescing time. The kernel keeps 32 bits of microseconds.
const fn usecs(name: &'static str, carriers: &'static [Carrier], summary: &'static str) -> Knob {
    let domain = Domain::Duration {
        unit: Unit::Microseconds,
        max: u32::MAX as u64,
    };
    live(
        name,
        domain,
        carriers,
        Phase::Tuning,
        summary,
        COALESCE_DETAILS,
    )
}

const fn count(
    name: &'static str,
    unit: Unit,
    carriers: &'static [Carrier],
    summary: &'static str,
) -> Knob {
    let domain = Domain::Number {
        unit,
        min: 0,
        max: u32::MAX as u64,
    };
    live(
        name,
        domain,
        carriers,
        Phase::Tuning,
        summary,
        COALESCE_DETAILS,
    )
}

const fn adaptive(name: &'static str, carriers: &'static [Carrier], summary: &'static str) -> Knob {
    live(
        name,
        Domain::SWITCH,
        carriers,
        Phase::Tuning,
        summary,
        COALESCE_DETAILS,
    )
}

/// Rings and channels: most drivers stop the interface for a moment.
const fn queues(name: &'static str, carriers: &'static [Carrier], summary: &'static str) -> Knob {
    let domain = Domain::Number {
        unit: Unit::Count,
        min: 0,
        max: u32::MAX as u64,
    };
    let row = live(
        name,
        domain,
        carriers,
        Phase::Queues,
        summary,
        QUEUES_DETAILS,
    );
    Knob {
        effect: Effect::Pause,
        ..row
    }
}

const COALESCE_DETAILS: &str = "Which coalescing parameters a driver takes differs: `ibctl explain KNOB LINK` \
                        tells. In-tree ib_ipoib has `rx-usecs` and `rx-frames`, both at most 65535.";
const QUEUES_DETAILS: &str = "The device's maxima apply. In-tree ib_ipoib takes its ring sizes as module \
                      parameters instead.";

macro_rules! coalesce {
    ($field:ident) => {
        &[Carrier::Coalesce(CoalesceField::$field)]
    };
}
macro_rules! ring {
    ($field:ident) => {
        &[Carrier::Ring(RingField::$field)]
    };
}
macro_rules! channels {
    ($field:ident) => {
        &[Carrier::Channels(ChannelsField::$field)]
    };
}

pub(super) const COALESCING: &[Knob] = &[
    usecs(
        "rx-usecs",
        coalesce!(RxUsecs),
        "Delay of a receive event after a packet.",
    ),
    count(
        "rx-frames",
        Unit::Frames,
        coalesce!(RxMaxFrames),
        "Frames before a receive event.",
    ),
    usecs(
        "rx-usecs-irq",
        coalesce!(RxUsecsIrq),
        "`rx-usecs` while an event is being served.",
    ),
    count(
        "rx-frames-irq",
        Unit::Frames,
        coalesce!(RxMaxFramesIrq),
        "`rx-frames` while serving.",
    ),
    usecs(
        "tx-usecs",
        coalesce!(TxUsecs),
        "Delay of a transmit completion event.",
    ),
    count(
        "tx-frames",
        Unit::Frames,
        coalesce!(TxMaxFrames),
        "Frames before a transmit event.",
    ),
    usecs(
        "tx-usecs-irq",
        coalesce!(TxUsecsIrq),
        "`tx-usecs` while an event is being served.",
    ),
    count(
        "tx-frames-irq",
        Unit::Frames,
        coalesce!(TxMaxFramesIrq),
        "`tx-frames` while serving.",
    ),
    usecs(
        "stats-block-usecs",
        coalesce!(StatsBlockUsecs),
        "Delay of statistics updates.",
    ),
    adaptive(
        "adaptive-rx",
        coalesce!(UseAdaptiveRx),
        "Lets the driver adapt receive events.",
    ),
    adaptive(
        "adaptive-tx",
        coalesce!(UseAdaptiveTx),
        "Lets the driver adapt transmit events.",
    ),
    count(
        "pkt-rate-low",
        Unit::PacketsPerSecond,
        coalesce!(PktRateLow),
        "Bound of the low rate.",
    ),
    usecs(
        "rx-usecs-low",
        coalesce!(RxUsecsLow),
        "`rx-usecs` below `pkt-rate-low`.",
    ),
    count(
        "rx-frames-low",
        Unit::Frames,
        coalesce!(RxMaxFramesLow),
        "`rx-frames` at a low rate.",
    ),
    usecs(
        "tx-usecs-low",
        coalesce!(TxUsecsLow),
        "`tx-usecs` below `pkt-rate-low`.",
    ),
    count(
        "tx-frames-low",
        Unit::Frames,
        coalesce!(TxMaxFramesLow),
        "`tx-frames` at a low rate.",
    ),
    count(
        "pkt-rate-high",
        Unit::PacketsPerSecond,
        coalesce!(PktRateHigh),
        "Bound of the high rate.",
    ),
    usecs(
        "rx-usecs-high",
        coalesce!(RxUsecsHigh),
        "`rx-usecs` above `pkt-rate-high`.",
    ),
    count(
        "rx-frames-high",
        Unit::Frames,
        coalesce!(RxMaxFramesHigh),
        "`rx-frames` at a high rate.",
    ),
    usecs(
        "tx-usecs-high",
        coalesce!(TxUsecsHigh),
        "`tx-usecs` above `pkt-rate-high`.",
    ),
    count(
        "tx-frames-high",
        Unit::Frames,
        coalesce!(TxMaxFramesHigh),
        "`tx-frames` at a high rate.",
    ),
    count(
        "sample-interval",
        Unit::Seconds,
        coalesce!(RateSampleInterval),
        "How often the packet rate is sampled.",
    ),
];

pub(super) const QUEUES: &[Knob] = &[
    queues("ring.rx", ring!(Rx), "Receive descriptors."),
    queues(
        "ring.rx-mini",
        ring!(RxMini),
        "Receive descriptors for small frames.",
    ),
    queues(
        "ring.rx-jumbo",
        ring!(RxJumbo),
        "Receive descriptors for large frames.",
    ),
    queues("ring.tx", ring!(Tx), "Transmit descriptors."),
    queues("channels.rx", channels!(Rx), "Receive-only channels."),
    queues("channels.tx", channels!(Tx), "Transmit-only channels."),
    queues(
        "channels.other",
        channels!(Other),
        "Channels for other events.",
    ),
    queues(
        "channels.combined",
        channels!(Combined),
        "Channels that receive and transmit.",
    ),
];

pub(super) const FLAGS: &[Knob] = &[
    Knob {
        is_family: true,
        ..live(
            "feature",
            Domain::SWITCH,
            &[Carrier::Feature],
            Phase::Tuning,
            "Offloads, such as feature.rx-gro.",
            "The names are the kernel's (`ethtool -k` abbreviates some). A feature may be fixed by the \
             driver, or depend on another one.",
        )
    },
    Knob {
        is_family: true,
        ..live(
            "private-flag",
            Domain::SWITCH,
            &[Carrier::PrivateFlag],
            Phase::Tuning,
            "Flags that a driver defines for itself.",
            "`ibctl get LINK` lists the flags of a device, if it has any.",
        )
    },
];
