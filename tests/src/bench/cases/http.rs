// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The daemon as a server on its unix socket: requests, changes, and many who follow events.

use std::io::{ErrorKind, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ibmgr_api::{Assignment, Key};
use ibmgrd_engine::{prepare, run as take_through};
use ibmgrd_hw::port::KernelPort;

use super::daemon::{Running, in_namespace, make_links};
use crate::bench::{Bench, Case, Goal, median};
use crate::lab::session::build_program;

/// Requests.
pub(super) const HTTP: Case = Case {
    name: "http",
    about: "reading and changing over the daemon's socket",
    run: http,
};

/// Events.
pub(super) const EVENTS: Case = Case {
    name: "events",
    about: "many who follow the daemon's events",
    run: events,
};

/// Interfaces, two for each pair.
const PAIRS: u32 = 50;
/// Requests that are measured.
const GETS: u32 = 2000;
/// Changes that are measured.
const CHANGES: u32 = 200;
/// Connections that ask at the same time.
const CONNECTIONS: u32 = 8;
/// Those who follow events.
const SUBSCRIBERS: usize = 500;
/// Events that are measured.
const EVENTS_SENT: usize = 50;

fn http(bench: &mut Bench) -> Result<()> {
    let program = build_program("ibmgrd", true)?;
    let found = in_namespace(move || requests(&program))?;
    bench.bar(
        "http.get_us",
        found.get * 1e6,
        None,
        Goal::AtMost(300.0),
        "us",
    )?;
    // Of the daemon's processor time: whoever asks is not its cost.
    bench.bar("http.rps", found.rate, None, Goal::AtLeast(5000.0), "1/s")?;
    let ratio = found.change / found.direct;
    bench.bar(
        "http.patch_vs_set",
        ratio,
        Some(1.0),
        Goal::AtMost(2.0),
        "ratio",
    )?;
    let direct = Some(found.direct * 1e6);
    bench.bar(
        "http.patch_us",
        found.change * 1e6,
        direct,
        Goal::Open,
        "us",
    )
}

struct Requests {
    /// Seconds.
    get: f64,
    /// Requests per second of processor time.
    rate: f64,
    /// Seconds of a change over the socket.
    change: f64,
    /// Seconds of the same change here.
    direct: f64,
}

fn requests(program: &Path) -> Result<Requests> {
    make_links(PAIRS)?;
    let daemon = Running::start(program)?;
    let mut client = Client::connect(&daemon)?;
    let mut gets = Vec::new();
    for n in 0..GETS {
        let start = Instant::now();
        client.get(&format!("/v1/links/v{}", n % PAIRS))?;
        gets.push(start.elapsed().as_secs_f64());
    }
    let before = daemon.processor_time()?;
    let mut clients = (0..CONNECTIONS).map(|_| Client::connect(&daemon));
    let mut clients = clients.by_ref().collect::<Result<Vec<_>>>()?;
    for n in 0..GETS / CONNECTIONS {
        for client in &mut clients {
            client.ask("GET", &format!("/v1/links/v{}", n % PAIRS), "")?;
        }
        for client in &mut clients {
            client.answer(200)?;
        }
    }
    let rate = f64::from(GETS) / (daemon.processor_time()? - before);
    let (mut changes, mut directs) = (Vec::new(), Vec::new());
    let mut port = KernelPort::new();
    for n in 0..CHANGES {
        let value = if n % 2 == 0 { "500" } else { "600" };
        let body = format!("{{\"knobs\":{{\"txqueuelen\":\"{value}\"}}}}");
        let start = Instant::now();
        client.ask("PATCH", "/v1/links/p1/knobs", &body)?;
        let told = client.answer(200)?;
        changes.push(start.elapsed().as_secs_f64());
        ensure!(told.contains("\"changed\""), "{told}");
        let start = Instant::now();
        set_here(&mut port, "p2", value)?;
        directs.push(start.elapsed().as_secs_f64());
    }
    let middle = |times: &[f64]| median(times).context("nothing was measured");
    Ok(Requests {
        get: middle(&gets)?,
        rate,
        change: middle(&changes)?,
        direct: middle(&directs)?,
    })
}

/// Sets a knob as `ibctl set --direct` does, without starting a program.
fn set_here(port: &mut KernelPort, link: &str, text: &str) -> Result<()> {
    let key = Key::named("txqueuelen")?;
    let value = key.knob().domain.parse(text)?;
    let wants = [Assignment { key, value }];
    let Ok((plan, before)) = prepare(port, &link.parse()?, &wants, None) else {
        bail!("{link} could not be planned");
    };
    let report = take_through(port, &plan, &before);
    ensure!(report.code().is_none(), "{report:?}");
    Ok(())
}

fn events(bench: &mut Bench) -> Result<()> {
    let program = build_program("ibmgrd", true)?;
    let (times, memory) = in_namespace(move || follow(&program))?;
    let middle = median(&times).context("no events")? * 1e3;
    bench.bar("events.median_ms", middle, None, Goal::AtMost(50.0), "ms")?;
    bench.bar(
        "events.kb_per_subscriber",
        memory,
        None,
        Goal::AtMost(64.0),
        "kB",
    )
}

/// Returns the seconds until each event was read by all, and the kilobytes of a subscriber.
fn follow(program: &Path) -> Result<(Vec<f64>, f64)> {
    make_links(1)?;
    let daemon = Running::start(program)?;
    let mut writer = Client::connect(&daemon)?;
    writer.get("/v1/links/v0")?;
    let before = daemon.kernel_says("VmRSS")?;
    let mut followers = Vec::new();
    for _ in 0..SUBSCRIBERS {
        let mut client = Client::connect(&daemon)?;
        client.ask("GET", "/v1/events", "")?;
        client.head(200)?;
        client.stream.set_nonblocking(true)?;
        followers.push(client);
    }
    let memory = (daemon.kernel_says("VmRSS")? - before) / SUBSCRIBERS as f64;
    let mut times = Vec::new();
    for n in 1..=EVENTS_SENT {
        let value = if n % 2 == 0 { "500" } else { "600" };
        let body = format!("{{\"knobs\":{{\"txqueuelen\":\"{value}\"}}}}");
        let start = Instant::now();
        writer.ask("PATCH", "/v1/links/p0/knobs", &body)?;
        while followers.iter().any(|follower| follower.events < n) {
            let late = start.elapsed() > Duration::from_secs(20);
            ensure!(!late, "event {n} did not reach all");
            for follower in followers.iter_mut().filter(|follower| follower.events < n) {
                follower.count()?;
            }
        }
        times.push(start.elapsed().as_secs_f64());
        writer.answer(200)?;
    }
    Ok((times, memory))
}

/// One connection.
struct Client {
    stream: UnixStream,
    /// What came and was not used yet.
    read: Vec<u8>,
    /// Events that came.
    events: usize,
}

impl Client {
    fn connect(daemon: &Running) -> Result<Self> {
        let stream = UnixStream::connect(daemon.socket())?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self {
            stream,
            read: Vec::new(),
            events: 0,
        })
    }

    fn get(&mut self, path: &str) -> Result<String> {
        self.ask("GET", path, "")?;
        self.answer(200)
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        Ok(self.stream.write_all(request.as_bytes())?)
    }

    /// Reads the head of an answer.
    fn head(&mut self, status: u16) -> Result<String> {
        let end = b"\r\n\r\n";
        let at = loop {
            if let Some(at) = self.read.windows(end.len()).position(|part| part == end) {
                break at + end.len();
            }
            self.more()?;
        };
        let head: Vec<u8> = self.read.drain(..at).collect();
        let head = String::from_utf8(head)?;
        ensure!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        Ok(head)
    }

    /// Reads a whole answer, which tells its length, and returns its body.
    fn answer(&mut self, status: u16) -> Result<String> {
        let head = self.head(status)?.to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("an answer without its length")?.parse()?;
        while self.read.len() < length {
            self.more()?;
        }
        Ok(String::from_utf8(self.read.drain(..length).collect())?)
    }

    fn more(&mut self) -> Result<()> {
        let mut buffer = [0; 16 * 1024];
        let length = self.stream.read(&mut buffer)?;
        ensure!(length > 0, "the daemon hung up");
        self.read.extend(buffer.iter().take(length));
        Ok(())
    }

    /// Counts the events that have come by now.
    fn count(&mut self) -> Result<()> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => bail!("the daemon hung up"),
            Ok(length) => {
                self.read.extend(buffer.iter().take(length));
                let mark = b"\ndata:";
                while let Some(at) = self.read.windows(mark.len()).position(|part| part == mark) {
                    self.read.drain(..at + mark.len());
                    self.events += 1;
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
