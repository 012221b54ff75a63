// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Outputs by verb.

use ibmgr_api::Value;

use crate::fake::{Fake, Manner, key};
use crate::{golden, run};

#[test]
fn show() {
    let host = Fake::host();
    golden(
        "show",
        &host,
        &["show", "show ib0", "show storage0", "show ib0.8001"],
    );
    golden(
        "show-json",
        &host,
        &["show -o json", "show ib0 --output json"],
    );
}

#[test]
fn a_list_without_ipoib_has_no_columns_for_it() {
    let mut host = Fake::host();
    host.links.retain(|_, link| !link.is_ipoib());
    golden("show-plain", &host, &["show"]);
    host.links.clear();
    golden("show-nothing", &host, &["show", "show -o json"]);
}

#[test]
fn get() {
    golden(
        "get",
        &Fake::host(),
        &[
            "get ib0",
            "get ib0 mtu mode",
            "get ib0 mode mtu mode",
            "get ib0 mtu --via sysfs",
            "get ib0 mtu -o json",
            "get ib0 mtu ring.rx",
            "get ib0 ring.rx -o json",
            "get storage0 alias",
        ],
    );
}

#[test]
fn explain() {
    golden("explain", &Fake::host(), &["explain"]);
    golden(
        "explain-knob",
        &Fake::host(),
        &[
            "explain mode",
            "explain rx-usecs ib0",
            "explain gro-flush-timeout ib0",
            "explain ring.rx ib0",
            "explain feature",
            "explain feature ib0",
            "explain feature.rx-lro ib0",
            "explain private-flag ib0",
            "explain rx-usecs ib0 -o json",
        ],
    );
}

#[test]
fn help() {
    golden(
        "help",
        &Fake::host(),
        &[
            "--help",
            "show --help",
            "get --help",
            "set --help",
            "import --help",
            "explain --help",
        ],
    );
}

#[test]
fn set() {
    golden(
        "set",
        &Fake::host(),
        &[
            "set ib0 mtu=1500",
            "set ib0 mtu=2044",
            "set ib0 mode=connected",
            "set ib0 mtu=65520 mode=connected rx-usecs=20us",
            "set ib1 batching=adaptive batch-limit=32 gro-flush-timeout=50us",
            "set ib0 gro-flush-timeout=20us",
            "set ib0 feature.rx-gro=off alias=rail-1",
            "set storage0 alias=",
            "set ib0 mtu=1500 --via sysfs",
            "set ib0 mtu=65520 txqueuelen=256 mode=connected --dry-run",
            "set ib0 gro-flush-timeout=20us --dry-run",
            "set ib0 mtu=65520 mode=connected --dry-run -o json",
            "set ib0 mtu=65520 mode=connected -o json",
        ],
    );
}

#[test]
fn bad_words() {
    golden(
        "bad-words",
        &Fake::host(),
        &[
            "set ib0 mtuu=1500",
            "set ib0 mtuu=1500 txqueuelen=9",
            "set ib0 mtu",
            "set ib0 =5",
            "set ib0 mtu=",
            "set ib0 mtu=many rx-usecs=20B txqueuelen=9",
            "set ib0 rx-usecs=1500ns",
            "set ib0 mtu=99999999999",
            "set ib0 mtu=1500 mtu=2044",
            "set ib0 mode=conected",
            "set ib0 feature=on",
            "set ib0 feature.no-such=on",
            "set ib0 mtu=1500 --via netdev",
            "set ib0 mtu=1500 --via wire",
            "set ib0",
            "set ibo mtu=1500",
            "set a/b mtu=1500",
            "get ib0 mtuu",
            "get ib0 mtu --via netdev",
            "get ibo",
            "show zz9",
            "explain mtuu",
            "explain feature.a=b",
            "explain mtu ibo",
            "shwo",
            "show --colour",
        ],
    );
    golden(
        "bad-words-json",
        &Fake::host(),
        &[
            "set ib0 mtuu=1500 -o json",
            "set ib0 mtu=many txqueuelen=9 -o json",
            "show ibo -o json",
            "shwo -o json",
            "shwo --output=json",
        ],
    );
}

#[test]
fn refusals() {
    let refuses = Fake::host().with(
        "mtu",
        Manner::Refuses(22, "mtu greater than device maximum"),
    );
    golden(
        "refused",
        &refuses,
        &[
            "set ib0 mtu=4000",
            "set ib0 mtu=4000 mode=datagram rx-frames=1",
            "set ib0 mtu=65000 mode=connected",
            "set ib0 mtu=4000 -o json",
        ],
    );
    golden(
        "cannot-take",
        &Fake::host(),
        &[
            "set ib0 rx-usecs=70ms txqueuelen=9",
            "set ib0 ring.rx=512 mtu=2044",
            "set ib0 feature.rx-lro=on",
            "set ib0 feature.rx-lro=off",
            "set storage0 mode=connected mtu=9000",
            "set storage0 mode=connected mtu=9000 --dry-run",
        ],
    );
    let needs = Fake::host().with("mtu", Manner::Needs("CAP_NET_ADMIN"));
    golden(
        "permission",
        &needs,
        &["set ib0 mtu=4000", "set ib0 mtu=4000 -o json"],
    );
    let lies = Fake::host().with("rx-usecs", Manner::Lies);
    golden(
        "not-verified",
        &lies,
        &["set ib0 rx-usecs=20us", "set ib0 rx-usecs=20us mtu=1500"],
    );
    let once = Fake::host()
        .with("txqueuelen", Manner::OnlyOnce)
        .with("rx-usecs", Manner::Refuses(22, "EINVAL"));
    golden(
        "not-put-back",
        &once,
        &["set ib0 rx-usecs=20us txqueuelen=9"],
    );
    let unplugs = Fake::host().with("rx-usecs", Manner::Unplugs);
    golden(
        "vanished",
        &unplugs,
        &["set ib0 rx-usecs=20us txqueuelen=9"],
    );
    let renames = Fake::host().with("rx-usecs", Manner::Renames("rail0"));
    golden(
        "renamed",
        &renames,
        &[
            "set ib0 rx-usecs=20us txqueuelen=9",
            "set ib0 rx-usecs=20us txqueuelen=9 -o json",
        ],
    );
    let hangs = Fake::host().with("rx-usecs", Manner::Hangs);
    golden("timeout", &hangs, &["set ib0 rx-usecs=20us txqueuelen=9"]);
}

#[test]
fn what_get_prints_is_what_set_takes() {
    let host = Fake::host();
    for link in host.links.values() {
        let line = format!("get {} -o json", link.name);
        let document: serde_json::Value =
            serde_json::from_str(&run(&host, &line).stdout).expect("JSON");
        let knobs = document["knobs"].as_object().expect("an object");
        for (name, reading) in knobs {
            let Some(text) = reading["value"].as_str() else {
                continue;
            };
            let key = key(name);
            if text.contains('\u{1b}') {
                assert!(
                    key.knob().domain.parse(text).is_err(),
                    "set takes printable text"
                );
                continue;
            }
            let value: Value = key.knob().domain.parse(text).expect(text);
            assert_eq!(Some(&value), link.readings[&key].value.as_ref(), "{name}");
            assert_eq!(reading["raw"].as_u64(), key.knob().domain.to_kernel(&value));
        }
    }
}
