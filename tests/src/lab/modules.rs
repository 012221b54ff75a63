// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kernel modules: our own, built for a root's kernel, and the layer that
//! carries them and the kernel's own into a machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::cache::{Cache, Item};
use super::initramfs::{LAYER, pack};
use super::key::KeyMaker;
use super::place;
use super::progress::Step;
use super::roots::Root;

/// The kernel's own modules that a machine can load; dependencies come along.
const IN_TREE: &[&str] = &[
    // InfiniBand, and its users.
    "ib_core",
    "ib_uverbs",
    "ib_umad",
    "ib_cm",
    "rdma_cm",
    "rdma_ucm",
    "ib_ipoib",
    "rdma_rxe",
    // Links to compare with, and to watch.
    "dummy",
    "veth",
    "tun",
    "bridge",
    "8021q",
    "bonding",
    "macvlan",
    "nlmon",
    "netdevsim",
    // Packets on their way.
    "sch_fq",
    "sch_fq_codel",
    "sch_netem",
    "sch_mqprio",
    "af_packet_diag",
    "tcp_diag",
    "inet_diag",
];

/// Modules that some kernels lack; a machine does without.
const OPTIONAL: &[&str] = &["netdevsim", "af_packet_diag"];

/// One of our own modules.
#[derive(Clone, Copy, Debug)]
pub struct OwnModule {
    /// Module name.
    pub name: &'static str,
    /// Folder with its Makefile, from the repo's top.
    pub source: &'static str,
}

/// Modules built for each machine.
pub const OWN: &[OwnModule] = &[
    OwnModule {
        name: "vhca",
        source: "tests/vhca",
    },
    OwnModule {
        name: "vhca_selftest",
        source: "tests/vhca/selftest",
    },
    OwnModule {
        name: "ipoib_batch",
        source: "driver",
    },
];

/// What bindgen makes of a kernel's headers, beside a module that is written in Rust.
pub const BINDINGS: &str = "bindings_generated.rs";

/// Says whether a file belongs to a module's sources, and is no product of a build.
fn is_source(name: &Path) -> bool {
    let known = name.extension().is_some_and(|end| {
        ["c", "h", "sh", "rs", "flags"]
            .iter()
            .any(|ext| end == *ext)
    });
    let hidden = name
        .components()
        .any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
    let made = name.to_string_lossy().ends_with(".mod.c");
    let build = name
        .file_name()
        .is_some_and(|file| file == "Makefile" || file == "Kbuild");
    (known || build) && !hidden && !made
}

impl OwnModule {
    /// Returns the folder with `NAME.ko` for the root's kernel, and [`BINDINGS`] if the build made them, built first when it isn't cached.
    ///
    /// # Errors
    ///
    /// When the compiler refuses; the error carries what it said.
    pub fn ensure(&self, cache: &Cache, root: &Root) -> Result<Item> {
        let source = place::repo().join(self.source);
        let key = KeyMaker::new()
            .add("format", "2")
            .add("root", root.key().to_string())
            .add("kernel", root.kernel())
            .add_tree(&source, &is_source)
            .with_context(|| format!("can't read {}", source.display()))?
            .finish();
        cache.item("module", self.name, &key, |dir| {
            let step = Step::begin(format!(
                "building {} for Linux {}",
                self.name,
                root.kernel()
            ));
            let build = dir.join("build");
            copy_sources(&source, &build)?;
            let script = "make -C /mnt/build KDIR=\"/lib/modules/$1/build\" -j2 2>&1";
            root.chroot()
                .bind(&build, "build")
                .script(script, &[root.kernel()])?;
            let name = format!("{}.ko", self.name);
            let Some(module) = find(&build, &name)? else {
                bail!("make in {} succeeded but made no {name}", self.source);
            };
            fs::copy(module, dir.join(&name))?;
            // What a linter has to know of the kernel.
            if let Some(bindings) = find(&build, BINDINGS)? {
                fs::copy(bindings, dir.join(BINDINGS))?;
            }
            fs::remove_dir_all(&build)?;
            step.done();
            Ok(())
        })
    }
}

/// Returns the layer with every module for the root's kernel, made first when it isn't cached.
///
/// # Errors
///
/// When a module is missing, doesn't compile, or a tool fails. `tools` is the
/// root whose `cpio` is used.
pub fn layer(cache: &Cache, root: &Root, tools: &Root) -> Result<Item> {
    let mut own = Vec::new();
    for module in OWN {
        own.push((module, module.ensure(cache, root)?));
    }
    let mut maker = KeyMaker::new()
        .add("format", "1")
        .add("root", root.key().to_string())
        .add("kernel", root.kernel())
        .add_words("in-tree", IN_TREE);
    for (module, item) in &own {
        maker = maker.add(module.name, item.path().to_string_lossy().as_bytes());
    }
    cache.item("initramfs", "modules", &maker.finish(), |dir| {
        let step = Step::begin(format!("packing modules for Linux {}", root.kernel()));
        let stage = dir.join("stage");
        let modules = stage.join("usr/lib/modules").join(root.kernel());
        fs::create_dir_all(modules.join("updates"))?;
        for (module, item) in &own {
            let file = format!("{}.ko", module.name);
            fs::copy(item.path().join(&file), modules.join("updates").join(&file))?;
        }
        let args = collect_args(root.kernel());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        root.chroot().bind(&stage, "stage").script(COLLECT, &args)?;
        pack(&tools.chroot(), &stage, &dir.join(LAYER))?;
        fs::remove_dir_all(&stage)?;
        step.done();
        Ok(())
    })
}

/// Copies modules with what they need, unpacks them, and makes the index.
/// Arguments: kernel release, then `+NAME` for needed and `-NAME` for optional modules.
const COLLECT: &str = r#"
release=$1; shift
top=/usr/lib/modules/$release
out=/mnt/stage$top
cp $top/modules.builtin $top/modules.builtin.modinfo $top/modules.order "$out"
for word in "$@"; do
    name=${word#?}
    if ! list=$(modprobe --set-version "$release" --show-depends "$name" 2>/tmp/why); then
        case $word in -*) continue ;; esac
        cat /tmp/why >&2; exit 1
    fi
    echo "$list" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done > /tmp/raw
sort -u /tmp/raw > /tmp/list
[ -s /tmp/list ]
while read -r file; do
    place=$out/${file#*/modules/$release/}
    mkdir -p "${place%/*}"
    case $file in
    *.xz) xz -dc "$file" > "${place%.xz}" ;;
    *.zst) zstd -qdc "$file" > "${place%.zst}" ;;
    *) cp "$file" "$place" ;;
    esac
done < /tmp/list
ln -s usr/lib /mnt/stage/lib
depmod --basedir /mnt/stage "$release"
rm /mnt/stage/lib
"#;

fn collect_args(release: &str) -> Vec<String> {
    let marked = IN_TREE.iter().map(|name| {
        let mark = if OPTIONAL.contains(name) { '-' } else { '+' };
        format!("{mark}{name}")
    });
    std::iter::once(release.to_owned()).chain(marked).collect()
}

fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("can't read {}", from.display()))? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_sources(&entry.path(), &place)?;
        } else if is_source(Path::new(&entry.file_name())) {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

fn find(dir: &Path, name: &str) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if let Some(found) = find(&entry.path(), name)? {
                return Ok(Some(found));
            }
        } else if entry.file_name() == name {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_a_build_are_no_sources() {
        for name in [
            "main.c",
            "vhca.h",
            "Makefile",
            "Kbuild",
            "sub/qp.c",
            "ipoib/src/tx.rs",
            "kernel/bindgen.flags",
        ] {
            assert!(is_source(Path::new(name)), "{name}");
        }
        for name in [
            "main.o",
            "vhca.mod.c",
            ".main.o.cmd",
            "vhca.ko",
            ".tmp/x.c",
            "modules.order",
        ] {
            assert!(!is_source(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn optional_modules_are_marked() {
        let args = collect_args("6.12");
        assert_eq!(args.first().map(String::as_str), Some("6.12"));
        assert!(args.contains(&"+ib_ipoib".to_owned()) && args.contains(&"-netdevsim".to_owned()));
        assert!(OPTIONAL.iter().all(|name| IN_TREE.contains(name)));
    }
}
