//! The manual pages are accepted by the programs that show them, where these are installed.

#![expect(
    clippy::disallowed_methods,
    reason = "the test runs metamcp and the programs that show its pages"
)]

use std::{collections::BTreeSet, fs, process::Command};

/// Writes all manual pages into a directory, and returns it.
fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let status = Command::new(env!("CARGO_BIN_EXE_metamcp"))
        .args(["man", "--directory"])
        .arg(directory.path())
        .status()
        .expect("started");
    assert!(status.success());
    directory
}

#[test]
fn the_manual_has_a_page_for_commands_configuration_and_errors() {
    let directory = written();
    let names: BTreeSet<String> = fs::read_dir(directory.path())
        .expect("readable")
        .map(|entry| entry.expect("one").file_name().to_string_lossy().into_owned())
        .collect();
    for name in ["metamcp.1", "metamcp-serve.1", "metamcp.toml.5", "metamcp-errors.7"] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    let asked = Command::new(env!("CARGO_BIN_EXE_metamcp"))
        .args(["man", "metamcp-errors"])
        .output()
        .expect("started");
    let page = fs::read(directory.path().join("metamcp-errors.7")).expect("readable");
    assert_eq!(asked.stdout, page);
    let unknown = Command::new(env!("CARGO_BIN_EXE_metamcp"))
        .args(["man", "metamcp-nothing"])
        .output()
        .expect("started");
    assert_eq!(unknown.status.code(), Some(64));
}

#[test]
fn man_and_mandoc_accept_the_manual_pages() {
    let directory = written();
    for entry in fs::read_dir(directory.path()).expect("readable") {
        let path = entry.expect("one").path();
        let checks = [
            Command::new("man").args(["--warnings", "-l", "-Tutf8"]).arg(&path).output(),
            Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&path).output(),
        ];
        for check in checks.into_iter().flatten() {
            let errors = String::from_utf8_lossy(&check.stderr);
            let warnings = String::from_utf8_lossy(&check.stdout);
            assert!(check.status.success() && errors.is_empty(), "{path:?}: {errors}{warnings}");
        }
    }
}
