// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares this crate's constants with the kernel's own headers, through the C compiler.
//!
//! `UAPI_SYSROOT=DIRECTORY` compares with the headers of another system's root, such as that of a newer
//! kernel. Constants that are newer than the headers are listed and left out: their rows carry the
//! release that brought them.
#![expect(
    clippy::unwrap_used,
    reason = "a test program: a failure to compile is a failure"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use ibmgrd_hw::{ioctl, uapi};

/// C code that prints `NAME=value`, guarded by the release that brought it.
fn program() -> String {
    let mut headers: BTreeSet<(&str, Option<(u8, u8)>)> = BTreeSet::new();
    headers.extend(uapi::TABLES.iter().map(|table| (table.header, table.since)));
    // netdev.h is in both lists with its own release.
    headers.extend(uapi::TEXTS.iter().map(|text| (text.header, text.since)));
    let mut source = String::from("#include <stdio.h>\n#include <linux/version.h>\n");
    for (header, since) in headers {
        guarded(&mut source, since, &format!("#include <{header}>"));
    }
    source.push_str("int main(void) {\n");
    source.push_str("printf(\"LINUX_VERSION_CODE=%d\\n\", LINUX_VERSION_CODE);\n");
    for table in uapi::TABLES {
        for constant in table.constants {
            let name = constant.name;
            let line = format!("printf(\"{name}=%llu\\n\", (unsigned long long){name});");
            guarded(&mut source, constant.since.max(table.since), &line);
        }
    }
    for text in uapi::TEXTS {
        let name = text.name;
        guarded(
            &mut source,
            text.since,
            &format!("printf(\"{name}=%s\\n\", {name});"),
        );
    }
    for (name, _) in ioctl::SIZES {
        let _ = writeln!(source, "printf(\"{name}=%zu\\n\", sizeof({name}));");
    }
    source.push_str("return 0;\n}\n");
    source
}

fn guarded(source: &mut String, since: Option<(u8, u8)>, line: &str) {
    let _ = match since {
        None => writeln!(source, "{line}"),
        Some((major, minor)) => writeln!(
            source,
            "#if LINUX_VERSION_CODE >= KERNEL_VERSION({major}, {minor}, 0)\n{line}\n#endif"
        ),
    };
}

fn run(source: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let (c, binary) = (
        directory.path().join("uapi.c"),
        directory.path().join("uapi"),
    );
    std::fs::write(&c, source).unwrap();
    let mut cc = Command::new("cc");
    if let Some(root) = std::env::var_os("UAPI_SYSROOT") {
        // That root's shared libc need not run here.
        let root = root.into_string().unwrap();
        cc.args([format!("--sysroot={root}"), "-static".to_owned()]);
    }
    let output = cc
        .arg("-o")
        .arg(&binary)
        .arg(&c)
        .output()
        .unwrap_or_else(|error| {
            panic!("cc cannot be run ({error}); install gcc and linux-libc-dev")
        });
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().take(12).collect::<Vec<_>>().join("\n");
    assert!(
        output.status.success(),
        "cc failed; are linux-libc-dev's headers there?\n{said}"
    );
    let output = Command::new(&binary).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn constants_are_those_of_the_headers() {
    let printed = run(&program());
    let of_headers = |name: &str| {
        printed
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    let version: u32 = of_headers("LINUX_VERSION_CODE").unwrap().parse().unwrap();
    let is_newer = |since: Option<(u8, u8)>| {
        since.is_some_and(|(major, minor)| u32::from(major) << 16 | u32::from(minor) << 8 > version)
    };
    let (mut compared, mut newer) = (0, Vec::new());
    let mut check = |name: &str, since, ours: String| match of_headers(name) {
        Some(theirs) => {
            assert_eq!(ours, theirs, "{name}");
            compared += 1;
        }
        None => {
            assert!(
                is_newer(since),
                "{name} is not in the headers, and no release says why"
            );
            newer.push(name.to_owned());
        }
    };
    for table in uapi::TABLES {
        for constant in table.constants {
            let since = constant.since.max(table.since);
            check(constant.name, since, constant.value.to_string());
        }
    }
    for text in uapi::TEXTS {
        check(text.name, text.since, text.text.to_owned());
    }
    for (name, size) in ioctl::SIZES {
        check(name, None, size.to_string());
    }
    println!(
        "{compared} constants compared; newer than the headers: {}",
        newer.join(" ")
    );
    assert!(compared > 130, "{compared}");
}
