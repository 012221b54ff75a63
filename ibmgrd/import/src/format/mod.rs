// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formats that can be read, each in a file of its own.

mod ifcfg;
mod keyfile;
mod netplan;
mod networkd;
mod nmstate;
mod openib;
mod tuned;
mod wicked;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ibmgr_api::{Desired, nearest};
use serde::{Serialize, Serializer};

use crate::assemble::assemble;
use crate::found::{Found, is_ipoib_name};
use crate::note::{Entry, Note, Notes, Place};
use crate::rows::Table;

/// A format of configuration files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// `ifcfg-*` of Red Hat's network scripts, NetworkManager, MLNX_OFED, and SUSE's wicked.
    Ifcfg,
    /// NetworkManager's `*.nmconnection`.
    NmKeyfile,
    /// nmstate's YAML.
    Nmstate,
    /// netplan's YAML.
    Netplan,
    /// systemd's `.netdev`, `.network` and `.link`.
    Networkd,
    /// wicked's XML.
    Wicked,
    /// MLNX_OFED's `openib.conf`, and module options in `modprobe.d`.
    Openib,
    /// TuneD's profiles.
    Tuned,
}

impl Format {
    /// Every format, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Ifcfg,
        Self::NmKeyfile,
        Self::Nmstate,
        Self::Netplan,
        Self::Networkd,
        Self::Wicked,
        Self::Openib,
        Self::Tuned,
    ];

    /// Returns the name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ifcfg => "ifcfg",
            Self::NmKeyfile => "nm-keyfile",
            Self::Nmstate => "nmstate",
            Self::Netplan => "netplan",
            Self::Networkd => "networkd",
            Self::Wicked => "wicked",
            Self::Openib => "openib",
            Self::Tuned => "tuned",
        }
    }

    /// Returns what the files are, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Ifcfg => {
                "`ifcfg-*` of Red Hat's network scripts, NetworkManager, MLNX_OFED and SUSE"
            }
            Self::NmKeyfile => "NetworkManager's keyfiles, `*.nmconnection`",
            Self::Nmstate => "nmstate's YAML",
            Self::Netplan => "netplan's YAML",
            Self::Networkd => "systemd's `.netdev`, `.network` and `.link`, with their drop-ins",
            Self::Wicked => "wicked's XML",
            Self::Openib => "MLNX_OFED's `openib.conf`, and options of `ib_ipoib` in `modprobe.d`",
            Self::Tuned => "TuneD's profiles, `tuned.conf`",
        }
    }

    /// Says whether a file of that name in a folder is of this format. Editors' and packages' backups
    /// are not, as for the tools themselves.
    #[must_use]
    pub fn takes(self, file_name: &str) -> bool {
        let ends = |ends: &[&str]| ends.iter().any(|end| file_name.ends_with(end));
        if file_name.starts_with('.') || ends(&["~", ".bak", ".orig", ".rej", ".rpmnew"]) {
            return false;
        }
        match self {
            Self::Ifcfg => {
                file_name.starts_with("ifcfg-") && !ends(&[".rpmsave", ".rpmorig", ".old", ".swp"])
            }
            Self::NmKeyfile => ends(&[".nmconnection"]),
            Self::Nmstate => ends(&[".yml", ".yaml", ".json"]),
            Self::Netplan => ends(&[".yaml"]),
            Self::Networkd => ends(&[".netdev", ".network", ".link", ".conf"]),
            Self::Wicked => ends(&[".xml"]),
            Self::Openib => ends(&[".conf"]),
            Self::Tuned => file_name == "tuned.conf",
        }
    }

    /// Says whether folders inside a folder belong to it: networkd's drop-ins, TuneD's profiles.
    #[must_use]
    pub fn takes_folder(self, name: &str) -> bool {
        match self {
            Self::Networkd => [".netdev.d", ".network.d", ".link.d"]
                .iter()
                .any(|end| name.ends_with(end)),
            Self::Tuned => !name.starts_with('.'),
            Self::Ifcfg
            | Self::NmKeyfile
            | Self::Nmstate
            | Self::Netplan
            | Self::Wicked
            | Self::Openib => false,
        }
    }

    /// Returns what the keys of this format become.
    #[must_use]
    pub const fn tables(self) -> &'static [Table] {
        match self {
            Self::Ifcfg => &ifcfg::TABLES,
            Self::NmKeyfile => &keyfile::TABLES,
            Self::Nmstate => &nmstate::TABLES,
            Self::Netplan => &netplan::TABLES,
            Self::Networkd => &networkd::TABLES,
            Self::Wicked => &wicked::TABLES,
            Self::Openib => &openib::TABLES,
            Self::Tuned => &tuned::TABLES,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| {
            let near = nearest(name, Self::ALL.map(Self::name));
            let near = near
                .first()
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            format!("no format is called '{name}'{near}")
        })
    }
}

/// A file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path, as reports name it. The last part can tell the interface or the kind of file.
    pub name: Arc<str>,
    /// What it holds.
    pub text: String,
}

impl Source {
    /// Takes the bytes of a file.
    ///
    /// # Errors
    ///
    /// They are not UTF-8.
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self, ImportError> {
        let name: Arc<str> = name.into();
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text }),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let good = error.as_bytes().get(..valid).unwrap_or_default();
                Err(ImportError {
                    place: Place {
                        file: name,
                        line: line_at(good),
                    },
                    what: "is not UTF-8 text".to_owned(),
                })
            }
        }
    }

    /// Returns the last part of the path.
    pub(crate) fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the folder that the file lies in, without the path to it.
    pub(crate) fn folder_name(&self) -> &str {
        self.name.rsplit('/').nth(1).unwrap_or_default()
    }

    pub(crate) fn place(&self, line: usize) -> Place {
        Place {
            file: Arc::clone(&self.name),
            line: u32::try_from(line).unwrap_or(u32::MAX),
        }
    }
}

fn line_at(before: &[u8]) -> u32 {
    let breaks = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(breaks + 1).unwrap_or(u32::MAX)
}

/// What is imported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Interfaces of every kind, not only InfiniBand.
    pub all_kinds: bool,
}

/// What came of an import.
#[derive(Clone, Debug)]
pub struct Import {
    /// The rules.
    pub desired: Desired,
    /// What became of each setting, file by file, line by line.
    pub notes: Vec<Note>,
}

/// Why a file can't be read as its format.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct ImportError {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub what: String,
}

/// An import under way.
pub(crate) struct Intake {
    options: Options,
    pub(crate) notes: Notes,
    pub(crate) found: Vec<Found>,
    pub(crate) errors: Vec<ImportError>,
}

/// What a file says of the kind of its interface.
#[derive(Clone, Debug)]
pub(crate) enum Kin {
    InfiniBand,
    /// Something else, in the words of the file.
    Other(String),
    /// Nothing: its name may tell.
    Untold,
}

impl Intake {
    pub(crate) fn fail(&mut self, source: &Source, line: usize, what: impl Into<String>) {
        self.errors.push(ImportError {
            place: source.place(line),
            what: what.into(),
        });
    }

    /// Says whether an interface is to be imported, and notes it when not.
    pub(crate) fn is_wanted(&mut self, kin: &Kin, name: Option<&str>, place: &Place) -> bool {
        let why = match kin {
            Kin::InfiniBand => return true,
            _ if self.options.all_kinds => return true,
            Kin::Other(kind) => {
                format!("{kind} is no InfiniBand interface; --all-kinds takes it, too")
            }
            Kin::Untold if name.is_some_and(is_ipoib_name) => return true,
            Kin::Untold => {
                "nothing tells that it is an InfiniBand interface; --all-kinds takes it, too"
                    .to_owned()
            }
        };
        let entry = Entry {
            place,
            key: "interface",
            value: name.unwrap_or_default(),
        };
        self.notes.lose(entry, why);
        false
    }
}

/// Reads `sources` as files of one format.
///
/// # Errors
///
/// Returns all that can't be read: nothing is imported then. What can be read and not carried is no
/// error, but noted.
pub fn import(
    format: Format,
    sources: &[Source],
    options: Options,
) -> Result<Import, Vec<ImportError>> {
    let mut intake = Intake {
        options,
        notes: Notes::default(),
        found: Vec::new(),
        errors: Vec::new(),
    };
    match format {
        Format::Ifcfg => ifcfg::read(sources, &mut intake),
        Format::NmKeyfile => keyfile::read(sources, &mut intake),
        Format::Nmstate => nmstate::read(sources, &mut intake),
        Format::Netplan => netplan::read(sources, &mut intake),
        Format::Networkd => networkd::read(sources, &mut intake),
        Format::Wicked => wicked::read(sources, &mut intake),
        Format::Openib => openib::read(sources, &mut intake),
        Format::Tuned => tuned::read(sources, &mut intake),
    }
    if !intake.errors.is_empty() {
        return Err(intake.errors);
    }
    let desired = assemble(intake.found, &mut intake.notes);
    let files: Vec<_> = sources
        .iter()
        .map(|source| Arc::clone(&source.name))
        .collect();
    Ok(Import {
        desired,
        notes: intake.notes.into_sorted(&files),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::rows::find;

    #[test]
    fn every_row_is_the_one_for_its_key() {
        for format in Format::ALL {
            for table in format.tables() {
                let mut seen = HashSet::new();
                for row in table.rows {
                    assert!(
                        seen.insert(row.key()),
                        "{format}: {} stands twice",
                        row.key()
                    );
                    let key = row.key().replace('*', "some");
                    let found = find(table.rows, &key).map(|(row, _)| row.key());
                    assert_eq!(found, Some(row.key()), "{format}");
                }
            }
        }
    }

    #[test]
    fn formats_are_named_as_they_are_read() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let error = "netplam".parse::<Format>().unwrap_err();
        assert_eq!(
            error,
            "no format is called 'netplam'; did you mean netplan?"
        );
    }

    #[test]
    fn files_of_a_folder_are_told_by_their_names() {
        for (format, good, bad) in [
            (Format::NmKeyfile, "ib0.nmconnection", "ib0.nmconnection~"),
            (Format::Nmstate, "a.yml", "a.txt"),
            (Format::Netplan, "60-ib.yaml", ".60-ib.yaml.swp"),
            (Format::Networkd, "10-ib.link", "README"),
            (Format::Wicked, "a.xml", "a.xml.bak"),
            (Format::Openib, "openib.conf", "openib.conf.rpmnew"),
            (Format::Tuned, "tuned.conf", "script.sh"),
        ] {
            assert!(format.takes(good), "{format} {good}");
            assert!(!format.takes(bad), "{format} {bad}");
        }
        assert!(Format::Networkd.takes_folder("10-ib.network.d"));
        assert!(!Format::Networkd.takes_folder("old"));
    }
}
