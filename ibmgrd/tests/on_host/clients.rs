// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that were written from the OpenAPI document alone do what `ibctl` does.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Home, Net};

fn clients() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/clients")
}

/// Asks through the client in Python.
fn python(home: &Home, words: &[&str]) -> Output {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/openapi.json");
    let mut command = Command::new("python3");
    command.arg(clients().join("ibmgr.py")).arg(document);
    command.arg(home.path("http.sock")).args(words);
    command.stdin(Stdio::null()).output().expect("python3")
}

#[track_caller]
fn answer(home: &Home, words: &[&str]) -> Value {
    let output = python(home, words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[track_caller]
fn problem(home: &Home, words: &[&str]) -> Value {
    let output = python(home, words);
    assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
    serde_json::from_slice(&output.stderr).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn the_document_is_enough_for_a_client_in_python() {
    let net = Net::with_veth();
    let home = Home::with("");
    let _daemon = home.start(&[]);
    let ask = |words: &[&str]| answer(&home, words);
    assert_eq!(ask(&["listLinks"])["links"].as_array().unwrap().len(), 3);
    assert_eq!(
        ask(&["getLink", "name=v0", "knobs=mtu"])["knobs"]["mtu"]["value"],
        "1500"
    );
    assert!(ask(&["listKnobs"])["knobs"].as_array().unwrap().len() > 40);
    assert!(ask(&["getHealth"])["version"].is_string());
    // A change, a change of what is no more so, and one that is wrong.
    let set = ["setKnobs", "name=v0", "body={\"knobs\":{\"mtu\":\"1400\"}}"];
    assert_eq!(ask(&set)["knobs"]["mtu"]["outcome"], "changed");
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    let stale = [&set[..], &["@If-Match=\"0123\""]].concat();
    assert_eq!(problem(&home, &stale)["code"], "stale");
    let wrong = ["setKnobs", "name=v0", "body={\"knobs\":{\"mut\":\"1400\"}}"];
    assert_eq!(problem(&home, &wrong)["code"], "unknown-knob");
    // A host: planned, applied, taken back, applied again with a key, confirmed.
    let text = "[[link]]\\nmatch = { name = \\\"v0\\\" }\\nmtu = 1300\\n";
    let sources = format!("\"sources\":[{{\"file\":\"a.toml\",\"text\":\"{text}\"}}]");
    let plan = ask(&["plan", &format!("body={{{sources}}}")]);
    assert!(plan.to_string().contains("\"mtu\""), "{plan}");
    let apply = format!("body={{{sources},\"confirm-within-seconds\":60}}");
    assert_eq!(ask(&["apply", &apply])["end"], "applied");
    assert_eq!(net.sysfs("v0", "mtu"), "1300");
    assert_eq!(ask(&["getCheckpoint"])["state"], "pending");
    assert_eq!(
        ask(&["endCheckpoint", "body={\"do\":\"rollback\"}"])["state"],
        "rolled-back"
    );
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    for _ in 0..2 {
        let keyed = ["apply", &apply, "@Idempotency-Key=once"];
        assert_eq!(ask(&keyed)["end"], "applied");
    }
    assert_eq!(
        ask(&["endCheckpoint", "body={\"do\":\"confirm\"}"])["state"],
        "applied"
    );
    assert!(
        ask(&["export", "links=v0"])["toml"]
            .as_str()
            .unwrap()
            .contains("mtu = 1300")
    );
    assert_eq!(ask(&["reload"])["ok"], true);
    assert_eq!(ask(&["getStatus"])["ok"], true);
    // Whoever follows is told of the next change; when it follows is not known here.
    let follower = std::thread::scope(|scope| {
        let follower = scope.spawn(|| ask(&["followEvents"]));
        for n in 0..200 {
            let body = format!("body={{\"knobs\":{{\"txqueuelen\":\"{}\"}}}}", 500 + n);
            ask(&["setKnobs", "name=v1", &body]);
            if follower.is_finished() {
                break;
            }
        }
        follower.join().unwrap()
    });
    assert_eq!(follower["knob"], "txqueuelen");
    let metrics = python(&home, &["getMetrics"]);
    assert!(
        String::from_utf8_lossy(&metrics.stdout).contains("# TYPE"),
        "{metrics:?}"
    );
}

#[test]
fn the_document_is_enough_for_curl_and_jq() {
    let net = Net::with_veth();
    let home = Home::with("");
    let _daemon = home.start(&[]);
    let ask = |words: &[&str]| {
        let mut command = Command::new(clients().join("ibmgr.sh"));
        let output = command
            .arg(home.path("http.sock"))
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(ask(&["links"]), "lo\nv1\nv0");
    assert_eq!(ask(&["get", "v0", "mtu"]), "1500");
    assert_eq!(ask(&["set", "v0", "mtu", "1400"]), "changed");
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    let file = home.path("trial.toml");
    std::fs::write(&file, "[[link]]\nmatch = { name = \"v0\" }\nmtu = 1300\n").unwrap();
    let file = file.to_str().unwrap();
    assert!(ask(&["plan", file]).contains("\"mtu\""));
    assert_eq!(ask(&["apply", file, "60"]), "applied");
    assert_eq!(ask(&["rollback"]), "rolled-back");
    assert_eq!(net.sysfs("v0", "mtu"), "1400");
    assert_eq!(ask(&["apply", file, "60"]), "applied");
    assert_eq!(ask(&["confirm"]), "applied");
    assert_eq!(net.sysfs("v0", "mtu"), "1300");
    assert_eq!(ask(&["status"]), "true");
    assert!(ask(&["export"]).starts_with("# there is no IPoIB interface"));
}
