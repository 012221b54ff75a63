// SPDX-License-Identifier: Apache-2.0 OR MIT
//! InfiniBand ports and the modules of their IPoIB drivers, as sysfs and the module index tell.

use std::fs;
use std::path::Path;

use ibmgr_api::{DriverChoice, DriverModule, Guid};

/// An InfiniBand port (Documentation/ABI/stable/sysfs-class-infiniband).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Port {
    /// The HCA, such as `mlx5_0`.
    pub hca: String,
    /// Number, from 1.
    pub number: u32,
    /// State, such as `ACTIVE`.
    pub state: String,
    /// GUID: the last 8 bytes of its first GID, which end each address of its interfaces.
    pub guid: Option<Guid>,
}

/// Lists the ports whose link layer is InfiniBand, below `root`, by HCA and number.
#[must_use]
pub fn ports(root: &Path) -> Vec<Port> {
    let mut ports = Vec::new();
    for hca in names(&root.join("sys/class/infiniband")) {
        let folder = root.join("sys/class/infiniband").join(&hca).join("ports");
        for number in names(&folder) {
            let read = |file: &str| word(&folder.join(&number).join(file));
            if read("link_layer").as_deref() != Some("InfiniBand") {
                continue;
            }
            let state = read("state").unwrap_or_default();
            let guid = read("gids/0").and_then(|gid| {
                let parts: Vec<&str> = gid.split(':').collect();
                parts.get(4..8)?.join(":").parse().ok()
            });
            ports.push(Port {
                hca: hca.clone(),
                number: number.parse().unwrap_or_default(),
                // "4: ACTIVE"
                state: state.rsplit(' ').next().unwrap_or_default().to_owned(),
                guid,
            });
        }
    }
    ports
}

/// Returns the release of the running kernel.
#[must_use]
pub fn kernel_release(root: &Path) -> String {
    word(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default()
}

/// Looks for a driver's module: loaded, and in the index of the running kernel (modules.dep(5)).
#[must_use]
pub fn module(root: &Path, driver: DriverChoice) -> DriverModule {
    let name = driver.module();
    let index = root.join("lib/modules").join(kernel_release(root));
    let file = format!("/{name}.ko");
    let is_listed = |index_file: &str| {
        let text = fs::read_to_string(index.join(index_file)).unwrap_or_default();
        let paths = text.lines().filter_map(|line| line.split(':').next());
        // The file may be compressed: .ko.xz, .ko.zst.
        paths
            .filter_map(|path| path.rfind(&file).map(|at| &path[at + file.len()..]))
            .any(|end| end.is_empty() || end.starts_with('.'))
    };
    DriverModule {
        name,
        is_installed: is_listed("modules.dep") || is_listed("modules.builtin"),
        is_loaded: root.join("sys/module").join(name).exists(),
    }
}

/// Returns a parameter of a loaded module.
#[must_use]
pub fn parameter(root: &Path, module: &str, name: &str) -> Option<String> {
    let folder = root.join("sys/module").join(module).join("parameters");
    word(&folder.join(name))
}

/// Says whether Secure Boot is on: the last byte of the firmware's variable (UEFI 2.10, 3.3).
#[must_use]
pub fn secure_boot(root: &Path) -> Option<bool> {
    const VARIABLE: &str =
        "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    fs::read(root.join(VARIABLE))
        .ok()?
        .last()
        .map(|byte| *byte == 1)
}

/// Says whether the kernel takes modules with a known signature only: its parameter
/// `module.sig_enforce`, or lockdown (kernel_lockdown(7)).
#[must_use]
pub fn needs_signature(root: &Path) -> bool {
    let enforced = parameter(root, "module", "sig_enforce").as_deref() == Some("Y");
    let lockdown = word(&root.join("sys/kernel/security/lockdown")).unwrap_or_default();
    enforced
        || ["[integrity]", "[confidentiality]"]
            .iter()
            .any(|mode| lockdown.contains(mode))
}

/// Says whether the kernel has a certificate of that name among the keys that the caller may see
/// (keyrings(7), /proc/keys).
#[must_use]
pub fn knows_key(root: &Path, name: &str) -> Option<bool> {
    let keys = fs::read_to_string(root.join("proc/keys")).ok()?;
    let mut certificates = keys
        .lines()
        .filter(|line| line.contains("asymmetri"))
        .peekable();
    certificates.peek()?;
    Some(certificates.any(|line| line.contains(name)))
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn word(path: &Path) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn ports_of_infiniband_only_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let port = "sys/class/infiniband/mlx5_0/ports/1";
        put(dir.path(), &format!("{port}/link_layer"), "InfiniBand\n");
        put(dir.path(), &format!("{port}/state"), "4: ACTIVE\n");
        put(
            dir.path(),
            &format!("{port}/gids/0"),
            "fe80:0000:0000:0000:0002:c903:00ab:cdef\n",
        );
        put(
            dir.path(),
            "sys/class/infiniband/mlx5_1/ports/1/link_layer",
            "Ethernet\n",
        );
        let found = ports(dir.path());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].hca.as_str(), found[0].number), ("mlx5_0", 1));
        assert_eq!(found[0].state, "ACTIVE");
        assert_eq!(found[0].guid.unwrap().to_string(), "0002:c903:00ab:cdef");
    }

    #[test]
    fn modules_are_found_loaded_listed_and_built_in() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "proc/sys/kernel/osrelease", "6.12.1\n");
        let index = "lib/modules/6.12.1/modules.dep";
        put(dir.path(), index, "kernel/x/not_ipoib_batch.ko: a.ko\n");
        let batch = module(dir.path(), DriverChoice::Batch);
        assert!(!batch.is_installed && !batch.is_loaded);
        put(
            dir.path(),
            index,
            "updates/dkms/ipoib_batch.ko.xz: kernel/ib_core.ko.xz\n",
        );
        put(dir.path(), "sys/module/ipoib_batch/refcnt", "0\n");
        let batch = module(dir.path(), DriverChoice::Batch);
        assert!(batch.is_installed && batch.is_loaded);
        assert!(!module(dir.path(), DriverChoice::Stock).is_installed);
        put(
            dir.path(),
            "lib/modules/6.12.1/modules.builtin",
            "kernel/ib_ipoib.ko\n",
        );
        assert!(module(dir.path(), DriverChoice::Stock).is_installed);
    }

    #[test]
    fn what_modules_need_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(secure_boot(dir.path()), None);
        assert!(!needs_signature(dir.path()));
        put(
            dir.path(),
            "sys/kernel/security/lockdown",
            "none [integrity] confidentiality\n",
        );
        assert!(needs_signature(dir.path()));
        put(
            dir.path(),
            "sys/kernel/security/lockdown",
            "[none] integrity confidentiality\n",
        );
        assert!(!needs_signature(dir.path()));
        put(
            dir.path(),
            "sys/module/module/parameters/sig_enforce",
            "Y\n",
        );
        assert!(needs_signature(dir.path()));
        assert_eq!(knows_key(dir.path(), "DKMS"), None);
        put(
            dir.path(),
            "proc/keys",
            "1a I--Q- 1 perm 1f0f0000 0 0 asymmetri DKMS module signing key: X509.rsa 1f []\n",
        );
        assert_eq!(knows_key(dir.path(), "DKMS module signing key"), Some(true));
        assert_eq!(knows_key(dir.path(), "other"), Some(false));
    }
}
