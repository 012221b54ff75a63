// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Failures as D-Bus errors, with the names of the one table.

use ibmgr_api::{ErrorCode, Failure};
use zbus::message::{Header, Message};
use zbus::names::ErrorName;
use zbus::{DBusError, fdo};

/// A request that was not done, or not as asked.
#[derive(Debug)]
pub(super) struct Refusal {
    code: ErrorCode,
    text: String,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            text: failure.to_string(),
        }
    }
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }

    /// Returns the nearest of the errors that `org.freedesktop.DBus.Properties.GetAll` can fail with.
    pub(super) fn of_properties(self) -> fdo::Error {
        match self.code {
            ErrorCode::Permission => fdo::Error::AccessDenied(self.text),
            ErrorCode::UnknownLink | ErrorCode::Vanished => fdo::Error::UnknownObject(self.text),
            _ => fdo::Error::Failed(self.text),
        }
    }
}

impl From<zbus::Error> for Refusal {
    fn from(error: zbus::Error) -> Self {
        Self::new(ErrorCode::Internal, format!("the bus: {error}"))
    }
}

impl DBusError for Refusal {
    fn create_reply(&self, call: &Header<'_>) -> zbus::Result<Message> {
        Message::error(call, self.name()).build(&self.text.as_str())
    }

    fn name(&self) -> ErrorName<'_> {
        // A test holds the table to valid names.
        ErrorName::from_static_str_unchecked(self.code.dbus_name())
    }

    fn description(&self) -> Option<&str> {
        Some(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_table_are_names_of_dbus() {
        for code in ErrorCode::all() {
            assert!(ErrorName::try_from(code.dbus_name()).is_ok(), "{code:?}");
        }
    }
}
