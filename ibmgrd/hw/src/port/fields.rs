// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registry fields to the kernel's numbers and files. Each match is exhaustive: a new field of the
//! registry does not compile until it has its row here.

use ibmgr_api::{ChannelsField, CoalesceField, NapiField, QueueField, RingField, SysfsField};

use crate::netdev::{Napi, NapiChange};
use crate::sysfs::Queue;
use crate::uapi::*;

pub(super) const fn coalesce(field: CoalesceField) -> u16 {
    match field {
        CoalesceField::RxUsecs => ETHTOOL_A_COALESCE_RX_USECS,
        CoalesceField::RxMaxFrames => ETHTOOL_A_COALESCE_RX_MAX_FRAMES,
        CoalesceField::RxUsecsIrq => ETHTOOL_A_COALESCE_RX_USECS_IRQ,
        CoalesceField::RxMaxFramesIrq => ETHTOOL_A_COALESCE_RX_MAX_FRAMES_IRQ,
        CoalesceField::TxUsecs => ETHTOOL_A_COALESCE_TX_USECS,
        CoalesceField::TxMaxFrames => ETHTOOL_A_COALESCE_TX_MAX_FRAMES,
        CoalesceField::TxUsecsIrq => ETHTOOL_A_COALESCE_TX_USECS_IRQ,
        CoalesceField::TxMaxFramesIrq => ETHTOOL_A_COALESCE_TX_MAX_FRAMES_IRQ,
        CoalesceField::StatsBlockUsecs => ETHTOOL_A_COALESCE_STATS_BLOCK_USECS,
        CoalesceField::UseAdaptiveRx => ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX,
        CoalesceField::UseAdaptiveTx => ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX,
        CoalesceField::PktRateLow => ETHTOOL_A_COALESCE_PKT_RATE_LOW,
        CoalesceField::RxUsecsLow => ETHTOOL_A_COALESCE_RX_USECS_LOW,
        CoalesceField::RxMaxFramesLow => ETHTOOL_A_COALESCE_RX_MAX_FRAMES_LOW,
        CoalesceField::TxUsecsLow => ETHTOOL_A_COALESCE_TX_USECS_LOW,
        CoalesceField::TxMaxFramesLow => ETHTOOL_A_COALESCE_TX_MAX_FRAMES_LOW,
        CoalesceField::PktRateHigh => ETHTOOL_A_COALESCE_PKT_RATE_HIGH,
        CoalesceField::RxUsecsHigh => ETHTOOL_A_COALESCE_RX_USECS_HIGH,
        CoalesceField::RxMaxFramesHigh => ETHTOOL_A_COALESCE_RX_MAX_FRAMES_HIGH,
        CoalesceField::TxUsecsHigh => ETHTOOL_A_COALESCE_TX_USECS_HIGH,
        CoalesceField::TxMaxFramesHigh => ETHTOOL_A_COALESCE_TX_MAX_FRAMES_HIGH,
        CoalesceField::RateSampleInterval => ETHTOOL_A_COALESCE_RATE_SAMPLE_INTERVAL,
    }
}

/// Returns the attribute of the present size, and of the largest.
pub(super) const fn ring(field: RingField) -> (u16, u16) {
    match field {
        RingField::Rx => (ETHTOOL_A_RINGS_RX, ETHTOOL_A_RINGS_RX_MAX),
        RingField::RxMini => (ETHTOOL_A_RINGS_RX_MINI, ETHTOOL_A_RINGS_RX_MINI_MAX),
        RingField::RxJumbo => (ETHTOOL_A_RINGS_RX_JUMBO, ETHTOOL_A_RINGS_RX_JUMBO_MAX),
        RingField::Tx => (ETHTOOL_A_RINGS_TX, ETHTOOL_A_RINGS_TX_MAX),
    }
}

/// Returns the attribute of the present number, and of the largest.
pub(super) const fn channels(field: ChannelsField) -> (u16, u16) {
    match field {
        ChannelsField::Rx => (ETHTOOL_A_CHANNELS_RX_COUNT, ETHTOOL_A_CHANNELS_RX_MAX),
        ChannelsField::Tx => (ETHTOOL_A_CHANNELS_TX_COUNT, ETHTOOL_A_CHANNELS_TX_MAX),
        ChannelsField::Other => (ETHTOOL_A_CHANNELS_OTHER_COUNT, ETHTOOL_A_CHANNELS_OTHER_MAX),
        ChannelsField::Combined => (
            ETHTOOL_A_CHANNELS_COMBINED_COUNT,
            ETHTOOL_A_CHANNELS_COMBINED_MAX,
        ),
    }
}

/// Returns a setting of a NAPI instance; `None` when the running kernel does not tell it.
pub(super) fn napi(field: NapiField, napi: &Napi) -> Option<u64> {
    match field {
        NapiField::GroFlushTimeout => napi.gro_flush_timeout,
        NapiField::DeferHardIrqs => napi.defer_hard_irqs.map(u64::from),
        NapiField::IrqSuspendTimeout => napi.irq_suspend_timeout,
        NapiField::Threaded => napi.threaded.map(u64::from),
    }
}

/// Returns the first kernel release with the setting.
pub(super) const fn napi_since(field: NapiField) -> &'static str {
    match field {
        NapiField::GroFlushTimeout | NapiField::DeferHardIrqs | NapiField::IrqSuspendTimeout => {
            "6.13"
        }
        NapiField::Threaded => "6.17",
    }
}

/// Returns the change to `raw`; `None` when the kernel's field is too narrow for it.
pub(super) fn napi_change(field: NapiField, raw: u64) -> Option<NapiChange> {
    let narrow = u32::try_from(raw).ok();
    let nothing = NapiChange::default();
    Some(match field {
        NapiField::GroFlushTimeout => NapiChange {
            gro_flush_timeout: Some(raw),
            ..nothing
        },
        NapiField::IrqSuspendTimeout => NapiChange {
            irq_suspend_timeout: Some(raw),
            ..nothing
        },
        NapiField::DeferHardIrqs => NapiChange {
            defer_hard_irqs: Some(narrow?),
            ..nothing
        },
        NapiField::Threaded => NapiChange {
            threaded: Some(narrow?),
            ..nothing
        },
    })
}

/// Returns the instance of that number: they count in the order of their ids.
pub(super) fn napi_at(napis: &[Napi], number: u32) -> Option<&Napi> {
    let mut sorted: Vec<&Napi> = napis.iter().collect();
    sorted.sort_by_key(|napi| napi.id);
    sorted.get(usize::try_from(number).ok()?).copied()
}

/// Returns the file of a queue.
pub(super) const fn queue(field: QueueField, number: u32) -> Queue {
    let file = match field {
        QueueField::RpsCpus => "rps_cpus",
        QueueField::RpsFlowCnt => "rps_flow_cnt",
        QueueField::XpsCpus => "xps_cpus",
    };
    Queue {
        prefix: field.prefix(),
        number,
        file,
    }
}

/// Returns the file below `/sys/class/net/<link>`.
pub(super) const fn file(field: SysfsField) -> &'static str {
    match field {
        SysfsField::TxQueueLen => "tx_queue_len",
        SysfsField::Mtu => "mtu",
        SysfsField::Alias => "ifalias",
        SysfsField::GroFlushTimeout => "gro_flush_timeout",
        SysfsField::DeferHardIrqs => "napi_defer_hard_irqs",
        SysfsField::Threaded => "threaded",
        SysfsField::IpoibMode => "mode",
        SysfsField::IpoibUmcast => "umcast",
        SysfsField::Batching => BATCHING,
        SysfsField::BatchLimit => BATCH_LIMIT,
        SysfsField::CmCopybreak => CM_COPYBREAK,
    }
}

const BATCHING: &str = "ipoib/batching";
const BATCH_LIMIT: &str = "ipoib/batch_limit";
const CM_COPYBREAK: &str = "ipoib/cm_copybreak";

/// Says whether the file holds a choice by its name; the others hold numbers.
pub(super) const fn is_named(field: SysfsField) -> bool {
    matches!(field, SysfsField::IpoibMode | SysfsField::Batching)
}

#[cfg(test)]
mod tests {
    use ibmgr_api::abi::{SYSFS_BATCH_LIMIT, SYSFS_BATCHING, SYSFS_CM_COPYBREAK, SYSFS_GROUP};

    use super::*;

    #[test]
    fn files_of_our_driver_are_where_the_driver_puts_them() {
        let path = |file| format!("{SYSFS_GROUP}/{file}");
        assert_eq!(BATCHING, path(SYSFS_BATCHING));
        assert_eq!(BATCH_LIMIT, path(SYSFS_BATCH_LIMIT));
        assert_eq!(CM_COPYBREAK, path(SYSFS_CM_COPYBREAK));
    }
}
