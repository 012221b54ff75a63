// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One interface while it is read: what the kernel was asked of it, each question at most once.

use ibmgr_api::{Carrier, ChildKind, CpuSet, LinkName};
use ibmgrd_engine::PortError;

use super::driver::Driver;
use super::errors::unanswered;
use super::kernel::Kernel;
use crate::ethtool::{self, Answer, Ask, Features, Group, Params, PrivateFlags};
use crate::ioctl;
use crate::netdev::Napi;
use crate::nl::NlError;
use crate::rtnl::{self, HwAddr};
use crate::sysfs::Sysfs;

/// An answer, or why there is none.
pub(super) type Told<T> = Result<T, String>;

/// A set of answers that are fetched together.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Source {
    Ethtool(Ask),
    Napis,
}

impl Source {
    /// Returns what `carrier` is read from, when it is worth to be asked of all devices at once.
    pub(super) const fn of(carrier: Carrier) -> Option<Self> {
        Some(match carrier {
            Carrier::Coalesce(_) => Self::Ethtool(Ask::Params(Group::Coalesce)),
            Carrier::Ring(_) => Self::Ethtool(Ask::Params(Group::Rings)),
            Carrier::Channels(_) => Self::Ethtool(Ask::Params(Group::Channels)),
            Carrier::Feature => Self::Ethtool(Ask::Features),
            Carrier::PrivateFlag | Carrier::BatchingFlags => Self::Ethtool(Ask::PrivateFlags),
            Carrier::Napi(_) | Carrier::OneNapi(_) => Self::Napis,
            Carrier::Rtnl(_) | Carrier::Tunable(_) | Carrier::Queue(_) | Carrier::Sysfs(_) => {
                return None;
            }
        })
    }
}

/// Answers so far; `None` was not asked.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) coalesce: Option<Told<Params>>,
    pub(super) rings: Option<Told<Params>>,
    pub(super) channels: Option<Told<Params>>,
    pub(super) features: Option<Told<Box<Features>>>,
    pub(super) flags: Option<Told<PrivateFlags>>,
    pub(super) napis: Option<Told<Vec<Napi>>>,
    pub(super) local_cpus: Option<Option<CpuSet>>,
    copybreak: Option<Told<u32>>,
    sysfs: Option<Told<()>>,
}

impl Answers {
    pub(super) fn is_known(&self, source: Source) -> bool {
        match source {
            Source::Ethtool(Ask::Params(Group::Coalesce)) => self.coalesce.is_some(),
            Source::Ethtool(Ask::Params(Group::Rings)) => self.rings.is_some(),
            Source::Ethtool(Ask::Params(Group::Channels)) => self.channels.is_some(),
            // No knob is carried by them yet.
            Source::Ethtool(Ask::Params(Group::Pause)) => true,
            Source::Ethtool(Ask::Features) => self.features.is_some(),
            Source::Ethtool(Ask::PrivateFlags) => self.flags.is_some(),
            Source::Napis => self.napis.is_some(),
        }
    }

    /// Says whether `why` tells that sysfs is out of reach.
    pub(super) fn is_unreached(&self, why: &str) -> bool {
        matches!(&self.sysfs, Some(Err(told)) if told == why)
    }

    pub(super) fn take(&mut self, answer: Answer, ask: Ask) {
        match (ask, answer) {
            (Ask::Params(Group::Coalesce), Answer::Params(params)) => {
                self.coalesce = Some(Ok(params))
            }
            (Ask::Params(Group::Rings), Answer::Params(params)) => self.rings = Some(Ok(params)),
            (Ask::Params(Group::Channels), Answer::Params(params)) => {
                self.channels = Some(Ok(params))
            }
            (_, Answer::Features(features)) => self.features = Some(Ok(features)),
            (_, Answer::PrivateFlags(flags)) => self.flags = Some(Ok(flags)),
            (Ask::Params(Group::Pause) | Ask::Features | Ask::PrivateFlags, Answer::Params(_)) => {}
        }
    }

    /// Notes why `ask` has no answer.
    pub(super) fn refuse(&mut self, ask: Ask, why: String) {
        match ask {
            Ask::Params(Group::Coalesce) => self.coalesce = Some(Err(why)),
            Ask::Params(Group::Rings) => self.rings = Some(Err(why)),
            Ask::Params(Group::Channels) => self.channels = Some(Err(why)),
            Ask::Params(Group::Pause) => {}
            Ask::Features => self.features = Some(Err(why)),
            Ask::PrivateFlags => self.flags = Some(Err(why)),
        }
    }
}

/// Names what an ask is about, for a driver that lacks all of it.
pub(super) const fn subject(ask: Ask) -> &'static str {
    match ask {
        Ask::Params(Group::Coalesce) => "interrupt coalescing",
        Ask::Params(Group::Rings) => "ring sizes",
        Ask::Params(Group::Channels) => "channels",
        Ask::Params(Group::Pause) => "pause frames",
        Ask::Features => "features",
        Ask::PrivateFlags => "private flags",
    }
}

pub(super) struct Device<'k> {
    pub(super) kernel: &'k mut Kernel,
    pub(super) link: rtnl::Link,
    pub(super) name: LinkName,
    pub(super) driver_name: Option<String>,
    pub(super) driver: Driver,
    pub(super) answers: Answers,
}

impl<'k> Device<'k> {
    /// Wraps a link; `None` when it disappeared.
    pub(super) fn new(
        kernel: &'k mut Kernel,
        link: rtnl::Link,
        name: LinkName,
    ) -> Result<Option<Self>, PortError> {
        let unopened = |error| unanswered("asking for the driver", error);
        let descriptor = kernel.genl.descriptor().map_err(unopened)?;
        let driver_name = match ioctl::driver(descriptor, name.as_str()) {
            Ok(driver) => Some(driver).filter(|driver| !driver.is_empty()),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
            // Without it, no more is known than what the device tells.
            Err(_) => None,
        };
        let driver = driver_name.as_deref().map_or(Driver::Other, Driver::named);
        let answers = Answers::default();
        Ok(Some(Self {
            kernel,
            link,
            name,
            driver_name,
            driver,
            answers,
        }))
    }

    /// Asks what is not known yet of `sources`, together.
    pub(super) fn fetch(&mut self, sources: &[Source]) -> Result<(), PortError> {
        let mut asks: Vec<Ask> = Vec::new();
        for source in sources {
            match source {
                source if self.answers.is_known(*source) => {}
                Source::Ethtool(ask) if asks.contains(ask) => {}
                Source::Ethtool(ask) => asks.push(*ask),
                Source::Napis => self.fetch_napis()?,
            }
        }
        if asks.is_empty() {
            return Ok(());
        }
        let device = ethtool::Device::at(self.link.index);
        let failed = |error| unanswered(&format!("asking {} through ethtool", self.name), error);
        let answers = self
            .kernel
            .genl
            .ethtool()
            .ask(device, &asks)
            .map_err(failed)?;
        for (ask, answer) in asks.into_iter().zip(answers) {
            match answer {
                Ok(answer) => self.answers.take(answer, ask),
                Err(error) => {
                    let why = self.missing(error, subject(ask))?;
                    self.answers.refuse(ask, why);
                }
            }
        }
        Ok(())
    }

    fn fetch_napis(&mut self) -> Result<(), PortError> {
        let told = match self.kernel.genl.netdev().napis(Some(self.link.index)) {
            Ok(napis) => Ok(napis),
            Err(NlError::NoFamily { .. }) => Err(NO_NAPI_GET.to_owned()),
            Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => Err(NO_NAPI_GET.to_owned()),
            Err(error) => Err(self.missing(error, "NAPI instances")?),
        };
        self.answers.napis = Some(told);
        Ok(())
    }

    /// Turns the refusal of a question into the reason why there is no answer.
    fn missing(&self, error: NlError, subject: &str) -> Result<String, PortError> {
        match error.errno() {
            Some(libc::ENODEV) => Err(PortError::Gone {
                link: self.name.clone(),
            }),
            Some(libc::EOPNOTSUPP) => Ok(self.driver_lacks(subject)),
            Some(_) => Ok(format!("the kernel does not tell its {subject}: {error}")),
            None => Err(unanswered(
                &format!("{}: asking for {subject}", self.name),
                error,
            )),
        }
    }

    pub(super) fn driver_lacks(&self, what: &str) -> String {
        match &self.driver_name {
            Some(driver) => format!("driver {driver} has no {what}"),
            None => format!("the device has no {what}"),
        }
    }

    /// Returns the tunable `rx-copybreak`.
    pub(super) fn copybreak(&mut self) -> Result<Told<u32>, PortError> {
        if let Some(told) = &self.answers.copybreak {
            return Ok(told.clone());
        }
        let failed = |error| unanswered(&format!("asking {} for a tunable", self.name), error);
        let descriptor = self.kernel.genl.descriptor().map_err(failed)?;
        let told = match ioctl::rx_copybreak(descriptor, self.name.as_str()) {
            Ok(value) => Ok(value),
            Err(error) => match error.raw_os_error() {
                Some(libc::ENODEV) => {
                    return Err(PortError::Gone {
                        link: self.name.clone(),
                    });
                }
                // EINVAL: the driver has tunables, but not this one.
                Some(libc::EOPNOTSUPP | libc::EINVAL) => {
                    Err(self.driver_lacks("tunable rx-copybreak"))
                }
                _ => Err(format!("the kernel does not tell the tunable: {error}")),
            },
        };
        self.answers.copybreak = Some(told.clone());
        Ok(told)
    }

    /// Returns sysfs, if it shows this very interface.
    pub(super) fn sysfs(&mut self) -> Told<&Sysfs> {
        if self.answers.sysfs.is_none() {
            let (index, address) = (self.link.index, &self.link.address);
            let told = self.kernel.sysfs_of(&self.name, index, address).map(|_| ());
            self.answers.sysfs = Some(told);
        }
        match &self.answers.sysfs {
            Some(Err(why)) => Err(why.clone()),
            _ => self.kernel.sysfs(),
        }
    }

    /// Returns the path of the device below `/sys`. Virtual interfaces have none.
    pub(super) fn path(&mut self) -> Option<String> {
        let device = self.link.parent_device.as_deref()?;
        let sysfs = self.kernel.sysfs().ok()?;
        sysfs.device_path(&self.name, device)
    }

    /// Tells how a P_Key child was made: the in-tree driver gives a file `parent` to those made through
    /// `create_child`, and to no others (drivers/infiniband/ulp/ipoib/ipoib_vlan.c); so does ours.
    pub(super) fn child_kind(&mut self) -> Option<ChildKind> {
        let has_pkey = self.link.ipoib.as_ref()?.pkey.is_some();
        let tells = match self.driver {
            Driver::InTree | Driver::Enhanced | Driver::Batch => true,
            Driver::Other => false,
        };
        if !has_pkey || !tells || self.link.link.is_none() {
            return None;
        }
        let name = self.name.clone();
        let is_legacy = self.sysfs().ok()?.has(&name, "parent");
        Some(if is_legacy {
            ChildKind::Legacy
        } else {
            ChildKind::Netlink
        })
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link
            .ipoib
            .as_ref()
            .is_some_and(|info| info.mode == Some(1))
    }
}

/// Why NAPI instances cannot be read.
pub(super) const NO_NAPI_GET: &str = "reading NAPI instances needs Linux 6.8";

impl Kernel {
    /// Returns sysfs, if it shows that interface and not another one of its name.
    pub(super) fn sysfs_of(
        &mut self,
        name: &LinkName,
        index: u32,
        address: &HwAddr,
    ) -> Told<&Sysfs> {
        let sysfs = self.sysfs()?;
        if sysfs.is_same(name, index, &address.to_string()) {
            Ok(sysfs)
        } else {
            Err(
                "the mounted sysfs shows another network namespace; mount sysfs in this one"
                    .to_owned(),
            )
        }
    }
}
