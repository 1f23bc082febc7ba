//! Every command, as somebody sees it who types it into a terminal: in tmux, against the real service with
//! real servers behind it.
//!
//! A screen is what a terminal of 120 columns shows when the command has ended, with its exit code. What
//! is another at every run (process ids, times, sizes, places) is written as a word instead.

use std::{
    path::PathBuf,
    process::Command,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use regex::Regex;

use super::{Installed, POLL, harness::daemon::Daemon};
use crate::harness::daemon::PROGRAM;

/// How long a command may take. Far more than any does.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal, in which one command runs at a time.
struct Terminal {
    directory: tempfile::TempDir,
    socket: PathBuf,
    places: Vec<(String, &'static str)>,
}

impl Terminal {
    fn of(metamcp: &Daemon, servers: &Installed) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = metamcp.control();
        let port = metamcp.url("/");
        let port = port.rsplit(':').next().unwrap_or_default().trim_end_matches('/').to_owned();
        let places = vec![
            (directory.path().display().to_string(), "HERE"),
            (socket.display().to_string(), "SOCKET"),
            (socket.parent().expect("a directory").display().to_string(), "SERVICE"),
            (servers.0.display().to_string(), "REAL"),
            (PROGRAM.to_owned(), "METAMCP"),
            (port, "PORT"),
        ];
        Self { directory, socket, places }
    }

    /// Returns the directory of the service.
    fn service(&self) -> String {
        self.socket.parent().expect("a directory").display().to_string()
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.directory.path().join("tmux")).args(["-f", "/dev/null"]);
        tmux
    }

    fn told(&self, arguments: &[&str]) -> String {
        let output = self.tmux().args(arguments).output().expect("tmux starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        text
    }

    /// Runs a command line of a shell in which `metamcp` is ours, and returns its screen.
    fn show(&self, line: &str) -> String {
        let program = PathBuf::from(PROGRAM);
        let path = program.parent().expect("a directory").display().to_string();
        let script = format!(
            "cd '{}'; PATH='{path}':\"$PATH\"; export METAMCP_SOCKET='{}'; {line}; echo \"[exit code $?]\"",
            self.directory.path().display(),
            self.socket.display(),
        );
        // Kept when its command has ended, without a line of tmux that says so.
        self.told(&[
            "new-session",
            "-d",
            "-x",
            "120",
            "-y",
            "60",
            "-s",
            "one",
            "sleep 60",
            ";",
            "set-option",
            "-g",
            "remain-on-exit",
            "on",
            ";",
            "set-option",
            "-g",
            "remain-on-exit-format",
            "",
            ";",
            "set-option",
            "-g",
            "default-terminal",
            "tmux-256color",
            ";",
            "respawn-pane",
            "-k",
            "-t",
            "one",
            "sh",
            "-c",
            &script,
        ]);
        let deadline = Instant::now() + PATIENCE;
        while self.told(&["display-message", "-p", "-t", "one", "#{pane_dead}"]).trim() != "1" {
            assert!(Instant::now() < deadline, "`{line}` does not end:\n{}", self.screen());
            thread::sleep(POLL);
        }
        let screen = self.screen();
        self.told(&["kill-server"]);
        format!("$ {line}\n{}\n", self.without_what_varies(screen.trim_end()))
    }

    fn screen(&self) -> String {
        self.told(&["capture-pane", "-p", "-S", "-", "-t", "one"])
    }

    fn without_what_varies(&self, screen: &str) -> String {
        static VARYING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
            [
                (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "TASK"),
                (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
                (r"\d{4}-\d\d-\d\d", "DATE"),
                (r"\bpid \d+", "pid PID"),
                (r"\bup \d+ s", "up TIME"),
                (r"\b\d+(\.\d+)? ?(KiB|MiB|GiB|ms)\b", "SIZE"),
                (r"\b\d+(\.\d+)? s\b", "SECONDS"),
                (r"[ \t]+(\n|$)", "$1"),
            ]
            .map(|(pattern, word)| (Regex::new(pattern).expect("a pattern"), word))
            .into()
        });
        let mut text = screen.to_owned();
        for (place, word) in &self.places {
            text = text.replace(place.as_str(), word);
        }
        for (pattern, word) in VARYING.iter() {
            text = pattern.replace_all(&text, *word).into_owned();
        }
        text
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _gone_already = self.tmux().arg("kill-server").output();
    }
}

#[test]
fn each_command_looks_as_it_should_in_a_terminal() {
    let servers = Installed::find();
    let metamcp = Daemon::with(servers.config_with("prewarm")).ready();
    let terminal = Terminal::of(&metamcp, &servers);
    std::fs::write(terminal.directory.path().join("sum.json"), r#"{"a": 2, "b": 40}"#)
        .expect("written");
    for (name, line) in [
        ("status", "metamcp status"),
        ("servers", "metamcp servers"),
        ("tools", "metamcp tools git"),
        ("info", "metamcp info git/git_log"),
        ("call_help", "metamcp call everything/get-sum --help"),
        ("call_json", r#"metamcp call everything/get-sum '{"a": 2, "b": 40}'"#),
        ("call_keys", "metamcp call everything/get-sum --a 2 --b 40"),
        ("call_file", "metamcp call everything/get-sum @sum.json"),
        ("call_stdin", "metamcp call everything/get-sum - <sum.json"),
        ("call_wrong", "metamcp call everything/get-sum --a two"),
        ("call_dry_run", "metamcp call --dry-run everything/get-sum --a 2 --b 40"),
        (
            "call_progress",
            "metamcp call everything/trigger-long-running-operation --duration 1 --steps 4",
        ),
        ("grep", "metamcp grep '^git/.*(branch|tag)'"),
        ("search", "metamcp search --limit 3 what time is it in Tokyo"),
        ("resources", "metamcp resources | head -n 5"),
        ("read", "metamcp read everything demo://resource/static/document/features.md | head -n 5"),
        ("prompts", "metamcp prompts"),
        ("prompt", "metamcp prompt everything/args-prompt --city Paris"),
        ("complete", "metamcp complete prompt everything/completable-prompt department E"),
        ("auth", "metamcp auth"),
        ("check", "metamcp check SERVICE/metamcp.toml"),
        ("reload", "metamcp reload"),
        ("logs", "metamcp logs"),
        ("typo", "metamcp call everything/get-summ --a 1"),
    ] {
        insta::assert_snapshot!(
            format!("screen_{name}"),
            terminal.show(&line.replace("SERVICE", &terminal.service()))
        );
    }
}
