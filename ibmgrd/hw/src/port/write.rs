// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing a knob through one carrier.

use std::io;

use ibmgr_api::{
    Carrier, CpuSet, Domain, Key, NapiField, QueueField, RtnlField, SysfsField, TunableField,
    Value, abi, napi_number,
};
use ibmgrd_engine::{PortError, Target};

use super::errors::{Failure, INIT_NET_ADMIN, NET_ADMIN, ROOT, unanswered};
use super::fields;
use super::kernel::Kernel;
use crate::ethtool::{Answer, Ask, Device, Group};
use crate::ioctl;
use crate::netdev::NapiChange;
use crate::nl::NlError;
use crate::rtnl::{IpoibChange, Link, LinkChange};

/// A write under way.
pub(super) struct Write<'a> {
    pub(super) kernel: &'a mut Kernel,
    pub(super) target: &'a Target,
    pub(super) key: &'a Key,
    pub(super) value: &'a Value,
}

impl<'a> Write<'a> {
    pub(super) fn through(&mut self, carrier: Carrier) -> Result<(), PortError> {
        match carrier {
            Carrier::Rtnl(field) => self.rtnl(field),
            Carrier::Coalesce(field) => self.params(Group::Coalesce, fields::coalesce(field)),
            Carrier::Ring(field) => self.params(Group::Rings, fields::ring(field).0),
            Carrier::Channels(field) => self.params(Group::Channels, fields::channels(field).0),
            Carrier::Feature => self.feature(),
            Carrier::PrivateFlag => {
                let member = self.key.member().unwrap_or_default();
                self.private_flags(&[(member, self.number()? != 0)])
            }
            Carrier::BatchingFlags => {
                let mode = self.number()?;
                self.private_flags(&[
                    (abi::FLAG_BATCHING, mode != 0),
                    (abi::FLAG_ADAPTIVE, mode == 2),
                ])
            }
            Carrier::Tunable(TunableField::RxCopybreak) => self.copybreak(),
            Carrier::Napi(field) | Carrier::OneNapi(field) => self.napi(field),
            Carrier::Queue(field) => self.queue(field),
            Carrier::Sysfs(field) => self.file(field),
        }
    }

    const fn failure(&self, needs: &'static str) -> Failure<'a> {
        Failure {
            target: self.target,
            key: self.key,
            needs,
        }
    }

    /// Returns the value as the kernel counts it.
    fn number(&self) -> Result<u64, PortError> {
        let number = self.key.knob().domain.to_kernel(self.value);
        number.ok_or_else(|| {
            self.failure(NET_ADMIN)
                .refused(libc::EINVAL, "the value is no number")
        })
    }

    /// Returns the value for a field of 32 bits.
    fn narrow(&self) -> Result<u32, PortError> {
        u32::try_from(self.number()?).map_err(|_| self.too_large())
    }

    fn too_large(&self) -> PortError {
        self.failure(NET_ADMIN)
            .refused(libc::ERANGE, "the kernel keeps 32 bits of it")
    }

    /// Returns the target as it is now, if its index and name still belong together.
    fn link(&mut self) -> Result<Link, PortError> {
        let found = self.kernel.rtnl.link_at(self.target.index);
        let failed = |error| unanswered(&format!("asking for {}", self.target.name), error);
        let same = |link: &Link| link.name == self.target.name.as_str();
        found
            .map_err(failed)?
            .filter(same)
            .ok_or_else(|| self.failure(NET_ADMIN).gone())
    }

    fn device(&self) -> Device<'a> {
        Device {
            index: self.target.index,
            name: Some(self.target.name.as_str()),
        }
    }

    fn rtnl(&mut self, field: RtnlField) -> Result<(), PortError> {
        let link = self.link()?;
        let nothing = LinkChange::of(self.target.index);
        let ipoib = |change: IpoibChange| {
            let kind = link.kind.clone().unwrap_or_default();
            LinkChange {
                ipoib: Some(IpoibChange { kind, ..change }),
                ..nothing.clone()
            }
        };
        let own = |attr, value| {
            ipoib(IpoibChange {
                own: vec![(attr, value)],
                ..Default::default()
            })
        };
        let short = |value: u32| u16::try_from(value).map_err(|_| self.too_large());
        let change = match field {
            RtnlField::State => LinkChange {
                up: Some(self.number()? != 0),
                ..nothing
            },
            RtnlField::Mtu => LinkChange {
                mtu: Some(self.narrow()?),
                ..nothing
            },
            RtnlField::TxQueueLen => LinkChange {
                tx_queue_len: Some(self.narrow()?),
                ..nothing
            },
            RtnlField::Alias => LinkChange {
                alias: Some(self.text()),
                ..nothing
            },
            RtnlField::GsoMaxSize => LinkChange {
                gso_max_size: Some(self.narrow()?),
                ..nothing
            },
            RtnlField::GroMaxSize => LinkChange {
                gro_max_size: Some(self.narrow()?),
                ..nothing
            },
            RtnlField::IpoibMode => {
                let mode = Some(short(self.narrow()?)?);
                ipoib(IpoibChange {
                    mode,
                    ..Default::default()
                })
            }
            RtnlField::IpoibUmcast => {
                let umcast = Some(short(self.narrow()?)?);
                ipoib(IpoibChange {
                    umcast,
                    ..Default::default()
                })
            }
            RtnlField::Batching => own(abi::ATTR_BATCHING, self.narrow()?),
            RtnlField::BatchLimit => own(abi::ATTR_BATCH_LIMIT, self.narrow()?),
            RtnlField::CmCopybreak => own(abi::ATTR_CM_COPYBREAK, self.narrow()?),
            RtnlField::GroFlushTimeout => own(abi::ATTR_GRO_FLUSH_TIMEOUT, self.narrow()?),
            RtnlField::DeferHardIrqs => own(abi::ATTR_NAPI_DEFER_HARD_IRQS, self.narrow()?),
        };
        let result = self.kernel.rtnl.change(&change);
        result
            .map(|_| ())
            .map_err(|error| self.explained(field, &link, error))
    }

    /// Adds what the kernel does not say: which limit of IPoIB was passed.
    fn explained(&self, field: RtnlField, link: &Link, error: NlError) -> PortError {
        let failure = self.failure(NET_ADMIN);
        let is_datagram = link.ipoib.as_ref().is_some_and(|info| info.mode == Some(0));
        match error {
            NlError::Refused(refusal)
                if field == RtnlField::Mtu
                    && is_datagram
                    && refusal.errno == libc::EINVAL
                    && refusal.message.is_none() =>
            {
                let why = "datagram mode takes at most the port's InfiniBand MTU less 4 bytes";
                failure.refused(refusal.errno, format!("{refusal}: {why}"))
            }
            error => failure.netlink(error),
        }
    }

    fn params(&mut self, group: Group, attr: u16) -> Result<(), PortError> {
        let values = [(attr, self.narrow()?)];
        let device = self.device();
        let result = self
            .kernel
            .genl
            .ethtool()
            .set_params(device, group, &values);
        result
            .map(|_| ())
            .map_err(|error| self.failure(NET_ADMIN).netlink(error))
    }

    fn private_flags(&mut self, flags: &[(&str, bool)]) -> Result<(), PortError> {
        let device = self.device();
        let result = self.kernel.genl.ethtool().set_private_flags(device, flags);
        result
            .map(|_| ())
            .map_err(|error| self.failure(NET_ADMIN).netlink(error))
    }

    fn feature(&mut self) -> Result<(), PortError> {
        let name = self.key.member().unwrap_or_default();
        let is_on = self.number()? != 0;
        let was_wanted = self.is_wanted(name)?;
        let device = self.device();
        let set = |kernel: &mut Kernel, is_on| {
            kernel.genl.ethtool().set_features(device, &[(name, is_on)])
        };
        let result = set(self.kernel, is_on);
        let failure = self.failure(NET_ADMIN);
        let outcome = result.map_err(|error| failure.netlink(error))?;
        if !outcome.missed.iter().any(|(missed, _)| missed == name) {
            return Ok(());
        }
        // The kernel keeps the wish, and would grant it at some later change.
        if was_wanted != is_on {
            set(self.kernel, was_wanted).map_err(|error| failure.netlink(error))?;
        }
        let state = if is_on { "off" } else { "on" };
        let why = format!("it stays {state}: the driver, or another feature, does not allow it");
        Err(failure.refused(libc::EINVAL, why))
    }

    fn is_wanted(&mut self, feature: &str) -> Result<bool, PortError> {
        let failure = self.failure(NET_ADMIN);
        let device = self.device();
        let mut ethtool = self.kernel.genl.ethtool();
        let failed = |error| failure.netlink(error);
        let names = ethtool.feature_names().map_err(failed)?;
        let answer = ethtool.ask(device, &[Ask::Features]).map_err(failed)?.pop();
        let bit = names.iter().zip(0..).find(|(name, _)| *name == feature);
        match (answer, bit) {
            (Some(Ok(Answer::Features(features))), Some((_, bit))) => Ok(features.wanted.has(bit)),
            (Some(Err(error)), _) => Err(failed(error)),
            _ => Err(failure.unsupported(format!("no feature is called '{feature}'"))),
        }
    }

    fn copybreak(&mut self) -> Result<(), PortError> {
        // The ioctl knows names only.
        self.link()?;
        let value = self.narrow()?;
        let failure = self.failure(NET_ADMIN);
        let descriptor = self
            .kernel
            .genl
            .descriptor()
            .map_err(|error| failure.netlink(error))?;
        ioctl::set_rx_copybreak(descriptor, self.target.name.as_str(), value)
            .map_err(|error| failure.io(error))
    }

    fn napi(&mut self, field: NapiField) -> Result<(), PortError> {
        self.link()?;
        let raw = self.number()?;
        let change = fields::napi_change(field, raw).ok_or_else(|| self.too_large())?;
        // Instances can be made anew between the list and the change: then once again.
        match self.change_napis(field, &change) {
            Err(PortError::Refused {
                errno: libc::ENOENT,
                ..
            }) => self.change_napis(field, &change),
            result => result,
        }
    }

    fn change_napis(&mut self, field: NapiField, change: &NapiChange) -> Result<(), PortError> {
        let failure = self.failure(INIT_NET_ADMIN);
        let failed = |error| failure.netlink(error);
        let mut netdev = self.kernel.genl.netdev();
        if !netdev.can_set().map_err(failed)? {
            return Err(failure.unsupported("setting it per NAPI instance needs Linux 6.13"));
        }
        let mut napis = netdev.napis(Some(self.target.index)).map_err(failed)?;
        if let Some(number) = self.key.member().and_then(napi_number) {
            napis = fields::napi_at(&napis, number)
                .cloned()
                .into_iter()
                .collect();
        }
        if napis.is_empty() {
            return Err(failure.unsupported("it has no such NAPI instance at present"));
        }
        let ids: Vec<u32> = napis.iter().map(|napi| napi.id).collect();
        netdev.set(&ids, change).map(|_| ()).map_err(|error| {
            // Some may be changed by now. What cannot be put back is gone, or refuses everything.
            for napi in &napis {
                let raw = fields::napi(field, napi);
                let undo = raw.and_then(|raw| fields::napi_change(field, raw));
                let _ = undo.map(|undo| netdev.set(&[napi.id], &undo));
            }
            failed(error)
        })
    }

    fn file(&mut self, field: SysfsField) -> Result<(), PortError> {
        let link = self.link()?;
        let mut text = match &self.key.knob().domain {
            Domain::Text { .. } | Domain::Cpus => self.text(),
            domain @ Domain::Choice(_) if fields::is_named(field) => domain.show(self.value),
            Domain::Choice(_) | Domain::Number { .. } | Domain::Duration { .. } => {
                self.number()?.to_string()
            }
        };
        // sysfs does not even call the driver for an empty text.
        text.push('\n');
        let failure = self.failure(ROOT);
        let name = &self.target.name;
        let sysfs = self.kernel.sysfs_of(name, link.index, &link.address);
        let sysfs = sysfs.map_err(|why| failure.unsupported(why))?;
        sysfs
            .write(name, fields::file(field), &text)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => failure
                    .unsupported(format!("the interface has no file {}", fields::file(field))),
                io::ErrorKind::ReadOnlyFilesystem => {
                    failure.refused(libc::EROFS, "sysfs is mounted read-only here (EROFS)")
                }
                _ => failure.io(error),
            })
    }

    /// Writes a file of the queue that the key's member names.
    fn queue(&mut self, field: QueueField) -> Result<(), PortError> {
        let link = self.link()?;
        let failure = self.failure(ROOT);
        let member = self.key.member().unwrap_or_default();
        let number = field
            .queue(member)
            .ok_or_else(|| failure.unsupported("no queue has such a name"))?;
        let text = match field {
            QueueField::RpsCpus | QueueField::XpsCpus => {
                let cpus: Result<CpuSet, _> = self.text().parse();
                cpus.map_err(|error| failure.refused(libc::EINVAL, error.to_string()))?
                    .mask()
            }
            QueueField::RpsFlowCnt => self.number()?.to_string(),
        };
        let name = &self.target.name;
        let sysfs = self.kernel.sysfs_of(name, link.index, &link.address);
        let sysfs = sysfs.map_err(|why| failure.unsupported(why))?;
        let queue = fields::queue(field, number);
        sysfs
            .write_queue(name, queue, &format!("{text}\n"))
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => failure.unsupported(format!(
                    "it has no queue {member}, or no such setting of it"
                )),
                io::ErrorKind::ReadOnlyFilesystem => {
                    failure.refused(libc::EROFS, "sysfs is mounted read-only here (EROFS)")
                }
                _ => failure.io(error),
            })
    }

    fn text(&self) -> String {
        match self.value {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
        }
    }
}
