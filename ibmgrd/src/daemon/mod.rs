// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loop: the kernel's events, timers, signals, requests and the service manager, in one thread.

mod clock;
mod desk;

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use ibmgr_api::Desired;
use ibmgr_api::status::Status;
use ibmgrd_hw::port::KernelPort;
use ibmgrd_hw::watch::Watch;
use tokio::signal::unix::{SignalKind, signal};

use crate::changes::Changes;
use crate::error::Error;
use crate::files::Files;
use crate::http;
use crate::inherited;
use crate::notify::Manager;
use crate::office::{Office, Told};
use crate::options::Options;
use crate::place::Place;
use crate::supervisor::{Cause, Supervisor};
use crate::surfaces;
use clock::{Clock, readable};
use desk::Waiting;

/// After so long it is tried again when another program of ibmgr changes something at present.
const TURN: Duration = Duration::from_millis(5);

struct Daemon {
    clock: Clock,
    supervisor: Supervisor,
    files: Files,
    port: KernelPort,
    place: Place,
    changes: Changes,
    /// What the files declare.
    declared: Desired,
    /// When to try again while another program of ibmgr changes something.
    busy_until: Option<Instant>,
    manager: Manager,
    told: Told,
    /// Requests that wait while another program of ibmgr changes something.
    waiting: VecDeque<Waiting>,
    started: Instant,
    ready_ms: u64,
    poll: Duration,
}

/// Runs the daemon until it is told to end.
///
/// # Errors
///
/// What keeps it from running. Trouble with single interfaces or files is no error, but told.
pub async fn run(options: &Options) -> Result<(), Error> {
    let started = Instant::now();
    let (listener, _socket) = match inherited::socket()? {
        Some(listener) => (listener, None),
        None => (
            http::listen(&options.socket)?,
            Some(Unlinked(&options.socket)),
        ),
    };
    let tcp = http::listen_tcp(&options.tcp)?;
    let tls = tcp.as_ref().map(|(_, tls)| tls.clone());
    // Before anything is looked at: what changes from here on is told.
    let watch = readable(Watch::open()?);
    let mut watch = watch.map_err(Error::io("watching the kernel's notifications"))?;
    let told = Told::new();
    let mut port = KernelPort::new();
    let cookie = port
        .namespace_cookie()
        .map_err(|source| Error::Namespace(Box::new(source)))?;
    let changes = Changes::new(&options.state_dir, cookie);
    let mut daemon = Daemon {
        clock: Clock::new()?,
        supervisor: Supervisor::new(options.poll_interval()),
        files: Files::new(&options.folders, &options.keep_dir),
        port,
        place: Place::new(&options.lock, changes.of_daemon(), Path::new("/")),
        changes,
        declared: Desired::default(),
        busy_until: None,
        manager: Manager::from_environment(),
        told: told.clone(),
        waiting: VecDeque::new(),
        started,
        ready_ms: 0,
        poll: options.poll_interval(),
    };
    let signals = |kind| signal(kind).map_err(Error::io("catching signals"));
    let mut hangup = signals(SignalKind::hangup())?;
    let mut terminate = signals(SignalKind::terminate())?;
    let mut interrupt = signals(SignalKind::interrupt())?;

    daemon.load(Cause::Start);
    daemon.settle();
    daemon.ready_ms = millis(started.elapsed());
    let store = daemon.changes.of_host();
    let (office, mut requests) = Office::open(told, store, options.access(), cookie);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let ended = surfaces::start(office, listener, tcp, options.dbus, stopped)?;
    daemon.manager.tell("READY=1");
    tracing::info!(ms = daemon.ready_ms, "ready");

    loop {
        let wake = daemon.next_wake();
        tokio::select! {
            biased;
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            readable = watch.readable_mut() => {
                let mut readable = readable.map_err(Error::io("watching the kernel"))?;
                // Cleared first: what comes while it is read makes it readable again.
                readable.clear_ready();
                daemon.drain(&mut readable.get_inner_mut().0)?;
            }
            _ = hangup.recv() => {
                if let Some(tls) = &tls {
                    tls.reload();
                }
                daemon.reload(Daemon::settle);
            }
            Some(request) = requests.recv() => daemon.take(request),
            () = daemon.clock.wait(wake) => {}
        }
        daemon.supervisor.count_wakeup();
        daemon.settle();
    }
    daemon.manager.tell("STOPPING=1");
    // Readers of events would wait for ever.
    let _ = stop.send(true);
    daemon.waiting.clear();
    // Whoever was taken before is answered: with systemd's socket the others wait for the next daemon.
    let last = async {
        tokio::pin!(ended);
        loop {
            tokio::select! {
                biased;
                _ = &mut ended => break,
                Some(request) = requests.recv() => daemon.take(request),
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(2), last).await;
    tracing::info!("ended; the interfaces stay as they are");
    Ok(())
}

/// Removes the socket at the end.
struct Unlinked<'a>(&'a Path);

impl Drop for Unlinked<'_> {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(self.0);
    }
}

impl Daemon {
    fn drain(&mut self, watch: &mut Watch) -> Result<(), Error> {
        while let Some(event) = watch.next(Some(Duration::ZERO))? {
            tracing::debug!(?event, "the kernel tells");
            self.told.event(&event);
            self.supervisor.take(event);
        }
        Ok(())
    }

    fn load(&mut self, cause: Cause) {
        let (desired, records) = self.files.load();
        for record in records {
            self.told.record(record);
        }
        self.declared = desired;
        self.declare(cause);
    }

    /// What the last change of the host declares comes after the files, and wins.
    fn declare(&mut self, cause: Cause) {
        let mut desired = self.declared.clone();
        desired.extend(self.changes.declared().clone());
        self.supervisor.declare(desired, cause);
    }

    /// Reads the declarations again; `settle` then applies them.
    fn reload(&mut self, settle: impl FnOnce(&mut Self)) {
        self.manager.reloading();
        self.changes.forget();
        self.load(Cause::Reload);
        settle(self);
        self.manager.tell("READY=1");
    }

    fn settle(&mut self) {
        let now = self.clock.now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let is_forced =
            is_due(self.busy_until) || is_due(self.changes.deadline()) || !self.waiting.is_empty();
        if is_forced || self.supervisor.is_due(now) {
            match self.place.turn() {
                None => {
                    self.busy_until = Some(now + TURN);
                    self.refuse_late(now);
                }
                Some(turn) => {
                    self.busy_until = None;
                    self.settle_in_turn();
                    drop(turn);
                }
            }
        }
        for record in self.supervisor.take_records() {
            self.told.record(record);
        }
        if self.manager.watchdog().is_some() {
            self.manager.tell("WATCHDOG=1");
        }
    }

    fn settle_in_turn(&mut self) {
        self.look_at_changes();
        self.answer_waiting();
        self.settle_supervisor();
    }

    /// Sets what is to be set. No other program of ibmgr may be changing anything meanwhile.
    fn settle_supervisor(&mut self) {
        let now = self.clock.now();
        let settled = self.supervisor.settle(&mut self.port, &mut self.place, now);
        if let Err(error) = settled {
            tracing::error!(%error, "interfaces can't be listed; it is tried again");
        }
    }

    /// Looks at what other programs of ibmgr, or requests, have changed.
    fn look_at_changes(&mut self) {
        let found = self.changes.look(&mut self.port, self.clock.now());
        for record in found.records {
            self.told.record(record);
        }
        if found.is_other {
            self.declare(Cause::Identity);
        }
    }

    /// Returns when the loop has something to do without anything happening.
    fn next_wake(&self) -> Option<Instant> {
        let watchdog = self
            .manager
            .watchdog()
            .map(|every| self.clock.now() + every);
        [
            watchdog,
            self.busy_until,
            self.changes.deadline(),
            self.supervisor.next_wake(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn status(&self) -> Status {
        let links = self.supervisor.links(&self.place, self.clock.now());
        let problems = self.files.problems().to_vec();
        let is_error = |problem: &ibmgr_api::status::Problem| problem.severity == "error";
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_ms: millis(self.started.elapsed()),
            ready_ms: self.ready_ms,
            ok: links.iter().all(|link| link.ok) && !problems.iter().any(is_error),
            files: self.files.files().to_vec(),
            problems,
            links,
            polled: u64::try_from(self.supervisor.polled()).unwrap_or(u64::MAX),
            poll_ms: millis(self.poll),
            counters: self.supervisor.counters(),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
