// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon, where one runs: what is asked of it over its unix socket.
//!
//! In HTTP/1.0: an answer is then a body that ends with the connection.

mod told;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ibmgr_api::form::{
    ApplyBody, ChangeForm, CheckpointBody, CheckpointDeed, CheckpointForm, KnobsBody, PlanBody,
    PlanForm, ProblemForm, ReportForm, SetPlanForm, SourceForm,
};
use ibmgr_api::status::Status;
use ibmgr_api::{ErrorCode, LinkName};
use ibmgrd_state::change::whole_seconds;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
pub(crate) use told::{print, watch};

/// How long an answer may take: the daemon may be changing a mode, which takes seconds.
const PATIENCE: Duration = Duration::from_secs(90);

/// What an answer is, or why it is none.
pub(crate) type Answer<T> = Result<T, Box<ProblemForm>>;

/// A daemon that answers for this network namespace.
#[derive(Debug)]
pub(crate) struct Daemon {
    socket: PathBuf,
    /// Where it must work.
    namespace: Option<u64>,
}

/// The body of an answer, and its status.
struct Reply {
    status: u16,
    body: BufReader<UnixStream>,
}

impl Daemon {
    /// Returns the daemon at `socket`; `None` where none runs, where this user may not ask it, or where it
    /// works in another network namespace than `namespace`.
    pub(crate) fn find(socket: &Path, namespace: u64) -> Result<Option<Self>, Error> {
        let daemon = Self {
            socket: socket.to_owned(),
            namespace: Some(namespace),
        };
        let stream = match UnixStream::connect(socket) {
            Ok(stream) => stream,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::PermissionDenied
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(daemon.failed(error)),
        };
        let reply = daemon.send(stream, "HEAD", "/v1/knobs", None);
        match reply.map_err(|error| daemon.failed(error))?.status {
            200 => Ok(Some(daemon)),
            // Its interfaces are others.
            421 => Ok(None),
            status => {
                let error = io::Error::other(format!("it answers with status {status}"));
                Err(daemon.failed(error))
            }
        }
    }

    /// Returns how everything stands.
    pub(crate) fn status(&self) -> Result<Status, Error> {
        self.asked("GET", "/v1/status")
    }

    /// Returns how it stands with the last change.
    pub(crate) fn checkpoint(&self) -> Result<CheckpointForm, Error> {
        self.asked("GET", "/v1/checkpoint")
    }

    /// Keeps the last change for good, or takes it back.
    pub(crate) fn end(&self, deed: CheckpointDeed) -> Result<Answer<CheckpointForm>, Error> {
        self.ask("POST", "/v1/checkpoint", Some(&CheckpointBody { deed }))
    }

    /// Plans declarations.
    pub(crate) fn plan(&self, sources: Vec<SourceForm>) -> Result<Answer<PlanForm>, Error> {
        self.ask("POST", "/v1/plan", Some(&PlanBody { sources }))
    }

    /// Applies declarations.
    pub(crate) fn apply(
        &self,
        sources: Vec<SourceForm>,
        confirm_within: Option<Duration>,
    ) -> Result<Answer<ChangeForm>, Error> {
        let body = ApplyBody {
            sources,
            confirm_within_seconds: confirm_within.map(whole_seconds),
            dry_run: false,
            why: None,
        };
        self.ask("POST", "/v1/apply", Some(&body))
    }

    /// Sets knobs.
    pub(crate) fn set(
        &self,
        link: &LinkName,
        body: &KnobsBody,
    ) -> Result<Answer<ReportForm>, Error> {
        self.ask("PATCH", &knobs_of(link), Some(body))
    }

    /// Plans a set of knobs.
    pub(crate) fn plan_set(
        &self,
        link: &LinkName,
        body: &KnobsBody,
    ) -> Result<Answer<SetPlanForm>, Error> {
        self.ask("PATCH", &knobs_of(link), Some(body))
    }

    fn asked<T: DeserializeOwned>(&self, method: &str, path: &str) -> Result<T, Error> {
        match self.ask(method, path, None::<&()>)? {
            Ok(answer) => Ok(answer),
            Err(problem) => Err(problem.failure.into()),
        }
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Answer<T>, Error> {
        let exchange = || -> io::Result<Answer<T>> {
            let body = body.map(serde_json::to_vec).transpose()?;
            let stream = UnixStream::connect(&self.socket)?;
            let mut reply = self.send(stream, method, path, body.as_deref())?;
            let mut text = Vec::new();
            reply.body.read_to_end(&mut text)?;
            if reply.status == 200 {
                return Ok(Ok(serde_json::from_slice(&text)?));
            }
            match serde_json::from_slice(&text) {
                Ok(problem) => Ok(Err(problem)),
                Err(_) => {
                    let status = reply.status;
                    Err(io::Error::other(format!("it answers with status {status}")))
                }
            }
        };
        exchange().map_err(|error| self.failed(error))
    }

    fn send(
        &self,
        mut stream: UnixStream,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> io::Result<Reply> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut request = format!("{method} {path} HTTP/1.0\r\nHost: ibmgr\r\n");
        if let Some(namespace) = self.namespace {
            request.push_str(&format!("Ibmgr-Namespace: {namespace}\r\n"));
        }
        if let Some(body) = body {
            let length = body.len();
            request.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        stream.write_all(&bytes)?;
        let mut body = BufReader::new(stream);
        let mut line = String::new();
        body.read_line(&mut line)?;
        let status = line.split_whitespace().nth(1);
        let status = status.and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("it does not speak HTTP"))?;
        while !line.trim_end().is_empty() {
            line.clear();
            body.read_line(&mut line)?;
        }
        Ok(Reply { status, body })
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Files {
            message: format!("the daemon at {} does not answer", self.socket.display()),
            hint: Some("'--direct' works on the kernel without it".to_owned()),
            code: match source.kind() {
                io::ErrorKind::PermissionDenied => ErrorCode::Permission,
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ErrorCode::Timeout,
                _ => ErrorCode::Kernel,
            },
            source: Some(source),
        }
    }
}

/// Returns the path of an interface's knobs. Names may have any character but `/` and blanks.
fn knobs_of(link: &LinkName) -> String {
    let mut path = "/v1/links/".to_owned();
    for byte in link.as_str().bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path.push_str("/knobs");
    path
}
