//! `metamcp run`: scripts, their results and exit codes.

use std::{fs, process::Stdio};

use rustix::process::Signal;

use super::{Rig, golden};
use crate::harness::{
    daemon::{self, Daemon, exit_in_time},
    terminal::Terminal,
};

#[test]
fn run_prints_the_value_to_standard_output_and_the_console_to_standard_error() {
    let rig = Rig::start();
    golden(
        "run",
        &rig.transcript(&[
            &["run", "-e", "return 'a\\nb'"],
            &["run", "-e", "return (await servers.fake.echo({ value: { b: 1.5, a: [] } })).value"],
            &["run", "-e", "console.log('first'); console.error('second'); return null"],
            &["run", "-e", "return args", "--", "a", "--json", ""],
            &["run", "--json", "-e", "console.log('in it'); return 1"],
        ]),
    );
}

#[test]
fn run_prints_the_place_of_a_failure_and_the_remedy() {
    let rig = Rig::start();
    golden(
        "run_failed",
        &rig.transcript(&[
            &["run", "-e", "console.log('before'); throw new RangeError('too\\u001b far')"],
            &["run", "-e", "const a = 1;\nawait servers.fake.row({})"],
            &["run", "-e", "return await servers.fake.rows({ table: 'zebra', n: 'x' })"],
            &["run", "--json", "-e", "const f = () => servers.fake.tool_error({});\nawait f()"],
            &["run", "-e", "let a = 1; let a = 2"],
            &["run", "-e", "await sleep(20_000)", "--timeout", "50ms"],
            &["run", "-e", "for (;;) await servers.fake.whoami({})", "--max-tool-calls", "2"],
        ]),
    );
}

#[test]
fn a_script_is_read_from_a_file_or_from_standard_input() {
    let rig = Rig::start();
    let file = rig.fakes.path("script.js");
    fs::write(&file, "\n\n  throw new Error('ü')").expect("written");
    let path = file.display().to_string();
    let (code, stdout, stderr) = rig.run(&["run", &path]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.starts_with(&format!("{path}:3:13: Error: ü")), "{stderr}");
    let (code, _, stderr) = rig.run_with("throw 7", &["run", "-"]);
    assert_eq!(code, 1);
    assert!(stderr.contains('7'), "{stderr}");
    let (code, stdout, _) = rig.run_with("return args[0]", &["run", "-", "--", "ä"]);
    assert_eq!((code, stdout.as_str()), (0, "ä\n"));
}

#[test]
fn a_script_that_cannot_be_read_is_an_invalid_command_line() {
    let rig = Rig::start();
    let file = rig.fakes.path("script.js");
    let path = file.display().to_string();
    let failing = |arguments: &[&str]| {
        let (code, stdout, stderr) = rig.run(&[&["run"], arguments].concat());
        assert_eq!((code, stdout.as_str()), (64, ""), "{arguments:?}: {stderr}");
        stderr
    };
    assert!(failing(&[&path]).contains(&format!("cannot read the script from {path}: ")));
    failing(&[&rig.fakes.path("").display().to_string()]);
    fs::write(&file, [0xff]).expect("written");
    assert!(failing(&[&path]).contains("utf-8"));
    fs::write(&file, "ä".repeat(25_601)).expect("written");
    assert!(
        failing(&[&path]).contains("more than 51200 bytes, the largest `execute.code_bytes_max`")
    );
    failing(&[]);
    failing(&[&path, "-e", "return 1"]);
    failing(&["-e", "return 1", "--timeout", "soon"]);

    let small = Daemon::with("[execute]\ncode_bytes_max = 8\nprofile = \"dev\"\n").ready();
    let socket = small.control().display().to_string();
    let (code, _, stderr) = daemon::run_with("", &["run", "--socket", &socket, "-e", "return 123"]);
    assert_eq!(code, 64, "{stderr}");
    assert!(stderr.contains("`execute.code_bytes_max`"), "{stderr}");

    let (code, _, stderr) =
        daemon::run_with("", &["run", "--socket", "/no/such/socket", "-e", "return 1"]);
    assert_eq!(code, 69, "{stderr}");
}

#[test]
fn ctrl_c_ends_the_script_and_cancels_its_calls() {
    let rig = Rig::start();
    let socket = rig.daemon.control().display().to_string();
    let code = "console.log('a'); await servers.fake.hold({ key: 'k' })";
    let arguments = ["run", "--socket", &socket, "-e", code];
    let mut run = daemon::command(&arguments).stderr(Stdio::null()).spawn().expect("it starts");
    assert_eq!(rig.run(&["call", "fake/held", "{\"at_least\":1}"]).0, 0);

    daemon::signal(run.id(), Signal::INT);

    let status = exit_in_time(&mut run).expect("it ends");
    assert_eq!(status.code(), Some(130));
    let (code, seen, _) = rig.run(&["call", "fake/seen", "{\"cancelled\":1}"]);
    assert_eq!(code, 0, "{seen}");
}

#[test]
fn the_progress_of_a_script_is_drawn_on_a_terminal_before_its_console_output() {
    let rig = Rig::start();
    let terminal = Terminal::open(60, 24);
    let socket = rig.daemon.control().display().to_string();
    let code = "progress(1, 2, 'half'); console.log('a\\u001b[2Jb')";
    let output = daemon::command(&["run", "--socket", &socket, "-e", code])
        .stderr(terminal.stream())
        .output()
        .expect("it runs");
    assert!(output.status.success());
    let drawn = terminal.close();
    let lines: Vec<&str> = drawn.split("\r\u{1b}[2K").collect();
    assert_eq!(lines, ["", "████████████░░░░░░░░░░░░  50 %  1/2  half", "a\\u{1b}[2Jb\r\n"]);
}
