// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many who follow events.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;

use crate::http::resident;
use crate::support::{Home, Net};

#[test]
fn an_event_reaches_five_hundred_subscribers_who_take_little_memory() {
    const COUNT: u64 = 500;
    let _net = Net::with_veth();
    let home = Home::with("");
    let daemon = home.start(&[]);
    home.get("/v1/links").ok();
    let before = resident(daemon.pid());
    let subscribe = |_| {
        let mut stream = UnixStream::connect(home.path("http.sock")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
            .write_all(b"GET /v1/events HTTP/1.0\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut lines = BufReader::with_capacity(512, stream).lines();
        // With the end of the head the subscription stands.
        lines.by_ref().map_while(Result::ok).find(String::is_empty);
        lines
    };
    let mut all: Vec<_> = (0..COUNT).map(subscribe).collect();
    home.patch("v0", &json!({"knobs": {"txqueuelen": "701"}}))
        .ok();
    for lines in &mut all {
        let mut lines = lines.map_while(Result::ok);
        let told = lines.find(|line| line.starts_with("data:"));
        assert!(told.is_some_and(|told| told.contains("\"to\":\"701\"")));
    }
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(grown <= COUNT * 64, "{grown} kB for {COUNT} subscribers");
}
