// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What any IPoIB driver must do: one list, run for the in-tree driver, for ours, and for one against
//! the other.
//!
//! A scenario is a function of a [`Setup`]. What only one driver has is in `stock` and `batch`.

mod change;
mod children;
mod multicast;
mod setup;
mod traffic;
mod unload;
mod wire;

pub use setup::{Drivers, OURS, STOCK, Setup};

use crate::guest::ipoib::Mode;
use crate::guest::task::{Fabric, Task};
use crate::lab::machine::Shape;

/// The list. Arguments: what names begin with, the set-up, and how deep the short run goes into it.
macro_rules! scenarios {
    ($prefix:literal, $setup:expr, $depth:expr $(,)?) => {{
        const SETUP: Setup = $setup;
        const LIST: &[Task] = &[
            SETUP.task(
                Task::new(
                    concat!($prefix, "ping"),
                    "IPv4 and IPv6 both ways, managed fabric",
                    |guest| traffic::ping(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "iperf"),
                    "TCP and UDP both ways",
                    |guest| traffic::iperf(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .limit(180)
                .long_limit(300)
                .long_only($depth < FIRST),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "ping_opensm"),
                    "IPv4 and IPv6 both ways, under opensm",
                    |guest| traffic::ping(guest, SETUP),
                )
                .fabric(Fabric::OpenSm, 2)
                .long_only($depth < MOST),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "iperf_opensm"),
                    "TCP and UDP both ways, under opensm",
                    |guest| traffic::iperf(guest, SETUP),
                )
                .fabric(Fabric::OpenSm, 2)
                .limit(180)
                .long_limit(300)
                .long_only(true),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "integrity"),
                    "a file arrives whole, both ways",
                    |guest| traffic::integrity(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .limit(120)
                .long_only($depth < MOST),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "multicast"),
                    "a joined group is received, another isn't",
                    |guest| multicast::joined(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "multicast_opensm"),
                    "the same, groups made by opensm",
                    |guest| multicast::joined(guest, SETUP),
                )
                .fabric(Fabric::OpenSm, 2)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "pkey_child"),
                    "children of partition 0x8001 talk, strangers don't",
                    |guest| children::other_pkey(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .long_only($depth < MOST),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "pkey_child_opensm"),
                    "the same, partition made by opensm",
                    |guest| children::other_pkey(guest, SETUP),
                )
                .fabric(Fabric::OpenSm, 2)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "same_pkey_child"),
                    "children of the parent's partition talk",
                    |guest| children::same_pkey(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "child_follows"),
                    "children go down and up with their parent",
                    |guest| children::follow(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "address"),
                    "another GUID of the port by ip link set address",
                    |guest| change::address(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "port_flap"),
                    "a pulled cable is noticed, a plugged one recovers",
                    |guest| change::port_flap(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .limit(120)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "port_flap_opensm"),
                    "the same, recovered by opensm",
                    |guest| change::port_flap(guest, SETUP),
                )
                .fabric(Fabric::OpenSm, 2)
                .limit(120)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "sm_restart"),
                    "opensm dies and comes back, packets flow before and after",
                    |guest| change::sm_restart(guest, SETUP),
                )
                .fabric(Fabric::OpenSm, 2)
                .limit(120)
                .long_only(true),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "netns"),
                    "an interface moves between namespaces, and outlives them",
                    |guest| change::netns(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .limit(120)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "down_up"),
                    "down and up under traffic, which goes on",
                    |guest| change::down_up(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .shape(Shape::CHECKED)
                .limit(180)
                .long_limit(900)
                .long_only($depth < ALL),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "unload"),
                    "the driver goes under traffic",
                    |guest| unload::driver(guest, SETUP),
                )
                .fabric(Fabric::Managed, 2)
                .shape(Shape::CHECKED)
                .limit(180)
                .long_limit(1800)
                .long_only($depth < MOST),
            ),
            SETUP.task(
                Task::new(
                    concat!($prefix, "unload_hca"),
                    "the HCA's module goes under traffic",
                    |guest| unload::hca(guest, SETUP),
                )
                .shape(Shape::CHECKED)
                .limit(120)
                .long_only($depth < ALL),
            ),
        ];
        LIST
    }};
}

/// Depths of the short run: ping; iperf, too; most of the list; all but what is long in any case.
const PING: u8 = 0;
const FIRST: u8 = 1;
const MOST: u8 = 2;
const ALL: u8 = 3;

/// The list, once per set-up.
pub const TABLES: &[&[Task]] = &[
    wire::TESTS,
    scenarios!(
        "stock.datagram_",
        Setup::usual(Drivers::Stock, Mode::Datagram),
        ALL
    ),
    scenarios!(
        "stock.connected_",
        Setup::usual(Drivers::Stock, Mode::Connected),
        MOST
    ),
    scenarios!("batch.", Setup::usual(Drivers::Ours, Mode::Datagram), ALL),
    scenarios!(
        "batch_to_stock.",
        Setup::usual(Drivers::OursToStock, Mode::Datagram),
        FIRST
    ),
    scenarios!(
        "stock_to_batch.",
        Setup::usual(Drivers::StockToOurs, Mode::Datagram),
        FIRST
    ),
    scenarios!(
        "batch.connected_",
        Setup::usual(Drivers::Ours, Mode::Connected),
        MOST
    ),
    scenarios!(
        "batch_to_stock.connected_",
        Setup::usual(Drivers::OursToStock, Mode::Connected),
        FIRST
    ),
    scenarios!(
        "stock_to_batch.connected_",
        Setup::usual(Drivers::StockToOurs, Mode::Connected),
        FIRST
    ),
    scenarios!(
        "sid.datagram_",
        Setup::sid(Drivers::Stock, Mode::Datagram),
        FIRST
    ),
    scenarios!(
        "sid.connected_",
        Setup::sid(Drivers::Stock, Mode::Connected),
        PING
    ),
    scenarios!(
        "sid.batch_",
        Setup::sid(Drivers::Ours, Mode::Datagram),
        FIRST
    ),
    scenarios!(
        "sid.batch_to_stock_",
        Setup::sid(Drivers::OursToStock, Mode::Datagram),
        PING
    ),
    scenarios!(
        "sid.batch_connected_",
        Setup::sid(Drivers::Ours, Mode::Connected),
        PING
    ),
];
