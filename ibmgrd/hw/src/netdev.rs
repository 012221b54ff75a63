// SPDX-License-Identifier: Apache-2.0 OR MIT
//! NAPI instances through the `netdev` generic netlink family
//! (Documentation/netlink/specs/netdev.yaml, Documentation/networking/napi.rst).
//!
//! Reading needs Linux 6.8, changing 6.13. The kernel sends no notification of NAPI changes, and most
//! drivers get new ids each time the interface goes up: never keep one.

use crate::genl::{Genl, HEADER_LEN, Name};
use crate::nl::attr::{attrs, out_u32, out_uint};
use crate::nl::{Ack, Ends, NlError, Request};
use crate::uapi;

const VERSION: u8 = 1;

/// One NAPI instance.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Napi {
    /// Index of its device.
    pub index: u32,
    /// The kernel's number of it.
    pub id: u32,
    /// Interrupt that wakes it.
    pub irq: Option<u32>,
    /// Kernel thread that polls it.
    pub thread: Option<u32>,
    /// Empty polls before interrupts are enabled again (Linux 6.13).
    pub defer_hard_irqs: Option<u32>,
    /// How long GRO holds packets, nanoseconds (Linux 6.13).
    pub gro_flush_timeout: Option<u64>,
    /// How long busy polling may suspend interrupts, nanoseconds (Linux 6.13).
    pub irq_suspend_timeout: Option<u64>,
    /// 0 softirq, 1 kernel thread, 2 busy-polling kernel thread (Linux 6.17).
    pub threaded: Option<u32>,
}

impl Napi {
    /// Decodes what follows `struct nlmsghdr` in an answer to `NETDEV_CMD_NAPI_GET`.
    ///
    /// # Errors
    ///
    /// The message is malformed.
    pub fn decode(body: &[u8]) -> Result<Self, NlError> {
        let short = || NlError::malformed("a message without its header");
        let mut napi = Self::default();
        for attr in attrs(body.get(HEADER_LEN..).ok_or_else(short)?) {
            let attr = attr?;
            match attr.kind {
                uapi::NETDEV_A_NAPI_IFINDEX => napi.index = attr.u32()?,
                uapi::NETDEV_A_NAPI_ID => napi.id = attr.u32()?,
                uapi::NETDEV_A_NAPI_IRQ => napi.irq = Some(attr.u32()?),
                uapi::NETDEV_A_NAPI_PID => napi.thread = Some(attr.u32()?),
                uapi::NETDEV_A_NAPI_DEFER_HARD_IRQS => napi.defer_hard_irqs = Some(attr.u32()?),
                uapi::NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT => {
                    napi.gro_flush_timeout = Some(attr.uint()?);
                }
                uapi::NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT => {
                    napi.irq_suspend_timeout = Some(attr.uint()?);
                }
                uapi::NETDEV_A_NAPI_THREADED => napi.threaded = Some(attr.u32()?),
                _ => {}
            }
        }
        Ok(napi)
    }
}

/// What shall change of a NAPI instance; `None` leaves a setting alone.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NapiChange {
    /// At most `i32::MAX`.
    pub defer_hard_irqs: Option<u32>,
    /// Nanoseconds.
    pub gro_flush_timeout: Option<u64>,
    /// Nanoseconds.
    pub irq_suspend_timeout: Option<u64>,
    /// 0, 1 or 2.
    pub threaded: Option<u32>,
}

/// Requests of the family.
#[derive(Debug)]
pub struct Netdev<'a> {
    genl: &'a mut Genl,
}

impl Genl {
    /// Returns the `netdev` family's requests.
    pub const fn netdev(&mut self) -> Netdev<'_> {
        Netdev::new(self)
    }
}

impl<'a> Netdev<'a> {
    pub(crate) const fn new(genl: &'a mut Genl) -> Self {
        Self { genl }
    }

    /// Says whether the running kernel can change NAPI instances (Linux 6.13 and later).
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    pub fn can_set(&mut self) -> Result<bool, NlError> {
        match self.genl.family(Name::Netdev) {
            Ok(family) => Ok(family.commands.contains(&uapi::NETDEV_CMD_NAPI_SET)),
            Err(NlError::NoFamily { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the NAPI instances of a device, or of all devices. A device that is down often has none.
    ///
    /// # Errors
    ///
    /// [`NlError::NoFamily`] before Linux 6.3, `EOPNOTSUPP` before 6.8, or what the kernel said.
    pub fn napis(&mut self, index: Option<u32>) -> Result<Vec<Napi>, NlError> {
        let family = self.genl.family(Name::Netdev)?.id;
        let attrs: Vec<_> = index
            .into_iter()
            .map(|index| out_u32(uapi::NETDEV_A_NAPI_IFINDEX, index))
            .collect();
        let command = uapi::NETDEV_CMD_NAPI_GET;
        let request = Request::generic(family, command, VERSION, Ends::Dump, &attrs, attr_name);
        self.genl
            .socket
            .list(&request, |body| Napi::decode(body).map(Some))
    }

    /// Changes NAPI instances, all of them at once. The first refusal is returned; those before it, and
    /// the settings that the kernel applied before the refused one, stay changed.
    ///
    /// # Errors
    ///
    /// What the kernel said: `EPERM` without `CAP_NET_ADMIN` in the initial user namespace, `ENOENT`
    /// for an instance that is gone, `EOPNOTSUPP` before Linux 6.13.
    pub fn set(&mut self, ids: &[u32], change: &NapiChange) -> Result<Ack, NlError> {
        let family = self.genl.family(Name::Netdev)?.id;
        let requests: Vec<_> = ids.iter().map(|id| change.request(family, *id)).collect();
        let results = self.genl.socket.pipeline(&requests, |_| Ok(()))?;
        let mut all = Ack::default();
        for result in results {
            all.warning = result?.warning.or(all.warning);
        }
        Ok(all)
    }
}

impl NapiChange {
    fn request(&self, family: u16, id: u32) -> Request {
        let mut attrs = vec![out_u32(uapi::NETDEV_A_NAPI_ID, id)];
        let (defer, threaded) = (self.defer_hard_irqs, self.threaded);
        attrs.extend(defer.map(|value| out_u32(uapi::NETDEV_A_NAPI_DEFER_HARD_IRQS, value)));
        let gro = self.gro_flush_timeout;
        attrs.extend(gro.map(|value| out_uint(uapi::NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT, value)));
        let suspend = self.irq_suspend_timeout;
        attrs.extend(suspend.map(|value| out_uint(uapi::NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT, value)));
        attrs.extend(threaded.map(|value| out_u32(uapi::NETDEV_A_NAPI_THREADED, value)));
        let command = uapi::NETDEV_CMD_NAPI_SET;
        Request::generic(family, command, VERSION, Ends::Ack, &attrs, attr_name)
    }
}

fn attr_name(path: &[u16]) -> Option<&'static str> {
    uapi::NAPI.name_of(*path.first()?)
}
