// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whoever asks the daemon: requests as they stand on the wire, and the command line.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ibctl::Environment;
use ibmgrd_hw::port::KernelPort;
use ibmgrd_state::Store;
use serde_json::Value;

use crate::support::Home;

const LIMIT: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Returns a header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (other, value) = line.split_once(':')?;
            other.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the body of a request that was done.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// Returns the problem of one that failed with that status and that code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        problem
    }
}

/// Sends bytes and reads until the end.
#[track_caller]
pub(crate) fn raw(socket: &Path, request: &[u8]) -> Answer {
    let mut stream = UnixStream::connect(socket).expect("the daemon listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a time limit");
    // It may answer, and close, before it has read all.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8(answer).expect("UTF-8");
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split_whitespace().nth(1).expect("a status");
    Answer {
        status: status.parse().expect("a number"),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

impl Home {
    /// Sends a request; headers are lines without their ends.
    #[track_caller]
    pub(crate) fn ask(&self, line: &str, headers: &[&str], body: Option<&Value>) -> Answer {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut text = format!("{line} HTTP/1.1\r\nHost: ibmgr\r\nConnection: close\r\n");
        for header in headers {
            text.push_str(&format!("{header}\r\n"));
        }
        if !body.is_empty() {
            let length = body.len();
            text.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        text.push_str("\r\n");
        text.push_str(&body);
        raw(&self.path("http.sock"), text.as_bytes())
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), &[], None)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(&format!("POST {path}"), &[], Some(body))
    }

    #[track_caller]
    pub(crate) fn patch(&self, link: &str, body: &Value) -> Answer {
        self.ask(&format!("PATCH /v1/links/{link}/knobs"), &[], Some(body))
    }

    /// Follows events; the reader ends with the daemon.
    pub(crate) fn events(&self) -> impl Iterator<Item = Value> + use<> {
        let mut stream = UnixStream::connect(self.path("http.sock")).expect("the daemon listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a time limit");
        stream
            .write_all(b"GET /v1/events HTTP/1.0\r\nHost: ibmgr\r\n\r\n")
            .expect("it reads");
        let mut lines = BufReader::new(stream).lines();
        // With the end of the head the subscription stands.
        lines.by_ref().map_while(Result::ok).find(String::is_empty);
        lines.map_while(Result::ok).filter_map(|line| {
            let data = line.strip_prefix("data:")?;
            Some(serde_json::from_str(data).expect("JSON"))
        })
    }

    /// Runs `ibctl`, as its program does, with this home's daemon, lock and state.
    pub(crate) fn ibctl(&self, line: &str) -> Done {
        let args: Vec<OsString> = ["ibctl"]
            .into_iter()
            .chain(line.split(' '))
            .map(Into::into)
            .collect();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let (lock, state, socket) = (
            self.path("lock"),
            self.path("state"),
            self.path("http.sock"),
        );
        let environment = Environment {
            open: &|| Ok(KernelPort::new()),
            lock: Some(&lock),
            namespace: &KernelPort::namespace_cookie,
            store: &|namespace| Store::new(&state, namespace),
            socket: Some(&socket),
            guard: &|_, _| panic!("the daemon takes back itself"),
            stdout: &mut stdout,
            stderr: &mut stderr,
        };
        let status = ibctl::run(&args, environment);
        Done {
            status,
            stdout: String::from_utf8(stdout).expect("UTF-8"),
            stderr: String::from_utf8(stderr).expect("UTF-8"),
        }
    }
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.status, 0, "{self:?}");
        &self.stdout
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
