//! The screens of every command as a user sees them: in tmux, with the real service and real
//! servers.
//!
//! A screen is the content of a terminal of 120 columns when the command has ended, with its exit
//! code. Variable parts (process ids, times, sizes, paths) are replaced by words.

use std::{path::PathBuf, process::Command, sync::LazyLock, thread, time::Duration};

use regex::Regex;
use tokio::time::Instant;

use super::{Installed, POLL, harness::daemon::Daemon};
use crate::harness::daemon::PROGRAM;

/// The time limit of a command, far above the usual duration.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A terminal that runs one command at a time.
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
        let terminal = Self { directory, socket, places };
        // The screen remains after a command has ended, without tmux's own message.
        let set = |name, value| ["set-option", "-g", name, value, ";"];
        let options = [set("remain-on-exit", "on"), set("remain-on-exit-format", "")].concat();
        let session = ["new-session", "-d", "-x", "120", "-y", "60", "-s", "one", "true"];
        terminal.run_tmux(&[&["start-server", ";"], &options[..], &session].concat());
        terminal
    }

    /// Returns the directory of the service.
    fn service(&self) -> String {
        self.socket.parent().expect("a directory").display().to_string()
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        // Independent of the user's locale.
        tmux.env("LC_ALL", "C.UTF-8").args(["-u", "-f", "/dev/null", "-S"]);
        tmux.arg(self.directory.path().join("tmux"));
        tmux
    }

    fn run_tmux(&self, arguments: &[&str]) -> String {
        let output = self.tmux().args(arguments).output().expect("tmux starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        text
    }

    /// Runs a shell command line with the tested `metamcp`, and returns the screen.
    fn show(&self, line: &str) -> String {
        let typed = line.replace("SERVICE", &self.service());
        let program = PathBuf::from(PROGRAM);
        let path = program.parent().expect("a directory").display().to_string();
        let script = format!(
            "cd '{}'; PATH='{path}':\"$PATH\"; export METAMCP_SOCKET='{}' XDG_STATE_HOME=\"$PWD\"; unset METAMCP_REAL_SERVERS; {typed}; echo \"[exit code $?]\"",
            self.directory.path().display(),
            self.socket.display(),
        );
        self.run_tmux(&["respawn-pane", "-k", "-t", "one", "sh", "-c", &script]);
        let deadline = Instant::now() + TIME_LIMIT;
        while self.run_tmux(&["display-message", "-p", "-t", "one", "#{pane_dead}"]).trim() != "1" {
            assert!(Instant::now() < deadline, "`{line}` does not end:\n{}", self.screen());
            thread::sleep(POLL);
        }
        let screen = self.screen();
        self.run_tmux(&["clear-history", "-t", "one"]);
        format!("$ {line}\n{}\n", self.normalized(screen.trim_end()))
    }

    fn screen(&self) -> String {
        self.run_tmux(&["capture-pane", "-p", "-S", "-", "-t", "one"])
    }

    fn normalized(&self, screen: &str) -> String {
        static VARYING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
            [
                (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "TASK"),
                (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
                (r"(?m) +\d+ +\d{2,}$", "  COUNT  PID"),
                (r"\bpid \d+", "pid PID"),
                (r"\bchild_pid=\d+", "child_pid=PID"),
                (r"\bup \d+ s", "up TIME"),
                // The width of a column depends on its content.
                (r"\bLAST SEEN +", "LAST SEEN  "),
                (r"\b\d+ s ago +", "TIME ago  "),
                (r" +\d+(\.\d+)? ?(KiB|MiB|GiB|ms)\b", " SIZE"),
                (r"(REQUESTS|RESTARTS) +(PID|MEMORY)", "$1  $2"),
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
fn each_command_shows_the_recorded_screen_in_a_terminal() {
    let servers = Installed::find();
    let metamcp = Daemon::with(servers.config_with("prewarm")).ready();
    let terminal = Terminal::of(&metamcp, &servers);
    let declared =
        r#"{"mcpServers": {"git": {"command": "mcp-server-git", "env": {"GIT_TOKEN": "s3cret"}}}}"#;
    for (name, text) in [("sum.json", r#"{"a": 2, "b": 40}"#), ("mcp.json", declared)] {
        std::fs::write(terminal.directory.path().join(name), text).expect("written");
    }
    let mut screens = String::new();
    for line in [
        "metamcp status",
        "metamcp servers",
        "metamcp tools git",
        "metamcp info git/git_log",
        "metamcp call everything/get-sum --help",
        r#"metamcp call everything/get-sum '{"a": 2, "b": 40}'"#,
        "metamcp call everything/get-sum --a 2 --b 40",
        "metamcp call everything/get-sum @sum.json",
        "metamcp call everything/get-sum - <sum.json",
        "metamcp call everything/get-sum --a two",
        "metamcp call everything/get-summ --a 1",
        "metamcp call --dry-run everything/get-sum --a 2 --b 40",
        "metamcp call --fields temperature everything/get-structured-content --location Chicago",
        "metamcp call everything/trigger-long-running-operation --duration 1 --steps 4",
        "metamcp call --json everything/echo --message hello",
        "metamcp grep '^git/.*(branch|tag)'",
        "metamcp search --limit 2 what time is it in Tokyo",
        "metamcp resources | head -n 5",
        "metamcp read everything demo://resource/static/document/features.md | head -n 5",
        "metamcp prompts",
        "metamcp prompt everything/args-prompt --city Paris",
        "metamcp complete prompt everything/completable-prompt department E",
        "metamcp call --async everything/get-sum --a 2 --b 40 | tee id",
        "metamcp task $(cat id) --wait",
        "metamcp task $(cat id)",
        "metamcp tasks",
        "metamcp auth",
        "metamcp check SERVICE/metamcp.toml",
        "metamcp check --effective SERVICE/metamcp.toml | grep -A 2 '^.pool'",
        "metamcp schema | head -n 5",
        "metamcp import mcp.json",
        "metamcp typegen --server time | tail -n 12",
        "metamcp doctor --config SERVICE/metamcp.toml --server filesystem | grep filesystem",
        r#"printf '{"jsonrpc":"2.0","id":1,"method":"ping"}\n' | metamcp stdio"#,
        "metamcp logs --server time",
        "metamcp reload",
        "metamcp stop",
        "metamcp status",
    ] {
        screens.push_str(&terminal.show(line));
        screens.push('\n');
    }
    insta::assert_snapshot!("screens", screens);
}
