//! Output that is different on a terminal: progress, colours, `status --watch` and escapes.

use std::process::Stdio;

use rustix::process::Signal;

use super::Rig;
use crate::harness::{
    daemon::{self, exit_in_time},
    terminal::Terminal,
};

#[test]
fn progress_is_drawn_on_a_terminal_and_erased_at_the_end() {
    let rig = Rig::start();
    let terminal = Terminal::open(60, 24);
    let socket = rig.daemon.control().display().to_string();
    let output = daemon::command(&["call", "--socket", &socket, "fake/progress", "{\"steps\":4}"])
        .stderr(terminal.stream())
        .output()
        .expect("it runs");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"n\":0,\"steps\":4}\n");
    let drawn = terminal.close();
    let lines: Vec<&str> = drawn.split("\r\u{1b}[2K").collect();
    assert!(lines.contains(&"████████████░░░░░░░░░░░░  50 %  2/4  call 0, step 2"), "{lines:?}");
    assert_eq!(lines.last(), Some(&""), "the progress line is erased");
    assert_eq!(lines.first(), Some(&""));

    let (_, _, stderr) = rig.run(&["call", "fake/progress", "{\"steps\":4}"]);
    assert_eq!(stderr, "", "without a terminal, no progress is drawn");
}

#[test]
fn the_status_fits_the_terminal_and_has_colours_unless_no_color_is_set() {
    let rig = Rig::start();
    rig.run(&["call", "broken/x"]);
    let socket = rig.daemon.control().display().to_string();
    let shown = |columns: u16, no_color: &str| {
        let terminal = Terminal::open(columns, 24);
        let mut command = daemon::command(&["status", "--socket", &socket]);
        command.env("TERM", "xterm").env("NO_COLOR", no_color).stdout(terminal.stream());
        assert!(command.status().expect("it runs").success());
        drop(command);
        terminal.close()
    };
    let plain = shown(80, "1");
    assert!(!plain.contains('\u{1b}') && plain.contains("broken  failed"), "{plain}");
    for columns in [20, 40, 80] {
        let shown = shown(columns, "1");
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{shown}");
    }
    assert!(shown(80, "").contains("\u{1b}[31mfailed\u{1b}[0m"));
}

#[test]
fn status_watch_draws_on_the_alternate_screen_until_ctrl_c() {
    let rig = Rig::start();
    let terminal = Terminal::open(100, 30);
    let socket = rig.daemon.control().display().to_string();
    let mut watching = daemon::command(&["status", "--watch", "--socket", &socket])
        .env("NO_COLOR", "1")
        .env("TERM", "xterm")
        .stdout(terminal.stream())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let drawn = terminal.wait("LAST ERROR");
    assert!(drawn.starts_with("\u{1b}[?1049h\u{1b}[?25l"), "{drawn:?}");

    daemon::signal(watching.id(), Signal::INT);

    assert!(exit_in_time(&mut watching).expect("it ends").success());
    let drawn = terminal.close();
    let (_, after) =
        drawn.split_once("\u{1b}[?25h\u{1b}[?1049l").expect("the alternate screen is left");
    assert!(after.starts_with("metamcp ") && !after.contains('\u{1b}'), "{after:?}");
}

#[test]
fn escape_sequences_of_a_server_do_not_reach_the_terminal() {
    let rig = Rig::start();
    let terminal = Terminal::open(80, 24);
    let socket = rig.daemon.control().display().to_string();
    let arguments = "{\"value\":\"\u{1b}[2Jx\"}";
    let result = "{\"result\":\"{\\\"content\\\":[{\\\"type\\\":\\\"text\\\",\\\"text\\\":\\\"a\\\\u001b[2Jb\\\"}]}\"}";
    let mut command = daemon::command(&["call", "--socket", &socket, "fake/raw", result]);
    assert!(command.stdout(terminal.stream()).status().expect("it runs").success());
    drop(command);
    assert_eq!(terminal.close(), "a\\u{1b}[2Jb\r\n");
    // A program that reads a pipe gets every byte.
    assert_eq!(rig.run(&["call", "fake/raw", result]).1, "a\u{1b}[2Jb\n");
    assert!(!rig.run(&["call", "fake/echo", arguments]).1.contains("\\u{1b}"));
}
