// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The running kernel as the engine's [`Port`].
//!
//! A query asks only for what it needs: nothing but the list of interfaces for knobs that it holds, one
//! list more for each ethtool message or for NAPI, and files last.
//!
//! An interface whose name `LinkName` does not take (the kernel admits control characters) cannot be
//! asked for, and is left out of lists.

mod child;
mod device;
mod driver;
mod errors;
mod fields;
mod kernel;
mod read;
mod write;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ibmgr_api::{
    Carrier, Channel, Key, Link, LinkName, NAPI_PREFIX, Pkey, QueueField, Value, nearest, registry,
};
use ibmgrd_engine::{Keys, Port, PortError, Query, Target};

use crate::ethtool::Answer;
use crate::ioctl;
use crate::netdev::Napi;
use crate::nl::NlError;
use crate::rtnl;
use device::{Device, NO_NAPI_GET, Source, subject};
use errors::unanswered;
use kernel::Kernel;
use write::Write;

/// The kernel, in the network namespace of the thread that first asks it.
#[derive(Debug)]
pub struct KernelPort {
    kernel: Kernel,
}

impl Default for KernelPort {
    fn default() -> Self {
        Self::new()
    }
}

impl KernelPort {
    /// Returns a port whose connections open as they are needed.
    #[must_use]
    pub fn new() -> Self {
        Self::with_sysfs(Path::new("/sys"))
    }

    /// Returns a port that reads another sysfs than `/sys`, such as one mounted in a network namespace.
    #[must_use]
    pub fn with_sysfs(root: &Path) -> Self {
        Self {
            kernel: Kernel::new(PathBuf::from(root)),
        }
    }

    /// Returns the kernel's number of the network namespace; no other one gets it before the next boot.
    ///
    /// # Errors
    ///
    /// The kernel does not tell it: it is older than Linux 5.14.
    pub fn namespace_cookie(&mut self) -> Result<u64, PortError> {
        let what = "asking for the network namespace's cookie";
        let socket = self.kernel.genl.descriptor();
        let socket = socket.map_err(|error| unanswered(what, error))?;
        ioctl::namespace_cookie(socket).map_err(|source| PortError::Io {
            what: what.to_owned(),
            source,
        })
    }

    fn links(&mut self) -> Result<Vec<rtnl::Link>, PortError> {
        self.kernel
            .rtnl
            .links()
            .map_err(|error| unanswered("listing interfaces", error))
    }

    fn no_such_link(&mut self, name: &LinkName) -> PortError {
        let names = self.links().unwrap_or_default();
        let names = names
            .iter()
            .flat_map(|link| [&link.name].into_iter().chain(&link.alt_names));
        let nearest = nearest(name.as_str(), names.map(String::as_str));
        PortError::NoSuchLink {
            link: name.clone(),
            nearest,
        }
    }
}

impl Port for KernelPort {
    fn observe(&mut self, link: &LinkName, query: &Query) -> Result<Link, PortError> {
        let found = self.kernel.rtnl.link_named(link.as_str());
        let found = found.map_err(|error| unanswered(&format!("asking for {link}"), error))?;
        let Some(found) = found else {
            return Err(self.no_such_link(link));
        };
        // The asked name may be an alternative one.
        let Ok(name) = found.name.parse::<LinkName>() else {
            return Err(self.no_such_link(link));
        };
        let parent = match found.link {
            Some(index) if found.link_netns.is_none() => {
                let parent = self.kernel.rtnl.link_at(index);
                let failed = |error| unanswered(&format!("asking for the parent of {name}"), error);
                parent
                    .map_err(failed)?
                    .and_then(|parent| parent.name.parse().ok())
            }
            _ => None,
        };
        let gone = PortError::Gone { link: name.clone() };
        let mut device = Device::new(&mut self.kernel, found, name)?.ok_or(gone)?;
        let keys = device.keys(query)?;
        device.fetch(&sources(&keys, query.via))?;
        device.observed(&keys, query.via, parent)
    }

    fn observe_all(&mut self, query: &Query) -> Result<Vec<Link>, PortError> {
        let found = self.links()?;
        let names: HashMap<u32, LinkName> = found
            .iter()
            .filter_map(|link| Some((link.index, link.name.parse().ok()?)))
            .collect();
        // Members of families differ from device to device, but all of them are in the same messages.
        let wanted: Vec<Key> = match &query.keys {
            Keys::Identity => Vec::new(),
            Keys::Named(keys) => keys.clone(),
            Keys::All => Vec::new(),
        };
        let sources = match query.keys {
            Keys::All => all_sources(query.via),
            Keys::Identity | Keys::Named(_) => sources(&wanted, query.via),
        };
        let mut lists = Lists::fetch(&mut self.kernel, &sources)?;
        let mut links = Vec::with_capacity(found.len());
        for link in found {
            let Some(name) = names.get(&link.index).cloned() else {
                continue;
            };
            let parent = link.link.filter(|_| link.link_netns.is_none());
            let parent = parent.and_then(|index| names.get(&index).cloned());
            let Some(mut device) = Device::new(&mut self.kernel, link, name)? else {
                continue;
            };
            lists.hand_out(&mut device);
            let observed = device
                .keys(query)
                .and_then(|keys| device.observed(&keys, query.via, parent));
            match observed {
                Ok(link) => links.push(link),
                Err(PortError::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(links)
    }

    fn name_of(&mut self, index: u32) -> Result<Option<LinkName>, PortError> {
        let found = self.kernel.rtnl.link_at(index);
        let failed = |error| unanswered(&format!("asking for interface {index}"), error);
        Ok(found
            .map_err(failed)?
            .and_then(|link| link.name.parse().ok()))
    }

    fn write(
        &mut self,
        target: &Target,
        key: &Key,
        value: &Value,
        carrier: Carrier,
    ) -> Result<(), PortError> {
        Write {
            kernel: &mut self.kernel,
            target,
            key,
            value,
        }
        .through(carrier)
    }
}

/// Returns what the first carriers of `keys` are read from; further carriers ask by themselves, except
/// for NAPI instances: whether there are any also tells what a value in sysfs is worth.
fn sources(keys: &[Key], via: Option<Channel>) -> Vec<Source> {
    let mut sources = Vec::new();
    for key in keys {
        let carriers = key.knob().carriers.iter().copied();
        let mut carriers = carriers.filter(|it| via.is_none_or(|via| it.channel() == via));
        let first = carriers.next().and_then(Source::of);
        let mut further = carriers.filter_map(Source::of);
        let napis = further.find(|source| *source == Source::Napis);
        for source in first.into_iter().chain(napis) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
    }
    sources
}

fn all_sources(via: Option<Channel>) -> Vec<Source> {
    let mut sources = Vec::new();
    for knob in registry::knobs() {
        for carrier in knob.carriers {
            if let Some(source) = Source::of(*carrier)
                && via.is_none_or(|via| carrier.channel() == via)
                && !sources.contains(&source)
            {
                sources.push(source);
            }
        }
    }
    sources
}

/// Answers of all devices, by index.
struct Lists {
    answers: Vec<(Source, HashMap<u32, Vec<Answer>>)>,
    napis: Option<Result<HashMap<u32, Vec<Napi>>, String>>,
}

impl Lists {
    fn fetch(kernel: &mut Kernel, sources: &[Source]) -> Result<Self, PortError> {
        let mut lists = Self {
            answers: Vec::new(),
            napis: None,
        };
        for source in sources {
            match source {
                Source::Ethtool(ask) => {
                    let what = format!("listing {} of all interfaces", subject(*ask));
                    let answers = kernel.genl.ethtool().ask_all(*ask);
                    let answers = answers.map_err(|error| unanswered(&what, error))?;
                    let mut by_index: HashMap<u32, Vec<Answer>> = HashMap::new();
                    for answer in answers {
                        by_index.entry(answer.index()).or_default().push(answer);
                    }
                    lists.answers.push((*source, by_index));
                }
                Source::Napis => lists.napis = Some(all_napis(kernel)?),
            }
        }
        Ok(lists)
    }

    /// Gives a device its answers. One that is not in a list does not have what the list is about.
    fn hand_out(&mut self, device: &mut Device<'_>) {
        let index = device.link.index;
        for (source, by_index) in &mut self.answers {
            let Source::Ethtool(ask) = *source else {
                continue;
            };
            match by_index
                .remove(&index)
                .and_then(|mut answers| answers.pop())
            {
                Some(answer) => device.answers.take(answer, ask),
                None => {
                    let why = device.driver_lacks(subject(ask));
                    device.answers.refuse(ask, why);
                }
            }
        }
        device.answers.napis = match &mut self.napis {
            None => None,
            Some(Ok(by_index)) => Some(Ok(by_index.remove(&index).unwrap_or_default())),
            Some(Err(why)) => Some(Err(why.clone())),
        };
    }
}

fn all_napis(kernel: &mut Kernel) -> Result<Result<HashMap<u32, Vec<Napi>>, String>, PortError> {
    match kernel.genl.netdev().napis(None) {
        Ok(napis) => {
            let mut by_index: HashMap<u32, Vec<Napi>> = HashMap::new();
            for napi in napis {
                by_index.entry(napi.index).or_default().push(napi);
            }
            Ok(Ok(by_index))
        }
        Err(NlError::NoFamily { .. }) => Ok(Err(NO_NAPI_GET.to_owned())),
        Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => Ok(Err(NO_NAPI_GET.to_owned())),
        Err(error) => Err(unanswered(
            "listing NAPI instances of all interfaces",
            error,
        )),
    }
}

impl Device<'_> {
    pub(super) fn feature_names(&mut self) -> Result<&'static [String], PortError> {
        let names = self.kernel.genl.ethtool().feature_names();
        names.map_err(|error| unanswered("asking for the names of features", error))
    }

    /// Returns the keys that a query means for this device.
    fn keys(&mut self, query: &Query) -> Result<Vec<Key>, PortError> {
        match &query.keys {
            Keys::Identity => Ok(Vec::new()),
            Keys::Named(keys) => self.with_parts(keys),
            Keys::All => {
                let mut keys = Vec::new();
                for knob in registry::knobs() {
                    if !knob.is_family {
                        keys.push(Key::of(knob));
                        continue;
                    }
                    for carrier in knob.carriers {
                        let members = self.members(*carrier, query.via)?;
                        let named = members.iter().map(|member| Key::member_of(knob, member));
                        keys.extend(named.filter_map(Result::ok));
                    }
                }
                Ok(keys)
            }
        }
    }

    /// Adds to `keys` the parts of each that is a whole, or one of such parts.
    fn with_parts(&mut self, keys: &[Key]) -> Result<Vec<Key>, PortError> {
        let mut all = keys.to_vec();
        for key in keys {
            let knob = key.knob();
            let is_part = |carrier: &&Carrier| matches!(carrier, Carrier::OneNapi(_));
            let Some(carrier) = knob.carriers.iter().find(|it| key.is_all() || is_part(it)) else {
                continue;
            };
            let members = self.members(*carrier, None)?;
            let named = members.iter().map(|member| Key::member_of(knob, member));
            all.extend(named.filter_map(Result::ok));
        }
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// Returns the members of a family that the device lists.
    fn members(
        &mut self,
        carrier: Carrier,
        via: Option<Channel>,
    ) -> Result<Vec<String>, PortError> {
        if via.is_some_and(|via| carrier.channel() != via) {
            return Ok(Vec::new());
        }
        if let Some(source) = Source::of(carrier) {
            self.fetch(&[source])?;
        }
        match carrier {
            Carrier::Feature => Ok(self.feature_names()?.to_vec()),
            Carrier::PrivateFlag => {
                let flags = self
                    .answers
                    .flags
                    .iter()
                    .flatten()
                    .flat_map(|flags| &flags.flags);
                Ok(flags.map(|(name, _)| name.clone()).collect())
            }
            Carrier::Queue(field) => {
                let count = match field {
                    QueueField::RpsCpus | QueueField::RpsFlowCnt => self.link.rx_queues,
                    QueueField::XpsCpus => self.link.tx_queues,
                };
                let name = self.name.clone();
                let Ok(sysfs) = self.sysfs() else {
                    return Ok(Vec::new());
                };
                // A device may use fewer queues than it has.
                let is_there = |number: &u32| {
                    let queue = fields::queue(field, *number);
                    match field {
                        QueueField::RpsCpus | QueueField::RpsFlowCnt => {
                            sysfs.has_queue(&name, queue)
                        }
                        // A device with one transmit queue has the file, and it can't be read
                        // (xps_cpus_show, net/core/net-sysfs.c).
                        QueueField::XpsCpus => sysfs.read_queue(&name, queue).is_ok(),
                    }
                };
                let numbers = (0..count.unwrap_or(0)).take_while(is_there);
                Ok(numbers
                    .map(|number| format!("{}{number}", field.prefix()))
                    .collect())
            }
            Carrier::OneNapi(field) => {
                // A kernel that tells nothing of single instances has none to set.
                let napis = self.answers.napis.iter().flatten().flatten();
                let count = napis.filter(|napi| fields::napi(field, napi).is_some());
                Ok((0..count.count())
                    .map(|number| format!("{NAPI_PREFIX}{number}"))
                    .collect())
            }
            Carrier::Rtnl(_)
            | Carrier::Coalesce(_)
            | Carrier::Ring(_)
            | Carrier::Channels(_)
            | Carrier::BatchingFlags
            | Carrier::Tunable(_)
            | Carrier::Napi(_)
            | Carrier::Sysfs(_) => Ok(Vec::new()),
        }
    }

    /// Reads the keys and turns the device into what the engine works on.
    fn observed(
        mut self,
        keys: &[Key],
        via: Option<Channel>,
        parent_name: Option<LinkName>,
    ) -> Result<Link, PortError> {
        let mut readings = std::collections::BTreeMap::new();
        for key in keys {
            readings.insert(key.clone(), self.read(key, via)?);
        }
        let device_path = self.path();
        let child_kind = self.child_kind();
        let link = self.link;
        let pkey = link.ipoib.as_ref().and_then(|info| info.pkey);
        Ok(Link {
            index: link.index,
            name: self.name,
            is_up: link.is_up(),
            has_carrier: link.is_up() && link.carrier == Some(true),
            alt_names: link.alt_names,
            kind: link.kind,
            driver: self.driver_name,
            device_path,
            arphrd: link.hw_type,
            address: link.address.as_bytes().to_vec(),
            parent: link.link,
            parent_name,
            child_kind,
            pkey: pkey.and_then(Pkey::new),
            readings,
        })
    }
}
