// SPDX-License-Identifier: GPL-2.0-only
//! The interface's operations.

use core::sync::atomic::Ordering;

use ipoib_core::abi::{
    ATTR_BATCH_LIMIT, ATTR_BATCHING, ATTR_CM_COPYBREAK, ATTR_GRO_FLUSH_TIMEOUT, ATTR_MODE,
    ATTR_NAPI_DEFER_HARD_IRQS, ATTR_PKEY, ATTR_UMCAST,
};
use ipoib_core::batch::Mode;
use ipoib_core::limits::{BATCH_LIMIT, CM_COPYBREAK, NAPI_DEFER};
use ipoib_core::wire::{ADDRESS_LEN, ENCAP_LEN, encap};
use kernel::client;
use kernel::error::{Errno, Result};
use kernel::netdev::{Driver, Statistics};
use kernel::ops::connected_features;
use kernel::rtnl::{Attributes, Message};
use kernel::skb::Skb;
use kernel::verbs::Hca;

use crate::cm::mode;
use crate::port::{self, Dev, Port};
use crate::tx::{self, Tx};
use crate::{child, event, life, settings};

impl Driver for Port {
    type Tx = Tx;

    fn init(dev: &Dev) -> Result {
        life::init(dev)
    }

    fn registered(dev: &Dev) {
        dev.data().registered.store(true, Ordering::Release);
        // Events before were not heeded.
        event::follow_pkey(dev);
        dev.data().update_gid(dev);
    }

    fn uninit(dev: &Dev) {
        life::uninit(dev);
    }

    fn open(dev: &Dev) -> Result {
        dev.set_carrier(false);
        event::follow_pkey(dev);
        dev.data().update_gid(dev);
        life::start(dev)?;
        child::set_up(dev, true);
        Ok(())
    }

    fn stop(dev: &Dev) {
        child::set_up(dev, false);
        life::stop(dev);
    }

    fn start_xmit(dev: &Dev, tx: &mut Tx, skb: Skb, more: bool) {
        tx::start_xmit(dev, tx, skb, more);
    }

    fn header(dev: &Dev, skb: &mut Skb, ether_type: u16, to: Option<&[u8; 20]>) -> Result<u32> {
        skb.push(&encap(ether_type))?;
        match to {
            Some(to) => skb.push(to)?,
            None => skb.push(&dev.broadcast())?,
        }
        Ok((ADDRESS_LEN + ENCAP_LEN) as u32)
    }

    fn cq_failed(dev: &Dev) {
        event::cq_failed(dev);
    }
    fn tx_timeout(dev: &Dev) {
        let port = dev.data();
        port.counters.tx_timeouts.add(1);
        kernel::warning!(
            "{}: transmit timeout, restarting the queue pair",
            dev.name()
        );
        port.works.recover.queue(dev, 0);
    }

    fn set_rx_mode(dev: &Dev) {
        let port = dev.data();
        if port.oper.load(Ordering::Acquire) {
            port.works.multicast.queue(dev, 0);
        }
    }

    fn set_address(dev: &Dev, address: &[u8; 20]) -> Result {
        // Flags, queue pair number and subnet prefix are not for the administrator to set.
        let current = dev.address();
        let (Some((fixed, id)), Some(now)) = (address.split_last_chunk::<8>(), current.get(..12))
        else {
            return Err(Errno::EINVAL);
        };
        if fixed != now || *id == [0; 8] {
            return Err(Errno::EINVAL);
        }
        event::choose_id(dev, *id);
        client::for_children(dev, |child| event::choose_id(child, *id));
        Ok(())
    }

    fn change_mtu(dev: &Dev, mtu: u32) -> Result {
        let mut link = dev.data().link.lock();
        if !link.setting_mtu {
            link.admin_mtu = mtu;
        }
        let limit = if dev.data().is_connected() {
            mtu
        } else {
            link.group_mtu.unwrap_or(mtu)
        };
        dev.store_mtu(mtu.min(limit));
        Ok(())
    }

    fn fix_features(dev: &Dev, features: u64) -> u64 {
        if dev.data().is_connected() {
            connected_features(features)
        } else {
            features
        }
    }

    fn statistics(dev: &Dev) -> Statistics {
        let counters = &dev.data().counters;
        Statistics {
            rx_packets: counters
                .rx_packets
                .get()
                .wrapping_add(counters.cm_rx_packets.get()),
            rx_bytes: counters
                .rx_bytes
                .get()
                .wrapping_add(counters.cm_rx_bytes.get()),
            rx_errors: counters
                .rx_errors
                .get()
                .wrapping_add(counters.cm_rx_errors.get()),
            rx_dropped: counters.rx_dropped(),
            multicast: counters.rx_multicast.get(),
            tx_packets: counters.tx_packets.get(),
            tx_bytes: counters.tx_bytes.get(),
            tx_errors: counters.tx_errors.get(),
            tx_dropped: counters.tx_dropped(),
        }
    }

    fn iflink(dev: &Dev) -> i32 {
        dev.data()
            .parent
            .as_ref()
            .map_or(dev.ifindex(), |parent| parent.ifindex())
    }

    fn port(dev: &Dev) -> (&Hca, u32) {
        (&dev.data().hca, dev.data().number)
    }

    fn answers(dev: &Dev, port: u32, pkey: u16, gid: Option<[u8; 16]>) -> bool {
        let data = dev.data();
        data.number == port
            && data.link.lock().pkey == pkey | 0x8000
            && gid.is_none_or(|[.., a, b, c, d, e, f, g, h]| {
                // A port has one subnet prefix.
                let id = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
                data.interface_id.load(Ordering::Relaxed) == id
            })
    }

    fn child(parent: &Dev, attributes: &Attributes<'_>) -> Result<(Self, Tx)> {
        if parent.data().parent.is_some() {
            return Err(attributes.refuse(Errno::EINVAL, c"a child can't have children"));
        }
        let pkey = attributes
            .u16(ATTR_PKEY)
            .unwrap_or(parent.data().link.lock().pkey);
        if pkey & 0x7fff == 0 {
            return Err(attributes.refuse(Errno::EINVAL, c"0x0000 and 0x8000 are no P_Keys"));
        }
        Self::child(parent, pkey | 0x8000)
    }

    fn prepare(dev: &Dev) {
        port::prepare(dev);
    }

    fn change_link(dev: &Dev, attributes: &Attributes<'_>) -> Result {
        // All is checked before anything is changed.
        let connected = attributes.u16(ATTR_MODE);
        if connected.is_some_and(|mode| mode > 1) {
            return Err(
                attributes.refuse(Errno::EINVAL, c"mode must be 0 (datagram) or 1 (connected)")
            );
        }
        let umcast = attributes.u16(ATTR_UMCAST);
        if umcast.is_some_and(|value| value > 1) {
            return Err(attributes.refuse(Errno::EINVAL, c"umcast must be 0 or 1"));
        }
        if let Some(pkey) = attributes.u16(ATTR_PKEY) {
            if pkey | 0x8000 != dev.data().link.lock().pkey {
                return Err(attributes.refuse(
                    Errno::EOPNOTSUPP,
                    c"the P_Key of an interface can't be changed",
                ));
            }
        }
        let mode = attributes.u32(ATTR_BATCHING).map(Mode::from_raw);
        if mode == Some(None) {
            return Err(attributes.refuse(
                Errno::EINVAL,
                c"batching must be 0 (off), 1 (on) or 2 (adaptive)",
            ));
        }
        let limit = attributes.u32(ATTR_BATCH_LIMIT);
        if limit.is_some_and(|limit| !BATCH_LIMIT.contains(limit)) {
            return Err(attributes.refuse(Errno::ERANGE, c"batch-limit must be 1 to 64"));
        }
        let copybreak = attributes.u32(ATTR_CM_COPYBREAK);
        if copybreak.is_some_and(|bytes| !CM_COPYBREAK.contains(bytes)) {
            return Err(attributes.refuse(Errno::ERANGE, c"cm-copybreak must be 0 to 2048"));
        }
        let defer = attributes.u32(ATTR_NAPI_DEFER_HARD_IRQS);
        if defer.is_some_and(|polls| !NAPI_DEFER.contains(polls)) {
            let why = c"napi-defer-hard-irqs must be 0 to 2147483647";
            return Err(attributes.refuse(Errno::ERANGE, why));
        }
        if let Some(mode) = connected {
            mode::set(dev, mode == 1)?;
        }
        if let Some(nanoseconds) = attributes.u32(ATTR_GRO_FLUSH_TIMEOUT) {
            dev.set_gro_timeout(nanoseconds.into());
        }
        if let Some(polls) = defer {
            dev.set_defer_irqs(polls);
        }
        if let Some(bytes) = copybreak {
            settings::set_copybreak(dev, bytes);
        }
        if let Some(umcast) = umcast {
            settings::set_umcast(dev, umcast == 1);
        }
        if let Some(mode) = mode.flatten() {
            settings::set_mode(dev, mode);
        }
        if let Some(limit) = limit {
            settings::set_limit(dev, limit);
        }
        Ok(())
    }

    fn fill_link(dev: &Dev, message: &mut Message<'_>) -> Result {
        let port = dev.data();
        let batch = settings::batch(dev);
        message.put_u16(ATTR_PKEY, port.link.lock().pkey)?;
        message.put_u16(ATTR_MODE, u16::from(port.is_connected()))?;
        message.put_u16(ATTR_UMCAST, u16::from(port.umcast.load(Ordering::Relaxed)))?;
        message.put_u32(ATTR_BATCHING, batch.mode as u32)?;
        message.put_u32(ATTR_BATCH_LIMIT, batch.limit)?;
        message.put_u32(ATTR_CM_COPYBREAK, settings::copybreak(dev))?;
        if let Ok(nanoseconds) = u32::try_from(dev.gro_timeout()) {
            message.put_u32(ATTR_GRO_FLUSH_TIMEOUT, nanoseconds)?;
        }
        message.put_u32(ATTR_NAPI_DEFER_HARD_IRQS, dev.defer_irqs())
    }
}
