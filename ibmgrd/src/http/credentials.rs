// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who may do what over TCP: tokens, and certificates by their names, from one file. It holds the SHA-256
//! of each token, so that who reads it can't use one.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ibmgr_api::Glob;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use toml::value::{Datetime, Offset};

use crate::error::Error;
use crate::office::{Caller, Grants, Scope, Surface};

/// Largest file that is read.
const FILE_MAX: u64 = 1024 * 1024;
/// Longest name, in bytes.
const NAME_MAX: usize = 128;

/// What one token or certificate may do.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    grants: Grants,
    expires: Option<SystemTime>,
}

/// Everybody who may do something.
#[derive(Debug, Default)]
pub(super) struct Credentials {
    tokens: Vec<([u8; 32], Entry)>,
    certificates: Vec<Entry>,
}

/// Why a credential is worth nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Unknown {
    /// There is none of that kind.
    Other,
    /// It was, until its date.
    Expired(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    #[serde(default)]
    token: Vec<TokenRow>,
    #[serde(default)]
    certificate: Vec<CertificateRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRow {
    name: String,
    sha256: String,
    rights: Vec<Word>,
    links: Option<Vec<String>>,
    expires: Option<Datetime>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateRow {
    name: String,
    rights: Vec<Word>,
    links: Option<Vec<String>>,
    expires: Option<Datetime>,
}

#[derive(Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Word {
    Read,
    Write,
}

/// Reads a file that only its owner and its group may read.
///
/// # Errors
///
/// It can't be read, is too large, or everybody may read or write it.
pub(super) fn secret_file(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = || Error::io(format!("reading {}", path.display()));
    let mut file = File::open(path).map_err(failed())?;
    let mode = file.metadata().map_err(failed())?.permissions().mode();
    if mode & 0o007 != 0 {
        let what = format!(
            "everybody may use it (mode {:04o}): run chmod o= {}",
            mode & 0o7777,
            path.display()
        );
        return Err(Error::tcp(path, what));
    }
    let mut bytes = Vec::new();
    let mut limited = (&mut file).take(FILE_MAX + 1);
    limited.read_to_end(&mut bytes).map_err(failed())?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(Error::tcp(
            path,
            format!("it has more than {FILE_MAX} bytes"),
        ));
    }
    Ok(bytes)
}

impl Credentials {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// Something is wrong in the file, which is told without what it holds.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = secret_file(path)?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Error::tcp(path, "it is not UTF-8"))?;
        Self::parse(&text).map_err(|what| Error::tcp(path, what))
    }

    fn parse(text: &str) -> Result<Self, String> {
        // Not as it displays itself, which quotes the line.
        let rows: Rows = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            format!("line {line}: {}", error.message())
        })?;
        let mut all = Self::default();
        let mut names = HashSet::new();
        for row in rows.token {
            let entry = entry("token", row.name, &row.rights, row.links, row.expires)?;
            let hash = hash_of(&row.sha256).ok_or_else(|| {
                let what = "sha256 is not 64 hexadecimal digits, as sha256sum prints them";
                format!("token '{}': {what}", entry.name)
            })?;
            if !names.insert(("token", entry.name.clone())) {
                return Err(format!("two tokens have the name '{}'", entry.name));
            }
            if let Some((_, other)) = all.tokens.iter().find(|(other, _)| *other == hash) {
                let what = format!("'{}' and '{}' are the same token", other.name, entry.name);
                return Err(what);
            }
            all.tokens.push((hash, entry));
        }
        for row in rows.certificate {
            let entry = entry("certificate", row.name, &row.rights, row.links, row.expires)?;
            if !names.insert(("certificate", entry.name.clone())) {
                return Err(format!("two certificates have the name '{}'", entry.name));
            }
            all.certificates.push(entry);
        }
        if names.is_empty() {
            return Err(
                "it has neither a [[token]] nor a [[certificate]]: nobody could ask".to_owned(),
            );
        }
        Ok(all)
    }

    /// Says whether a certificate may do something.
    pub(super) fn has_certificates(&self) -> bool {
        !self.certificates.is_empty()
    }

    /// Says whether a token may do something.
    pub(super) fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Returns who has that token. It takes as long whichever it is.
    pub(super) fn token(&self, token: &[u8], now: SystemTime) -> Result<Caller, Unknown> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let mut found = None;
        for (other, entry) in &self.tokens {
            if bool::from(hash.ct_eq(other)) {
                found = Some(entry);
            }
        }
        found.map_or(Err(Unknown::Other), |entry| entry.caller("token", now))
    }

    /// Returns who has a certificate with one of these names; the first that counts.
    pub(super) fn certificate(&self, names: &[String], now: SystemTime) -> Result<Caller, Unknown> {
        let found = names
            .iter()
            .find_map(|name| self.certificates.iter().find(|entry| entry.name == *name));
        found.map_or(Err(Unknown::Other), |entry| {
            entry.caller("certificate", now)
        })
    }
}

impl Entry {
    fn caller(&self, kind: &str, now: SystemTime) -> Result<Caller, Unknown> {
        if self.expires.is_some_and(|expires| expires <= now) {
            return Err(Unknown::Expired(format!("{kind} '{}'", self.name)));
        }
        Ok(Caller {
            surface: Surface::Tcp,
            uid: None,
            gid: None,
            pid: None,
            name: Some(format!("{kind} {}", self.name)),
            grants: self.grants.clone(),
            needs: "a token or certificate with the right to it".to_owned(),
        })
    }
}

fn entry(
    kind: &str,
    name: String,
    rights: &[Word],
    links: Option<Vec<String>>,
    expires: Option<Datetime>,
) -> Result<Entry, String> {
    if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
        let what = format!("name takes 1 to {NAME_MAX} printable characters");
        return Err(format!("a {kind}: {what}"));
    }
    let failed = |what: String| format!("{kind} '{name}': {what}");
    if rights.is_empty() {
        return Err(failed("rights names neither 'read' nor 'write'".to_owned()));
    }
    let scope = match links {
        None => Scope::Everything,
        Some(patterns) if patterns.is_empty() => {
            let what = "links is empty; leave it out for the whole host";
            return Err(failed(what.to_owned()));
        }
        Some(patterns) => {
            let globs = patterns.iter().map(|pattern| pattern.parse::<Glob>());
            let globs = globs.collect::<Result<_, _>>();
            Scope::Links(globs.map_err(|error| failed(format!("links: {error}")))?)
        }
    };
    let of = |word| {
        if rights.contains(&word) {
            scope.clone()
        } else {
            Scope::Nothing
        }
    };
    let expires = expires.map(|date| {
        seconds(date).ok_or_else(|| {
            failed("expires is a date with time and offset, such as 2030-01-31T00:00:00Z".into())
        })
    });
    let expires = expires.transpose()?;
    Ok(Entry {
        grants: Grants {
            observe: of(Word::Read),
            change: of(Word::Write),
            declare: Scope::Nothing,
        },
        expires,
        name,
    })
}

fn hash_of(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(hash)
}

/// Returns the moment of a date with time and offset (RFC 3339); `None` for others.
fn seconds(date: Datetime) -> Option<SystemTime> {
    let (Some(day), Some(time), Some(offset)) = (date.date, date.time, date.offset) else {
        return None;
    };
    // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March.
    let (year, month) = (i64::from(day.year), i64::from(day.month));
    let year = if month <= 2 { year - 1 } else { year };
    let since_march = (month + 9) % 12;
    let of_year = (153 * since_march + 2) / 5 + i64::from(day.day) - 1;
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = 365 * year + leaps + of_year - 719_468;
    let minutes = match offset {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let of_day = (i64::from(time.hour) * 60 + i64::from(time.minute) - minutes) * 60
        + i64::from(time.second.unwrap_or(0));
    let seconds = u64::try_from(days * 86400 + of_day).ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use ibmgr_api::LinkName;

    use super::*;
    use crate::office::Right;

    const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn at(text: &str) -> SystemTime {
        seconds(text.parse().unwrap()).unwrap()
    }

    #[test]
    fn dates_are_moments() {
        let since = |text| at(text).duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since("1970-01-01T00:00:00Z").as_secs(), 0);
        assert_eq!(since("2000-03-01T00:00:00Z").as_secs(), 951_868_800);
        assert_eq!(since("2024-02-29T23:59:59+01:00").as_secs(), 1_709_247_599);
        assert_eq!(seconds("2030-01-31".parse().unwrap()), None);
        assert_eq!(seconds("2030-01-31T00:00:00".parse().unwrap()), None);
    }

    #[test]
    fn a_token_is_known_by_its_hash_until_its_date() {
        let text = format!(
            "[[token]]\nname = \"a\"\nsha256 = \"{HASH}\"\nrights = [\"read\"]\nlinks = [\"ib*\"]\n\
             expires = 2030-01-01T00:00:00Z\n"
        );
        let all = Credentials::parse(&text).unwrap();
        let caller = all.token(b"", at("2029-12-31T23:59:59Z")).unwrap();
        let link = |name: &str| name.parse::<LinkName>().unwrap();
        assert!(caller.check(Right::Observe, Some(&link("ib0"))).is_ok());
        assert!(caller.check(Right::Observe, Some(&link("eth0"))).is_err());
        assert!(caller.check(Right::Observe, None).is_err());
        assert!(caller.check(Right::Change, Some(&link("ib0"))).is_err());
        let late = all.token(b"", at("2030-01-01T00:00:00Z")).unwrap_err();
        assert_eq!(late, Unknown::Expired("token 'a'".to_owned()));
        let other = all.token(b"x", at("2029-01-01T00:00:00Z")).unwrap_err();
        assert_eq!(other, Unknown::Other);
    }

    #[test]
    fn what_is_wrong_is_told_without_what_the_file_holds() {
        let row = |rest: &str| format!("[[token]]\nname = \"a\"\n{rest}");
        for (text, told) in [
            (String::new(), "neither"),
            (
                row("sha256 = \"hunter2\"\nrights = [\"read\"]"),
                "64 hexadecimal",
            ),
            (row("sha256 = hunter2\nrights = [\"read\"]"), "line 3"),
            (
                row(&format!("sha256 = \"{HASH}\"\nrights = []")),
                "neither 'read'",
            ),
            (
                row(&format!("sha256 = \"{HASH}\"\nrights = [\"all\"]")),
                "line 4",
            ),
            (
                row(&format!(
                    "sha256 = \"{HASH}\"\nrights = [\"read\"]\nlinks = []"
                )),
                "empty",
            ),
            (
                row(&format!(
                    "sha256 = \"{HASH}\"\nrights = [\"read\"]\nexpires = 2030-01-01"
                )),
                "offset",
            ),
            (
                row(&format!("sha256 = \"{HASH}\"\nright = [\"read\"]")),
                "unknown field",
            ),
        ] {
            let error = Credentials::parse(&text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
            assert!(
                !error.contains("hunter2") && !error.contains(HASH),
                "{error}"
            );
        }
    }
}
