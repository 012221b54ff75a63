// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An object whose order means something: that of the steps, or of the registry.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names and what belongs to them: a JSON object that keeps its order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listed<T>(pub Vec<(String, T)>);

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Listed<T> {
    /// Returns names and what belongs to them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, it)| (name.as_str(), it))
    }

    /// Returns what belongs to `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, it)| it)
    }
}

impl<T> FromIterator<(String, T)> for Listed<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for Listed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, it)| (name, it)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Listed<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listed<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Listed(entries))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Listed<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Listed_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }
}
