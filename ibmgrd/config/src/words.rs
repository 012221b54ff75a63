// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The words of the file format besides the names of knobs. The reader, the writer and the schema take
//! them from here.

pub(crate) const LINK: &str = "link";
pub(crate) const DEFAULTS: &str = "defaults";
pub(crate) const PROFILE: &str = "profile";
/// What a file may have at its top.
pub(crate) const TOP: [&str; 3] = [LINK, DEFAULTS, PROFILE];

pub(crate) const MATCH: &str = "match";
pub(crate) const CHILD: &str = "child";
pub(crate) const POLICY: &str = "policy";
pub(crate) const VALUE: &str = "value";
/// What a rule may have besides knobs.
pub(crate) const OF_LINK: [&str; 4] = [MATCH, CHILD, PROFILE, POLICY];
/// What defaults may have besides knobs.
pub(crate) const OF_DEFAULTS: [&str; 2] = [PROFILE, POLICY];
/// What a profile may have besides knobs.
pub(crate) const OF_PROFILE: [&str; 1] = [POLICY];

pub(crate) const PKEY: &str = "pkey";
pub(crate) const NAME: &str = "name";
pub(crate) const KIND: &str = "kind";
pub(crate) const PRESENT: &str = "present";
/// What a child may have besides knobs.
pub(crate) const OF_CHILD: [&str; 6] = [PKEY, NAME, KIND, PRESENT, PROFILE, POLICY];

pub(crate) const DRIVER: &str = "driver";
pub(crate) const PATH: &str = "path";
pub(crate) const GUID: &str = "guid";
pub(crate) const PARENT: &str = "parent";
/// What a match may have.
pub(crate) const OF_MATCH: [&str; 8] = [NAME, DRIVER, PATH, GUID, PKEY, PARENT, KIND, CHILD];

#[cfg(test)]
mod tests {
    use ibmgr_api::registry;

    use super::*;

    #[test]
    fn no_knob_is_called_as_a_word_of_the_format() {
        for knob in registry::knobs() {
            let first = knob.name.split('.').next().unwrap_or_default();
            for words in [&OF_LINK[..], &OF_CHILD[..], &OF_DEFAULTS[..], &[VALUE]] {
                assert!(!words.contains(&first), "{}", knob.name);
            }
        }
    }
}
