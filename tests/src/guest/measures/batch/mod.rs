// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measures of our driver beside the stock one: the same work, in turns, in one boot, on the same HCAs.

pub mod cm;
pub mod gro;
pub mod gso;
pub mod icount;
pub mod matrix;
pub mod rr;

use std::fmt;
use std::time::Duration;

use anyhow::Context;

use crate::guest::ipoib::{Mode, Pair};
use crate::guest::process::Running;
use crate::guest::{Guest, Result};

/// What is compared: the stock driver, and ours in each batching mode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Driver {
    Stock,
    Off,
    On,
    Adaptive,
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stock => "stock",
            Self::Off => "off",
            Self::On => "on",
            Self::Adaptive => "adaptive",
        })
    }
}

impl Driver {
    /// Loads it, makes a pair of ends, works with them, and takes all away again.
    fn with<T>(
        self,
        guest: &mut Guest,
        work: impl FnOnce(&mut Guest, &Pair) -> Result<T>,
    ) -> Result<T> {
        self.with_params(guest, "", Mode::Datagram, work)
    }

    /// The same with parameters of the module, and in either mode.
    fn with_params<T>(
        self,
        guest: &mut Guest,
        params: &str,
        mode: Mode,
        work: impl FnOnce(&mut Guest, &Pair) -> Result<T>,
    ) -> Result<T> {
        let module = if self == Self::Stock {
            "ib_ipoib"
        } else {
            "ipoib_batch"
        };
        guest.load(format!("{module} {params}").trim_end())?;
        let pair = Pair::of_loaded(guest, mode)?;
        if self != Self::Stock {
            for end in [&pair.a, &pair.b] {
                end.ns
                    .run(&format!("ibctl set {} batching={self}", end.dev))?;
            }
        }
        let result = work(guest, &pair)?;
        guest.unload(module)?;
        for end in [&pair.a, &pair.b] {
            guest.run(&format!("ip netns del {}", end.ns.name()))?;
        }
        Ok(result)
    }
}

/// How long a netperf may take on a busy host.
const LIMIT: Duration = Duration::from_secs(300);

/// Starts a netserver at the second end; it serves until it is dropped.
fn netserver(guest: &Guest, pair: &Pair) -> Result<Running> {
    let server = pair.b.ns.start("netserver -D -4")?;
    guest.wait_for("netserver", Duration::from_secs(20), || {
        let sockets = pair.b.ns.run("ss -Hltn sport = :12865")?;
        Ok((!sockets.is_empty()).then_some(()))
    })?;
    Ok(server)
}

/// Returns the command that runs a netperf test from the first end to the second and prints its result alone.
fn netperf(pair: &Pair, length: i64, test: &str, options: &str) -> String {
    let to = &pair.b.v4;
    format!("netperf -H {to} -P 0 -v 0 -l {length} -t {test} -- {options}")
}

/// Reads what such a command printed.
fn result(printed: &str) -> Result<f64> {
    let number = printed.split_whitespace().next().unwrap_or_default();
    number
        .parse()
        .with_context(|| format!("netperf printed no result:\n{printed}"))
}
