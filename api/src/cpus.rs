// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of CPUs, as lists (`0-3,8`) and as the kernel's masks (`00000001,0000000f`).

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// Most CPUs that a kernel is built for (`CONFIG_NR_CPUS`, arch/x86/Kconfig).
const CPUS_MAX: u32 = 8192;

/// A set of CPUs.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CpuSet(BTreeSet<u32>);

/// A text that is no list, or no mask, of CPUs.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("'{}' is no set of CPUs below 8192", .0.escape_debug())]
pub struct CpuSetError(String);

impl CpuSet {
    /// Reads a mask as sysfs has it: hexadecimal digits, the lowest CPUs last, with commas.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn from_mask(mask: &str) -> Result<Self, CpuSetError> {
        let wrong = || CpuSetError(mask.to_owned());
        let digits = || mask.chars().rev().filter(|c| *c != ',');
        if digits().next().is_none() {
            return Err(wrong());
        }
        let mut cpus = BTreeSet::new();
        for (digit, first) in digits().zip((0_u32..).step_by(4)) {
            let bits = digit.to_digit(16).ok_or_else(wrong)?;
            for bit in (0..4).filter(|bit| bits >> bit & 1 == 1) {
                if first + bit >= CPUS_MAX {
                    return Err(wrong());
                }
                cpus.insert(first + bit);
            }
        }
        Ok(Self(cpus))
    }

    /// Returns the mask, in groups of 32 CPUs as the kernel's `bitmap_parse` takes it.
    #[must_use]
    pub fn mask(&self) -> String {
        let groups = self.0.last().map_or(0, |last| last / 32);
        let mut text = String::new();
        for group in (0..=groups).rev() {
            let cpus = self.0.range(group * 32..(group + 1) * 32);
            let bits = cpus.fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
            // Writing to a string cannot fail.
            let _ = if text.is_empty() {
                write!(text, "{bits:x}")
            } else {
                write!(text, ",{bits:08x}")
            };
        }
        text
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    /// Reads a list such as `0-3,8`; the empty text is the empty set.
    fn from_str(list: &str) -> Result<Self, CpuSetError> {
        let wrong = || CpuSetError(list.to_owned());
        let number = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|cpu| *cpu < CPUS_MAX);
            number.filter(|_| is_plain).ok_or_else(wrong)
        };
        let mut cpus = BTreeSet::new();
        for part in list.split(',').filter(|_| !list.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (number(first)?, number(last)?);
            if first > last {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    /// Writes the list, the shortest way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().copied().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_and_masks_are_the_same_sets() {
        for (list, mask) in [
            ("", "0"),
            ("0", "1"),
            ("0-3", "f"),
            ("0-3,8", "10f"),
            ("31-32", "1,80000000"),
            ("64", "1,00000000,00000000"),
        ] {
            let set: CpuSet = list.parse().unwrap();
            assert_eq!(
                (set.mask().as_str(), set.to_string().as_str()),
                (mask, list)
            );
            assert_eq!(CpuSet::from_mask(mask), Ok(set));
        }
        let wide = CpuSet::from_mask("00000000,00000003").unwrap();
        assert_eq!(wide.to_string(), "0-1");
        assert_eq!("3,1-2,2,0".parse::<CpuSet>().unwrap().to_string(), "0-3");
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for bad in [
            ",",
            "1,",
            "3-1",
            "-1",
            "1-",
            "x",
            "0x1",
            "+1",
            "8192",
            "0-9999999999",
            " 1",
            "1 ",
        ] {
            assert!(bad.parse::<CpuSet>().is_err(), "{bad}");
        }
        for bad in ["", ",", "g", "0x1", &"f".repeat(4000)] {
            assert!(CpuSet::from_mask(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_set_reads_as_it_is_written(cpus in proptest::collection::btree_set(0_u32..8192, 0..40)) {
            let set = CpuSet(cpus);
            prop_assert_eq!(set.to_string().parse(), Ok(set.clone()));
            prop_assert_eq!(CpuSet::from_mask(&set.mask()), Ok(set));
        }
    }
}
