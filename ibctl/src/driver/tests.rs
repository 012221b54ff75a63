// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a port has its driver, case by case; what a switch does is tried where there are ports: in the lab.

use ibmgr_api::{DriverChoice, DriverModule, ModuleSignature};

use super::{BATCH, Context, look, switch, why};

fn module(name: &'static str, is_installed: bool, is_loaded: bool) -> DriverModule {
    DriverModule {
        name,
        is_installed,
        is_loaded,
    }
}

fn signature(is_required: bool) -> ModuleSignature {
    ModuleSignature {
        secure_boot: None,
        is_required,
        signer: None,
        is_known: None,
        verdict: String::new(),
    }
}

#[track_caller]
fn check(
    driver: Option<&str>,
    choice: DriverChoice,
    batch: (bool, bool),
    needs: bool,
    wanted: &str,
) {
    let stock_is_loaded = driver.is_some_and(|driver| driver.contains("ib_ipoib"));
    let modules = [
        module("ib_ipoib", true, stock_is_loaded),
        module("ipoib_batch", batch.0, batch.1),
    ];
    let context = Context {
        choice,
        modules: &modules,
        signature: &signature(needs),
        hcas: None,
    };
    let said = why(driver, &context);
    assert!(said.contains(wanted), "{said:?} does not say {wanted:?}");
}

#[test]
fn each_owner_has_its_reason() {
    use DriverChoice::{Batch, Stock};
    check(
        Some("ib_ipoib"),
        Stock,
        (true, false),
        false,
        "kernel's own",
    );
    check(
        Some("mlx5_core[ib_ipoib]"),
        Stock,
        (false, false),
        false,
        "kernel's own",
    );
    check(
        Some("ipoib_batch"),
        Batch,
        (true, true),
        false,
        "chosen in /etc/modprobe.d",
    );
    check(
        Some("ipoib_batch"),
        Stock,
        (true, true),
        false,
        "next boot brings ib_ipoib",
    );
    check(
        Some("ib_ipoib"),
        Batch,
        (false, false),
        false,
        "not built for this kernel",
    );
    check(
        Some("ib_ipoib"),
        Batch,
        (true, false),
        true,
        "refuses its signature",
    );
    check(
        Some("ib_ipoib"),
        Batch,
        (true, false),
        false,
        "next boot brings ipoib_batch",
    );
    check(
        Some("ib_ipoib"),
        Batch,
        (true, true),
        false,
        "was there first",
    );
    check(
        Some("opa_vnic"),
        Stock,
        (true, false),
        false,
        "does not know",
    );
    check(None, Stock, (true, false), false, "modprobe ib_ipoib");
    check(None, Batch, (true, true), false, "not taken this port");
}

#[test]
fn the_file_that_is_written_is_read_as_the_choice() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(look(&[], root.path()).choice, DriverChoice::Stock);
    let folder = root.path().join("etc/modprobe.d");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ibmgr-driver.conf"), BATCH).unwrap();
    assert_eq!(look(&[], root.path()).choice, DriverChoice::Batch);
    std::fs::write(folder.join("ibmgr-driver.conf"), "# nothing\n").unwrap();
    assert_eq!(look(&[], root.path()).choice, DriverChoice::Stock);
}

#[test]
fn a_plan_is_empty_when_all_is_so() {
    let root = tempfile::tempdir().unwrap();
    let drivers = look(&[], root.path());
    let wish = |choice, now| switch::Wish {
        choice,
        now,
        dry_run: true,
    };
    let steps = |wish| switch::plan(&drivers, &[], root.path(), &wish).steps.len();
    assert_eq!(steps(wish(DriverChoice::Stock, false)), 0);
    assert_eq!(steps(wish(DriverChoice::Batch, false)), 1);
    assert_eq!(steps(wish(DriverChoice::Batch, true)), 3);
}
