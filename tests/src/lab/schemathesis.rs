// SPDX-License-Identifier: Apache-2.0 OR MIT
//! schemathesis, which makes requests from an OpenAPI document and holds a server's answers against it.

use anyhow::Result;

use super::cache::{Cache, Item};
use super::pip::Program;

/// The program with all that it takes. Some of it is built for one version of Python each, so that there
/// is no one hash.
const PROGRAM: Program = Program {
    name: "schemathesis",
    about: "holds the daemon against its OpenAPI document",
    packages: "\
             anyio==4.16.0\n\
             certifi==2026.10.19.post1\n\
             charset-normalizer==3.5.3\n\
             click==8.5.1\n\
             graphql-core==3.3.2\n\
             harfile==0.6.0\n\
             hypothesis==6.170.17\n\
             hypothesis-graphql==0.13.5\n\
             idna==3.20\n\
             iniconfig==2.3.1\n\
             jsonschema_rs==0.60.3\n\
             markdown-it-py==4.3.0\n\
             MarkupSafe==3.0.4\n\
             mdurl==0.1.2\n\
             packaging==26.4\n\
             pluggy==1.7.0\n\
             Pygments==2.21.0\n\
             pyrate-limiter==4.5.1\n\
             pytest==9.2.0\n\
             PyYAML==6.0.4\n\
             requests==2.34.2\n\
             rich==15.0.0\n\
             schemathesis==4.32.5\n\
             sortedcontainers==2.4.0\n\
             typing_extensions==4.16.0\n\
             urllib3==2.8.0\n\
             Werkzeug==3.1.9",
    is_hashed: false,
};

/// The program, ready to run. It stays in the cache while this value lives.
#[derive(Debug)]
pub struct Schemathesis {
    item: Item,
}

impl Schemathesis {
    /// Takes it from the cache, or gets it first.
    ///
    /// # Errors
    ///
    /// When pip can't get it; says what to do.
    pub fn ensure(cache: &Cache) -> Result<Self> {
        let item = PROGRAM.ensure(cache)?;
        Ok(Self { item })
    }

    /// Returns the words that run it, for a shell.
    #[must_use]
    pub fn words(&self) -> String {
        let path = self.item.path().display();
        format!("env PYTHONPATH={path} python3 -m schemathesis.cli")
    }
}
