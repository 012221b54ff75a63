// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IP multicast over InfiniBand multicast groups (RFC 4391, section 10).

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::Setup;
use crate::guest::ipoib::End;
use crate::guest::{Guest, Result};

const JOINED: Ipv4Addr = Ipv4Addr::new(239, 9, 9, 9);
const OTHER: Ipv4Addr = Ipv4Addr::new(239, 9, 9, 10);
const PORT: u16 = 5000;

pub(super) fn joined(guest: &Guest, setup: Setup) -> Result {
    let pair = setup.pair(guest)?;
    for end in [&pair.a, &pair.b] {
        end.ns
            .run(&format!("ip route add 224.0.0.0/4 dev {}", end.dev))?;
    }
    one_way(guest, &pair.a, &pair.b)?;
    one_way(guest, &pair.b, &pair.a)
}

fn one_way(guest: &Guest, from: &End, to: &End) -> Result {
    let receiver = to.ns.enter(|| UdpSocket::bind(("0.0.0.0", PORT)))??;
    receiver.join_multicast_v4(&JOINED, &to.v4.parse()?)?;
    receiver.set_read_timeout(Some(Duration::from_millis(300)))?;
    let sender = from.ns.enter(|| UdpSocket::bind((from.v4.as_str(), 0)))??;
    // The sender joins send-only at its first packet; the switch needs the group for it.
    guest.wait_for("first multicast packet", Duration::from_secs(20), || {
        sender.send_to(b"first", (JOINED, PORT))?;
        heard(&receiver)
    })?;
    drain(&receiver)?;
    for number in 0..20_u8 {
        sender.send_to(&[number], (JOINED, PORT))?;
        let (text, address) =
            heard(&receiver)?.with_context(|| format!("packet {number} is lost"))?;
        guest.same("payload", text.as_slice(), [number].as_slice())?;
        guest.same("source", address.ip().to_string(), from.v4.clone())?;
    }
    for _ in 0..5 {
        sender.send_to(b"other", (OTHER, PORT))?;
    }
    ensure!(
        heard(&receiver)?.is_none(),
        "{} received a group that it didn't join",
        to.dev
    );
    receiver.leave_multicast_v4(&JOINED, &to.v4.parse()?)?;
    sender.send_to(b"late", (JOINED, PORT))?;
    ensure!(
        heard(&receiver)?.is_none(),
        "{} received a group that it left",
        to.dev
    );
    Ok(())
}

/// Returns the next packet, if one comes in time.
fn heard(socket: &UdpSocket) -> Result<Option<(Vec<u8>, SocketAddr)>> {
    let mut buffer = [0; 64];
    match socket.recv_from(&mut buffer) {
        Ok((count, address)) => Ok(Some((
            buffer.get(..count).unwrap_or_default().to_vec(),
            address,
        ))),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn drain(socket: &UdpSocket) -> Result {
    while heard(socket)?.is_some() {}
    Ok(())
}
