// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Knobs of IPoIB interfaces, whatever the driver.

use super::{Effect, Knob, Phase, live};
use crate::channel::{Carrier, RtnlField, SysfsField};
use crate::domain::{Choice, Domain};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        effect: Effect::Pause,
        disturbs: &["mtu"],
        is_brief: true,
        ..live(
            "mode",
            Domain::Choice(&[
                Choice {
                    name: "datagram",
                    raw: 0,
                    aliases: &["ud"],
                },
                Choice {
                    name: "connected",
                    raw: 1,
                    aliases: &["cm", "rc"],
                },
            ]),
            &[
                Carrier::Rtnl(RtnlField::IpoibMode),
                Carrier::Sysfs(SysfsField::IpoibMode),
            ],
            Phase::Mode,
            "Transport of unicast traffic: UD or RC queue pairs.",
            "`connected` (RFC 4755) allows an MTU of 65520 but has no checksum offload or LSO; multicast \
             still goes over UD. A change resets the MTU and flushes paths; set `mtu` in the same command \
             to keep it. Enhanced IPoIB devices (mlx5, ConnectX-4 and later) have datagram mode only.",
        )
    },
    live(
        "umcast",
        Domain::Choice(&[
            Choice {
                name: "honour",
                raw: 0,
                aliases: &["0", "off"],
            },
            Choice {
                name: "ignore",
                raw: 1,
                aliases: &["1", "on"],
            },
        ]),
        &[
            Carrier::Rtnl(RtnlField::IpoibUmcast),
            Carrier::Sysfs(SysfsField::IpoibUmcast),
        ],
        Phase::Link,
        "Multicast groups that user space joined by itself.",
        "`ignore` is the kernel's umcast=1: the driver leaves alone the groups that a program joins \
         directly through verbs. `honour`, the default, makes it join them, too.",
    ),
];
