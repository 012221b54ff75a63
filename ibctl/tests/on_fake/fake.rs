// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A kernel in memory with one of each kind of interface, for what no real one does on demand.

use std::collections::BTreeMap;

use ibmgr_api::{
    Carrier, Channel, Key, Limits, Link, LinkName, Pkey, Reading, Support, Value, nearest,
};
use ibmgrd_engine::{Host, Keys, NewChild, OldChild, Port, PortError, Query, Target};

/// How the fake treats writes of one knob.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// Refuses them.
    Refuses(i32, &'static str),
    /// Takes a privilege that the caller lacks.
    Needs(&'static str),
    /// Says success and changes nothing.
    Lies,
    /// Applies the first one and refuses each later one.
    OnlyOnce,
    /// Removes the interface.
    Unplugs,
    /// Gives the interface another name before the write.
    Renames(&'static str),
    /// Does not answer.
    Hangs,
}

/// Interfaces by index, and the manners of knobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fake {
    pub(crate) links: BTreeMap<u32, Link>,
    pub(crate) manners: BTreeMap<Key, Manner>,
    writes: Vec<Key>,
}

pub(crate) fn key(name: &str) -> Key {
    name.parse().expect("the registry has it")
}

fn link(index: u32, name: &str) -> Link {
    Link {
        index,
        name: name.parse().expect("a good name"),
        alt_names: Vec::new(),
        kind: None,
        driver: None,
        device_path: None,
        arphrd: 1,
        address: vec![0x02, 0, 0, 0, 0, 1],
        parent: None,
        parent_name: None,
        child_kind: None,
        is_up: true,
        has_carrier: true,
        pkey: None,
        readings: BTreeMap::new(),
    }
}

/// Adds settable readings; each through its first carrier.
fn settable(link: &mut Link, values: &[(&str, &str)]) {
    for (name, text) in values {
        let key = key(name);
        let value = key.knob().domain.parse(text).expect("a good value");
        let via = key.knob().carriers[0].channel();
        link.readings.insert(key, Reading::settable(value, via));
    }
}

fn limit(link: &mut Link, name: &str, min: u64, max: u64) {
    let reading = link.readings.get_mut(&key(name)).expect("it has one");
    reading.limits = Some(Limits { min, max });
}

fn unsupported(link: &mut Link, names: &[&str], why: &str) {
    for name in names {
        link.readings.insert(key(name), Reading::unsupported(why));
    }
}

fn ipoib(index: u32, name: &str, driver: &str, pkey: u16, guid: [u8; 8]) -> Link {
    let mut link = link(index, name);
    link.kind = Some("ipoib".into());
    link.driver = Some(driver.into());
    link.arphrd = Link::INFINIBAND;
    link.address = [&[0x80, 0, 0, 0x48, 0xfe, 0x80, 0, 0, 0, 0, 0, 0][..], &guid].concat();
    link.pkey = Pkey::new(pkey);
    settable(
        &mut link,
        &[
            ("state", "up"),
            ("mtu", "2044"),
            ("txqueuelen", "256"),
            ("alias", ""),
            ("mode", "datagram"),
            ("umcast", "honour"),
            ("rx-usecs", "16us"),
            ("rx-frames", "44"),
            ("feature.rx-gro", "on"),
        ],
    );
    limit(&mut link, "mtu", 68, 65520);
    limit(&mut link, "rx-usecs", 0, 65535);
    limit(&mut link, "rx-frames", 0, 65535);
    let fixed = Reading {
        support: Support::Fixed("the driver does not let it change".into()),
        ..Reading::settable(Value::Number(0), Channel::Ethtool)
    };
    link.readings.insert(key("feature.rx-lro"), fixed);
    unsupported(
        &mut link,
        &["ring.rx", "ring.tx"],
        "the driver has no ring parameters",
    );
    link
}

impl Fake {
    /// Returns loopback, in-tree IPoIB, a P_Key child, our driver and a veth.
    pub(crate) fn host() -> Self {
        let guid = [0x00, 0x02, 0xc9, 0x03, 0x00, 0xab, 0xcd, 0xef];
        let mut lo = link(1, "lo");
        settable(&mut lo, &[("state", "up"), ("mtu", "65536")]);
        let mut veth = link(2, "storage0");
        veth.kind = Some("veth".into());
        veth.driver = Some("veth".into());
        veth.parent = Some(9);
        veth.has_carrier = false;
        veth.alt_names = vec!["rack-7-storage".into()];
        settable(
            &mut veth,
            &[("state", "up"), ("mtu", "1500"), ("alias", "")],
        );
        let alias = veth.readings.get_mut(&key("alias"));
        alias.expect("it has one").value = Some(Value::Text("to \u{1b}[1mrail".into()));
        for link in [&mut lo, &mut veth] {
            unsupported(link, &["mode", "umcast"], "it is no IPoIB interface");
        }

        let mut ib0 = ipoib(3, "ib0", "ib_ipoib", 0xffff, guid);
        settable(&mut ib0, &[("gro-flush-timeout", "0")]);
        let stored = ib0.readings.get_mut(&key("gro-flush-timeout"));
        stored.expect("it has one").support = Support::StoredNoEffect(
            "in-tree ib_ipoib completes its polls with no work done".into(),
        );
        unsupported(
            &mut ib0,
            &["batching"],
            "the driver is ib_ipoib, not ipoib_batch",
        );
        let mut child = ipoib(4, "ib0.8001", "ib_ipoib", 0x8001, guid);
        child.parent = Some(3);
        child.parent_name = Some("ib0".parse().expect("a good name"));
        child.is_up = false;
        child.has_carrier = false;

        let mut ib1 = ipoib(5, "ib1", "ipoib_batch", 0xffff, guid.map(|byte| byte ^ 1));
        settable(
            &mut ib1,
            &[
                ("gro-flush-timeout", "20us"),
                ("batching", "on"),
                ("batch-limit", "16"),
            ],
        );
        let links = [lo, veth, ib0, child, ib1];
        Self {
            links: links.into_iter().map(|link| (link.index, link)).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn with(mut self, knob: &str, manner: Manner) -> Self {
        self.manners.insert(key(knob), manner);
        self
    }

    fn named(&mut self, name: &LinkName) -> Option<&mut Link> {
        self.links.values_mut().find(|link| link.name == *name)
    }
}

impl Port for Fake {
    fn observe(&mut self, name: &LinkName, query: &Query) -> Result<Link, PortError> {
        let names: Vec<_> = self
            .links
            .values()
            .map(|link| link.name.to_string())
            .collect();
        let Some(link) = self.named(name) else {
            return Err(PortError::NoSuchLink {
                link: name.clone(),
                nearest: nearest(name.as_str(), names.iter().map(String::as_str)),
            });
        };
        let mut link = link.clone();
        match &query.keys {
            Keys::Identity => link.readings.clear(),
            Keys::Named(keys) => {
                link.readings.retain(|key, _| keys.contains(key));
                for key in keys {
                    let absent = || Reading::unsupported("the device does not have it");
                    link.readings.entry(key.clone()).or_insert_with(absent);
                }
            }
            Keys::All => {}
        }
        if let Some(channel) = query.via {
            for (key, reading) in &mut link.readings {
                let carriers = key.knob().carriers.iter();
                if !carriers.clone().any(|carrier| carrier.channel() == channel) {
                    *reading = Reading::unsupported(format!("{channel} does not carry it"));
                } else if reading.via.is_some() {
                    reading.via = Some(channel);
                }
            }
        }
        Ok(link)
    }

    fn observe_all(&mut self, query: &Query) -> Result<Vec<Link>, PortError> {
        let names: Vec<_> = self.links.values().map(|link| link.name.clone()).collect();
        names.iter().map(|name| self.observe(name, query)).collect()
    }

    fn name_of(&mut self, index: u32) -> Result<Option<LinkName>, PortError> {
        Ok(self.links.get(&index).map(|link| link.name.clone()))
    }

    fn write(
        &mut self,
        target: &Target,
        key: &Key,
        value: &Value,
        _carrier: Carrier,
    ) -> Result<(), PortError> {
        let link = target.name.clone();
        let is_again = self.writes.contains(key);
        self.writes.push(key.clone());
        let refused = |errno, message: &str| PortError::Refused {
            link: target.name.clone(),
            key: key.clone(),
            errno,
            message: message.into(),
        };
        match self.manners.get(key) {
            Some(Manner::Refuses(errno, message)) => return Err(refused(*errno, message)),
            Some(Manner::Needs(needs)) => {
                return Err(PortError::Permission {
                    link,
                    key: key.clone(),
                    needs,
                });
            }
            Some(Manner::Lies) => return Ok(()),
            Some(Manner::OnlyOnce) if is_again => return Err(refused(16, "EBUSY")),
            Some(Manner::Unplugs) => {
                self.links.remove(&target.index);
                return Err(PortError::Gone { link });
            }
            Some(Manner::Renames(to)) => {
                let to = to.parse().expect("a good name");
                let renamed = self.links.get_mut(&target.index);
                renamed.expect("it is there").name = to;
            }
            Some(Manner::Hangs) => {
                return Err(PortError::Timeout {
                    what: format!("{link}: setting {key}"),
                    seconds: 5,
                });
            }
            Some(Manner::OnlyOnce) | None => {}
        }
        let target = self.links.get_mut(&target.index);
        let Some(target) = target.filter(|found| found.name == link) else {
            return Err(PortError::Gone { link });
        };
        let mut store = |name: &str, value: Value| {
            let reading = target.readings.get_mut(&self::key(name));
            reading.expect("it was observed").value = Some(value);
        };
        store(&key.to_string(), value.clone());
        if key.knob().name == "mode" {
            let mtu: u32 = if value.number() == Some(1) {
                65520
            } else {
                2044
            };
            store("mtu", mtu.into());
        }
        Ok(())
    }
}

/// No command on the fake makes children.
impl Host for Fake {
    fn create_child(&mut self, child: &NewChild) -> Result<(), PortError> {
        Err(PortError::Gone {
            link: child.parent.name.clone(),
        })
    }

    fn delete_child(&mut self, child: &OldChild) -> Result<(), PortError> {
        Err(PortError::Gone {
            link: child.child.name.clone(),
        })
    }
}
