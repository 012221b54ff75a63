// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens to interfaces, as the kernel tells it: rtnetlink's link group and the notifications of
//! the `ethtool` family.
//!
//! The `netdev` family is left out on purpose: its group `mgmt` tells of XDP features only, and NAPI
//! settings have no notification at all (Documentation/netlink/specs/netdev.yaml). What must be polled
//! for that reason, and on interfaces that are down, is `Knob::is_polled`.
//!
//! A `Watch` is one descriptor for a poll loop:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut watch = ibmgrd_hw::watch::Watch::open()?;
//! // Observe everything now: what changes from here on is told.
//! while let Some(event) = watch.next(None)? {
//!     // Observe and heal what the event names.
//! }
//! # Ok(())
//! # }
//! ```

mod event;
mod known;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use netlink_sys::SocketAddr;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};

pub use event::{Event, Why};
pub use known::Known;

use crate::genl::{Genl, Name};
use crate::nl::NlError;
use crate::rtnl::Rtnl;
use crate::uapi::ETHTOOL_MCGRP_MONITOR_NAME;

/// Bytes of notifications that may wait: those of a thousand interfaces that appear at once. The
/// kernel takes the memory only while they wait.
const BUFFER: usize = 8 * 1024 * 1024;
/// Longest notification: a link message with every statistic is below 4 KiB.
const MESSAGE: usize = 64 * 1024;

/// A source of events, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Watch {
    epoll: Epoll,
    route: netlink_sys::Socket,
    generic: netlink_sys::Socket,
    ethtool: u16,
    rtnl: Rtnl,
    known: Known,
    events: VecDeque<Event>,
    received: Vec<u8>,
}

impl Watch {
    /// Subscribes, and then lists the interfaces that are there: each later change gives an event.
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    pub fn open() -> Result<Self, NlError> {
        Self::with_buffer(BUFFER)
    }

    /// Opens a watch that lets so many bytes of notifications wait. Without `CAP_NET_ADMIN` the kernel
    /// keeps its default (net.core.rmem_default).
    ///
    /// # Errors
    ///
    /// What kept the kernel from answering.
    pub fn with_buffer(bytes: usize) -> Result<Self, NlError> {
        let mut genl = Genl::new();
        let family = genl.family(Name::Ethtool)?;
        let monitor = family
            .group(ETHTOOL_MCGRP_MONITOR_NAME)
            .ok_or_else(|| NlError::malformed("the ethtool family has no group 'monitor'"))?;
        let route = subscribed(
            netlink_sys::protocols::NETLINK_ROUTE,
            libc::RTNLGRP_LINK,
            bytes,
        )?;
        let generic = subscribed(netlink_sys::protocols::NETLINK_GENERIC, monitor, bytes)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(polling)?;
        for socket in [&route, &generic] {
            let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
            epoll.add(socket, readable).map_err(polling)?;
        }
        let mut watch = Self {
            epoll,
            route,
            generic,
            ethtool: family.id,
            rtnl: Rtnl::new(),
            known: Known::default(),
            events: VecDeque::new(),
            received: Vec::with_capacity(MESSAGE),
        };
        watch.known = Known::of(watch.rtnl.links()?);
        Ok(watch)
    }

    /// Returns the next event; `None` when `wait` has passed without one. Without `wait` it blocks.
    ///
    /// The descriptor may be quiet while decoded events wait here: take them until `None` comes.
    ///
    /// # Errors
    ///
    /// The sockets or the list of interfaces cannot be read. Lost and unreadable notifications are no
    /// errors but [`Event::Resync`].
    pub fn next(&mut self, wait: Option<Duration>) -> Result<Option<Event>, NlError> {
        let end = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            self.drain()?;
            if !self.events.is_empty() {
                continue;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            // Rounded up: epoll counts whole milliseconds, and must not spin through the last one.
            let left = left.map(|left| left + Duration::from_micros(999));
            let timeout = left.map_or(EpollTimeout::NONE, |left| {
                EpollTimeout::try_from(left).unwrap_or(EpollTimeout::MAX)
            });
            match self.epoll.wait(&mut [EpollEvent::empty()], timeout) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(polling(errno)),
            }
        }
    }

    /// Reads what waits in both sockets.
    fn drain(&mut self) -> Result<(), NlError> {
        let mut lost = None;
        while let Some(datagram) = receive(&self.route, &mut self.received, &mut lost)? {
            if datagram && let Err(error) = self.known.route(&self.received, &mut self.events) {
                lost = Some(Why::Malformed(error.to_string()));
            }
        }
        while let Some(datagram) = receive(&self.generic, &mut self.received, &mut lost)? {
            let (known, ethtool) = (&self.known, self.ethtool);
            if datagram && let Err(error) = known.ethtool(&self.received, ethtool, &mut self.events)
            {
                lost = Some(Why::Malformed(error.to_string()));
            }
        }
        match lost {
            None => Ok(()),
            Some(why) => {
                self.events.push_back(Event::Resync { why });
                let links = self.rtnl.links()?;
                self.known.replace(links, &mut self.events);
                Ok(())
            }
        }
    }
}

/// Readable when there is something to read for [`Watch::next`].
impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

fn polling(errno: nix::errno::Errno) -> NlError {
    NlError::Io {
        what: "epoll",
        source: errno.into(),
    }
}

/// Reads one datagram; `None` when no more wait, `false` for one that is not the kernel's.
fn receive(
    socket: &netlink_sys::Socket,
    into: &mut Vec<u8>,
    lost: &mut Option<Why>,
) -> Result<Option<bool>, NlError> {
    into.clear();
    match socket.recv_from(into, libc::MSG_TRUNC) {
        Ok((length, _)) if length > into.len() => {
            *lost = Some(Why::Malformed(format!(
                "a message of {length} bytes was cut off"
            )));
            Ok(Some(false))
        }
        Ok((_, from)) => Ok(Some(from.port_number() == 0)),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN) => Ok(None),
            Some(libc::EINTR) => Ok(Some(false)),
            // The kernel reports it once, and goes on with what still fits.
            Some(libc::ENOBUFS) => {
                *lost = Some(Why::Overrun);
                Ok(Some(false))
            }
            _ => Err(NlError::Io {
                what: "receiving notifications",
                source: error,
            }),
        },
    }
}

fn subscribed(protocol: isize, group: u32, bytes: usize) -> Result<netlink_sys::Socket, NlError> {
    let failed = |what| move |source: io::Error| NlError::Io { what, source };
    let mut socket =
        netlink_sys::Socket::new(protocol).map_err(failed("opening a netlink socket"))?;
    socket
        .bind(&SocketAddr::new(0, 0))
        .map_err(failed("binding a netlink socket"))?;
    // A smaller buffer overruns earlier, which is told.
    let _ = setsockopt(&socket, RcvBufForce, &bytes);
    socket
        .set_non_blocking(true)
        .map_err(failed("setting a netlink socket option"))?;
    socket
        .add_membership(group)
        .map_err(failed("joining a netlink group"))?;
    Ok(socket)
}
