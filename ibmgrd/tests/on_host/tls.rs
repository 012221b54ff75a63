// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HTTP over TLS: who may do what, and what strangers can't.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::http::resident;
use crate::remote::{ADDRESS, answer, detail, net, run};
use crate::support::{Home, wait};

/// A token, made by the commands of the security guide, and its row.
fn token(name: &str, rest: &str) -> (String, String) {
    let page = include_str!("../../../docs/security.md");
    let (_, block) = page.split_once("```console\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let commands: Vec<&str> = block
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let mut sh = Command::new("sh");
    let hash = run(sh.args(["-ec", &commands.join("\n")]).current_dir(&folder));
    let token = fs::read_to_string(folder.path().join("token")).unwrap();
    let (token, hash) = (token.trim().to_owned(), hash.trim());
    let row = format!("[[token]]\nname = \"{name}\"\nsha256 = \"{hash}\"\n{rest}\n");
    (token, row)
}

const READ: &str = "rights = [\"read\"]";
const BOTH: &str = "rights = [\"read\", \"write\"]";

/// What everybody tries: method, path, body.
const DEEDS: [(&str, &str, &str); 14] = [
    ("GET", "/v1/links/v0", ""),
    ("GET", "/v1/links/v1", ""),
    (
        "PATCH",
        "/v1/links/v0/knobs",
        "{\"knobs\": {\"txqueuelen\": \"700\"}}",
    ),
    (
        "PATCH",
        "/v1/links/v1/knobs",
        "{\"knobs\": {\"txqueuelen\": \"700\"}}",
    ),
    ("GET", "/v1/links", ""),
    ("GET", "/v1/knobs", ""),
    ("GET", "/v1/status", ""),
    ("GET", "/v1/checkpoint", ""),
    ("GET", "/metrics", ""),
    ("GET", "/openapi.json", ""),
    ("POST", "/v1/plan", "{\"sources\": []}"),
    ("POST", "/v1/apply", "{\"sources\": []}"),
    ("POST", "/v1/reload", ""),
    ("POST", "/v1/checkpoint", "{\"do\": \"confirm\"}"),
];

/// The statuses that a credential gets for [`DEEDS`]: `r` and `w` are those of reading and writing `v0`,
/// `v1`, then the host.
fn statuses(may: &str) -> [u16; 14] {
    let of = |word: &str, done: u16| {
        if may.split(' ').any(|it| it == word) {
            done
        } else {
            403
        }
    };
    let read = of("read", 200);
    let write = of("write", 200);
    // Something is read of the list when anything may be read.
    let list = if may.contains("read") { 200 } else { 403 };
    [
        of("read-v0", 200),
        of("read-v1", 200),
        of("write-v0", 200),
        of("write-v1", 200),
        list,
        read,
        read,
        read,
        read,
        200,
        read,
        // What is for no interface is for the host.
        write,
        write,
        // None waits.
        of("write", 409),
    ]
}

#[test]
fn everybody_may_do_over_tls_what_was_granted_and_nothing_else() {
    let _net = net();
    let home = Home::with("");
    home.authority();
    home.certificate("admin", "/CN=head node", "", Some("ca"));
    home.certificate("machine", "/CN=whatever", "DNS:node1.example", Some("ca"));
    home.certificate("unlisted", "/CN=guest", "", Some("ca"));
    let (reader, reader_row) = token("reader", READ);
    let (writer, writer_row) = token("writer", BOTH);
    let (one, one_row) = token("one", &format!("{BOTH}\nlinks = [\"*0\"]"));
    let (blind, blind_row) = token("blind", "rights = [\"write\"]\nlinks = [\"v[1-9]\"]");
    let (old, old_row) = token(
        "old",
        &format!("{BOTH}\nexpires = 2020-01-01T00:00:00+01:00"),
    );
    let certificates = format!(
        "[[certificate]]\nname = \"head node\"\n{BOTH}\n[[certificate]]\nname = \"node1.example\"\n{READ}\n"
    );
    let rows = [
        reader_row,
        writer_row,
        one_row,
        blind_row,
        old_row,
        certificates,
    ];
    home.secret("tokens.toml", &rows.concat());
    let _daemon = home.start_tls();
    let all = "read write read-v0 read-v1 write-v0 write-v1";
    let reading = "read read-v0 read-v1";
    // Who, how they show it, what they may, what a denial says.
    let bearer = |token: &str| {
        vec![
            "--header".to_owned(),
            format!("Authorization: Bearer {token}"),
        ]
    };
    let certified = |name: &str| {
        let path = |end: &str| {
            home.path(&format!("{name}.{end}"))
                .to_str()
                .unwrap()
                .to_owned()
        };
        vec![
            "--cert".to_owned(),
            path("pem"),
            "--key".to_owned(),
            path("key"),
        ]
    };
    for (shown, may, denial) in [
        (
            bearer(&reader),
            reading,
            "'token reader' may read only: changing takes a token or certificate with the right to it",
        ),
        (bearer(&writer), all, ""),
        (
            bearer(&one),
            "read-v0 write-v0",
            "'token one' may not read this: reading takes",
        ),
        (
            bearer(&blind),
            "write-v1",
            "'token blind' may do nothing: reading takes",
        ),
        (certified("admin"), all, ""),
        (
            certified("machine"),
            reading,
            "'certificate node1.example' may read only",
        ),
    ] {
        for ((method, path, body), status) in DEEDS.into_iter().zip(statuses(may)) {
            let mut curl = home.curl(path);
            curl.args(["--request", method]).args(&shown);
            if !body.is_empty() {
                curl.args(["--json", body]);
            }
            let (got, told) = detail(&mut curl);
            assert_eq!(got, status, "{denial} {method} {path}: {told}");
            let is_told = (method == "GET") == denial.contains("reading");
            if got == 403 && is_told {
                assert!(told.contains(denial), "{method} {path}: {told}");
            }
        }
    }
    // A trusted certificate that nobody listed may nothing, nor whoever has none.
    let (bad, known) = ("A".repeat(64), "the token is not known");
    for (shown, status, told) in [
        (
            certified("unlisted"),
            403,
            "'certificate guest' may do nothing: reading takes a [[certificate]] of that name in the daemon's list",
        ),
        (
            vec![],
            401,
            "this takes a token ('Authorization: Bearer …') or a client certificate",
        ),
        (bearer(&bad), 401, known),
        (bearer(&old), 401, "the token 'old' has expired"),
        // A wrong token is not made good by a certificate.
        ([certified("admin"), bearer(&bad)].concat(), 401, known),
        (
            vec!["--user".to_owned(), "root:x".to_owned()],
            401,
            "Authorization is not 'Bearer' with a token",
        ),
    ] {
        for (method, path, body) in DEEDS {
            let mut curl = home.curl(path);
            curl.args(["--request", method]).args(&shown);
            if !body.is_empty() {
                curl.args(["--json", body]);
            }
            assert_eq!(
                detail(&mut curl),
                (status, told.to_owned()),
                "{method} {path}"
            );
        }
    }
    let mut curl = home.curl("/healthz");
    let head = run(curl.args(["--include"]));
    assert!(
        head.to_lowercase()
            .contains("www-authenticate: bearer realm=\"ibmgr\"\r\n"),
        "{head}"
    );
    assert!(head.contains("application/problem+json"), "{head}");
    // Changes and denials are told with the name; nothing tells a token.
    home.wait_log(&["'token reader' may read only", "tcp"]);
    home.wait_log(&["txqueuelen", "700", "token writer"]);
    let log = home.log();
    for secret in [&reader, &writer, &one, &blind, &old, &bad] {
        assert!(!log.contains(secret.as_str()), "a token is in the log");
    }
}

#[test]
fn a_certificate_of_another_authority_and_plain_http_get_nowhere() {
    let _net = net();
    let home = Home::with("");
    home.authority();
    home.certificate("other", "/CN=Authority", "", None);
    home.certificate("forged", "/CN=head node", "", Some("other"));
    let row = format!("[[certificate]]\nname = \"head node\"\n{BOTH}\n");
    home.secret("tokens.toml", &row);
    let _daemon = home.start_tls();
    let mut curl = home.curl("/v1/links");
    curl.arg("--cert").arg(home.path("forged.pem"));
    curl.arg("--key").arg(home.path("forged.key"));
    let output = curl.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("alert"), "{told}");
    for request in [
        &b"GET /v1/links HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0xff; 5000],
    ] {
        let mut plain = TcpStream::connect(ADDRESS).unwrap();
        plain
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let _ = plain.write_all(request);
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer);
        assert!(
            !String::from_utf8_lossy(&answer).contains("HTTP"),
            "{answer:?}"
        );
    }
    // An old version of TLS is not spoken.
    let mut curl = home.curl("/v1/links");
    let output = curl.args(["--tls-max", "1.2"]).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn a_signal_has_tokens_and_certificates_read_again() {
    let _net = net();
    let home = Home::with("");
    home.authority();
    let (first, first_row) = token("first", READ);
    let (second, second_row) = token("second", READ);
    home.secret("tokens.toml", &first_row);
    let args = home.tls_args();
    // Without an authority for clients.
    let args: Vec<&str> = args.iter().map(String::as_str).take(8).collect();
    let daemon = home.start(&args);
    let status = |token: &str| {
        let mut curl = home.curl("/v1/status");
        answer(curl.args(["--oauth2-bearer", token])).0
    };
    assert_eq!((status(&first), status(&second)), (200, 401));
    // Who follows events with a token that is taken away is not told more.
    let mut follower = home.connect();
    let text =
        format!("GET /v1/events HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {first}\r\n\r\n");
    follower.write_all(text.as_bytes()).unwrap();
    let mut head = [0; 12];
    follower.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.0 200");
    // A mistake keeps what was.
    home.secret("tokens.toml", "[[token]]\nname = 1\n");
    daemon.signal(Signal::SIGHUP);
    home.wait_log(&["stay as they were read last", "line 2"]);
    assert_eq!((status(&first), status(&second)), (200, 401));
    home.secret("tokens.toml", &second_row);
    home.certificate("server", "/CN=renewed", "IP:127.0.0.1", Some("ca"));
    daemon.signal(Signal::SIGHUP);
    wait("the new tokens", || {
        match (status(&first), status(&second)) {
            (401, 200) => Ok(()),
            other => Err(other),
        }
    });
    let mut rest = Vec::new();
    home.patch("v0", &json!({"knobs": {"txqueuelen": "555"}}))
        .ok();
    let _ = follower.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("555"));
    let shown = run(home.curl("/healthz").args(["--verbose", "--stderr", "-"]));
    assert!(shown.contains("CN=renewed"), "{shown}");
}

#[test]
fn it_does_not_listen_without_tls_or_with_nobody_who_could_ask() {
    let _net = net();
    let home = Home::with("");
    home.authority();
    let (_, row) = token("a", READ);
    let certificate = format!("[[certificate]]\nname = \"x\"\n{READ}\n");
    home.secret("tokens.toml", &row);
    let all = home.tls_args();
    let refused = |args: &[String], told: &str| {
        let output = home.command().args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && text.contains(told),
            "{told}: {text}"
        );
        assert!(TcpStream::connect(ADDRESS).is_err());
    };
    refused(&all[..2], "--tls-cert <FILE>");
    refused(&all[..6], "--tokens <FILE>");
    refused(&all[2..], "--listen <ADDR:PORT>");
    refused(&all, "it has no [[certificate]]");
    home.secret("tokens.toml", &certificate);
    refused(&all[..8], "it has no [[token]]");
    home.secret("tokens.toml", "");
    refused(&all, "nobody could ask");
    let path = home.secret("tokens.toml", &(row + &certificate));
    for mode in [0o644, 0o602] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        refused(&all, "everybody may use it");
        refused(&all, "chmod o= ");
    }
    home.secret("tokens.toml", &certificate);
    let key = home.path("server.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o604)).unwrap();
    refused(&all, "server.key: everybody may use it");
    fs::copy(home.path("ca.key"), &key).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    refused(&all, "server.pem: ");
    fs::write(home.path("server.pem"), "").unwrap();
    refused(&all, "it has no certificate as PEM");
}

#[test]
fn who_may_write_one_interface_applies_to_no_other() {
    let _net = net();
    let home = Home::with("");
    home.authority();
    let (one, row) = token("one", &format!("{BOTH}\nlinks = [\"*0\"]"));
    let certificates = format!("[[certificate]]\nname = \"head node\"\n{BOTH}\n");
    home.secret("tokens.toml", &(row + &certificates));
    let _daemon = home.start_tls();
    let apply = |rules: &str, more: &str| {
        let text = rules.replace('\n', "\\n").replace('"', "\\\"");
        let body =
            format!("{{\"sources\": [{{\"file\": \"x.toml\", \"text\": \"{text}\"}}]{more}}}");
        let mut curl = home.curl("/v1/apply");
        curl.args(["--header", &format!("Authorization: Bearer {one}")]);
        curl.args(["--json", &body]);
        detail(&mut curl)
    };
    let of = |link: &str| format!("[[link]]\nmatch = {{ name = \"{link}\" }}\nmtu = 1500\n");
    // Its own, also when nothing is left to do.
    for _ in 0..2 {
        let (status, told) = apply(&of("v0"), "");
        assert_eq!(status, 200, "{told}");
    }
    // Another one, though it is as declared: what it is would be told, and it would be declared so.
    for rules in [of("v1"), of("v*"), of("v0") + &of("v1")] {
        let (status, told) = apply(&rules, "");
        assert_eq!(status, 403, "{rules}{told}");
        assert!(told.contains("v1: 'token one'"), "{told}");
    }
    // None: nobody could apply anything while that waits to be confirmed.
    for more in ["", ", \"confirm-within-seconds\": 3600"] {
        let (status, told) = apply("", more);
        assert_eq!(status, 403, "{told}");
    }
}

#[test]
fn strangers_and_slow_clients_keep_nobody_waiting() {
    let _net = net();
    let home = Home::with("");
    home.authority();
    let (reader, row) = token("reader", READ);
    let certificate = format!("[[certificate]]\nname = \"x\"\n{READ}\n");
    home.secret("tokens.toml", &(row + &certificate));
    let mut daemon = home.start_tls();
    let status = || answer(home.curl("/v1/status").args(["--oauth2-bearer", &reader])).0;
    assert_eq!(status(), 200);
    let before = resident(daemon.pid());
    // Some never begin TLS, some not their request, some send it byte by byte, some stop in its body.
    let mut silent: Vec<TcpStream> = (0..200)
        .map(|_| TcpStream::connect(ADDRESS).unwrap())
        .collect();
    let mut halves = Vec::new();
    for n in 0..60 {
        let mut half = home.connect();
        let text = match n % 3 {
            0 => String::new(),
            1 => "GET /v1/li".to_owned(),
            _ => format!(
                "POST /v1/plan HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {reader}\r\n\
                 Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{{"
            ),
        };
        half.write_all(text.as_bytes()).unwrap();
        half.flush().unwrap();
        halves.push(half);
    }
    assert_eq!(status(), 200);
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(grown < 32 * 1024, "{grown} kB more");
    // 100 MB, whole and in chunks without an end, and nesting without an end.
    let ask = |head: &str, piece: &[u8], count: usize| {
        let mut stream = home.connect();
        let head = format!(
            "POST /v1/plan HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {reader}\r\n\
             Content-Type: application/json\r\n{head}\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes());
        // It answers, and closes, before it has read all.
        for _ in 0..count {
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    let told = ask("Content-Length: 104857600", b"", 0);
    assert!(told.starts_with("HTTP/1.1 413"), "{told}");
    let piece = [&b"10000\r\n"[..], &[b' '; 0x10000], b"\r\n"].concat();
    let told = ask("Transfer-Encoding: chunked", &piece, 40);
    assert!(
        told.starts_with("HTTP/1.1 413") || told.is_empty(),
        "{told}"
    );
    let told = ask("Content-Length: 100000", &[b'['; 1000], 100);
    assert!(told.starts_with("HTTP/1.1 400"), "{told}");
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(grown < 48 * 1024, "{grown} kB more");
    // Whoever begins nothing is let go.
    let mut buffer = [0; 64];
    for stream in &mut silent {
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let ended = stream.read(&mut buffer);
        assert!(matches!(ended, Ok(0)), "{ended:?}");
    }
    // The end waits for none of them.
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.ended().success());
    drop(halves);
}

/// 1,000 readers at a time, of whom 100 come over TLS, and two writers that add one each in turn.
#[test]
fn no_update_is_lost_among_a_thousand_readers() {
    let net = net();
    let home = Home::with("");
    home.authority();
    let (reader, row) = token("reader", READ);
    let certificate = format!("[[certificate]]\nname = \"x\"\n{READ}\n");
    home.secret("tokens.toml", &(row + &certificate));
    let daemon = home.start_tls();
    net.run("ip link set v0 txqueuelen 1000");
    let before = resident(daemon.pid());
    let get =
        format!("GET /v1/links/v0 HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {reader}\r\n\r\n");
    let mut local = Vec::new();
    for _ in 0..900 {
        let stream = std::os::unix::net::UnixStream::connect(home.path("http.sock"));
        local.push(stream.unwrap());
    }
    let mut remote: Vec<_> = (0..100).map(|_| home.connect()).collect();
    for stream in &mut remote {
        stream.write_all(get.as_bytes()).unwrap();
    }
    for stream in &mut local {
        stream.write_all(get.as_bytes()).unwrap();
    }
    // They are being answered by now.
    let added = thread::scope(|scope| {
        let writer = || {
            let mut added = 0;
            for _ in 0..20 {
                let read = home.get("/v1/links/v0");
                let tag = format!("If-Match: {}", read.header("etag").unwrap());
                let now = &read.ok()["knobs"]["txqueuelen"]["value"];
                let now: u32 = now.to_string().trim_matches('"').parse().unwrap();
                let body = json!({"knobs": {"txqueuelen": (now + 1).to_string()}});
                let line = "PATCH /v1/links/v0/knobs";
                let done = home.ask(line, &[&tag], Some(&body));
                match done.status {
                    200 => added += 1,
                    // The other was faster.
                    412 => {}
                    other => panic!("{other}: {done:?}"),
                }
            }
            added
        };
        let writers = [scope.spawn(writer), scope.spawn(writer)];
        let mut answered = 0;
        let mut text = String::new();
        for mut stream in local {
            text.clear();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.0 200"), "{text}");
            answered += 1;
        }
        for mut stream in remote {
            let mut text = Vec::new();
            let _ = stream.read_to_end(&mut text);
            assert!(
                text.starts_with(b"HTTP/1.0 200"),
                "{}",
                String::from_utf8_lossy(&text)
            );
            answered += 1;
        }
        assert_eq!(answered, 1000);
        writers.map(|it| it.join().unwrap()).iter().sum::<u32>()
    });
    assert!(added > 0);
    assert_eq!(net.sysfs("v0", "tx_queue_len"), (1000 + added).to_string());
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} kB more");
}
