// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What values a knob has, and how they read, print and convert to the kernel's numbers.

use std::fmt;

use crate::cpus::CpuSet;
use crate::nearest::nearest;
use crate::value::Value;

/// The set of values of a knob.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// One of a few names.
    Choice(&'static [Choice]),
    /// A whole number between two bounds, both admitted.
    Number {
        /// What it counts.
        unit: Unit,
        /// Smallest value, in the unit.
        min: u64,
        /// Largest value, in the unit.
        max: u64,
    },
    /// A span of time. Its [`Value`] is in nanoseconds, whatever the kernel keeps.
    Duration {
        /// The kernel's unit; a bare number is read in it.
        unit: Unit,
        /// Longest span, in the kernel's unit.
        max: u64,
    },
    /// A set of CPUs, as a list.
    Cpus,
    /// Printable text up to a number of bytes; the empty text removes it.
    Text {
        /// Longest text, in bytes.
        max_len: usize,
    },
}

/// The CPUs of the device's NUMA node, whatever they are on this host.
const LOCAL: &str = "local";
/// No CPU at all.
const NONE: &str = "none";

/// One name of a [`Domain::Choice`].
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The name that is printed.
    pub name: &'static str,
    /// The kernel's number.
    pub raw: u64,
    /// Other spellings that are read.
    pub aliases: &'static [&'static str],
}

impl Choice {
    /// Off, 0.
    pub const OFF: Self = Self {
        name: "off",
        raw: 0,
        aliases: &["0", "no", "false"],
    };

    /// On, 1.
    pub const ON: Self = Self {
        name: "on",
        raw: 1,
        aliases: &["1", "yes", "true"],
    };

    /// Returns a choice without other spellings.
    #[must_use]
    pub const fn new(name: &'static str, raw: u64) -> Self {
        Self {
            name,
            raw,
            aliases: &[],
        }
    }
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// A plain count.
    Count,
    /// Bytes.
    Bytes,
    /// Frames, each at most one MTU long.
    Frames,
    /// Packets per second.
    PacketsPerSecond,
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// Returns the plural word, or the symbol of a time unit; empty for plain counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Bytes => "bytes",
            Self::Frames => "frames",
            Self::PacketsPerSecond => "packets/s",
            Self::Seconds => "s",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
        }
    }

    /// Returns the nanoseconds of one time unit, 1 for what is no time.
    const fn nanoseconds(self) -> u64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Microseconds => 1_000,
            Self::Count
            | Self::Bytes
            | Self::Frames
            | Self::PacketsPerSecond
            | Self::Nanoseconds => 1,
        }
    }
}

/// Why a text is not a value of a knob.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Nothing was given.
    #[error("no value given; {expected}")]
    Empty {
        /// What would be right.
        expected: String,
    },
    /// Not of the knob's form.
    #[error("'{text}' is not a value; {expected}")]
    Form {
        /// What was given.
        text: String,
        /// What would be right.
        expected: String,
    },
    /// A unit that this knob does not count in.
    #[error("'{text}' has the unit '{unit}'; {expected}")]
    WrongUnit {
        /// What was given.
        text: String,
        /// The unit in it.
        unit: String,
        /// What would be right.
        expected: String,
    },
    /// Outside the bounds.
    #[error("{text} is out of range; {expected}")]
    Range {
        /// What was given.
        text: String,
        /// What would be right.
        expected: String,
    },
    /// Finer than the kernel keeps.
    #[error("'{text}' is no whole number of {unit}, and the kernel keeps {unit}")]
    TooFine {
        /// What was given.
        text: String,
        /// The kernel's unit.
        unit: &'static str,
    },
    /// Not one of the names.
    #[error("'{text}' is not one of {names}{}", suggestion(.nearest))]
    NotAChoice {
        /// What was given.
        text: String,
        /// All names.
        names: String,
        /// Names that look like it.
        nearest: Vec<String>,
    },
}

fn suggestion(nearest: &[String]) -> String {
    nearest
        .first()
        .map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

impl Domain {
    /// Off (0) or on (1).
    pub const SWITCH: Self = Self::Choice(&[Choice::OFF, Choice::ON]);

    /// Reads a value as a person writes it.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the text, and what would be right.
    pub fn parse(&self, text: &str) -> Result<Value, ValueError> {
        match self {
            Self::Choice(choices) => parse_choice(choices, text),
            Self::Number { unit, .. } => {
                let number = self.parse_number(*unit, text)?;
                self.check(Value::Number(number), text)
            }
            Self::Duration { unit, .. } => {
                let nanoseconds = self.parse_duration(*unit, text)?;
                self.check(Value::Number(nanoseconds), text)
            }
            Self::Cpus => match text {
                "" => Err(ValueError::Empty {
                    expected: self.expected(),
                }),
                LOCAL => Ok(Value::Text(LOCAL.to_owned())),
                NONE => Ok(Value::Text(String::new())),
                list => match list.parse::<CpuSet>() {
                    Ok(cpus) => Ok(Value::Text(cpus.to_string())),
                    Err(_) => Err(ValueError::Form {
                        text: list.to_owned(),
                        expected: self.expected(),
                    }),
                },
            },
            Self::Text { max_len } => {
                if text.len() > *max_len {
                    let text = format!("a text of {} bytes", text.len());
                    return Err(ValueError::Range {
                        text,
                        expected: self.expected(),
                    });
                }
                if text.chars().any(char::is_control) {
                    let text = text.escape_debug().to_string();
                    return Err(ValueError::Form {
                        text,
                        expected: self.expected(),
                    });
                }
                Ok(Value::Text(text.to_owned()))
            }
        }
    }

    /// Says whether the value is `local`: which CPUs that means, only the device can tell.
    #[must_use]
    pub fn is_local(&self, value: &Value) -> bool {
        matches!((self, value), (Self::Cpus, Value::Text(text)) if text == LOCAL)
    }

    /// Returns what `parse` reads, as a clause such as `expected 68 to 65520 bytes`.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Choice(choices) => format!("expected one of {}", names(choices)),
            Self::Number { unit, min, max } => {
                let range = format!("expected {min} to {max} {}", unit.name());
                range.trim_end().to_owned()
            }
            Self::Duration { unit, max } => format!(
                "expected a time from 0 to {}, such as 20us or 1ms (a bare number is in {})",
                self.show(&Value::Number(max.saturating_mul(unit.nanoseconds()))),
                unit.name()
            ),
            Self::Cpus => format!("expected CPUs such as 0-3,8, or {LOCAL}, or {NONE}"),
            Self::Text { max_len } => format!("expected up to {max_len} bytes of printable text"),
        }
    }

    /// Returns the value as a person reads it: a name, a number, a time with its unit, or the text.
    #[must_use]
    pub fn show(&self, value: &Value) -> String {
        match (self, value) {
            (Self::Cpus, Value::Text(text)) if text.is_empty() => NONE.to_owned(),
            (_, Value::Text(text)) => text.clone(),
            (Self::Choice(choices), Value::Number(raw)) => choices
                .iter()
                .find(|choice| choice.raw == *raw)
                .map_or_else(
                    || format!("{raw} (unknown)"),
                    |choice| choice.name.to_owned(),
                ),
            (Self::Duration { .. }, Value::Number(nanoseconds)) => show_duration(*nanoseconds),
            (Self::Number { .. } | Self::Cpus | Self::Text { .. }, Value::Number(number)) => {
                number.to_string()
            }
        }
    }

    /// Returns a number of the kernel's as `show` prints it, such as `65535us` for 65535 microseconds.
    #[must_use]
    pub fn show_kernel(&self, raw: u64) -> String {
        self.show(&self.from_kernel(raw))
    }

    /// Converts a value to the kernel's number; `None` for text.
    #[must_use]
    pub fn to_kernel(&self, value: &Value) -> Option<u64> {
        let number = value.number()?;
        match self {
            Self::Duration { unit, .. } => Some(number / unit.nanoseconds()),
            Self::Choice(_) | Self::Number { .. } | Self::Cpus | Self::Text { .. } => Some(number),
        }
    }

    /// Converts the kernel's number to a value.
    #[must_use]
    pub fn from_kernel(&self, raw: u64) -> Value {
        match self {
            Self::Duration { unit, .. } => Value::Number(raw.saturating_mul(unit.nanoseconds())),
            Self::Choice(_) | Self::Number { .. } | Self::Cpus | Self::Text { .. } => {
                Value::Number(raw)
            }
        }
    }

    /// Returns the kernel's unit of numbers and times.
    #[must_use]
    pub const fn unit(&self) -> Option<Unit> {
        match self {
            Self::Number { unit, .. } | Self::Duration { unit, .. } => Some(*unit),
            Self::Choice(_) | Self::Cpus | Self::Text { .. } => None,
        }
    }

    fn check(&self, value: Value, text: &str) -> Result<Value, ValueError> {
        let range = || ValueError::Range {
            text: text.to_owned(),
            expected: self.expected(),
        };
        let number = self.to_kernel(&value).ok_or_else(range)?;
        let fits = match self {
            Self::Number { min, max, .. } => (*min..=*max).contains(&number),
            Self::Duration { max, .. } => number <= *max,
            Self::Choice(_) | Self::Cpus | Self::Text { .. } => true,
        };
        if fits { Ok(value) } else { Err(range()) }
    }

    fn parse_number(&self, unit: Unit, text: &str) -> Result<u64, ValueError> {
        let (digits, suffix) = self.split_unit(text)?;
        let scale = match (unit, suffix) {
            (_, "") | (Unit::Bytes, "B" | "bytes") | (Unit::Frames, "frames") => 1,
            (Unit::Bytes, "KiB" | "K" | "k") => 1024,
            (Unit::Bytes, "MiB" | "M") => 1024 * 1024,
            _ => return Err(self.wrong_unit(text, suffix)),
        };
        digits.checked_mul(scale).ok_or_else(|| ValueError::Range {
            text: text.to_owned(),
            expected: self.expected(),
        })
    }

    fn parse_duration(&self, unit: Unit, text: &str) -> Result<u64, ValueError> {
        let (digits, suffix) = self.split_unit(text)?;
        let scale = match suffix {
            "" => unit.nanoseconds(),
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => return Err(self.wrong_unit(text, suffix)),
        };
        let nanoseconds = digits.checked_mul(scale).ok_or_else(|| ValueError::Range {
            text: text.to_owned(),
            expected: self.expected(),
        })?;
        if nanoseconds.is_multiple_of(unit.nanoseconds()) {
            Ok(nanoseconds)
        } else {
            Err(ValueError::TooFine {
                text: text.to_owned(),
                unit: unit.name(),
            })
        }
    }

    /// Splits `20us` into 20 and `us`. Hexadecimal numbers have no unit.
    fn split_unit<'a>(&self, text: &'a str) -> Result<(u64, &'a str), ValueError> {
        if text.is_empty() {
            return Err(ValueError::Empty {
                expected: self.expected(),
            });
        }
        let form = || ValueError::Form {
            text: text.to_owned(),
            expected: self.expected(),
        };
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            // `from_str_radix` takes a sign, which no knob has.
            let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = u64::from_str_radix(digits, 16).ok().filter(|_| plain);
            return number.map(|number| (number, "")).ok_or_else(form);
        }
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (digits, suffix) = text.split_at(end);
        if digits.is_empty() || suffix.starts_with(['.', ',', '-', '+']) {
            return Err(form());
        }
        let number = digits.parse().map_err(|_| ValueError::Range {
            text: text.to_owned(),
            expected: self.expected(),
        })?;
        Ok((number, suffix.trim_start()))
    }

    fn wrong_unit(&self, text: &str, unit: &str) -> ValueError {
        ValueError::WrongUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            expected: self.expected(),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Choice(choices) => f.write_str(&names(choices)),
            Self::Number { unit, min, max } if unit.name().is_empty() => {
                write!(f, "{min} to {max}")
            }
            Self::Number { unit, min, max } => write!(f, "{min} to {max} {}", unit.name()),
            Self::Duration { unit, max } => {
                let longest = Value::Number(max.saturating_mul(unit.nanoseconds()));
                write!(
                    f,
                    "0 to {} in steps of 1{}",
                    self.show(&longest),
                    unit.name()
                )
            }
            Self::Cpus => write!(f, "CPUs such as 0-3,8, or {LOCAL}, or {NONE}"),
            Self::Text { max_len } => write!(f, "text of up to {max_len} bytes"),
        }
    }
}

fn names(choices: &[Choice]) -> String {
    choices
        .iter()
        .map(|choice| choice.name)
        .collect::<Vec<_>>()
        .join(", ")
}

fn parse_choice(choices: &[Choice], text: &str) -> Result<Value, ValueError> {
    choices
        .iter()
        .find(|choice| choice.name == text || choice.aliases.contains(&text))
        .map(|choice| Value::Number(choice.raw))
        .ok_or_else(|| ValueError::NotAChoice {
            text: text.to_owned(),
            names: names(choices),
            nearest: nearest(text, choices.iter().map(|choice| choice.name)),
        })
}

/// Prints a time in the largest unit that keeps it whole.
fn show_duration(nanoseconds: u64) -> String {
    if nanoseconds == 0 {
        return "0".to_owned();
    }
    for (scale, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if nanoseconds.is_multiple_of(scale) {
            return format!("{}{unit}", nanoseconds / scale);
        }
    }
    format!("{nanoseconds}ns")
}

#[cfg(test)]
mod tests;
