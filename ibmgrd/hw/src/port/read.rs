// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading a knob: carriers in their order, and what the device says through each.

use ibmgr_api::{
    Carrier, Channel, CpuSet, Domain, Key, Limits, Link, NapiField, QueueField, Reading, RtnlField,
    Support, SysfsField, TunableField, Value, abi, limits::CQ_MODERATION, napi_number, nearest,
};
use ibmgrd_engine::PortError;

use super::device::{Device, Source, Told};
use super::driver::{Driver, has_connected_mode};
use super::fields;
use crate::ethtool::Params;
use crate::netdev::Napi;
use crate::uapi::{ETHTOOL_A_COALESCE_RX_MAX_FRAMES, ETHTOOL_A_COALESCE_RX_USECS};

impl Device<'_> {
    /// Reads a knob through the first carrier that has it.
    pub(super) fn read(&mut self, key: &Key, via: Option<Channel>) -> Result<Reading, PortError> {
        let mut first_reason: Option<String> = None;
        let mut unreached = None;
        for carrier in key.knob().carriers {
            if via.is_some_and(|channel| carrier.channel() != channel) {
                continue;
            }
            match self.read_through(key, *carrier)? {
                Reading {
                    support: Support::Unsupported(why),
                    ..
                } => {
                    // That a channel cannot be reached says more than that another one has no value.
                    if self.answers.is_unreached(&why) {
                        unreached = Some(why.clone());
                    }
                    first_reason = first_reason.or(Some(why));
                }
                reading if via.is_none() => return self.agreed(key, reading),
                reading => return Ok(reading),
            }
        }
        let why = first_reason.unwrap_or_else(|| "no carrier on that channel".to_owned());
        Ok(Reading::unsupported(match unreached {
            Some(unreached) if unreached != why => format!("{why}; {unreached}"),
            _ => why,
        }))
    }

    /// Compares the value that sysfs has for NAPI instances with theirs, which are in force: a program
    /// may have set them one by one. Theirs is also the way where this process may not write the file.
    fn agreed(&mut self, key: &Key, reading: Reading) -> Result<Reading, PortError> {
        let carriers = || key.knob().carriers.iter().copied();
        let napi = carriers().find_map(|carrier| match carrier {
            Carrier::Napi(field) => Some(field),
            _ => None,
        });
        let file = carriers().find_map(|carrier| match carrier {
            Carrier::Sysfs(field) => Some(fields::file(field)),
            _ => None,
        });
        let (Some(field), Some(file), Some(Channel::Sysfs)) = (napi, file, reading.via) else {
            return Ok(reading);
        };
        self.fetch(&[Source::Napis])?;
        let name = self.name.clone();
        let is_writable = self
            .sysfs()
            .is_ok_and(|sysfs| sysfs.is_writable(&name, file));
        Ok(match self.napi(field, &key.knob().domain) {
            Ok(Found { value: None, .. }) if is_writable => Reading {
                value: None,
                ..reading
            },
            Ok(Found { value, .. }) if value != reading.value || !is_writable => Reading {
                value,
                via: Some(Channel::Netdev),
                ..reading
            },
            // They agree, there are none, or this kernel tells nothing of each.
            Ok(_) | Err(_) => reading,
        })
    }

    fn read_through(&mut self, key: &Key, carrier: Carrier) -> Result<Reading, PortError> {
        if let Some(why) = self.driver.lacks(carrier) {
            return Ok(Reading::unsupported(why));
        }
        if let Some(source) = Source::of(carrier) {
            self.fetch(&[source])?;
        }
        let told = match carrier {
            Carrier::Rtnl(field) => self.rtnl(field, &key.knob().domain),
            Carrier::Coalesce(field) => self.coalesce(fields::coalesce(field), &key.knob().domain),
            Carrier::Ring(field) => {
                self.bounded(&self.answers.rings, fields::ring(field), "such ring")
            }
            Carrier::Channels(field) => self.bounded(
                &self.answers.channels,
                fields::channels(field),
                "such channels",
            ),
            Carrier::Feature => self.feature(key)?,
            Carrier::PrivateFlag => self.private_flag(key),
            Carrier::BatchingFlags => self.batching_flags(),
            Carrier::Tunable(TunableField::RxCopybreak) => self.copybreak()?.map(Found::of),
            Carrier::Napi(field) => self.napi(field, &key.knob().domain),
            Carrier::OneNapi(field) => self.one_napi(field, key),
            Carrier::Queue(field) if key.is_all() => self.queues(field, key)?,
            Carrier::Queue(field) => self.queue(field, key),
            Carrier::Sysfs(field) => self.file(field, &key.knob().domain),
        };
        Ok(match told {
            Err(why) => Reading::unsupported(why),
            Ok(Found {
                value,
                support,
                limits,
            }) => {
                let is_cpus = matches!(key.knob().domain, Domain::Cpus);
                let local = is_cpus.then(|| self.local_cpus()).flatten();
                let ignored = self.driver.ignores(carrier, self.is_connected());
                let support = match (support, ignored) {
                    (Support::Settable, Some(why)) => Support::StoredNoEffect(why.to_owned()),
                    (support, _) => support,
                };
                Reading {
                    value,
                    support,
                    via: Some(carrier.channel()),
                    limits,
                    local: local.map(|cpus| Value::Text(cpus.to_string())),
                }
            }
        })
    }

    fn rtnl(&self, field: RtnlField, domain: &Domain) -> Told<Found> {
        let link = &self.link;
        let plain = |value: u32| Ok(Found::of(value));
        match field {
            RtnlField::State => Ok(Found::of(link.is_up())),
            RtnlField::Mtu => {
                let min = u64::from(link.min_mtu.unwrap_or_default());
                // No limit at all is 0; what the kernel keeps is an int.
                let max = link
                    .max_mtu
                    .filter(|max| *max != 0)
                    .map_or(i32::MAX as u64, u64::from);
                Ok(Found {
                    limits: Some(Limits { min, max }),
                    ..Found::of(link.mtu)
                })
            }
            RtnlField::TxQueueLen => plain(link.tx_queue_len),
            RtnlField::Alias => Ok(Found::of(Value::Text(
                link.alias.clone().unwrap_or_default(),
            ))),
            RtnlField::GsoMaxSize => {
                let size = link.gso_max_size.ok_or("this kernel does not tell it")?;
                Ok(Found::of(size).up_to(link.tso_max_size))
            }
            RtnlField::GroMaxSize => {
                plain(link.gro_max_size.ok_or("changing it needs Linux 5.19")?)
            }
            RtnlField::IpoibMode => self.mode(),
            RtnlField::IpoibUmcast => {
                let umcast = link.ipoib.as_ref().and_then(|info| info.umcast);
                plain(umcast.ok_or(NOT_IPOIB)?.into())
            }
            RtnlField::Batching => self.own(abi::ATTR_BATCHING, domain),
            RtnlField::BatchLimit => self.own(abi::ATTR_BATCH_LIMIT, domain),
            RtnlField::CmCopybreak => self.own(abi::ATTR_CM_COPYBREAK, domain),
            RtnlField::GroFlushTimeout => self.own(abi::ATTR_GRO_FLUSH_TIMEOUT, domain),
            RtnlField::DeferHardIrqs => self.own(abi::ATTR_NAPI_DEFER_HARD_IRQS, domain),
        }
    }

    fn mode(&self) -> Told<Found> {
        let mode = self
            .link
            .ipoib
            .as_ref()
            .and_then(|info| info.mode)
            .ok_or(NOT_IPOIB)?;
        let found = Found::of(u32::from(mode));
        if has_connected_mode(self.link.address.as_bytes()) {
            return Ok(found);
        }
        let why = match self.driver {
            Driver::Enhanced => "enhanced IPoIB has datagram mode only",
            Driver::InTree | Driver::Batch | Driver::Other => {
                "its address lacks the flag of connected mode: the driver was built without it, \
                 or the HCA cannot do it"
            }
        };
        Ok(found.fixed(why))
    }

    /// Reads an attribute of our driver's own.
    fn own(&self, attr: u16, domain: &Domain) -> Told<Found> {
        let info = self.link.ipoib.as_ref().ok_or(NOT_IPOIB)?;
        let value = info
            .own(attr)
            .ok_or_else(|| self.driver_lacks("such attribute"))?;
        Ok(Found::of(domain.from_kernel(value.into())))
    }

    fn coalesce(&self, attr: u16, domain: &Domain) -> Told<Found> {
        let params = told(&self.answers.coalesce)?;
        let value = params
            .get(attr)
            .ok_or_else(|| self.driver_lacks("such coalescing"))?;
        let is_moderation = matches!(
            attr,
            ETHTOOL_A_COALESCE_RX_USECS | ETHTOOL_A_COALESCE_RX_MAX_FRAMES
        );
        let max = match self.driver {
            Driver::InTree | Driver::Batch if is_moderation => Some(CQ_MODERATION.max),
            _ => None,
        };
        Ok(Found::of(domain.from_kernel(value.into())).up_to(max))
    }

    fn bounded(
        &self,
        params: &Option<Told<Params>>,
        (attr, max): (u16, u16),
        what: &str,
    ) -> Told<Found> {
        let params = told(params)?;
        let value = params.get(attr).ok_or_else(|| self.driver_lacks(what))?;
        Ok(Found::of(value).up_to(params.get(max)))
    }

    fn feature(&mut self, key: &Key) -> Result<Told<Found>, PortError> {
        let names = self.feature_names()?;
        let member = key.member().unwrap_or_default();
        let Some((_, bit)) = names.iter().zip(0_u32..).find(|(name, _)| *name == member) else {
            let near = nearest(member, names.iter().map(String::as_str));
            return Ok(Err(unknown("feature", member, &near)));
        };
        Ok(told(&self.answers.features).map(|features| {
            let found = Found::of(features.active.has(bit));
            if features.unchangeable.has(bit) {
                found.fixed("no device lets it be changed")
            } else if features.hardware.has(bit) {
                found
            } else {
                found.fixed("the driver does not let it be changed")
            }
        }))
    }

    fn private_flag(&self, key: &Key) -> Told<Found> {
        let flags = told(&self.answers.flags)?;
        let member = key.member().unwrap_or_default();
        let value = flags.get(member).ok_or_else(|| {
            let near = nearest(member, flags.flags.iter().map(|(name, _)| name.as_str()));
            unknown("private flag", member, &near)
        })?;
        Ok(Found::of(value))
    }

    fn batching_flags(&self) -> Told<Found> {
        let flags = told(&self.answers.flags)?;
        let flag = |name| {
            flags
                .get(name)
                .ok_or_else(|| self.driver_lacks("such private flag"))
        };
        let (is_on, is_adaptive) = (flag(abi::FLAG_BATCHING)?, flag(abi::FLAG_ADAPTIVE)?);
        Ok(Found::of(match (is_on, is_adaptive) {
            (_, true) => 2_u32,
            (true, false) => 1,
            (false, false) => 0,
        }))
    }

    fn napi(&self, field: NapiField, domain: &Domain) -> Told<Found> {
        let napis = told(&self.answers.napis)?;
        if napis.is_empty() {
            let why = if self.link.is_up() {
                self.driver_lacks("NAPI instance at present")
            } else {
                "an interface that is down has no NAPI instances".to_owned()
            };
            return Err(why);
        }
        let mut values = Vec::with_capacity(napis.len());
        for napi in napis {
            values.push(napi_value(field, napi)?);
        }
        values.dedup();
        // Instances that differ have no common value to show, but one can be set.
        let value = match values[..] {
            [value] => Some(domain.from_kernel(value)),
            _ => None,
        };
        Ok(Found {
            value,
            support: Support::Settable,
            limits: None,
        })
    }

    /// Reads it of the instance that the key's member names.
    fn one_napi(&self, field: NapiField, key: &Key) -> Told<Found> {
        let member = key.member().unwrap_or_default();
        let napis = told(&self.answers.napis)?;
        let napi = napi_number(member).and_then(|number| fields::napi_at(napis, number));
        let napi = napi.ok_or_else(|| {
            let count = napis.len();
            format!("it has no {member}: there are {count} NAPI instances at present")
        })?;
        let value = napi_value(field, napi)?;
        Ok(Found {
            value: Some(key.knob().domain.from_kernel(value)),
            support: Support::Settable,
            limits: None,
        })
    }

    fn file(&mut self, field: SysfsField, domain: &Domain) -> Told<Found> {
        let is_ipoib = self.link.hw_type == Link::INFINIBAND;
        if matches!(field, SysfsField::IpoibMode | SysfsField::IpoibUmcast) && !is_ipoib {
            // A list of many interfaces does not look for it in each.
            return Err(NOT_IPOIB.to_owned());
        }
        let name = self.name.clone();
        let file = fields::file(field);
        let text = self
            .sysfs()?
            .read(&name, file)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ENOENT) => match field {
                    SysfsField::IpoibMode | SysfsField::IpoibUmcast
                        if self.link.ipoib.is_some() =>
                    {
                        "P_Key children made through rtnetlink have no such file".to_owned()
                    }
                    _ => format!("the interface has no file {file}"),
                },
                _ => format!("reading {file}: {error}"),
            })?;
        if field == SysfsField::Threaded && self.is_without_napi() {
            return Err(self.driver_lacks("NAPI instance at present"));
        }
        let odd = || format!("{file} holds '{}'", text.escape_debug());
        let value = match domain {
            Domain::Text { .. } | Domain::Cpus => Value::Text(text),
            Domain::Choice(_) => domain.parse(&text).map_err(|_| odd())?,
            Domain::Number { .. } | Domain::Duration { .. } => {
                domain.from_kernel(text.parse().map_err(|_| odd())?)
            }
        };
        // Whether and how far it can be changed does not depend on the channel.
        let found = match field {
            SysfsField::IpoibMode => self.mode()?,
            SysfsField::Mtu => self.rtnl(RtnlField::Mtu, domain)?,
            _ => Found::of(0_u32),
        };
        Ok(Found {
            value: Some(value),
            ..found
        })
    }

    /// Reads a file of all queues: there is a value where all have the same.
    fn queues(&mut self, field: QueueField, key: &Key) -> Result<Told<Found>, PortError> {
        let members = self.members(Carrier::Queue(field), None)?;
        let mut all: Option<Found> = None;
        for member in members {
            let Ok(one) = Key::member_of(key.knob(), &member) else {
                continue;
            };
            match (self.queue(field, &one), &mut all) {
                (Err(why), _) => return Ok(Err(why)),
                (Ok(found), None) => all = Some(found),
                (Ok(found), Some(all)) if found.value != all.value => all.value = None,
                (Ok(_), Some(_)) => {}
            }
        }
        let none = || "it has no queues, or the kernel no such setting of queues".to_owned();
        Ok(all.ok_or_else(none))
    }

    /// Reads a file of the queue that the key's member names.
    fn queue(&mut self, field: QueueField, key: &Key) -> Told<Found> {
        let member = key.member().unwrap_or_default();
        let number = field.queue(member).ok_or("no queue has such a name")?;
        let name = self.name.clone();
        let text = self
            .sysfs()?
            .read_queue(&name, fields::queue(field, number));
        let text = text.map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => {
                format!("it has no queue {member}, or the kernel no such setting of queues")
            }
            _ => format!("reading it: {error}"),
        })?;
        let odd = || format!("the kernel says '{}'", text.escape_debug());
        Ok(Found::of(match field {
            QueueField::RpsCpus | QueueField::XpsCpus => {
                Value::Text(CpuSet::from_mask(&text).map_err(|_| odd())?.to_string())
            }
            QueueField::RpsFlowCnt => Value::Number(text.parse().map_err(|_| odd())?),
        }))
    }

    /// Returns the CPUs of the device's NUMA node; of a virtual interface, all that are online.
    fn local_cpus(&mut self) -> Option<CpuSet> {
        if let Some(cpus) = &self.answers.local_cpus {
            return cpus.clone();
        }
        let cpus = self.read_local_cpus();
        self.answers.local_cpus = Some(cpus.clone());
        cpus
    }

    fn read_local_cpus(&mut self) -> Option<CpuSet> {
        let name = self.name.clone();
        let is_physical = self.link.parent_device.is_some();
        let sysfs = self.sysfs().ok()?;
        // A virtio device leaves it to the one that it is on.
        let files = ["device/local_cpulist", "device/../local_cpulist"];
        let near = files.iter().find_map(|file| sysfs.read(&name, file).ok());
        let list = match near {
            Some(list) if is_physical => list,
            _ => self.kernel.online_cpus()?,
        };
        list.parse().ok()
    }

    /// Says whether the device certainly has no NAPI instance: those of a down one are not listed.
    fn is_without_napi(&self) -> bool {
        let napis = self.answers.napis.as_ref();
        self.link.is_up() && napis.is_some_and(|told| told.as_ref().is_ok_and(Vec::is_empty))
    }
}

/// What a carrier says of a knob.
struct Found {
    /// None where parts of the device differ.
    value: Option<Value>,
    support: Support,
    limits: Option<Limits>,
}

impl Found {
    fn of(value: impl Into<Value>) -> Self {
        Self {
            value: Some(value.into()),
            support: Support::Settable,
            limits: None,
        }
    }

    fn up_to(self, max: Option<u32>) -> Self {
        Self {
            limits: max.map(|max| Limits {
                min: 0,
                max: max.into(),
            }),
            ..self
        }
    }

    fn fixed(self, why: &str) -> Self {
        Self {
            support: Support::Fixed(why.to_owned()),
            ..self
        }
    }
}

fn napi_value(field: NapiField, napi: &Napi) -> Told<u64> {
    let since = fields::napi_since(field);
    let missing = || format!("setting it per NAPI instance needs Linux {since}");
    fields::napi(field, napi).ok_or_else(missing)
}

const NOT_IPOIB: &str = "this is no IPoIB interface";

/// Returns the answer, or the reason why there is none.
fn told<T>(answer: &Option<Told<T>>) -> Result<&T, String> {
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(why)) => Err(why.clone()),
        None => Err("it was not asked for".to_owned()),
    }
}

fn unknown(what: &str, member: &str, near: &[String]) -> String {
    match near {
        [] => format!("no {what} is called '{member}'"),
        near => format!(
            "no {what} is called '{member}'; did you mean {}?",
            near.join(" or ")
        ),
    }
}
