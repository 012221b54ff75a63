// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who asks: the kernel says so at the unix socket, a token or a certificate over TLS. Each request is
//! looked at anew, before anything is done with it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use ibmgr_api::ErrorCode;
use tokio::net::UnixStream;

use super::Problem;
use super::credentials::Unknown;
use super::routes::Shared;
use super::tcp::Pass;
use crate::office::{Caller, Grants, Right, Surface};

/// Most often that strangers get a line in the log.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// The other end of a connection.
#[derive(Clone)]
pub(super) enum Origin {
    /// A process on this host, as the kernel says.
    Local(Peer),
    /// Whatever was shown over TLS.
    Remote(Pass),
}

/// Who is at the other end of a unix socket (`SO_PEERCRED`, unix(7)).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    uid: Option<u32>,
    gid: Option<u32>,
    pid: Option<u32>,
}

impl Peer {
    pub(super) const fn user(&self) -> Option<u32> {
        self.uid
    }

    pub(super) fn of(stream: &UnixStream) -> Self {
        // One that is gone already may read at most.
        let Ok(peer) = stream.peer_cred() else {
            return Self::default();
        };
        Self {
            uid: Some(peer.uid()),
            gid: Some(peer.gid()),
            pid: peer.pid().and_then(|pid| pid.try_into().ok()),
        }
    }
}

/// Finds out who asks; those after it find the [`Caller`] in the request.
pub(super) async fn identify(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let origin = request.extensions_mut().remove::<Origin>();
    // A connection without one is nobody's.
    let origin = origin.unwrap_or(Origin::Local(Peer::default()));
    match caller(&shared, &origin, request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            if let Origin::Remote(pass) = origin {
                let shown = Shown::of(pass, request.headers());
                request.extensions_mut().insert(shown);
            }
            next.run(request).await
        }
        Err(response) => *response,
    }
}

/// What somebody over TLS has shown, for requests that take long.
#[derive(Clone)]
pub(super) struct Shown {
    pass: Pass,
    token: Option<HeaderValue>,
}

impl Shown {
    fn of(pass: Pass, headers: &HeaderMap) -> Self {
        let token = headers.get(header::AUTHORIZATION).cloned();
        Self { pass, token }
    }

    /// Says whether it still lets its owner read everything: a token may end, or be taken away.
    pub(super) fn holds(&self) -> bool {
        let caller = match (self.token.as_ref().and_then(token), &self.pass.certificate) {
            (Some(token), _) => self.pass.token(token),
            (None, Some(names)) => self.pass.certificate(names),
            (None, None) => return false,
        };
        caller.is_ok_and(|caller| caller.check(Right::Observe, None).is_ok())
    }
}

fn caller(shared: &Shared, origin: &Origin, headers: &HeaderMap) -> Result<Caller, Box<Response>> {
    let pass = match origin {
        Origin::Local(peer) => {
            let access = shared.office.access();
            return Ok(access.peer(peer.uid, peer.gid, peer.pid));
        }
        Origin::Remote(pass) => pass,
    };
    let mut given = headers.get_all(header::AUTHORIZATION).into_iter();
    match (given.next(), given.next(), &pass.certificate) {
        // A token that is shown decides, also beside a certificate.
        (Some(value), None, _) => match token(value).map(|token| pass.token(token)) {
            Some(Ok(caller)) => Ok(caller),
            Some(Err(Unknown::Expired(what))) => {
                Err(stranger(pass, &format!("the {what} has expired"), true))
            }
            Some(Err(Unknown::Other)) => Err(stranger(pass, "the token is not known", true)),
            None => Err(stranger(
                pass,
                "Authorization is not 'Bearer' with a token",
                true,
            )),
        },
        (Some(_), Some(_), _) => Err(stranger(pass, "there are several Authorizations", true)),
        (None, _, Some(names)) => match pass.certificate(names) {
            Ok(caller) => Ok(caller),
            Err(Unknown::Expired(what)) => {
                Err(stranger(pass, &format!("the {what} has expired"), false))
            }
            Err(Unknown::Other) => Err(unlisted(shared, names)),
        },
        (None, _, None) => Err(stranger(
            pass,
            "this takes a token ('Authorization: Bearer …') or a client certificate",
            false,
        )),
    }
}

/// Returns the token of an `Authorization` (RFC 6750, section 2.1).
fn token(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// Returns the denial of a certificate that is trusted, but stands in no list.
fn unlisted(shared: &Shared, names: &[String]) -> Box<Response> {
    let name = names.first().map_or("without a name", String::as_str);
    let nobody = Caller {
        surface: Surface::Tcp,
        uid: None,
        gid: None,
        pid: None,
        name: Some(format!("certificate {name}")),
        grants: Grants::default(),
        needs: "a [[certificate]] of that name in the daemon's list".to_owned(),
    };
    match shared.office.check(&nobody, Right::Observe, None) {
        Err(failure) => Box::new(Problem::from(failure).into_response()),
        // It was granted nothing.
        Ok(()) => Box::new(StatusCode::FORBIDDEN.into_response()),
    }
}

/// Returns the answer to somebody who is not known.
fn stranger(pass: &Pass, detail: &str, is_invalid: bool) -> Box<Response> {
    /// When the last one was logged, and how many were not since then.
    static LAST: Mutex<Option<(Instant, u64)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *last {
        Some((at, more)) if at.elapsed() < LOG_EVERY => *more += 1,
        other => {
            let more = other.map_or(0, |(_, more)| more);
            tracing::warn!(address = %pass.address, more, "refused: {detail}");
            *other = Some((Instant::now(), 0));
        }
    }
    drop(last);
    let challenge = if is_invalid {
        "Bearer realm=\"ibmgr\", error=\"invalid_token\""
    } else {
        "Bearer realm=\"ibmgr\""
    };
    let mut problem = Problem::new(ErrorCode::Permission, detail);
    problem.0.status = StatusCode::UNAUTHORIZED.as_u16();
    let mut response = problem.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static(challenge),
    );
    Box::new(response)
}
