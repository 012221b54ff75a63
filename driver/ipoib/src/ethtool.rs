// SPDX-License-Identifier: GPL-2.0-only
//! ethtool: driver, counters, private flags, rings, coalescing, speed.

use core::ffi::CStr;

use ipoib_core::abi::{DRIVER, FLAG_ADAPTIVE, FLAG_BATCHING};
use ipoib_core::batch::Mode;
use ipoib_core::limits::{BATCH_LIMIT, CM_COPYBREAK, CQ_MODERATION, Limit, RING_RX, RING_TX};
use kernel::error::{Errno, Result};
use kernel::ethtool::{Coalesce, Ethtool, Refusal, Rings};
use kernel::rtnl;

use crate::port::{Dev, Port};
use crate::{settings, stats};

impl Ethtool for Port {
    const COUNTERS: &'static [&'static str] = &stats::ALL_NAMES;
    const FLAGS: &'static [&'static str] = &[FLAG_BATCHING, FLAG_ADAPTIVE];
    const MAX_RINGS: Rings = Rings {
        rx: RING_RX.max,
        tx: RING_TX.max,
    };
    const NAME: &'static str = DRIVER;
    const VERSION: &'static str = "0.1.0";

    fn firmware(dev: &Dev) -> [u8; 32] {
        dev.data().hca.firmware()
    }

    fn counters(dev: &Dev, values: &mut [u64]) {
        dev.data().counters.read(values);
    }

    fn flags(dev: &Dev) -> u32 {
        match settings::batch(dev).mode {
            Mode::Off => 0b00,
            Mode::On => 0b01,
            Mode::Adaptive => 0b11,
        }
    }

    fn set_flags(dev: &Dev, flags: u32) -> Result {
        let old = Self::flags(dev);
        let mode = match flags {
            0b00 => Mode::Off,
            0b01 => Mode::On,
            0b11 => Mode::Adaptive,
            // Adaptive without batching: whichever of the two was changed decides.
            0b10 if old & 0b01 != 0 => Mode::Off,
            0b10 => Mode::Adaptive,
            _ => return Err(Errno::EINVAL),
        };
        settings::set_mode(dev, mode);
        rtnl::notify(dev);
        Ok(())
    }

    fn rings(dev: &Dev) -> Rings {
        *dev.data().rings.lock()
    }

    fn set_rings(dev: &Dev, rings: Rings) -> core::result::Result<(), Refusal> {
        check(rings.rx, RING_RX, c"rx must be 64 to 8192")?;
        check(rings.tx, RING_TX, c"tx must be 128 to 8192")?;
        if !rings.rx.is_power_of_two() || !rings.tx.is_power_of_two() {
            return Err((Errno::EINVAL, c"ring sizes must be powers of two"));
        }
        settings::set_rings(dev, rings)
    }

    fn coalesce(dev: &Dev) -> Coalesce {
        Coalesce {
            tx_frames: settings::batch(dev).limit,
            ..*dev.data().coalesce.lock()
        }
    }

    fn set_coalesce(dev: &Dev, new: Coalesce) -> core::result::Result<(), Refusal> {
        check(
            new.tx_frames,
            BATCH_LIMIT,
            c"tx-frames, the batch limit, must be 1 to 64",
        )?;
        check(new.rx_usecs, CQ_MODERATION, c"rx-usecs must be 0 to 65535")?;
        check(
            new.rx_frames,
            CQ_MODERATION,
            c"rx-frames must be 0 to 65535",
        )?;
        let port = dev.data();
        let mut current = port.coalesce.lock();
        if (new.rx_usecs, new.rx_frames) != (current.rx_usecs, current.rx_frames) {
            let (usecs, frames) = (new.rx_usecs as u16, new.rx_frames as u16);
            let verbs = port.verbs.lock();
            let result = verbs.as_ref().map_or(Err(Errno::ENODEV), |verbs| {
                verbs.recv.moderate(usecs, frames)
            });
            result.map_err(|errno| (errno, c"the HCA does not moderate completion events"))?;
            *current = Coalesce {
                tx_frames: 0,
                ..new
            };
        }
        drop(current);
        if settings::batch(dev).limit != new.tx_frames {
            settings::set_limit(dev, new.tx_frames);
            rtnl::notify(dev);
        }
        Ok(())
    }

    fn copybreak(dev: &Dev) -> u32 {
        settings::copybreak(dev)
    }

    fn set_copybreak(dev: &Dev, bytes: u32) -> Result {
        if !CM_COPYBREAK.contains(bytes) {
            return Err(Errno::ERANGE);
        }
        settings::set_copybreak(dev, bytes);
        rtnl::notify(dev);
        Ok(())
    }

    fn speed(dev: &Dev) -> Option<u32> {
        let port = dev.data();
        let state = port.hca.port(port.number).ok()?;
        (state.active && state.mbits > 0).then_some(state.mbits)
    }
}

fn check(value: u32, limit: Limit, why: &'static CStr) -> core::result::Result<(), Refusal> {
    if limit.contains(value) {
        Ok(())
    } else {
        Err((Errno::ERANGE, why))
    }
}
