// SPDX-License-Identifier: GPL-2.0-only
//! The IPoIB driver: datagram mode (RFC 4391) and connected mode (RFC 4755), with transmits that share doorbells.
//!
//! - [`port`]: an interface's data; [`life`]: its queue pair, coming up and going down
//! - [`ops`]: what the kernel calls; [`tx`], [`train`], [`rx`]: the data path
//! - [`cm`]: connected mode
//! - [`neigh`], [`path`], [`multicast`], [`group`]: where packets go
//! - [`event`]: what follows an event of the HCA
//! - [`settings`], [`ethtool`], [`sysfs`]: the knobs; [`stats`]: the counters
//!
//! Locks, in the order in which they nest: RTNL, the groups, the queue pair (`verbs`), the connections (`cm`), a
//! poller's state, the transmit lock, the link.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod child;
mod cm;
mod ethtool;
mod event;
mod group;
mod life;
mod multicast;
mod neigh;
mod ops;
mod path;
mod port;
mod rx;
mod settings;
mod stats;
mod sysfs;
mod train;
mod tx;

use ipoib_core::abi::{
    ATTR_BATCH_LIMIT, ATTR_BATCHING, ATTR_CM_COPYBREAK, ATTR_GRO_FLUSH_TIMEOUT, ATTR_MODE,
    ATTR_NAPI_DEFER_HARD_IRQS, ATTR_PKEY, ATTR_UMCAST,
};
use kernel::client::{self, Client, Registration};
use kernel::error::{Errno, Result};
use kernel::rtnl::{Kind, Width};
use kernel::sysfs::Files;
use kernel::verbs::Hca;
use kernel::{param, sa, work};

use port::Port;

/// Everything that the module registered. Fields are dropped in order: the devices go first.
pub struct Module {
    _client: Registration,
    _kind: Kind,
    _files: Files<Port>,
    _sa: sa::Client,
    _queue: work::Queue,
}

impl Module {
    /// Starts the driver.
    ///
    /// # Errors
    ///
    /// What could not be registered is logged.
    pub fn start() -> Result<Self> {
        let attributes = [
            (ATTR_PKEY, Width::U16),
            (ATTR_MODE, Width::U16),
            (ATTR_UMCAST, Width::U16),
            (ATTR_BATCHING, Width::U32),
            (ATTR_BATCH_LIMIT, Width::U32),
            (ATTR_CM_COPYBREAK, Width::U32),
            (ATTR_GRO_FLUSH_TIMEOUT, Width::U32),
            (ATTR_NAPI_DEFER_HARD_IRQS, Width::U32),
        ];
        let queue = work::Queue::start()?;
        let sa = sa::Client::start()?;
        let files = sysfs::files()?;
        let kind = param::kind();
        let kind = Kind::new::<Port>(kind, &attributes).map_err(|errno| {
            if errno != Errno::EEXIST {
                return errno;
            }
            kernel::error!(
                "the rtnetlink kind {kind:?} is taken, by ib_ipoib perhaps: load with another kind="
            );
            // modprobe takes EEXIST for a module that is loaded already, and succeeds.
            Errno::EBUSY
        })?;
        let client = Registration::new::<Self, Port>()?;
        Ok(Self {
            _client: client,
            _kind: kind,
            _files: files,
            _sa: sa,
            _queue: queue,
        })
    }
}

impl Client for Module {
    fn add(hca: &Hca) -> Result {
        let mut result = Err(Errno::EOPNOTSUPP);
        for port in 1..=client::ports(hca) {
            if !client::is_infiniband(hca, port) || !is_listed(param::hcas(), hca.name(), port) {
                continue;
            }
            if client::is_accelerated(hca, port) && !param::take_accelerated() {
                kernel::info!(
                    "{} port {port} is left to ib_ipoib: the HCA brings its own batching IPoIB (take_accelerated=1 \
                     takes it all the same)",
                    hca.name()
                );
                continue;
            }
            match Port::create(hca, port) {
                Ok(()) => result = Ok(()),
                Err(errno) => kernel::error!("{} port {port}: no interface, {errno}", hca.name()),
            }
        }
        result
    }
}

/// Says whether a port is in the list of those to take: `hca` or `hca:port`, separated by commas; empty means all.
fn is_listed(list: &[u8], hca: &str, port: u32) -> bool {
    let Ok(list) = core::str::from_utf8(list) else {
        return false;
    };
    list.is_empty()
        || list.split(',').any(|entry| match entry.split_once(':') {
            Some((name, number)) => name == hca && number.parse() == Ok(port),
            None => entry == hca,
        })
}
