// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who asks over the bus, and what polkit says that they may do.
//!
//! The subject is the sender's name on the bus: a process can hand its identifier, but never its
//! connection, to another one.

use std::time::Duration;

use nix::unistd::geteuid;
use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::message::{Flags, Header};
use zbus::names::BusName;
use zbus_polkit::policykit1::{AuthorityProxy, CheckAuthorizationFlags, Subject};

use super::error::Refusal;
use crate::office::{Caller, Grants, Right, Surface};

/// How long polkit may take when it asks nobody.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long somebody may take to authenticate.
const PATIENCE_OF_AGENTS: Duration = Duration::from_secs(300);

/// Returns the polkit action that stands for a right.
pub(super) const fn action(right: Right) -> &'static str {
    match right {
        Right::Observe => "org.ibmgr1.observe",
        Right::Change => "org.ibmgr1.change",
        Right::Declare => "org.ibmgr1.change-boot-config",
    }
}

/// Returns who sent a message, with `right` if polkit grants it.
///
/// # Errors
///
/// The bus does not say who it is: they are gone.
pub(super) async fn caller(
    connection: &Connection,
    header: &Header<'_>,
    right: Right,
) -> Result<Caller, Refusal> {
    let (uid, pid) = credentials(connection, header).await?;
    let mut caller = Caller {
        surface: Surface::Bus,
        uid,
        gid: None,
        pid,
        name: None,
        grants: Grants::default(),
        needs: format!("the polkit action {}", action(right)),
    };
    // polkit grants root everything; the daemon works for itself and for root without it, too.
    if uid.is_some_and(|uid| uid == 0 || uid == geteuid().as_raw()) {
        caller.grants = Grants::all();
        return Ok(caller);
    }
    match granted(connection, header, right).await {
        Ok(grants) => caller.grants = grants,
        Err(error) => {
            tracing::warn!(%error, "polkit does not answer: only root is served over D-Bus");
            caller.needs.push_str(", and polkit does not answer");
        }
    }
    Ok(caller)
}

async fn granted(
    connection: &Connection,
    header: &Header<'_>,
    right: Right,
) -> Result<Grants, String> {
    if is_authorized(connection, header, right).await? {
        return Ok(match right {
            Right::Observe => Grants::observer(),
            Right::Change => Grants {
                declare: Default::default(),
                ..Grants::all()
            },
            Right::Declare => Grants::all(),
        });
    }
    // A denial says what they may do instead.
    let is_observer =
        right != Right::Observe && is_authorized(connection, header, Right::Observe).await?;
    Ok(if is_observer {
        Grants::observer()
    } else {
        Grants::default()
    })
}

async fn credentials(
    connection: &Connection,
    header: &Header<'_>,
) -> Result<(Option<u32>, Option<u32>), Refusal> {
    let Some(sender) = header.sender() else {
        return Ok((None, None));
    };
    let bus = DBusProxy::new(connection).await?;
    let found = bus
        .get_connection_credentials(BusName::Unique(sender.to_owned()))
        .await
        .map_err(zbus::Error::from)?;
    Ok((found.unix_user_id(), found.process_id()))
}

async fn is_authorized(
    connection: &Connection,
    header: &Header<'_>,
    right: Right,
) -> Result<bool, String> {
    let subject = Subject::new_for_message_header(header).map_err(|error| error.to_string())?;
    let may_ask = header
        .primary()
        .flags()
        .contains(Flags::ALLOW_INTERACTIVE_AUTH);
    let (flags, patience) = if may_ask {
        let flags = CheckAuthorizationFlags::ALLOW_USER_INTERACTION;
        (flags, PATIENCE_OF_AGENTS)
    } else {
        (CheckAuthorizationFlags::empty(), PATIENCE)
    };
    let ask = async {
        let polkit = AuthorityProxy::new(connection).await?;
        let details = Default::default();
        polkit
            .check_authorization(&subject, action(right), &details, flags, "")
            .await
    };
    match tokio::time::timeout(patience, ask).await {
        Ok(Ok(result)) => Ok(result.is_authorized),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", patience.as_secs())),
    }
}
