// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the daemon answers over its socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use ibmgr_api::form::LinkForm;
use jsonschema::Validator;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::client::raw;
use crate::support::{Home, Net, wait};

const DECLARED: &str = "[[link]]\nmatch = { name = \"v0\" }\nmtu = 1400\n";

#[test]
fn links_and_knobs_are_read() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let _daemon = home.start(&[]);
    let links = home.get("/v1/links").ok();
    let names: Vec<&str> = links["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["lo", "v1", "v0"]);
    assert_eq!(links["links"][1]["knobs"], json!({}));
    let some = home.get("/v1/links?knobs=mtu,txqueuelen").ok();
    assert_eq!(some["links"][2]["knobs"]["mtu"]["value"], "1400");
    assert_eq!(some["links"][2]["knobs"].as_object().unwrap().len(), 2);

    let one = home.get("/v1/links/v0");
    let form: LinkForm = serde_json::from_value(one.ok()).unwrap();
    assert_eq!(form.knobs.get("mtu").unwrap().value.raw, Some(1400));
    assert!(form.knobs.get("txqueuelen").is_some());
    let tag = one.header("etag").unwrap().to_owned();
    let same = home.ask(
        "GET /v1/links/v0",
        &[&format!("If-None-Match: {tag}")],
        None,
    );
    assert_eq!((same.status, same.body.as_str()), (304, ""));
    net.run("ip link set v0 txqueuelen 7");
    let other = home.ask(
        "GET /v1/links/v0",
        &[&format!("If-None-Match: {tag}")],
        None,
    );
    assert_eq!(other.status, 200);
    assert_ne!(other.header("etag"), Some(&*tag));
    let part = home.get("/v1/links/v0?knobs=mtu");
    assert_eq!(part.ok()["knobs"].as_object().unwrap().len(), 1);
    assert_eq!(part.header("etag"), None);

    let missing = home.get("/v1/links/v7").problem(404, "unknown-link");
    assert!(
        missing["detail"]
            .as_str()
            .unwrap()
            .contains("no interface is called 'v7'"),
        "{missing}"
    );
    home.get("/v1/links/v0?knobs=mtuu")
        .problem(404, "unknown-knob");
    home.get("/v1/links/v0?knob=mtu").problem(400, "usage");
    home.get("/v1/nothing").problem(404, "usage");
    home.ask("DELETE /v1/links/v0", &[], None)
        .problem(405, "usage");
    let knobs = home.get("/v1/knobs").ok();
    assert_eq!(
        knobs["knobs"].as_array().unwrap().len(),
        ibmgr_api::registry::knobs().count()
    );
}

#[test]
fn a_set_is_verified_told_with_its_asker_and_holds() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let daemon = home.start(&[]);
    let mut events = home.events();
    let done = home.patch(
        "v0",
        &json!({"knobs": {"txqueuelen": "9", "mtu": "1350"}, "why": "a test"}),
    );
    let report = done.ok();
    assert_eq!(report["knobs"]["mtu"]["outcome"], "changed");
    assert_eq!(report["knobs"]["mtu"]["before"], "1400");
    assert_eq!(
        (
            net.sysfs("v0", "mtu").as_str(),
            net.sysfs("v0", "tx_queue_len").as_str()
        ),
        ("1350", "9")
    );
    let told = events
        .find(|event| event["kind"] == "changed" && event["knob"] == "mtu")
        .unwrap();
    assert_eq!(
        (&told["from"], &told["to"], &told["reason"]),
        (&json!("1400"), &json!("1350"), &json!("a test"))
    );
    assert_eq!(told["by"]["surface"], "socket");
    assert_eq!(told["by"]["uid"], 0);
    assert_eq!(told["by"]["pid"], std::process::id());
    home.wait_log(&[
        "changed",
        "knob=\"mtu\"",
        "to=\"1350\"",
        "by=\"user 0, process",
    ]);
    // It counts in the place of what is declared: others do not win against it, a reload does.
    let mtu = daemon.knob("v0", "mtu");
    assert_eq!(
        (mtu.declared.as_str(), mtu.value.as_deref()),
        ("1350", Some("1350"))
    );
    assert!(mtu.origin.file.starts_with("set by user 0"), "{mtu:?}");
    net.run("ip link set v0 mtu 1234");
    net.wait_sysfs("v0", "mtu", "1350");
    net.run("ip link set v0 txqueuelen 8");
    net.run("ip link set v0 name v5");
    net.run("ip link set v5 name v0");
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "8", "nobody declared it");
    home.ask("POST /v1/reload", &[], None).ok();
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    home.wait_log(&["loaded", "as asked for", "by=\"user 0"]);
}

#[test]
fn a_set_that_fails_changes_nothing_and_says_why() {
    let net = Net::with_veth();
    let home = Home::with("");
    let _daemon = home.start(&[]);
    let problem = home.patch("v0", &json!({"knobs": {"txqueuelen": "9", "mtu": "99999"}}));
    let problem = problem.problem(422, "bad-value");
    assert_eq!(problem["knob"], "mtu");
    assert_eq!(problem["report"]["knobs"]["mtu"]["outcome"], "refused");
    let problem = home.patch(
        "v0",
        &json!({"knobs": {"mtu": "1300", "mode": "connected"}}),
    );
    let problem = problem.problem(409, "unsupported");
    assert_eq!(problem["report"]["knobs"]["mtu"]["outcome"], "not-tried");
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "1000");
    assert_eq!(net.sysfs("v0", "mtu"), "1500");
    home.patch("v0", &json!({"knobs": {"mtu": "many"}}))
        .problem(422, "bad-value");
    home.patch("v0", &json!({"knobs": {"mtuu": "1"}}))
        .problem(404, "unknown-knob");
    home.patch("v0", &json!({"knobs": {}}))
        .problem(400, "usage");
    home.patch("v0", &json!({"knobs": {"mtu": "1400"}, "dryrun": true}))
        .problem(400, "usage");
    home.patch("v0", &json!({"knobs": {"mtu": "1400"}, "via": "smoke"}))
        .problem(400, "usage");
    home.patch("nope", &json!({"knobs": {"mtu": "1400"}}))
        .problem(404, "unknown-link");
    let plan = home
        .patch("v0", &json!({"knobs": {"mtu": "1400"}, "dry-run": true}))
        .ok();
    assert_eq!(plan["steps"][0]["to"], "1400");
    assert_eq!(net.sysfs("v0", "mtu"), "1500");
}

#[test]
fn updates_are_not_lost() {
    let net = Net::with_veth();
    let home = Home::with("");
    let _daemon = home.start(&[]);
    let tag = home.get("/v1/links/v0").header("etag").unwrap().to_owned();
    let only_if = format!("If-Match: {tag}");
    let set = |mtu: &str, headers: &[&str]| {
        let body = json!({"knobs": {"mtu": mtu}});
        home.ask("PATCH /v1/links/v0/knobs", headers, Some(&body))
    };
    set("1400", &[&only_if]).ok();
    set("1300", &[&only_if]).problem(412, "stale");
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    set("1300", &["If-Match: *"]).ok();
    set("1200", &["If-Match: W/\"1\""]).problem(400, "usage");
    // Of many that saw the same state one wins.
    let tag = home.get("/v1/links/v0").header("etag").unwrap().to_owned();
    let only_if = format!("If-Match: {tag}");
    let socket = home.path("http.sock");
    let askers: Vec<_> = (0..8)
        .map(|n| {
            let (only_if, socket) = (only_if.clone(), socket.clone());
            thread::spawn(move || {
                let body = json!({"knobs": {"mtu": (1201 + n).to_string()}}).to_string();
                let length = body.len();
                let text = format!(
                    "PATCH /v1/links/v0/knobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{only_if}\r\n\
                     Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
                );
                raw(&socket, text.as_bytes()).status
            })
        })
        .collect();
    let mut statuses: Vec<u16> = askers.into_iter().map(|it| it.join().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
}

#[test]
fn a_request_that_is_sent_again_is_done_once() {
    let net = Net::with_veth();
    let home = Home::with("");
    let _daemon = home.start(&[]);
    let set = |mtu: &str, key: &str| {
        let body = json!({"knobs": {"mtu": mtu}});
        home.ask(
            "PATCH /v1/links/v0/knobs",
            &[&format!("Idempotency-Key: {key}")],
            Some(&body),
        )
    };
    let first = set("1400", "one").ok();
    assert_eq!(first["knobs"]["mtu"]["outcome"], "changed");
    net.run("ip link set v0 mtu 1300");
    assert_eq!(set("1400", "one").ok(), first);
    assert_eq!(net.sysfs("v0", "mtu"), "1300", "it was not done again");
    assert_eq!(set("1400", "two").ok()["knobs"]["mtu"]["before"], "1300");
    set("1350", "one").problem(422, "usage");
    // What failed fails again in the same way.
    assert_eq!(set("99999", "three").status, 422);
    assert_eq!(
        set("99999", "three").problem(422, "bad-value")["link"],
        "v0"
    );
    set("1350", &"x".repeat(200)).problem(400, "usage");
}

#[test]
fn the_host_is_planned_applied_confirmed_and_taken_back() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let daemon = home.start(&[]);
    let sources = |mtu: u32| json!([{"file": "new.toml", "text": format!("[[link]]\nmatch = {{ name = \"v*\" }}\nmtu = {mtu}\n")}]);
    let plan = home
        .post("/v1/plan", &json!({"sources": sources(1300)}))
        .ok();
    assert_eq!(plan["steps"].as_array().unwrap().len(), 2);
    assert_eq!(plan["steps"][0]["origin"]["file"], "new.toml");
    assert_eq!(plan["steps"][0]["origin"]["line"], 3);
    let dry = home
        .post(
            "/v1/apply",
            &json!({"sources": sources(1300), "dry-run": true}),
        )
        .ok();
    assert_eq!(dry["steps"], plan["steps"]);
    assert_eq!(home.get("/v1/checkpoint").ok()["state"], "idle");

    let done = home
        .post(
            "/v1/apply",
            &json!({"sources": sources(1300), "confirm-within-seconds": 60, "why": "maintenance"}),
        )
        .ok();
    assert_eq!(
        (&done["end"], &done["confirm-within-seconds"]),
        (&json!("applied"), &json!(60))
    );
    assert_eq!(
        (
            net.sysfs("v0", "mtu").as_str(),
            net.sysfs("v1", "mtu").as_str()
        ),
        ("1300", "1300")
    );
    home.wait_log(&[
        "changed",
        "link=\"v1\"",
        "reason=\"maintenance\"",
        "by=\"user 0",
    ]);
    let pending = home.get("/v1/checkpoint").ok();
    assert_eq!(
        (&pending["state"], &pending["what"]),
        (&json!("pending"), &json!("new.toml"))
    );
    // It counts as declared.
    assert_eq!(daemon.knob("v1", "mtu").declared, "1300");
    net.run("ip link set v1 mtu 1111");
    net.wait_sysfs("v1", "mtu", "1300");
    // Another one must wait, and so must a set that would be put back with it.
    home.post("/v1/apply", &json!({"sources": sources(1200)}))
        .problem(409, "pending");
    let problem = home
        .patch("v1", &json!({"knobs": {"mtu": "1250"}}))
        .problem(409, "pending");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("would be put back with it"),
        "{problem}"
    );
    home.patch("v1", &json!({"knobs": {"txqueuelen": "5"}}))
        .ok();

    let back = home.post("/v1/checkpoint", &json!({"do": "rollback"})).ok();
    assert_eq!(
        (&back["state"], &back["why"]),
        (&json!("rolled-back"), &json!("it was asked for"))
    );
    assert_eq!(net.sysfs("v1", "mtu"), "1500");
    net.wait_sysfs("v0", "mtu", "1400");
    home.post("/v1/checkpoint", &json!({"do": "rollback"}))
        .problem(409, "pending");

    home.post(
        "/v1/apply",
        &json!({"sources": sources(1300), "confirm-within-seconds": 60}),
    )
    .ok();
    assert_eq!(
        home.post("/v1/checkpoint", &json!({"do": "confirm"})).ok()["state"],
        "applied"
    );
    assert_eq!(net.sysfs("v1", "mtu"), "1300");
    // Nobody confirms this one.
    home.post(
        "/v1/apply",
        &json!({"sources": sources(1200), "confirm-within-seconds": 1}),
    )
    .ok();
    net.wait_sysfs("v1", "mtu", "1300");
    wait("the change to be taken back", || {
        let state = home.get("/v1/checkpoint").ok();
        if state["state"] == "rolled-back" {
            Ok(())
        } else {
            Err(state)
        }
    });
}

#[test]
fn declarations_that_are_wrong_or_impossible_change_nothing() {
    let net = Net::with_veth();
    let home = Home::with("");
    let _daemon = home.start(&[]);
    let apply = |text: &str| {
        home.post(
            "/v1/apply",
            &json!({"sources": [{"file": "a.toml", "text": text}]}),
        )
    };
    let problem =
        apply("[[link]]\nmatch = { name = \"v0\" }\nmtuu = 5\n").problem(422, "bad-value");
    assert!(
        problem["detail"].as_str().unwrap().contains("a.toml:3:1"),
        "{problem}"
    );
    let problem = apply("[[link]]\nmatch = { name = \"v*\" }\ntxqueuelen = 5\nmtu = 99999\n");
    let problem = problem.problem(422, "bad-value");
    assert_eq!(
        problem["plan"]["refused"][0]["origin"]["line"], 4,
        "{problem}"
    );
    assert_eq!(net.sysfs("v0", "tx_queue_len"), "1000");
    home.post(
        "/v1/apply",
        &json!({"sources": [], "confirm-within-seconds": 0}),
    )
    .problem(400, "usage");
    let exported = home.get("/v1/export?links=v0").ok();
    let text = exported["toml"].as_str().unwrap();
    assert!(text.contains("mtu = 1500"), "{text}");
    let plan = home
        .post(
            "/v1/plan",
            &json!({"sources": [{"file": "a.toml", "text": text}]}),
        )
        .ok();
    assert_eq!(plan["steps"], json!([]));
}

#[test]
fn requests_are_bounded() {
    let _net = Net::with_veth();
    let home = Home::with("");
    let daemon = home.start(&[]);
    let socket = home.path("http.sock");
    let post = |body: &[u8], kind: &str| {
        let length = body.len();
        let mut request = format!(
            "POST /v1/plan HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n\
             Content-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        request.extend_from_slice(body);
        raw(&socket, &request)
    };
    let before = resident(daemon.pid());
    let huge = "POST /v1/plan HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 104857600\r\n\r\n{";
    raw(&socket, huge.as_bytes()).problem(413, "too-large");
    let mut chunked = b"POST /v1/plan HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..64 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(&[b' '; 0x10000]);
        chunked.extend_from_slice(b"\r\n");
    }
    raw(&socket, &chunked).problem(413, "too-large");
    let nested = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    post(&nested, "application/json").problem(400, "usage");
    post(b"{}", "text/plain").problem(415, "usage");
    post(b"{\"sources\": [], \"more\": 1}", "application/json").problem(400, "usage");
    post(b"\xff\xfe", "application/json").problem(400, "usage");
    let deep = format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000));
    let yaml = format!("a: {}{}", "[".repeat(50_000), "]".repeat(50_000));
    for (file, text) in [("a.toml", &deep), ("a.yaml", &yaml)] {
        home.post(
            "/v1/plan",
            &json!({"sources": [{"file": file, "text": text}]}),
        )
        .problem(422, "bad-value");
    }
    let elsewhere = home.ask("GET /v1/links", &["Ibmgr-Namespace: 1"], None);
    elsewhere.problem(421, "usage");
    // Clients that send half of something, and then nothing, keep nobody waiting.
    let mut halves = Vec::new();
    for n in 0..200 {
        let mut half = UnixStream::connect(&socket).unwrap();
        let text: &[u8] = if n % 2 == 0 {
            b"GET /v1/li"
        } else {
            b"POST /v1/plan HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
        };
        half.write_all(text).unwrap();
        halves.push(half);
    }
    home.get("/v1/links").ok();
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} kB more");
}

#[test]
fn who_asked_before_the_end_is_answered() {
    let _net = Net::with_veth();
    let home = Home::with("");
    for _ in 0..10 {
        let daemon = home.start(&[]);
        let socket = home.path("http.sock");
        let asking: Vec<_> = (0..8)
            .map(|_| {
                let socket = socket.clone();
                thread::spawn(move || {
                    let mut heads = Vec::new();
                    // Until nobody listens any more.
                    while let Ok(mut stream) = UnixStream::connect(&socket) {
                        let ask =
                            b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                        let mut answer = Vec::new();
                        if stream.write_all(ask).is_ok() {
                            let _ = stream.read_to_end(&mut answer);
                        }
                        heads.push(answer.into_iter().take(12).collect::<Vec<u8>>());
                    }
                    heads
                })
            })
            .collect();
        home.get("/v1/status").ok();
        daemon.signal(Signal::SIGTERM);
        for one in asking {
            for head in one.join().unwrap() {
                // One that was not taken from the socket's queue gets nothing.
                assert!(
                    head.is_empty() || head == b"HTTP/1.1 200",
                    "{}",
                    String::from_utf8_lossy(&head)
                );
            }
        }
        drop(daemon);
    }
}

#[test]
fn readers_do_not_wait_for_a_writer_nor_a_writer_for_readers() {
    let _net = Net::with_veth();
    let home = Home::with("");
    let daemon = home.start(&[]);
    let before = resident(daemon.pid());
    let socket = home.path("http.sock");
    // Readers that never read, and subscribers that do.
    let idle: Vec<UnixStream> = (0..200)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream
                .write_all(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    let end = Instant::now() + Duration::from_millis(1500);
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let socket = socket.clone();
            thread::spawn(move || {
                let mut count = 0;
                while Instant::now() < end {
                    let answer = raw(
                        &socket,
                        b"GET /v1/links/v0 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                    );
                    assert_eq!(answer.status, 200, "{answer:?}");
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut writes = 0;
    while Instant::now() < end {
        let mtu = if writes % 2 == 0 { "1400" } else { "1300" };
        home.patch("v0", &json!({"knobs": {"mtu": mtu}})).ok();
        writes += 1;
    }
    let reads: u32 = readers.into_iter().map(|it| it.join().unwrap()).sum();
    assert!(writes >= 3 && reads >= 30, "{writes} writes, {reads} reads");
    let mut seen = [0; 64];
    for mut stream in idle {
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        stream.read_exact(&mut seen).expect("events came");
    }
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(grown < 200 * 64, "{grown} kB for 200 subscribers");
}

#[test]
fn figures_and_health() {
    let net = Net::with_veth();
    let home = Home::with(DECLARED);
    let _daemon = home.start(&[]);
    net.run("ip link set v0 mtu 1300");
    net.wait_sysfs("v0", "mtu", "1400");
    assert_eq!(home.get("/healthz").ok()["idle"], true);
    wait("the figures", || {
        let text = home.get("/metrics").body;
        let has = |line: &str| text.lines().any(|other| other == line);
        let is_there = has("ibmgr_healed_total 1")
            && has("ibmgr_declared{standing=\"holds\"} 1")
            && has("# TYPE ibmgr_ok gauge");
        if is_there { Ok(()) } else { Err(text) }
    });
    let document = home.get("/openapi.json").ok();
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn answers_are_what_the_document_says() {
    let _net = Net::with_veth();
    let home = Home::with(DECLARED);
    let _daemon = home.start(&[]);
    let document = home.get("/openapi.json").ok();
    let source =
        json!([{"file": "a.toml", "text": "[[link]]\nmatch = { name = \"v*\" }\nmtu = 1300\n"}]);
    let knobs = json!({"knobs": {"mtu": "1350"}});
    let wrong = json!({"knobs": {"mtu": "99999"}});
    for (method, path, documented, body, status) in [
        ("GET", "/v1/links?knobs=all", "/v1/links", None, 200),
        ("GET", "/v1/links/v0", "/v1/links/{name}", None, 200),
        ("GET", "/v1/links/nope", "/v1/links/{name}", None, 404),
        (
            "PATCH",
            "/v1/links/v0/knobs",
            "/v1/links/{name}/knobs",
            Some(&knobs),
            200,
        ),
        (
            "PATCH",
            "/v1/links/v0/knobs",
            "/v1/links/{name}/knobs",
            Some(&wrong),
            422,
        ),
        ("GET", "/v1/knobs", "/v1/knobs", None, 200),
        (
            "POST",
            "/v1/plan",
            "/v1/plan",
            Some(&json!({"sources": source})),
            200,
        ),
        (
            "POST",
            "/v1/apply",
            "/v1/apply",
            Some(&json!({"sources": source, "confirm-within-seconds": 60})),
            200,
        ),
        ("GET", "/v1/checkpoint", "/v1/checkpoint", None, 200),
        (
            "POST",
            "/v1/checkpoint",
            "/v1/checkpoint",
            Some(&json!({"do": "confirm"})),
            200,
        ),
        (
            "POST",
            "/v1/checkpoint",
            "/v1/checkpoint",
            Some(&json!({"do": "confirm"})),
            409,
        ),
        ("GET", "/v1/export?links=v0", "/v1/export", None, 200),
        ("GET", "/v1/status", "/v1/status", None, 200),
        ("POST", "/v1/reload", "/v1/reload", None, 200),
        ("GET", "/healthz", "/healthz", None, 200),
    ] {
        let answer = home.ask(&format!("{method} {path}"), &[], body);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let kind = answer.header("content-type").unwrap().to_owned();
        let operation = &document["paths"][documented][method.to_lowercase()];
        let schema = &operation["responses"][status.to_string()]["content"][&kind]["schema"];
        assert!(
            !schema.is_null(),
            "{method} {path} does not document {status} with {kind}"
        );
        let mut whole = json!({"components": document["components"]});
        whole
            .as_object_mut()
            .unwrap()
            .extend(schema.as_object().unwrap().clone());
        let validator: Validator = jsonschema::validator_for(&whole).unwrap();
        let body: Value = answer.json();
        let errors: Vec<String> = validator
            .iter_errors(&body)
            .map(|it| format!("{}: {it}", it.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{method} {path}: {errors:#?}\n{body:#}");
    }
}

/// Returns the resident memory of a process, in kB.
pub(crate) fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
