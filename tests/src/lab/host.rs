// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Looks whether this host can carry the lab, before any work starts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::statvfs::statvfs;
use nix::unistd::Uid;

use super::chroot::{self, tail};
use super::progress::Step;

/// A tool that the lab calls on the host, and the Debian package that has it.
struct Tool {
    program: &'static str,
    package: &'static str,
}

/// For building roots.
const ROOT_TOOLS: &[Tool] = &[Tool {
    program: "mmdebstrap",
    package: "mmdebstrap",
}];

/// For the repo's host tests: independent readers, makers of links, and the way to cargo-deny.
const TEST_TOOLS: &[Tool] = &[
    Tool {
        program: "ip",
        package: "iproute2",
    },
    Tool {
        program: "ethtool",
        package: "ethtool",
    },
    Tool {
        program: "pip3",
        package: "python3-pip",
    },
    Tool {
        program: "python3",
        package: "python3",
    },
    Tool {
        program: "curl",
        package: "curl",
    },
    Tool {
        program: "jq",
        package: "jq",
    },
    Tool {
        program: "openssl",
        package: "openssl",
    },
    Tool {
        program: "dbus-daemon",
        package: "dbus",
    },
    Tool {
        program: "busctl",
        package: "systemd",
    },
    Tool {
        program: "gdbus",
        package: "libglib2.0-bin",
    },
    Tool {
        program: "/usr/lib/polkit-1/polkitd",
        package: "polkitd",
    },
];

/// Folders that may hold tools though a plain `su` leaves them out of PATH.
const SYSTEM_DIRS: &[&str] = &["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/bin"];

/// Checks that we are root on an x86-64 Linux that lets us make namespaces.
///
/// # Errors
///
/// A sentence with what to do.
pub fn check_powers() -> Result<()> {
    if !Uid::effective().is_root() {
        bail!(
            "the lab needs root: it makes a Debian root file system and network namespaces.\n\
             Become root (su -, or sudo -i), go to this folder and type the same command again"
        );
    }
    if std::env::consts::ARCH != "x86_64" {
        bail!(
            "the lab runs on x86-64 only so far; this machine is {}",
            std::env::consts::ARCH
        );
    }
    let mut probe = chroot::isolated("sh");
    probe.args(["-euc", "mount -t tmpfs tmpfs /mnt"]);
    chroot::run(probe, "making a private mount and process namespace").context(
        "root may not mount here; inside a container start it with --privileged, \
         or run the lab on a machine of its own",
    )?;
    Ok(())
}

/// Installs what roots need on the host.
///
/// # Errors
///
/// When a package is missing and can't be installed.
pub fn install_root_tools() -> Result<()> {
    install(ROOT_TOOLS)
}

/// Installs what host tests need on the host.
///
/// # Errors
///
/// When a package is missing and can't be installed.
pub fn install_test_tools() -> Result<()> {
    install(TEST_TOOLS)
}

fn install(tools: &[Tool]) -> Result<()> {
    let missing: Vec<&Tool> = tools
        .iter()
        .filter(|tool| find(tool.program).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    let packages = packages.join(" ");
    if find("apt-get").is_none() {
        bail!("this host lacks {packages}, and apt-get to install it; install it by hand");
    }
    let step = Step::begin(format!("installing on this host: {packages}"));
    if apt_install(&packages).is_err() {
        step.note("refreshing the package lists first");
        apt(&["update"])?;
        apt_install(&packages)
            .with_context(|| format!("try by hand: apt-get install {packages}"))?;
    }
    step.done();
    Ok(())
}

fn apt_install(packages: &str) -> Result<()> {
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(packages.split(' '));
    apt(&args)
}

fn apt(args: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command
        .env("LC_ALL", "C.UTF-8")
        .args(["-o", "DPkg::Lock::Timeout=300"]);
    let output = command.output().context("can't run apt-get")?;
    if !output.status.success() {
        let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        bail!(
            "apt-get {} failed:\n{}",
            args.join(" "),
            tail(&String::from_utf8_lossy(&text), 15)
        );
    }
    Ok(())
}

/// Finds a program in PATH or in a system folder.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::split_paths(&path).collect::<Vec<_>>();
    let system = SYSTEM_DIRS.iter().map(PathBuf::from);
    named
        .into_iter()
        .chain(system)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Checks that `dir` has room for `needed` bytes.
///
/// # Errors
///
/// A sentence with what to do.
pub fn check_space(dir: &Path, needed: u64) -> Result<()> {
    let stat =
        statvfs(dir).with_context(|| format!("can't ask for free space on {}", dir.display()))?;
    let free = stat.blocks_available().saturating_mul(stat.fragment_size());
    if free < needed {
        bail!(
            "{} has {} MB free and the lab needs {} MB there.\n\
             Make room (cargo lab clean --stale removes old roots), \
             or set XDG_CACHE_HOME to a roomier disk",
            dir.display(),
            free / 1_000_000,
            needed / 1_000_000
        );
    }
    Ok(())
}

/// Checks that Debian's archive can be reached, the way that mmdebstrap reaches it.
///
/// # Errors
///
/// A sentence with what to do.
pub fn check_archive(suite: &str) -> Result<()> {
    let mut command = Command::new("timeout");
    command
        .args(["60", "mmdebstrap", "--simulate", "--variant=custom"])
        .args([
            "--aptopt=Acquire::Check-Valid-Until \"false\"",
            "--aptopt=Acquire::Retries \"1\"",
            "--aptopt=Acquire::http::Timeout \"15\"",
        ])
        .args([suite, "/dev/null"])
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    let output = command.output().context("can't run mmdebstrap")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("E:")).collect();
        bail!(
            "Debian's archive can't be reached, and the lab needs it once to make its root.\n\
             Check the network (or http_proxy, or Acquire::http::Proxy in apt's settings); \
             mmdebstrap said ({}):\n{}",
            output.status,
            tail(&errors.join("\n"), 6)
        );
    }
    Ok(())
}

/// Returns the version of the C library that programs built here need at least.
///
/// # Errors
///
/// When `ldd --version` can't be read.
pub fn glibc_version() -> Result<(u32, u32)> {
    let output = Command::new("ldd")
        .arg("--version")
        .output()
        .context("can't run ldd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = text.lines().next().unwrap_or_default();
    parse_version(first).with_context(|| format!("ldd --version said {first:?}"))
}

/// Takes the last `X.Y` of a line.
#[must_use]
pub fn parse_version(line: &str) -> Option<(u32, u32)> {
    let word = line.split_whitespace().next_back()?;
    let (major, rest) = word.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_library_versions() {
        assert_eq!(
            parse_version("ldd (Debian GLIBC 2.36-9+deb12u14) 2.36"),
            Some((2, 36))
        );
        assert_eq!(parse_version("ldd (GNU libc) 2.41.9000"), Some((2, 41)));
        assert_eq!(parse_version("musl libc"), None);
        assert!(glibc_version().unwrap() > (2, 0));
    }

    #[test]
    fn too_little_space_is_said() {
        let error = check_space(Path::new("/"), u64::MAX)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("MB free") && error.contains("XDG_CACHE_HOME"),
            "{error}"
        );
    }

    #[test]
    fn tools_are_found_outside_path_too() {
        assert!(find("sh").is_some());
        assert!(find("no-such-tool-here").is_none());
    }
}
