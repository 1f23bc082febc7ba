//! `metamcp typegen`: the types of tools that a running service knows.

use std::fs;

use crate::harness::{daemon, daemon::Daemon, fake::Fakes};

#[test]
fn typegen_prints_the_types_of_a_server_and_rewrites_a_file_only_if_they_changed() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &["--rich"]) + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();
    let socket = daemon.control().display().to_string();
    let typegen = |more: &[&str]| {
        let (code, stdout, stderr) =
            daemon::run(&[&["typegen", "--socket", &socket, "--server", "one"], more].concat());
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        stdout
    };

    let printed = typegen(&[]);

    assert!(!printed.contains("two/"), "{printed}");
    let version = env!("CARGO_PKG_VERSION");
    insta::assert_snapshot!("one", printed.replace(version, "VERSION"));
    let file = fakes.path("tools.d.ts");
    let name = file.display().to_string();
    assert!(typegen(&["--output", &name]).contains(": written, "));
    assert_eq!(fs::read_to_string(&file).expect("written"), printed);
    let written = fs::metadata(&file).and_then(|file| file.modified()).expect("there");
    assert!(typegen(&["--output", &name]).contains(": unchanged, "));
    let again = fs::metadata(&file).and_then(|file| file.modified()).expect("there");
    assert_eq!(written, again);
}

#[test]
fn typegen_names_a_server_without_types_and_exits_with_69_if_no_service_is_reachable() {
    let config = "[servers.broken]\ncommand = \"/no/such/program\"\n";
    let daemon = Daemon::with(config).ready();
    let socket = daemon.control().display().to_string();
    let (code, stdout, stderr) = daemon::run(&["typegen", "--socket", &socket]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("export interface MetamcpTools {\n}\n"), "{stdout}");
    assert!(stderr.starts_with("left out: broken: "), "{stderr}");
    let (code, _, stderr) = daemon::run(&["typegen", "--socket", "/no/such/socket"]);
    assert_eq!(code, 69, "{stderr}");
}
