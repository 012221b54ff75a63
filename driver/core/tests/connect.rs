// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Connected mode: private data byte by byte, and the machines of both ends under anything that can happen.
#![cfg(not(loom))]

use ipoib_core::connect::{
    Active, Backoff, Happening, Hello, MAX_MTU, MAX_PAGES, PAGE, Passive, Step, head_bytes,
    is_idle, mtu_of_pages, pages, receive_buffers, service_id,
};
use ipoib_core::refill::is_copied;
use proptest::prelude::*;

#[test]
fn private_data_is_what_the_in_tree_driver_sends() {
    // Queue pair number, then 65524: what it makes its receive buffers for (ipoib.h, IPOIB_CM_BUF_SIZE).
    let wire = [0, 0x00, 0x02, 0x4b, 0x00, 0x00, 0xff, 0xf4];
    let hello = Hello {
        qpn: 0x24b,
        bytes: 65_524,
    };
    assert_eq!(Hello::decode(wire), Some(hello));
    assert_eq!(hello.encode(), wire);
    assert_eq!(service_id(0x24b), 0x1000_0000_0000_024b);
    assert_eq!(service_id(0xff00_024b), 0x1000_0000_0000_024b);
}

#[test]
fn a_peer_that_takes_nothing_is_refused() {
    for bytes in [0, 4, 71] {
        let [a, b, c, d] = u32::to_be_bytes(bytes);
        assert_eq!(Hello::decode([0, 0, 0, 1, a, b, c, d]), None, "{bytes}");
    }
    assert!(Hello::decode([0, 0, 0, 1, 0, 0, 0, 72]).is_some());
}

#[test]
fn a_receive_buffer_holds_the_largest_packet() {
    assert_eq!(mtu_of_pages(MAX_PAGES as u32), MAX_MTU);
    assert_eq!(pages(MAX_MTU + 4), MAX_PAGES as u32);
    assert_eq!((pages(1), pages(PAGE), pages(PAGE + 1)), (1, 1, 2));
    assert_eq!(mtu_of_pages(1), 4092);
    assert_eq!(
        (receive_buffers(64, true), receive_buffers(8192, true)),
        (64, 256)
    );
    assert_eq!(receive_buffers(1024, false), 64);
}

#[test]
fn copying_ends_at_the_threshold_and_zero_turns_it_off() {
    assert!(is_copied(256, 256) && !is_copied(257, 256));
    assert!(!is_copied(1, 0) && !is_copied(0, 0));
}

#[test]
fn pauses_grow_and_begin_anew_after_a_good_connection() {
    let mut backoff = Backoff::default();
    let pauses: Vec<u32> = (0..12).map(|_| backoff.fail(0)).collect();
    assert_eq!(pauses[..4], [20, 40, 80, 160]);
    assert!(pauses.windows(2).all(|two| two[0] <= two[1]), "{pauses:?}");
    assert_eq!(pauses[11], Backoff::MAX_MS);
    assert!(backoff.is_lasting());
    assert_eq!(backoff.fail(Backoff::GOOD_MS), Backoff::MIN_MS);
    assert!(!backoff.is_lasting());
    let mut refused = Backoff::default();
    assert!(refused.refuse() >= 1000 && refused.is_lasting());
}

#[test]
fn idle_is_what_was_unused_for_the_whole_time() {
    assert!(!is_idle(511_999, 512_000) && is_idle(512_000, 512_000));
}

const ALL: [Happening; 10] = [
    Happening::Start,
    Happening::Path,
    Happening::Answer,
    Happening::Refusal,
    Happening::Loss,
    Happening::Unwanted,
    Happening::Quiet,
    Happening::LastReceive,
    Happening::Drained,
    Happening::Late,
];

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    prop::collection::vec(prop::sample::select(&ALL[..]), 0..60)
}

#[test]
fn an_active_connection_begins_and_ends() {
    use Happening as H;
    let mut state = Active::default();
    let steps: Vec<Step> = [
        H::Start,
        H::Path,
        H::Answer,
        H::Unwanted,
        H::Quiet,
        H::Drained,
    ]
    .into_iter()
    .map(|what| {
        let (next, step) = state.on(what);
        state = next;
        step
    })
    .collect();
    use Step as S;
    assert_eq!(
        steps,
        [S::Ask, S::Request, S::Open, S::Close, S::Break, S::Free]
    );
}

proptest! {
    #[test]
    fn private_data_survives_the_wire(qpn in 0_u32..1 << 24, bytes in 72_u32..=65_524) {
        let hello = Hello { qpn, bytes };
        prop_assert_eq!(Hello::decode(hello.encode()), Some(hello));
    }

    #[test]
    fn whatever_a_peer_says_is_bounded(wire: [u8; 8]) {
        if let Some(hello) = Hello::decode(wire) {
            prop_assert!(hello.qpn < 1 << 24);
            prop_assert!((72..=65_524).contains(&hello.bytes));
        }
    }

    #[test]
    fn a_head_leaves_something_in_the_pages(bytes in 5_u32..=65_524) {
        let head = head_bytes(bytes);
        prop_assert!(head < bytes && head <= 128);
        prop_assert!(pages(bytes) as usize <= MAX_PAGES);
    }

    /// What was opened is put into error before it is freed, and is freed once.
    #[test]
    fn an_active_connection_frees_what_it_opened(list in happenings()) {
        let (mut state, mut open, mut broken) = (Active::default(), false, false);
        for what in list {
            let (next, step) = state.on(what);
            match step {
                Step::Open => {
                    prop_assert!(!open);
                    open = true;
                }
                Step::Break => {
                    prop_assert!(open && !broken);
                    broken = true;
                }
                Step::Free => {
                    prop_assert_eq!(open, broken);
                    (open, broken) = (false, false);
                }
                Step::Close => prop_assert!(open),
                Step::Ask | Step::Request => prop_assert!(!open),
                Step::Mark => prop_assert!(false, "an active end posts its marker when it breaks"),
                Step::Nothing => {}
            }
            prop_assert_eq!(open, matches!(next, Active::Up | Active::Closing | Active::Draining));
            state = next;
        }
        // Whatever comes first, the way out is short.
        for what in [Happening::Unwanted, Happening::Late, Happening::Late] {
            state = state.on(what).0;
        }
        prop_assert_eq!(state, Active::Resting);
    }

    /// A passive one is freed once, after it was put into error.
    #[test]
    fn a_passive_connection_is_freed_after_its_error(list in happenings(), shared: bool) {
        let (mut state, mut broken, mut freed) = (Passive::default(), false, false);
        for what in list.into_iter().chain([Happening::Unwanted, Happening::Late, Happening::Late]) {
            let (next, step) = state.on(what, shared);
            match step {
                Step::Break => {
                    prop_assert!(!broken);
                    broken = true;
                }
                Step::Mark => prop_assert!(broken && shared && !freed),
                Step::Free => {
                    prop_assert!(broken && !freed);
                    freed = true;
                }
                Step::Open => prop_assert!(!broken),
                Step::Nothing => {}
                other => prop_assert!(false, "{other:?}"),
            }
            state = next;
        }
        prop_assert!(freed && state == Passive::Over);
    }
}
