//! `metamcp typegen`; that the compiler takes what it prints is shown with real servers.

use std::fs;

use crate::harness::{
    daemon::{Daemon, run},
    fake::Fakes,
};

#[test]
fn the_tools_of_all_servers_are_declared_and_a_file_is_written_only_if_it_changes() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &[]) + &fakes.server("two", &["--rich"]);
    let daemon = Daemon::with(config).ready();
    let socket = daemon.control().display().to_string();
    let (code, all, error) = run(&["typegen", "--socket", &socket]);
    assert_eq!(code, 0, "{error}");
    for line in [
        "  \"one/echo\": { input: OneEchoInput; output: OneEchoOutput };",
        "  \"two/echo\": { input: TwoEchoInput; output: TwoEchoOutput };",
        "export type MetamcpCall =",
    ] {
        assert!(all.contains(line), "{line}\n{all}");
    }
    let (_, again, _) = run(&["typegen", "--socket", &socket]);
    assert_eq!(all, again);
    let file = fakes.path("tools.d.ts");
    let path = file.display().to_string();
    let write = || run(&["typegen", "--socket", &socket, "--server", "one", "--output", &path]);
    let (code, out, told) = write();
    assert_eq!((code, out.as_str()), (0, ""), "{told}");
    assert!(told.contains("written"), "{told}");
    let text = fs::read_to_string(&file).expect("written");
    assert!(text.contains("OneEchoInput") && !text.contains("TwoEchoInput"), "{text}");
    assert!(write().2.contains("as it was"));
    let (code, _, error) = run(&["typegen", "--socket", &socket, "--server", "three"]);
    assert_eq!(code, 1, "{error}");
    let (code, _, _) = run(&["typegen", "--socket", "/nonexistent"]);
    assert_eq!(code, 69);
}
