// SPDX-License-Identifier: Apache-2.0 OR MIT
//! docs/reference/org.ibmgr1.xml: what the objects have, with every property that a device may have.
//!
//! `UPDATE=1 cargo test -p ibmgrd --lib dbus::reference` rewrites it.

use std::fs;
use std::path::Path;

use ibmgr_api::{Channel, Key, Link, Reading, Value, registry};
use ibmgrd_state::Store;
use zbus::object_server::Interface as _;

use super::link::introspect;
use super::manager::Manager;
use crate::office::{Access, Office, Told};

const FILE: &str = "../docs/reference/org.ibmgr1.xml";

const HEAD: &str = "\
<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->
<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"
 \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">
<!-- Generated. An object has the properties that its device has: this is all of them, less families
     such as FeatureRxGro, RingRx or RpsCpusRx0, whose members the device lists. -->
<node>
";

/// Returns an interface that has everything.
fn everything() -> Link {
    let readings = registry::knobs()
        .filter(|knob| !knob.is_family)
        .map(|knob| {
            let reading = Reading::settable(Value::Number(0), Channel::Rtnetlink);
            (Key::of(knob), reading)
        });
    Link {
        index: 1,
        name: "ib0".parse().unwrap(),
        alt_names: Vec::new(),
        kind: Some("ipoib".to_owned()),
        driver: Some("ipoib_batch".to_owned()),
        device_path: None,
        arphrd: Link::INFINIBAND,
        address: vec![0; 20],
        parent: Some(2),
        parent_name: "ib1".parse().ok(),
        child_kind: None,
        is_up: true,
        has_carrier: true,
        pkey: ibmgr_api::Pkey::new(0xffff),
        readings: readings.collect(),
    }
}

#[test]
fn the_document_is_what_the_objects_have() {
    let store = Store::new(Path::new("/nonexistent"), 0);
    let (office, _requests) = Office::open(Told::new(), store, Access::default(), 0);
    let mut wanted = HEAD.to_owned();
    Manager { office }.introspect_to_writer(&mut wanted, 2);
    introspect(&mut wanted, 2, Some(&everything())).unwrap();
    wanted.push_str("</node>\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    let present = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        present == wanted,
        "{FILE} is not what the objects have: run this test with UPDATE=1"
    );
}
