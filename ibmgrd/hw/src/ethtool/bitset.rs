// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bit sets of the ethtool family, compact and verbose
//! (Documentation/networking/ethtool-netlink.rst, "Bit sets").

use crate::nl::NlError;
use crate::nl::attr::{Attr, Out, out_nested, out_text};
use crate::uapi::{
    ETHTOOL_A_BITSET_BIT_INDEX, ETHTOOL_A_BITSET_BIT_NAME, ETHTOOL_A_BITSET_BIT_VALUE,
    ETHTOOL_A_BITSET_BITS, ETHTOOL_A_BITSET_BITS_BIT, ETHTOOL_A_BITSET_MASK,
    ETHTOOL_A_BITSET_NOMASK, ETHTOOL_A_BITSET_SIZE, ETHTOOL_A_BITSET_VALUE,
};

/// More bits than any set of the kernel has; a message that claims more is malformed.
const MAX_BITS: u32 = 1 << 16;

/// A received bit set.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Bitset {
    value: Words,
    mask: Option<Words>,
    /// Names of the bits, as far as a verbose set told them.
    pub names: Vec<(u32, String)>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Words(Vec<u32>);

impl Words {
    fn read(attr: &Attr<'_>) -> Result<Self, NlError> {
        let (words, rest) = attr.value.as_chunks::<4>();
        if !rest.is_empty() || attr.value.len() > MAX_BITS as usize / 8 {
            return Err(NlError::malformed(format!(
                "a bit map of {} bytes",
                attr.value.len()
            )));
        }
        Ok(Self(
            words.iter().map(|word| u32::from_ne_bytes(*word)).collect(),
        ))
    }

    fn has(&self, bit: u32) -> bool {
        let word = self.0.get((bit / 32) as usize);
        word.is_some_and(|word| word & (1 << (bit % 32)) != 0)
    }

    fn insert(&mut self, bit: u32) {
        let at = (bit / 32) as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (bit % 32);
    }
}

impl Bitset {
    /// Says whether the bit is set.
    #[must_use]
    pub fn has(&self, bit: u32) -> bool {
        self.value.has(bit)
    }

    /// Says whether the set speaks of the bit at all; one without a mask speaks of every bit.
    #[must_use]
    pub fn covers(&self, bit: u32) -> bool {
        self.mask.as_ref().is_none_or(|mask| mask.has(bit))
    }

    /// Reads either form.
    pub(crate) fn decode(attr: &Attr<'_>) -> Result<Self, NlError> {
        let mut set = Self::default();
        let mut has_no_mask = false;
        let mut bits = None;
        for attr in attr.nested() {
            let attr = attr?;
            match attr.kind {
                ETHTOOL_A_BITSET_NOMASK => has_no_mask = true,
                ETHTOOL_A_BITSET_SIZE if attr.u32()? > MAX_BITS => {
                    return Err(NlError::malformed(format!("a set of {} bits", attr.u32()?)));
                }
                ETHTOOL_A_BITSET_BITS => bits = Some(attr),
                ETHTOOL_A_BITSET_VALUE => set.value = Words::read(&attr)?,
                ETHTOOL_A_BITSET_MASK => set.mask = Some(Words::read(&attr)?),
                _ => {}
            }
        }
        if let Some(bits) = bits {
            set.read_bits(&bits, has_no_mask)?;
        }
        Ok(set)
    }

    /// Reads the verbose form: a list of the bits that are set, or with a mask, of those in the mask.
    fn read_bits(&mut self, bits: &Attr<'_>, has_no_mask: bool) -> Result<(), NlError> {
        let mut mask = Words::default();
        for bit in bits.nested() {
            let bit = bit?;
            if bit.kind != ETHTOOL_A_BITSET_BITS_BIT {
                continue;
            }
            let (mut index, mut name, mut is_set) = (None, None, false);
            for attr in bit.nested() {
                let attr = attr?;
                match attr.kind {
                    ETHTOOL_A_BITSET_BIT_INDEX => index = Some(attr.u32()?),
                    ETHTOOL_A_BITSET_BIT_NAME => name = Some(attr.text()),
                    ETHTOOL_A_BITSET_BIT_VALUE => is_set = true,
                    _ => {}
                }
            }
            let index = index.filter(|index| *index < MAX_BITS);
            let index = index.ok_or_else(|| NlError::malformed("a bit without its number"))?;
            mask.insert(index);
            if is_set || has_no_mask {
                self.value.insert(index);
            }
            self.names.extend(name.map(|name| (index, name)));
        }
        self.mask = (!has_no_mask).then_some(mask);
        Ok(())
    }
}

/// Builds a verbose set that changes the named bits and leaves all others alone.
pub(crate) fn named_bits(kind: u16, bits: &[(&str, bool)]) -> Out {
    let bits: Vec<Out> = bits
        .iter()
        .map(|(name, is_set)| {
            let mut attrs = vec![out_text(ETHTOOL_A_BITSET_BIT_NAME, name)];
            if *is_set {
                attrs.push(Out::new(ETHTOOL_A_BITSET_BIT_VALUE, Vec::new()));
            }
            out_nested(ETHTOOL_A_BITSET_BITS_BIT, &attrs)
        })
        .collect();
    out_nested(kind, &[out_nested(ETHTOOL_A_BITSET_BITS, &bits)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nl::attr::{attrs, bytes_of, out_u32};

    fn decode(set: &[Out]) -> Result<Bitset, NlError> {
        let bytes = bytes_of(&[out_nested(2, set)]);
        let attr = attrs(&bytes).next().unwrap().unwrap();
        Bitset::decode(&attr)
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn compact_sets_are_words() {
        let set = decode(&[
            out_u32(ETHTOOL_A_BITSET_SIZE, 40),
            Out::new(ETHTOOL_A_BITSET_VALUE, words(&[1, 1 << 7])),
            Out::new(ETHTOOL_A_BITSET_MASK, words(&[3, 1 << 7])),
        ])
        .unwrap();
        assert!(set.has(0) && !set.has(1) && set.has(39) && !set.has(4000));
        assert!(set.covers(1) && !set.covers(2) && set.covers(39));
    }

    #[test]
    fn verbose_sets_are_lists() {
        let bit = |index, name: &str, is_set| {
            let mut attrs = vec![
                out_u32(ETHTOOL_A_BITSET_BIT_INDEX, index),
                out_text(ETHTOOL_A_BITSET_BIT_NAME, name),
            ];
            if is_set {
                attrs.push(Out::new(ETHTOOL_A_BITSET_BIT_VALUE, Vec::new()));
            }
            out_nested(ETHTOOL_A_BITSET_BITS_BIT, &attrs)
        };
        let bits = [bit(0, "zero", true), bit(33, "thirty-three", false)];
        let masked = decode(&[out_nested(ETHTOOL_A_BITSET_BITS, &bits)]).unwrap();
        assert!(masked.has(0) && !masked.has(33) && masked.covers(33) && !masked.covers(1));
        assert_eq!(masked.names[1], (33, "thirty-three".to_owned()));

        let no_mask = Out::new(ETHTOOL_A_BITSET_NOMASK, Vec::new());
        let bits = [bit(33, "thirty-three", false)];
        let plain = decode(&[no_mask, out_nested(ETHTOOL_A_BITSET_BITS, &bits)]).unwrap();
        assert!(
            plain.has(33) && !plain.has(0) && plain.covers(0),
            "what is listed is set"
        );
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(decode(&[out_u32(ETHTOOL_A_BITSET_SIZE, u32::MAX)]).is_err());
        assert!(decode(&[Out::new(ETHTOOL_A_BITSET_VALUE, vec![0; 3])]).is_err());
        let index = out_u32(ETHTOOL_A_BITSET_BIT_INDEX, u32::MAX);
        let bit = out_nested(ETHTOOL_A_BITSET_BITS_BIT, &[index]);
        assert!(decode(&[out_nested(ETHTOOL_A_BITSET_BITS, &[bit])]).is_err());
    }

    #[test]
    fn a_named_change_touches_no_other_bit() {
        let change = named_bits(3, &[("tx-batching", true), ("other", false)]);
        let bytes = bytes_of(&[change]);
        let set = attrs(&bytes).next().unwrap().unwrap();
        // The kernel's parser wants SIZE only in compact sets and NOMASK only in whole ones.
        let kinds: Vec<u16> = set.nested().map(|attr| attr.unwrap().kind).collect();
        assert_eq!(kinds, [ETHTOOL_A_BITSET_BITS]);
    }
}
