// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers that no capture shows: made by hand.

use super::attr::{Out, bytes_of, out_text, out_u32};
use netlink_packet_core::{
    NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP_INTR, NLM_F_MULTIPART, NLMSG_DONE, NLMSG_ERROR,
    NLMSG_OVERRUN,
};

use super::*;

const SEQUENCE: u32 = 40;

fn requests(ends: Ends, count: usize) -> Vec<Request> {
    let attrs = [out_u32(1, 7)];
    let one = || Request::generic(30, 1, 1, ends, &attrs, |_| Some("THE_ATTRIBUTE"));
    (0..count).map(|_| one()).collect()
}

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn error(code: i32, flags: u16, sequence: u32, echoed: &[u8], attrs: &[Out]) -> Vec<u8> {
    let mut body = code.to_ne_bytes().to_vec();
    body.extend(message(30, 5, sequence, echoed));
    body.extend(bytes_of(attrs));
    message(NLMSG_ERROR, flags, sequence, &body)
}

fn results(requests: &[Request], datagrams: &[Vec<u8>]) -> Vec<Result<Ack, NlError>> {
    let mut exchange = Exchange::new(requests, SEQUENCE);
    for datagram in datagrams {
        exchange.take(datagram, &mut |_| Ok(())).unwrap();
    }
    exchange.results().collect()
}

#[test]
fn attributes_stand_behind_the_echoed_request_when_it_is_not_capped() {
    let attrs = [
        out_text(NLMSG_MESSAGE, "too bad"),
        out_u32(NLMSG_OFFSET, 20),
    ];
    let echoed = [9; 11];
    let datagram = error(-libc::EINVAL, NLM_F_ACK_TLVS, SEQUENCE, &echoed, &attrs);
    let Err(NlError::Refused(refusal)) = &results(&requests(Ends::Ack, 1), &[datagram])[0] else {
        panic!("no refusal");
    };
    assert_eq!(refusal.message.as_deref(), Some("too bad"));
    assert_eq!(refusal.bad_attr.as_deref(), Some("THE_ATTRIBUTE"));
    assert_eq!(refusal.errno, libc::EINVAL);
}

const NLMSG_MESSAGE: u16 = crate::uapi::NLMSGERR_ATTR_MSG;
const NLMSG_OFFSET: u16 = crate::uapi::NLMSGERR_ATTR_OFFS;
const CAPPED: u16 = NLM_F_CAPPED | NLM_F_ACK_TLVS;

#[test]
fn a_warning_comes_with_success() {
    let attrs = [out_text(NLMSG_MESSAGE, "the value was rounded")];
    let datagram = error(0, CAPPED, SEQUENCE, &[], &attrs);
    let results = results(&requests(Ends::Ack, 1), &[datagram]);
    let warning = results[0].as_ref().unwrap().warning.as_deref();
    assert_eq!(warning, Some("the value was rounded"));
}

#[test]
fn a_missing_attribute_is_told() {
    let attrs = [out_u32(crate::uapi::NLMSGERR_ATTR_MISS_TYPE, 5)];
    let datagram = error(-libc::EINVAL, CAPPED, SEQUENCE, &[], &attrs);
    let results = results(&requests(Ends::Ack, 1), &[datagram]);
    let text = results[0].as_ref().unwrap_err().to_string();
    assert_eq!(text, "Invalid argument (EINVAL, attribute 5 missing)");
}

#[test]
fn each_request_gets_its_own_answer_in_any_order() {
    let refused = error(-libc::EPERM, NLM_F_CAPPED, SEQUENCE + 1, &[], &[]);
    let done = error(0, NLM_F_CAPPED, SEQUENCE, &[], &[]);
    let results = results(&requests(Ends::Ack, 2), &[refused, done]);
    assert!(results[0].is_ok());
    assert_eq!(results[1].as_ref().unwrap_err().errno(), Some(libc::EPERM));
}

#[test]
fn an_answer_to_something_else_is_passed_over() {
    let old = error(-libc::EPERM, NLM_F_CAPPED, SEQUENCE - 1, &[], &[]);
    let far = error(-libc::EPERM, NLM_F_CAPPED, SEQUENCE + 9, &[], &[]);
    let requests = requests(Ends::Ack, 1);
    let mut exchange = Exchange::new(&requests, SEQUENCE);
    for datagram in [old, far] {
        exchange.take(&datagram, &mut |_| Ok(())).unwrap();
    }
    assert!(exchange.is_waiting());
}

#[test]
fn a_list_that_changed_while_it_was_read_is_unsettled() {
    let part = message(30, NLM_F_MULTIPART | NLM_F_DUMP_INTR, SEQUENCE, &[0; 4]);
    let done = message(NLMSG_DONE, NLM_F_MULTIPART, SEQUENCE, &[0; 4]);
    let results = results(&requests(Ends::Dump, 1), &[part, done]);
    assert!(
        matches!(results[0], Err(NlError::Unsettled { .. })),
        "{results:?}"
    );
}

#[test]
fn the_end_of_a_list_can_carry_an_error() {
    let code = (-libc::EOPNOTSUPP).to_ne_bytes();
    let done = message(NLMSG_DONE, NLM_F_MULTIPART, SEQUENCE, &code);
    let results = results(&requests(Ends::Dump, 1), &[done]);
    assert_eq!(
        results[0].as_ref().unwrap_err().errno(),
        Some(libc::EOPNOTSUPP)
    );
}

#[test]
fn what_cannot_be_decoded_is_an_error_after_the_whole_answer() {
    let requests = requests(Ends::Dump, 1);
    let mut exchange = Exchange::new(&requests, SEQUENCE);
    let part = message(30, NLM_F_MULTIPART, SEQUENCE, &[0; 4]);
    let done = message(NLMSG_DONE, NLM_F_MULTIPART, SEQUENCE, &[0; 4]);
    let mut calls = 0;
    for datagram in [&part, &part, &done] {
        let mut refuse = |_: Reply<'_>| {
            calls += 1;
            Err(NlError::malformed("odd"))
        };
        exchange.take(datagram, &mut refuse).unwrap();
    }
    assert!(!exchange.is_waiting());
    let results: Vec<_> = exchange.results().collect();
    assert!(results[0].as_ref().unwrap_err().to_string().contains("odd"));
    assert_eq!(calls, 1);
}

#[test]
fn overrun_and_nonsense_are_errors() {
    let requests = requests(Ends::Ack, 1);
    let overrun = message(NLMSG_OVERRUN, 0, SEQUENCE, &[]);
    assert!(
        Exchange::new(&requests, SEQUENCE)
            .take(&overrun, &mut |_| Ok(()))
            .is_err()
    );
    assert!(
        Exchange::new(&requests, SEQUENCE)
            .take(&[1, 2, 3], &mut |_| Ok(()))
            .is_err()
    );
    let short = message(NLMSG_ERROR, 0, SEQUENCE, &[1]);
    assert!(
        Exchange::new(&requests, SEQUENCE)
            .take(&short, &mut |_| Ok(()))
            .is_err()
    );
}

/// On the running kernel: it passes over requests of the types that netlink keeps for itself.
#[test]
fn an_answer_that_does_not_come_is_waited_for_no_longer_than_said() {
    let mut socket = Socket::new(Protocol::Generic).with_timeout(Duration::from_secs(1));
    let ignored = Request::generic(NLMSG_DONE, 1, 1, Ends::Reply, &[], |_| None);
    let start = std::time::Instant::now();
    let error = socket.one(&ignored, |_| Ok(())).unwrap_err();
    assert!(matches!(error, NlError::Timeout { seconds: 1 }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
    // The next exchange has a socket of its own, in which no late answer can be.
    let unknown = Request::generic(0xfff0, 1, 1, Ends::Reply, &[], |_| None);
    let error = socket.one(&unknown, |_| Ok(())).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOENT), "{error}");
}

/// On the running kernel: more requests than go out at once, each refused by itself.
#[test]
fn a_long_pipeline_keeps_the_order() {
    let mut socket = Socket::new(Protocol::Generic);
    let one = |family| Request::generic(family, 3, 2, Ends::Reply, &[], |_| None);
    // Family 16 is the controller, which wants a name; the others do not exist.
    let requests: Vec<_> = (0..50)
        .map(|at| one(if at % 7 == 0 { 16 } else { 0xfff0 }))
        .collect();
    let results = socket.pipeline(&requests, |_| Ok(())).unwrap();
    assert_eq!(results.len(), 50);
    for (at, result) in results.iter().enumerate() {
        let expected = if at % 7 == 0 {
            libc::EINVAL
        } else {
            libc::ENOENT
        };
        assert_eq!(result.as_ref().unwrap_err().errno(), Some(expected), "{at}");
    }
}
