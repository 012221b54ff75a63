// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Knobs of single queues: which CPUs work for them (Documentation/networking/scaling.rst).

use super::{Knob, Phase, live};
use crate::channel::{Carrier, QueueField};
use crate::domain::{Domain, Unit};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        is_family: true,
        ..live(
            "rps-cpus",
            Domain::Cpus,
            &[Carrier::Queue(QueueField::RpsCpus)],
            Phase::Tuning,
            "CPUs that a receive queue's packets are spread over.",
            "`rps-cpus.rx-0` is the first queue's. `none` leaves packets to the CPU that polls the queue; \
             IPoIB with one receive queue gains from several. `local` is the CPUs of the device's NUMA \
             node, whatever they are on this host. `rps-cpus.all` is every queue that has no value of its \
             own.",
        )
    },
    Knob {
        is_family: true,
        ..live(
            "rps-flow-cnt",
            Domain::Number {
                unit: Unit::Count,
                min: 0,
                max: 1 << 30,
            },
            &[Carrier::Queue(QueueField::RpsFlowCnt)],
            Phase::Tuning,
            "Flows that a receive queue remembers the CPU of.",
            "For receive flow steering: `rps-flow-cnt.rx-0` is the first queue's. The kernel rounds up to a \
             power of two, so declare one. `rps-flow-cnt.all` is every queue that has no value of its own. The \
             sysctl `net.core.rps_sock_flow_entries` must not be 0.",
        )
    },
    Knob {
        is_family: true,
        ..live(
            "xps-cpus",
            Domain::Cpus,
            &[Carrier::Queue(QueueField::XpsCpus)],
            Phase::Tuning,
            "CPUs that send through a transmit queue.",
            "`xps-cpus.tx-0` is the first queue's. `none` leaves the choice to a hash. `local` is the CPUs \
             of the device's NUMA node. `xps-cpus.all` is every queue that has no value of its own. The kernel \
             forgets CPUs that are offline.",
        )
    },
];
