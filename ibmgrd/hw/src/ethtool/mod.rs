// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The `ethtool` generic netlink family (Documentation/networking/ethtool-netlink.rst).

mod bitset;
mod features;
mod params;

use std::sync::OnceLock;

use ibmgr_api::Notice;

pub use bitset::Bitset;
pub(crate) use bitset::named_bits;
pub use features::{FeatureOutcome, Features, PrivateFlags};
pub use params::{Group, Params};

use crate::genl::{Genl, HEADER_LEN, Name};
use crate::nl::attr::{Attr, Out, attrs, out_nested, out_text, out_u32};
use crate::nl::{Ack, Ends, Namer, NlError, Request};
use crate::uapi::{self, Table};

/// Every message of the family starts with an attribute of this type, `ETHTOOL_A_*_HEADER`.
const HEADER: u16 = 1;
/// Version of the family.
const VERSION: u8 = 1;

/// The device that a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Device<'a> {
    /// Kernel index.
    pub index: u32,
    /// Name that the device must still have: the kernel answers `ENODEV` when it does not.
    pub name: Option<&'a str>,
}

impl Device<'_> {
    /// Returns the device of that index, whatever its name.
    #[must_use]
    pub const fn at(index: u32) -> Self {
        Self { index, name: None }
    }
}

/// What can be asked of a device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Ask {
    /// Numbers.
    Params(Group),
    /// Features, as bit sets without names.
    Features,
    /// Private flags.
    PrivateFlags,
}

/// What a device answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// To [`Ask::Params`].
    Params(Params),
    /// To [`Ask::Features`].
    Features(Box<Features>),
    /// To [`Ask::PrivateFlags`].
    PrivateFlags(PrivateFlags),
}

impl Answer {
    /// Returns the index of the device that answered.
    #[must_use]
    pub const fn index(&self) -> u32 {
        match self {
            Self::Params(params) => params.index,
            Self::Features(features) => features.index,
            Self::PrivateFlags(flags) => flags.index,
        }
    }
}

impl Ask {
    const fn command(self) -> u8 {
        match self {
            Self::Params(group) => group.get_command(),
            Self::Features => uapi::ETHTOOL_MSG_FEATURES_GET,
            Self::PrivateFlags => uapi::ETHTOOL_MSG_PRIVFLAGS_GET,
        }
    }

    const fn flags(self) -> u32 {
        match self {
            Self::Features => uapi::ETHTOOL_FLAG_COMPACT_BITSETS,
            // Their names differ from driver to driver, so that the answer has to bring them.
            Self::PrivateFlags | Self::Params(_) => 0,
        }
    }

    fn request(self, family: u16, device: Option<Device<'_>>) -> Request {
        let ends = if device.is_some() {
            Ends::Reply
        } else {
            Ends::Dump
        };
        let attrs = [header(device, self.flags())];
        Request::generic(family, self.command(), VERSION, ends, &attrs, |_| None)
    }

    /// Decodes what follows `struct nlmsghdr` in the answer, or in a notification of the same.
    ///
    /// # Errors
    ///
    /// The message is malformed.
    pub fn decode(self, body: &[u8]) -> Result<Answer, NlError> {
        let attrs = after_header(body)?;
        Ok(match self {
            Self::Params(_) => Answer::Params(Params::decode(attrs)?),
            Self::Features => Answer::Features(Box::new(Features::decode(attrs)?)),
            Self::PrivateFlags => Answer::PrivateFlags(PrivateFlags::decode(attrs)?),
        })
    }
}

/// Requests of the family.
#[derive(Debug)]
pub struct Ethtool<'a> {
    genl: &'a mut Genl,
}

impl Genl {
    /// Returns the `ethtool` family's requests.
    pub const fn ethtool(&mut self) -> Ethtool<'_> {
        Ethtool::new(self)
    }
}

impl<'a> Ethtool<'a> {
    pub(crate) const fn new(genl: &'a mut Genl) -> Self {
        Self { genl }
    }

    /// Asks one device several things at once. Each has its own result: most drivers have but some.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering at all.
    pub fn ask(
        &mut self,
        device: Device<'_>,
        asks: &[Ask],
    ) -> Result<Vec<Result<Answer, NlError>>, NlError> {
        let family = self.genl.family(Name::Ethtool)?.id;
        let requests: Vec<_> = asks
            .iter()
            .map(|ask| ask.request(family, Some(device)))
            .collect();
        let mut answers: Vec<Option<Answer>> = vec![None; asks.len()];
        let results = self.genl.socket.pipeline(&requests, |reply| {
            if let (Some(ask), Some(answer)) =
                (asks.get(reply.request), answers.get_mut(reply.request))
            {
                *answer = Some(ask.decode(reply.body)?);
            }
            Ok(())
        })?;
        let joined = results.into_iter().zip(answers).map(|(result, answer)| {
            result?;
            answer.ok_or_else(|| NlError::malformed("an acknowledgement instead of an answer"))
        });
        Ok(joined.collect())
    }

    /// Asks every device; those without it do not answer.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    pub fn ask_all(&mut self, ask: Ask) -> Result<Vec<Answer>, NlError> {
        let request = ask.request(self.genl.family(Name::Ethtool)?.id, None);
        self.genl
            .socket
            .list(&request, |body| ask.decode(body).map(Some))
    }

    /// Changes numbers of one device; attributes that are not given stay.
    ///
    /// Success proves little: the kernel does not call the driver when nothing changes, and drivers
    /// round values or drop them (net/ethtool/coalesce.c).
    ///
    /// # Errors
    ///
    /// What the kernel said; a coalescing attribute that the driver does not take is `EINVAL`.
    pub fn set_params(
        &mut self,
        device: Device<'_>,
        group: Group,
        values: &[(u16, u32)],
    ) -> Result<Ack, NlError> {
        let namer: Namer = match group {
            Group::Coalesce => |path| Group::Coalesce.attr_name(path),
            Group::Rings => |path| Group::Rings.attr_name(path),
            Group::Channels => |path| Group::Channels.attr_name(path),
            Group::Pause => |path| Group::Pause.attr_name(path),
        };
        let request = self.set(group.set_command(), device, group.encode(values), namer)?;
        self.genl.socket.acknowledge(&request)
    }

    /// Changes private flags by name; others stay.
    ///
    /// # Errors
    ///
    /// What the kernel said.
    pub fn set_private_flags(
        &mut self,
        device: Device<'_>,
        flags: &[(&str, bool)],
    ) -> Result<Ack, NlError> {
        let flags = named_bits(uapi::ETHTOOL_A_PRIVFLAGS_FLAGS, flags);
        let namer: Namer = |path| name_in(&uapi::PRIVATE_FLAGS, path);
        let request = self.set(uapi::ETHTOOL_MSG_PRIVFLAGS_SET, device, vec![flags], namer)?;
        self.genl.socket.acknowledge(&request)
    }

    /// Changes features by name; others stay, but for those that depend on the changed ones.
    ///
    /// # Errors
    ///
    /// What the kernel said. A feature that did not change as asked is no error, but in the outcome.
    pub fn set_features(
        &mut self,
        device: Device<'_>,
        features: &[(&str, bool)],
    ) -> Result<FeatureOutcome, NlError> {
        let wanted = named_bits(uapi::ETHTOOL_A_FEATURES_WANTED, features);
        let namer: Namer = |path| name_in(&uapi::FEATURES, path);
        let request = self.set(uapi::ETHTOOL_MSG_FEATURES_SET, device, vec![wanted], namer)?;
        let mut outcome = FeatureOutcome::default();
        self.genl.socket.one(&request, |body| {
            outcome = FeatureOutcome::decode(body)?;
            Ok(())
        })?;
        Ok(outcome)
    }

    /// Returns the names of all features, by bit number. They are the kernel's, not a device's, and
    /// asked for once in a process.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    pub fn feature_names(&mut self) -> Result<&'static [String], NlError> {
        static NAMES: OnceLock<Vec<String>> = OnceLock::new();
        if let Some(names) = NAMES.get() {
            return Ok(names);
        }
        let set = out_nested(
            uapi::ETHTOOL_A_STRINGSETS_STRINGSET,
            &[out_u32(uapi::ETHTOOL_A_STRINGSET_ID, uapi::ETH_SS_FEATURES)],
        );
        let attrs = [
            header(None, 0),
            out_nested(uapi::ETHTOOL_A_STRSET_STRINGSETS, &[set]),
        ];
        let family = self.genl.family(Name::Ethtool)?.id;
        let command = uapi::ETHTOOL_MSG_STRSET_GET;
        let request = Request::generic(family, command, VERSION, Ends::Reply, &attrs, |path| {
            name_in(&uapi::ETHTOOL_STRSET, path)
        });
        let mut names = Vec::new();
        self.genl.socket.one(&request, |body| {
            names = decode_feature_names(body)?;
            Ok(())
        })?;
        Ok(NAMES.get_or_init(|| names))
    }

    fn set(
        &mut self,
        command: u8,
        device: Device<'_>,
        mut values: Vec<Out>,
        namer: Namer,
    ) -> Result<Request, NlError> {
        let family = self.genl.family(Name::Ethtool)?.id;
        values.insert(0, header(Some(device), 0));
        Ok(Request::generic(
            family,
            command,
            VERSION,
            Ends::Ack,
            &values,
            namer,
        ))
    }
}

/// Decodes what follows `struct nlmsghdr` in the answer to the request for the names.
pub(crate) fn decode_feature_names(body: &[u8]) -> Result<Vec<String>, NlError> {
    features::decode_strings(after_header(body)?)
}

/// Reads what follows `struct nlmsghdr` in a notification of the group `monitor`: what may have changed,
/// and the index of the device. `None` for notifications that no knob depends on.
///
/// # Errors
///
/// The message is malformed.
pub(crate) fn notified(body: &[u8]) -> Result<Option<(Notice, u32)>, NlError> {
    let attributes = after_header(body)?;
    let notice = match body.first().copied().unwrap_or_default() {
        uapi::ETHTOOL_MSG_COALESCE_NTF => Notice::Coalesce,
        uapi::ETHTOOL_MSG_RINGS_NTF => Notice::Rings,
        uapi::ETHTOOL_MSG_CHANNELS_NTF => Notice::Channels,
        uapi::ETHTOOL_MSG_FEATURES_NTF => Notice::Features,
        uapi::ETHTOOL_MSG_PRIVFLAGS_NTF => Notice::PrivateFlags,
        _ => return Ok(None),
    };
    for attr in attrs(attributes) {
        let attr = attr?;
        if attr.kind == HEADER {
            return Ok(Some((notice, read_header(&attr)?)));
        }
    }
    Err(NlError::malformed("a notification that names no device"))
}

fn name_in(table: &Table, path: &[u16]) -> Option<&'static str> {
    table.name_of(*path.first()?)
}

fn header(device: Option<Device<'_>>, flags: u32) -> Out {
    let mut attrs = Vec::new();
    if let Some(device) = device {
        attrs.push(out_u32(uapi::ETHTOOL_A_HEADER_DEV_INDEX, device.index));
        attrs.extend(
            device
                .name
                .map(|name| out_text(uapi::ETHTOOL_A_HEADER_DEV_NAME, name)),
        );
    }
    if flags != 0 {
        attrs.push(out_u32(uapi::ETHTOOL_A_HEADER_FLAGS, flags));
    }
    out_nested(HEADER, &attrs)
}

/// Returns the device index of a received header.
fn read_header(attr: &Attr<'_>) -> Result<u32, NlError> {
    for attr in attr.nested() {
        let attr = attr?;
        if attr.kind == uapi::ETHTOOL_A_HEADER_DEV_INDEX {
            return attr.u32();
        }
    }
    Err(NlError::malformed("an answer that names no device"))
}

/// Returns the attributes behind `struct genlmsghdr`.
fn after_header(body: &[u8]) -> Result<&[u8], NlError> {
    body.get(HEADER_LEN..)
        .ok_or_else(|| NlError::malformed("a message without its header"))
}
