// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Knobs of the ipoib_batch driver. Their limits come from the driver's own crate.

use ipoib_core::limits::{BATCH_LIMIT, CM_COPYBREAK, Limit};

use super::{Knob, Phase, live};
use crate::channel::{Carrier, CoalesceField, RtnlField, SysfsField, TunableField};
use crate::domain::{Choice, Domain, Unit};

const fn number(unit: Unit, limit: Limit) -> Domain {
    Domain::Number {
        unit,
        min: limit.min as u64,
        max: limit.max as u64,
    }
}

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        is_brief: true,
        ..live(
            "batching",
            Domain::Choice(&[
                Choice::new("off", 0),
                Choice::new("on", 1),
                Choice::new("adaptive", 2),
            ]),
            &[
                Carrier::Rtnl(RtnlField::Batching),
                Carrier::BatchingFlags,
                Carrier::Sysfs(SysfsField::Batching),
            ],
            Phase::Tuning,
            "Posts several frames with one doorbell.",
            "`on` follows the stack's hint that more frames come; `adaptive` also holds the doorbell while an \
         earlier completion is outstanding, never longer. Only the ipoib_batch driver has it.",
        )
    },
    live(
        "batch-limit",
        number(Unit::Frames, BATCH_LIMIT),
        &[
            Carrier::Rtnl(RtnlField::BatchLimit),
            Carrier::Coalesce(CoalesceField::TxMaxFrames),
            Carrier::Sysfs(SysfsField::BatchLimit),
        ],
        Phase::Tuning,
        "Most frames that one doorbell may cover.",
        "Only the ipoib_batch driver has it; elsewhere `tx-frames` means coalesced interrupts.",
    ),
    live(
        "cm-copybreak",
        number(Unit::Bytes, CM_COPYBREAK),
        &[
            Carrier::Tunable(TunableField::RxCopybreak),
            Carrier::Rtnl(RtnlField::CmCopybreak),
            Carrier::Sysfs(SysfsField::CmCopybreak),
        ],
        Phase::Tuning,
        "Received payload up to this size is copied.",
        "A copied frame's buffer is reposted at once, so that bursts of small frames do not exhaust the \
         receive queue; 0 turns copying off. In-tree ib_ipoib has a fixed threshold of 256 bytes. \
         On other drivers this is the ethtool tunable `rx-copybreak`, where there is one.",
    ),
];
