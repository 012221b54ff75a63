// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interfaces and what was read of them.

use serde::{Deserialize, Serialize, Serializer};

use super::{Listed, ValueForm};
use crate::key::Key;
use crate::link::{Limits, Link, Reading};

/// One knob of an interface.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ReadingForm {
    /// The value.
    #[serde(flatten)]
    pub value: ValueForm,
    /// `settable`, `fixed`, `unsupported` or `stored-no-effect`.
    pub support: String,
    /// Why it is not settable, or has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The kernel interface that it was read through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What the device takes, in the kernel's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What `local` means here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
}

impl ReadingForm {
    pub(crate) fn new(key: &Key, reading: &Reading) -> Self {
        let domain = &key.knob().domain;
        Self {
            value: ValueForm::new(key, reading.value.as_ref()),
            support: reading.support.name().to_owned(),
            why: reading.support.why().map(str::to_owned),
            via: reading.via.map(|via| via.name().to_owned()),
            limits: reading.limits,
            local: reading.local.as_ref().map(|local| local.show(domain)),
        }
    }
}

/// The interface that another one stands on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ParentForm {
    /// Its kernel index.
    pub index: u32,
    /// Its name, where it is in the same network namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An interface.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct LinkForm {
    /// Kernel index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub altnames: Vec<String>,
    /// Kind of rtnetlink, such as `ipoib`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Path of its device, as udev's ID_PATH begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_path: Option<String>,
    /// Hardware type (linux/if_arp.h).
    pub arphrd: u16,
    /// Link-layer address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Port GUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guid: Option<String>,
    /// P_Key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pkey: Option<String>,
    /// The interface that it stands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentForm>,
    /// How a P_Key child was made: `netlink` or `legacy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_kind: Option<String>,
    /// Whether it is up.
    pub up: bool,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// Its knobs, in the order of the registry.
    pub knobs: Listed<ReadingForm>,
}

impl From<&Link> for LinkForm {
    fn from(link: &Link) -> Self {
        let readings = link.readings.iter();
        Self {
            index: link.index,
            name: link.name.to_string(),
            altnames: link.alt_names.clone(),
            kind: link.kind.clone(),
            driver: link.driver.clone(),
            device_path: link.device_path.clone(),
            arphrd: link.arphrd,
            address: link.address_text(),
            guid: link.guid().map(|guid| guid.to_string()),
            pkey: link.pkey.map(|pkey| pkey.to_string()),
            parent: link.parent.map(|index| ParentForm {
                index,
                name: link.parent_name.as_ref().map(ToString::to_string),
            }),
            child_kind: link.child_kind.map(|kind| kind.name().to_owned()),
            up: link.is_up,
            carrier: link.has_carrier,
            knobs: readings
                .map(|(key, reading)| (key.to_string(), ReadingForm::new(key, reading)))
                .collect(),
        }
    }
}

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        LinkForm::from(self).serialize(serializer)
    }
}
