// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel modules that are loaded in the machine.

use std::collections::BTreeMap;
use std::fs;
use std::io;

/// A loaded module, as `/proc/modules` lists it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Loaded {
    /// Name, with underscores.
    pub name: String,
    /// References that keep it from being unloaded.
    pub references: u32,
    /// Modules that use it.
    pub users: Vec<String>,
}

/// Lists the loaded modules, newest first.
///
/// # Errors
///
/// When `/proc/modules` can't be read.
pub fn loaded() -> io::Result<Vec<Loaded>> {
    Ok(parse(&fs::read_to_string("/proc/modules")?))
}

fn parse(text: &str) -> Vec<Loaded> {
    let mut modules = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(_size)) = (words.next(), words.next()) else {
            continue;
        };
        let references = words
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or_default();
        let users = words.next().unwrap_or("-");
        let users = users
            .split(',')
            .filter(|user| !user.is_empty() && *user != "-");
        let users = users.map(str::to_owned).collect();
        modules.push(Loaded {
            name: name.to_owned(),
            references,
            users,
        });
    }
    modules
}

/// Orders modules so that each comes before those that it uses.
#[must_use]
pub fn unload_order(modules: &[Loaded]) -> Vec<String> {
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for module in modules {
        users.insert(
            &module.name,
            module.users.iter().map(String::as_str).collect(),
        );
    }
    let mut order: Vec<String> = Vec::new();
    while !users.is_empty() {
        let gone = |name: &&str| order.iter().any(|done| done == name);
        let free = users.iter().find(|(_, by)| {
            by.iter()
                .all(|user| gone(user) || !modules.iter().any(|known| known.name == **user))
        });
        // A circle can't be, but must not hang us.
        let Some(name) = free.or_else(|| users.iter().next()).map(|(name, _)| *name) else {
            break;
        };
        users.remove(name);
        order.push(name.to_owned());
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ib_ipoib 188416 0 - Live 0xffffffffc0a00000\n\
                        vhca 98304 2 - Live 0x0 (OE)\n\
                        ib_cm 151552 2 ib_ipoib,rdma_cm, Live 0x0\n\
                        ib_core 552960 3 ib_ipoib,ib_cm,vhca, Live 0x0\n";

    #[test]
    fn proc_modules_is_understood() {
        let modules = parse(TEXT);
        assert_eq!(modules.len(), 4);
        assert_eq!(
            (modules[1].name.as_str(), modules[1].references),
            ("vhca", 2)
        );
        assert!(modules[0].users.is_empty());
        assert_eq!(modules[3].users, ["ib_ipoib", "ib_cm", "vhca"]);
    }

    #[test]
    fn users_go_first() {
        let order = unload_order(&parse(TEXT));
        let place = |name: &str| order.iter().position(|known| known == name).unwrap();
        assert!(place("ib_ipoib") < place("ib_cm") && place("ib_cm") < place("ib_core"));
        assert!(place("vhca") < place("ib_core"));
        assert_eq!(order.len(), 4);
    }
}
