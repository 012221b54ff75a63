// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one table of exit codes, D-Bus error names and HTTP statuses.

use serde::{Deserialize, Serialize};

/// Why a request did not do what was asked.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// A defect of ibmgr itself.
    Internal,
    /// The command line or request is malformed.
    Usage,
    /// No knob has that name.
    UnknownKnob,
    /// No interface has that name.
    UnknownLink,
    /// The value is not of the knob's form, or outside its range.
    BadValue,
    /// The device, its driver or the kernel has no such knob.
    Unsupported,
    /// The kernel refused the value; nothing was changed, or it was put back.
    Refused,
    /// The kernel stored the value, but the driver does not use it.
    NoEffect,
    /// The caller lacks a privilege.
    Permission,
    /// The interface disappeared while it was worked on.
    Vanished,
    /// The kernel reported success, but the value read back differs.
    NotVerified,
    /// A change was refused and the earlier ones could not be put back.
    NotPutBack,
    /// The kernel could not be talked to.
    Kernel,
    /// The kernel did not answer in time.
    Timeout,
    /// The state on disk cannot be written or read: nothing is changed without it.
    Journal,
    /// An earlier change waits to be confirmed, or there is none to be confirmed or taken back.
    Pending,
    /// What the request was made for is not so any more: somebody changed it meanwhile.
    Stale,
    /// The request is larger than what is taken.
    TooLarge,
    /// Too much is asked at once.
    Busy,
}

struct Row {
    code: ErrorCode,
    name: &'static str,
    exit: u8,
    dbus: &'static str,
    http: u16,
    title: &'static str,
}

macro_rules! row {
    ($code:ident, $name:literal, $exit:literal, $http:literal, $title:literal) => {
        Row {
            code: ErrorCode::$code,
            name: $name,
            exit: $exit,
            dbus: concat!("org.ibmgr1.Error.", stringify!($code)),
            http: $http,
            title: $title,
        }
    };
}

const TABLE: [Row; 19] = [
    row!(Internal, "internal", 1, 500, "Defect in ibmgr"),
    row!(Usage, "usage", 2, 400, "Malformed request"),
    row!(UnknownKnob, "unknown-knob", 3, 404, "No such knob"),
    row!(UnknownLink, "unknown-link", 4, 404, "No such interface"),
    row!(BadValue, "bad-value", 5, 422, "Value not admitted"),
    row!(
        Unsupported,
        "unsupported",
        6,
        409,
        "Not supported by this device"
    ),
    row!(Refused, "refused", 7, 409, "Refused by the kernel"),
    row!(NoEffect, "no-effect", 8, 409, "Stored without effect"),
    row!(Permission, "permission", 9, 403, "Permission denied"),
    row!(Vanished, "vanished", 10, 410, "Interface disappeared"),
    row!(
        NotVerified,
        "not-verified",
        11,
        409,
        "Read back a different value"
    ),
    row!(
        NotPutBack,
        "not-put-back",
        12,
        500,
        "Change not rolled back"
    ),
    row!(Kernel, "kernel", 13, 502, "Kernel interface failed"),
    row!(Timeout, "timeout", 14, 504, "Kernel did not answer in time"),
    row!(Journal, "journal", 15, 507, "State on disk not usable"),
    row!(Pending, "pending", 16, 409, "Confirmation pending, or none"),
    row!(Stale, "stale", 17, 412, "Changed meanwhile"),
    row!(TooLarge, "too-large", 18, 413, "Request too large"),
    row!(Busy, "busy", 19, 503, "Too much at once"),
];

impl ErrorCode {
    /// Every code, in the order of its exit status.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.code)
    }

    fn row(self) -> &'static Row {
        // The table is laid out in the order of the enum; `table_follows_the_enum` holds it to that.
        &TABLE[self as usize]
    }

    /// Returns how much it weighs when several things went wrong at once.
    ///
    /// A value that stays changed against the request outweighs its cause; one without effect is least.
    pub const fn gravity(self) -> u8 {
        match self {
            Self::NoEffect => 0,
            Self::NotPutBack => 3,
            Self::Vanished => 2,
            _ => 1,
        }
    }

    /// Returns the code of that name, such as `unknown-knob`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|code| code.name() == name)
    }

    /// Returns the name in JSON output, such as `unknown-knob`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the exit status of `ibctl`.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        self.row().exit
    }

    /// Returns the D-Bus error name.
    #[must_use]
    pub fn dbus_name(self) -> &'static str {
        self.row().dbus
    }

    /// Returns the HTTP status of the problem document.
    #[must_use]
    pub fn http_status(self) -> u16 {
        self.row().http
    }

    /// Returns the title of the problem document.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().title
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn table_follows_the_enum() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.code as usize, at, "{}", row.name);
            assert_eq!(usize::from(row.exit), at + 1, "{}", row.name);
            assert_eq!(serde_json_name(row.code), row.name);
        }
    }

    #[test]
    fn names_and_statuses_are_unique() {
        let exits: HashSet<_> = ErrorCode::all().map(ErrorCode::exit_status).collect();
        let names: HashSet<_> = ErrorCode::all().map(ErrorCode::dbus_name).collect();
        assert_eq!(exits.len(), TABLE.len());
        assert_eq!(names.len(), TABLE.len());
        assert!(!exits.contains(&0));
        assert!(ErrorCode::all().all(|code| (400..600).contains(&code.http_status())));
    }

    fn serde_json_name(code: ErrorCode) -> String {
        serde_json::to_value(code)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }
}
