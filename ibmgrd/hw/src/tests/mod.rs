// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests on messages that were captured from real kernels and real tools: see `tests/captures`.

mod encoding;
mod ethtool;
mod ipoib;
mod links;
mod refusals;
mod robustness;

use std::fs;
use std::path::PathBuf;

use netlink_packet_core::NetlinkBuffer;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

/// A recorded exchange: datagrams in their order.
struct Capture {
    sent: Vec<Vec<u8>>,
    received: Vec<Vec<u8>>,
}

/// A message of a datagram.
struct Message {
    kind: u16,
    body: Vec<u8>,
}

impl Capture {
    /// Reads `NAME.hex`: `>` starts a sent datagram, `<` a received one, a blank continues it.
    fn read(name: &str) -> Self {
        let path = directory().join(format!("{name}.hex"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut datagrams: Vec<(char, Vec<u8>)> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (mark, digits) = line.split_at(1);
            let bytes = digits
                .split_whitespace()
                .map(|byte| u8::from_str_radix(byte, 16).unwrap());
            match mark {
                " " => datagrams.last_mut().unwrap().1.extend(bytes),
                _ => datagrams.push((mark.chars().next().unwrap(), bytes.collect())),
            }
        }
        let of = |mark| {
            let chosen = datagrams.iter().filter(move |(other, _)| *other == mark);
            chosen.map(|(_, bytes)| bytes.clone()).collect()
        };
        Self {
            sent: of('>'),
            received: of('<'),
        }
    }

    /// Returns every received message of a type from 16 up: no acknowledgements, no end marks.
    fn messages(&self) -> Vec<Message> {
        let all = self.received.iter().flat_map(|datagram| messages(datagram));
        all.filter(|message| message.kind >= 16).collect()
    }

    /// Returns the payload of the only message.
    fn body(&self) -> Vec<u8> {
        let mut messages = self.messages();
        assert_eq!(messages.len(), 1);
        messages.remove(0).body
    }
}

fn messages(datagram: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkBuffer::new_checked(rest).unwrap();
        messages.push(Message {
            kind: message.message_type(),
            body: message.payload().to_vec(),
        });
        let length = (message.length() as usize).next_multiple_of(4);
        rest = rest.get(length..).unwrap_or_default();
    }
    messages
}

/// Returns the names of all captures from kernels.
fn all_captures() -> Vec<String> {
    let mut names = Vec::new();
    for kernel in fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap())
    {
        let kernel_name = kernel.file_name().into_string().unwrap();
        if !kernel_name.starts_with("linux-") {
            continue;
        }
        for file in fs::read_dir(kernel.path()).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            if let Some(stem) = file.strip_suffix(".hex") {
                names.push(format!("{kernel_name}/{stem}"));
            }
        }
    }
    names.sort();
    assert!(names.len() > 20, "the captures are missing");
    names
}
