//! The commands beside a service that accepts connections and answers nothing.

use std::{fs, os::unix::net::UnixListener, process};

use clap::FromArgMatches as _;
use tokio::time::Instant;

use super::{Cli, UNAVAILABLE, execute, help};
use crate::config::defaults;

/// The commands that need an answer of the service. `CONFIG` stands for the path of a configuration
/// with the server `a`, and `CLIENT` for that of a client's file with another server.
const COMMANDS: [&str; 43] = [
    "status",
    "status a",
    "status --watch",
    "servers",
    "add b --config CONFIG -- true",
    "remove a --config CONFIG",
    "enable a --config CONFIG",
    "disable a --config CONFIG",
    "import CLIENT --write",
    "import CLIENT --write --config CONFIG",
    "tools",
    "info a/b",
    "call a/b",
    "call a/b --timeout 1s",
    "call --timeout 1s --async a/b",
    "call --dry-run a/b",
    "call a/b --help",
    "call a/b --key value",
    "run -e return",
    "run --async -e return",
    "grep b",
    "search b",
    "resources",
    "read a/b",
    "prompts",
    "prompt a/b",
    "complete prompt a/b c d",
    "tasks",
    "task a/b",
    "task a/b --result",
    "task a/b --wait",
    "task a/b --cancel",
    "auth",
    "auth a --document",
    "login a",
    "login a --paste",
    "logout a",
    "typegen",
    "reload",
    "stop",
    "logs --follow",
    "calls --follow",
    "top",
];

/// The commands with a socket that do without the service.
const OTHERS: [(&str, &str); 5] = [
    ("check", "it warns, and checks the file alone"),
    ("connect", "it warns, and takes the address from the configuration"),
    ("disconnect", "it warns, and changes the file of a client"),
    ("doctor", "it reports the service that hangs: `tests/behaviour/doctor.rs`"),
    ("stdio", "it answers its client, too: `tests/behaviour/hanging_service.rs`"),
];

#[test]
fn each_command_says_within_its_bound_that_the_service_hangs() {
    let directory = tempfile::tempdir().expect("a directory");
    let (socket, config) = (directory.path().join("s"), directory.path().join("c.toml"));
    fs::write(&config, "[servers.a]\ncommand = \"true\"\n").expect("written");
    let client = directory.path().join("mcp.json");
    fs::write(&client, r#"{"mcpServers":{"b":{"command":"true"}}}"#).expect("written");
    let _listener = UnixListener::bind(&socket).expect("bound");
    let run = |line: &str| {
        let line = line.replace("CONFIG", &config.display().to_string());
        let line = line.replace("CLIENT", &client.display().to_string());
        let mut words: Vec<&str> = line.split(' ').collect();
        let socket = socket.display().to_string();
        words.splice(..1, ["metamcp", words[0], "--socket", &socket]);
        let matches = help::command_line().try_get_matches_from(words).expect(&line);
        execute(Cli::from_arg_matches(&matches).expect(&line).command)
    };
    let begin = Instant::now();
    for line in COMMANDS {
        let failed = run(line).expect_err(line);
        assert_eq!(failed.code, UNAVAILABLE, "{line}: {failed:?}");
        let expected = format!(
            "the service at `{}` (process {}) accepted the connection and did not answer within 10 s: it hangs or is stopped",
            socket.display(),
            process::id()
        );
        assert_eq!(failed.text, expected, "{line}");
        let hint = failed.hint.expect(line);
        assert!(hint.contains(&format!("kill -KILL {}", process::id())), "{line}: {hint}");
    }
    // The clock of the tests does not wait.
    assert!(begin.elapsed() < defaults::CONTROL_TIMEOUT);

    let described = help::command_line();
    let has_socket = |command: &&clap::Command| {
        !command.is_hide_set()
            && command.get_arguments().any(|argument| argument.get_id() == "socket")
    };
    for command in described.get_subcommands().filter(has_socket) {
        let name = command.get_name();
        let is_tried = COMMANDS.iter().any(|line| line.split(' ').next() == Some(name));
        assert!(is_tried || OTHERS.iter().any(|(other, _)| *other == name), "{name} is not tried");
    }
}
