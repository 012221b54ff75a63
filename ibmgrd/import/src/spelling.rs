// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How other tools write values, and the same value as our knobs read it.

use ibmgr_api::{Guid, Pkey};

/// How a tool writes a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// A whole number, in C's notations.
    Number,
    /// A number of bytes; 0 and words stand for the default.
    Mtu,
    /// A number of microseconds.
    Usecs,
    /// A time span of systemd; a bare number is in seconds.
    Span,
    /// A time span of systemd that becomes whole seconds.
    Seconds,
    /// A number with K, M or G to the base of 1024.
    Size,
    /// A number, or `max`.
    NumberOrMax,
    /// yes or no, in all words that stand for them.
    Switch,
    /// `datagram` or `connected`.
    Mode,
    /// yes for connected, no for datagram.
    IsConnected,
    /// wicked's `allowed` and `disallowed`.
    UserMulticast,
    /// yes for ignoring multicast groups of user space.
    IsIgnored,
    /// Text as it stands.
    Text,
}

/// A value as our knobs read it.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Spelt {
    pub(crate) text: String,
    /// Something to know about it.
    pub(crate) remark: Option<&'static str>,
}

/// What is to be known about connected mode, wherever it comes from.
const CONNECTED: &str = "ConnectX-4 and later (enhanced IPoIB) have datagram mode only";

/// How wicked's words and the kernel's meet.
const ALLOWED: &str =
    "wicked writes umcast=1 (ignore) for 'allowed', and 0 (honour) for 'disallowed'";

impl Form {
    /// Returns what the documentation says about this form, empty when it needs no words.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Number | Self::Switch | Self::Text | Self::Mode => "",
            Self::Mtu => "0 and words such as `auto` are the default, and not carried",
            Self::Usecs => "microseconds",
            Self::Span => "a bare number is in seconds",
            Self::Seconds => "rounded up to whole seconds, as the file's tool does",
            Self::Size => "K, M and G are read to the base of 1024",
            Self::NumberOrMax => "`max` is the device's, and not carried",
            Self::IsConnected => "yes is `connected`, no is `datagram`",
            Self::UserMulticast => {
                "`allowed` is `ignore`, `disallowed` is `honour`: the same kernel value, though the \
                 words read as opposites"
            }
            Self::IsIgnored => "yes is `ignore`, no is `honour`",
        }
    }

    /// Reads a value and writes it as our knobs do.
    ///
    /// # Errors
    ///
    /// Says why it can't be carried.
    pub(crate) fn read(self, text: &str) -> Result<Spelt, String> {
        let text = text.trim();
        let plain = |text: String| Ok(Spelt { text, remark: None });
        match self {
            Self::Number => plain(number(text)?.to_string()),
            Self::Mtu => match text.to_ascii_lowercase().as_str() {
                "0" | "auto" | "default" => {
                    Err("it stands for the default of the device".to_owned())
                }
                _ => plain(number(text)?.to_string()),
            },
            Self::Usecs => plain(format!("{}us", number(text)?)),
            Self::Span => plain(format!("{}ns", span(text)?)),
            Self::Seconds => {
                let nanoseconds = span(text)?;
                let seconds = nanoseconds.div_ceil(NANOSECONDS);
                Ok(Spelt {
                    text: seconds.to_string(),
                    remark: None,
                })
            }
            Self::Size => plain(size(text)?.to_string()),
            Self::NumberOrMax if text == "max" => {
                Err("'max' is each device's own maximum: 'ibctl get LINK' tells it".to_owned())
            }
            Self::NumberOrMax => plain(number(text)?.to_string()),
            Self::Switch => plain(if switch(text)? { "on" } else { "off" }.to_owned()),
            Self::Mode => match text.to_ascii_lowercase().as_str() {
                "datagram" => plain("datagram".to_owned()),
                "connected" => Ok(connected()),
                _ => Err(format!("'{text}' is neither datagram nor connected")),
            },
            Self::IsConnected if switch(text)? => Ok(connected()),
            Self::IsConnected => plain("datagram".to_owned()),
            Self::UserMulticast => {
                let word = match text.to_ascii_lowercase().as_str() {
                    "allowed" | "1" => "ignore",
                    "disallowed" | "0" => "honour",
                    _ => return Err(format!("'{text}' is neither allowed nor disallowed")),
                };
                Ok(Spelt {
                    text: word.to_owned(),
                    remark: Some(ALLOWED),
                })
            }
            Self::IsIgnored => plain(if switch(text)? { "ignore" } else { "honour" }.to_owned()),
            Self::Text => plain(text.to_owned()),
        }
    }
}

fn connected() -> Spelt {
    Spelt {
        text: "connected".to_owned(),
        remark: Some(CONNECTED),
    }
}

/// Reads a number as C does: decimal, `0x` hexadecimal, `0` octal.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is no whole number");
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match hex {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(bad());
    }
    u64::from_str_radix(digits, radix).map_err(|_| bad())
}

/// Reads the words that tools take for yes and no.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "y" | "true" | "t" | "on" | "1" => Ok(true),
        "no" | "n" | "false" | "f" | "off" | "0" => Ok(false),
        _ => Err(format!("'{text}' is neither yes nor no")),
    }
}

const NANOSECONDS: u64 = 1_000_000_000;

/// Units of systemd.time(7), in nanoseconds. Longer ones fit no knob.
const SPANS: [(&str, u64); 16] = [
    ("nsec", 1),
    ("ns", 1),
    ("usec", 1_000),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("msec", 1_000_000),
    ("ms", 1_000_000),
    ("seconds", NANOSECONDS),
    ("second", NANOSECONDS),
    ("sec", NANOSECONDS),
    ("s", NANOSECONDS),
    ("minutes", 60 * NANOSECONDS),
    ("minute", 60 * NANOSECONDS),
    ("min", 60 * NANOSECONDS),
    ("m", 60 * NANOSECONDS),
];

/// Reads a time span of systemd.time(7), such as `50us` or `1ms 500us`, in nanoseconds.
fn span(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is no time span");
    let mut sum: u64 = 0;
    let mut rest = text;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let digits: u64 = rest[..end].parse().map_err(|_| bad())?;
        rest = rest[end..].trim_start();
        let end = rest
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(rest.len());
        let unit = &rest[..end];
        let scale = if unit.is_empty() {
            NANOSECONDS
        } else {
            let known = SPANS.iter().find(|(name, _)| *name == unit);
            known.map(|(_, scale)| *scale).ok_or_else(bad)?
        };
        let part = digits.checked_mul(scale).ok_or_else(bad)?;
        sum = sum.checked_add(part).ok_or_else(bad)?;
        rest = rest[end..].trim_start();
    }
    Ok(sum)
}

/// Reads a size of systemd, to the base of 1024.
fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is no size");
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let digits: u64 = text[..end].parse().map_err(|_| bad())?;
    let scale = match text[end..].trim() {
        "" | "B" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(bad()),
    };
    digits.checked_mul(scale).ok_or_else(bad)
}

/// Reads a P_Key; a bare number is in `radix`, which wicked and file names take for 16.
pub(crate) fn pkey(text: &str, radix: u32) -> Result<Pkey, String> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let hex = hex.or_else(|| (radix == 16).then_some(text));
    let raw = match hex {
        Some(digits) => {
            let is_plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
            u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)
        }
        None => number(text).ok(),
    };
    let raw = raw.and_then(|raw| u16::try_from(raw).ok());
    let raw = raw.ok_or_else(|| format!("'{text}' is no P_Key"))?;
    Pkey::new(raw).ok_or_else(|| format!("P_Key {text} names no partition"))
}

/// What a hardware address tells.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Address {
    /// The port GUID of an IPoIB address of 20 bytes.
    Port(Guid),
    /// An address of 8 bytes, which is a GUID already.
    Guid(Guid),
    /// Another length; 6 bytes are Ethernet's.
    Other(usize),
}

/// Reads a hardware address: hexadecimal bytes with `:` or `-`, or decimal ones with `;`.
pub(crate) fn address(text: &str) -> Result<Address, String> {
    let bad = || format!("'{text}' is no hardware address");
    let text = text.trim();
    let bytes: Option<Vec<u8>> = if text.contains(';') {
        let parts = text.trim_end_matches(';').split(';');
        parts.map(|part| part.trim().parse().ok()).collect()
    } else {
        let parts = text.split([':', '-']);
        let byte = |part: &str| {
            let is_plain =
                (1..=2).contains(&part.len()) && part.chars().all(|c| c.is_ascii_hexdigit());
            u8::from_str_radix(part, 16).ok().filter(|_| is_plain)
        };
        parts.map(byte).collect()
    };
    let bytes = bytes.ok_or_else(bad)?;
    let last = |from: usize| {
        let last = bytes.get(from..).and_then(|last| last.try_into().ok());
        last.map(Guid).ok_or_else(bad)
    };
    match bytes.len() {
        20 => Ok(Address::Port(last(12)?)),
        8 => Ok(Address::Guid(last(0)?)),
        length => Ok(Address::Other(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(form: Form, text: &str, wanted: &str) {
        assert_eq!(
            form.read(text).map(|spelt| spelt.text).as_deref(),
            Ok(wanted)
        );
    }

    #[test]
    fn values_are_written_as_our_knobs_read_them() {
        reads(Form::Number, "0x800", "2048");
        reads(Form::Mtu, " 65520 ", "65520");
        reads(Form::Usecs, "16", "16us");
        reads(Form::Span, "1ms 500us", "1500000ns");
        reads(Form::Span, "2", "2000000000ns");
        reads(Form::Seconds, "1500ms", "2");
        reads(Form::Size, "64K", "65536");
        reads(Form::NumberOrMax, "512", "512");
        reads(Form::Switch, "Yes", "on");
        reads(Form::Mode, "Connected", "connected");
        reads(Form::IsConnected, "no", "datagram");
        reads(Form::UserMulticast, "allowed", "ignore");
        reads(Form::IsIgnored, "true", "ignore");
    }

    #[test]
    fn what_is_no_value_says_so() {
        for (form, text) in [
            (Form::Number, ""),
            (Form::Number, "-1"),
            (Form::Number, "0x"),
            (Form::Number, "09"),
            (Form::Number, "99999999999999999999"),
            (Form::Mtu, "auto"),
            (Form::Mtu, "0"),
            (Form::Span, "1 fortnight"),
            (Form::Span, "99999999999min"),
            (Form::Span, ""),
            (Form::Size, "1T"),
            (Form::NumberOrMax, "max"),
            (Form::Switch, "perhaps"),
            (Form::Mode, "both"),
            (Form::UserMulticast, "maybe"),
        ] {
            assert!(form.read(text).is_err(), "{form:?} {text}");
        }
    }

    #[test]
    fn keys_and_addresses() {
        let raw = |text, radix| pkey(text, radix).map(Pkey::raw);
        assert_eq!(raw("0x8001", 10), Ok(0x8001));
        assert_eq!(raw("8001", 16), Ok(0x8001));
        assert_eq!(raw("32769", 10), Ok(0x8001));
        for bad in ["", "0x", "0", "0x8000", "70000", "-1", "\u{20ac}1"] {
            assert!(raw(bad, 10).is_err(), "{bad}");
        }
        let guid = Guid([0, 2, 0xc9, 3, 0, 0xab, 0xcd, 0xef]);
        let long = "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:ab:cd:ef";
        assert_eq!(address(long), Ok(Address::Port(guid)));
        assert_eq!(address("00-02-c9-03-00-ab-cd-ef"), Ok(Address::Guid(guid)));
        assert_eq!(address("128;0;0;1;254;128;0;"), Ok(Address::Other(7)));
        assert_eq!(address("00:11:22:33:44:55"), Ok(Address::Other(6)));
        for bad in ["", "g0:00", "000:1", "1:2:"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
