// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Device features, and strings by number.

use super::bitset::Bitset;
use super::{HEADER, after_header, read_header};
use crate::nl::NlError;
use crate::nl::attr::attrs;
use crate::uapi::{
    ETHTOOL_A_FEATURES_ACTIVE, ETHTOOL_A_FEATURES_HW, ETHTOOL_A_FEATURES_NOCHANGE,
    ETHTOOL_A_FEATURES_WANTED, ETHTOOL_A_PRIVFLAGS_FLAGS, ETHTOOL_A_STRING_INDEX,
    ETHTOOL_A_STRING_VALUE, ETHTOOL_A_STRINGS_STRING, ETHTOOL_A_STRINGSET_STRINGS,
    ETHTOOL_A_STRINGSETS_STRINGSET, ETHTOOL_A_STRSET_STRINGSETS,
};

/// The features of one device, by the bit numbers of [`super::Ethtool::feature_names`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Features {
    /// Index of the device.
    pub index: u32,
    /// What can be changed.
    pub hardware: Bitset,
    /// What was asked for.
    pub wanted: Bitset,
    /// What is in use.
    pub active: Bitset,
    /// What nobody can change.
    pub unchangeable: Bitset,
}

impl Features {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, NlError> {
        let mut features = Self::default();
        for attr in attrs(bytes) {
            let attr = attr?;
            match attr.kind {
                HEADER => features.index = read_header(&attr)?,
                ETHTOOL_A_FEATURES_HW => features.hardware = Bitset::decode(&attr)?,
                ETHTOOL_A_FEATURES_WANTED => features.wanted = Bitset::decode(&attr)?,
                ETHTOOL_A_FEATURES_ACTIVE => features.active = Bitset::decode(&attr)?,
                ETHTOOL_A_FEATURES_NOCHANGE => features.unchangeable = Bitset::decode(&attr)?,
                _ => {}
            }
        }
        Ok(features)
    }
}

/// What became of a feature change (`ETHTOOL_MSG_FEATURES_SET_REPLY`).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FeatureOutcome {
    /// Features that were asked for and are not as asked: name and the value asked for.
    pub missed: Vec<(String, bool)>,
    /// Features that changed, whether asked for or not: name and the value now.
    pub changed: Vec<(String, bool)>,
}

impl FeatureOutcome {
    /// Decodes what follows `struct nlmsghdr` in the answer.
    ///
    /// # Errors
    ///
    /// The message is malformed.
    pub fn decode(body: &[u8]) -> Result<Self, NlError> {
        let mut outcome = Self::default();
        for attr in attrs(after_header(body)?) {
            let attr = attr?;
            match attr.kind {
                ETHTOOL_A_FEATURES_WANTED => outcome.missed = values(Bitset::decode(&attr)?),
                ETHTOOL_A_FEATURES_ACTIVE => outcome.changed = values(Bitset::decode(&attr)?),
                _ => {}
            }
        }
        Ok(outcome)
    }
}

fn values(set: Bitset) -> Vec<(String, bool)> {
    let names = set
        .names
        .iter()
        .map(|(bit, name)| (name.clone(), set.has(*bit)));
    names.collect()
}

/// The private flags of one device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PrivateFlags {
    /// Index of the device.
    pub index: u32,
    /// Name and value, in the driver's order.
    pub flags: Vec<(String, bool)>,
}

impl PrivateFlags {
    /// Returns a flag's value, if the driver has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<bool> {
        let (_, value) = self.flags.iter().find(|(other, _)| other == name)?;
        Some(*value)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, NlError> {
        let mut flags = Self::default();
        for attr in attrs(bytes) {
            let attr = attr?;
            match attr.kind {
                HEADER => flags.index = read_header(&attr)?,
                ETHTOOL_A_PRIVFLAGS_FLAGS => flags.flags = values(Bitset::decode(&attr)?),
                _ => {}
            }
        }
        Ok(flags)
    }
}

/// Decodes the first string set of a `ETHTOOL_MSG_STRSET_GET_REPLY`; each string stands at its number.
pub(super) fn decode_strings(bytes: &[u8]) -> Result<Vec<String>, NlError> {
    let mut strings = Vec::new();
    let path = [
        ETHTOOL_A_STRSET_STRINGSETS,
        ETHTOOL_A_STRINGSETS_STRINGSET,
        ETHTOOL_A_STRINGSET_STRINGS,
    ];
    let mut level = bytes;
    for kind in path {
        let found = attrs(level).find(|attr| attr.as_ref().map_or(true, |attr| attr.kind == kind));
        level = found.transpose()?.map_or(&[], |attr| attr.value);
    }
    for string in attrs(level) {
        let string = string?;
        if string.kind != ETHTOOL_A_STRINGS_STRING {
            continue;
        }
        let (mut index, mut text) = (None, None);
        for attr in string.nested() {
            let attr = attr?;
            match attr.kind {
                ETHTOOL_A_STRING_INDEX => index = Some(attr.u32()? as usize),
                ETHTOOL_A_STRING_VALUE => text = Some(attr.text()),
                _ => {}
            }
        }
        // The kernel counts from 0 without gaps; a gap would shift the names.
        if index != Some(strings.len()) {
            return Err(NlError::malformed("strings out of order"));
        }
        strings.push(text.unwrap_or_default());
    }
    Ok(strings)
}
