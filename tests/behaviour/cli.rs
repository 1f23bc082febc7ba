//! The client commands: their output for people and for programs, and their exit codes.

mod call;
mod hints;
mod run;
mod terminal_output;

use regex::Regex;

use crate::harness::{
    daemon::{self, Daemon},
    fake::Fakes,
    script::execute_section,
};

/// A service with a server that works, one that cannot be started, and one that lacks a secret.
pub(super) struct Rig {
    pub(super) fakes: Fakes,
    pub(super) daemon: Daemon,
}

impl Rig {
    pub(super) fn start() -> Self {
        let fakes = Fakes::new();
        let config = [
            "[service]\nshutdown_timeout = \"1s\"\n".to_owned(),
            execute_section().to_owned(),
            fakes.server("fake", &["--rich"]),
            "[servers.broken]\ncommand = \"/no/such/program\"\n".to_owned(),
            fakes.server("keyed", &["--named", "a"]),
            "env = { A = \"hunter2\", TOKEN = \"env:METAMCP_NO_SUCH_VARIABLE\" }\n".to_owned(),
        ];
        let daemon = Daemon::with(config.concat()).ready();
        Self { fakes, daemon }
    }

    /// Runs a command; returns its exit code, standard output and standard error.
    pub(super) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        self.run_with("", arguments)
    }

    /// Runs a command with `input` on its standard input.
    pub(super) fn run_with(&self, input: &str, arguments: &[&str]) -> (i32, String, String) {
        let socket = self.daemon.control().display().to_string();
        // Directly after the command: an option after a tool may belong to the tool.
        let (command, rest) = arguments.split_first().expect("a command");
        daemon::run_with(input, &[&[*command, "--socket", &socket], rest].concat())
    }

    /// Runs commands, and returns their command lines, output and exit codes.
    fn transcript(&self, commands: &[&[&str]]) -> String {
        let mut seen = String::new();
        for command in commands {
            let (code, stdout, stderr) = self.run(command);
            let shown = command.iter().map(|word| match word.contains([' ', '{', '"']) {
                true => format!("'{word}'"),
                false => (*word).to_owned(),
            });
            seen.push_str(&format!("$ metamcp {}\n", shown.collect::<Vec<_>>().join(" ")));
            seen.push_str(&stdout);
            if !stderr.is_empty() {
                seen.push_str(&format!("--- standard error\n{stderr}"));
            }
            if code != 0 {
                seen.push_str(&format!("--- exit code {code}\n"));
            }
            seen.push('\n');
        }
        self.with_placeholders(&seen)
    }

    /// Replaces values that differ from run to run by placeholders.
    fn with_placeholders(&self, seen: &str) -> String {
        let program = crate::harness::fake::program().display().to_string();
        let directory = self.fakes.path("").display().to_string();
        let mut seen = seen
            .replace(&program, "/bin/fake")
            .replace(directory.trim_end_matches('/'), "/logs")
            .replace(&self.daemon.control().display().to_string(), "/control.sock")
            .replace(env!("CARGO_PKG_VERSION"), "VERSION");
        for (pattern, replacement) in [
            (r"pid \d+", "pid PID"),
            (r"up \d+ s\b", "up UPTIME"),
            (r#""pid": \d+"#, r#""pid": "PID""#),
            (r#""(uid|gid)": \d+"#, r#""$1": "ID""#),
            (r#""configFile": "[^"]+""#, r#""configFile": "FILE""#),
            (r#""127\.0\.0\.1:\d+""#, r#""ADDRESS""#),
            (
                r#""(uptime|tasks|\w+Bytes|lastHealthCheck|lastHealthCheckAgoMs|errorTime|requests)": (\d+|"[^"]+")"#,
                r#""$1": "N""#,
            ),
            (r"\b\d+ s ago\b", "TIME ago"),
            (r"within \d+ ms", "within TIME"),
            // A host may be unable to isolate scripts.
            (r#"(?s)"scripts": \{.*?\}"#, r#""scripts": "N""#),
            (r#""durationMs": \d+"#, r#""durationMs": "N""#),
            (r#""(score|confidence)": [0-9.e-]+"#, r#""$1": "N""#),
            (r"(?m)^ +\d+\.\d{4}( {2}\d\.\d\d)?  ", "SCORE  "),
            (r"\b[0-9.]+ [KMG]iB", "SIZE"),
            (r"(?m)^(\S+ .*) \d{3,}$", "$1 PID"),
            (r"(?m)  +$", ""),
            // The width of columns depends on the replaced values.
            (r"(?m)(\S) {3,}", "$1  "),
            (r"(?m)^(\S+ .*)  \d+  (-|PID)$", "$1  REQUESTS  $2"),
            (r"(?m)^(\S+ .*)  \d+  \d{3,}  SIZE$", "$1  REQUESTS  PID  SIZE"),
        ] {
            let pattern = Regex::new(pattern).expect("a pattern");
            seen = pattern.replace_all(&seen, replacement).into_owned();
        }
        seen
    }
}

/// Compares output with the snapshot `name` in the directory `cli`.
#[track_caller]
pub(crate) fn golden(name: &str, seen: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("cli");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, seen));
}

#[test]
fn status_servers_and_auth_print_every_server() {
    let rig = Rig::start();
    rig.run(&["call", "fake/whoami"]);
    rig.run(&["call", "broken/x"]);
    golden("status", &rig.transcript(&[&["status"], &["status", "--json"]]));
    golden(
        "servers",
        &rig.transcript(&[&["servers"], &["servers", "--memory"], &["servers", "--json"]]),
    );
    golden("auth", &rig.transcript(&[&["auth"], &["auth", "--json"], &["auth", "fake"]]));
}

#[test]
fn tools_are_listed_found_and_described() {
    let rig = Rig::start();
    golden("tools", &rig.transcript(&[&["tools"], &["tools", "nobody"]]));
    golden("tools_json", &rig.transcript(&[&["tools", "fake", "--json"]]));
    golden(
        "grep",
        &rig.transcript(&[
            &["grep", "^fake/(rows|read_only)$"],
            &["grep", "^fake/(rows|read_only)$", "--json"],
            &["grep", "^fake/rows$", "--json", "--schema", "--depth", "1"],
            &["grep", "zebra"],
            &["grep", "row(s"],
        ]),
    );
    golden(
        "search",
        &rig.transcript(&[
            &["search", "rows", "of the inventory", "--limit", "1"],
            &["search", "rows of the inventory", "--limit", "1", "--json"],
        ]),
    );
    golden(
        "info",
        &rig.transcript(&[
            &["info", "fake/rows"],
            &["info", "fake__rows", "--json"],
            &["info", "fake/rows", "--path", "filter"],
            &["info", "fake/rows", "--path", "zebra"],
            &["info", "fake/row"],
            &["info", "fake"],
            &["call", "fake"],
        ]),
    );
}

#[test]
fn resources_and_prompts_are_listed_read_and_completed() {
    let rig = Rig::start();
    golden(
        "resources",
        &rig.transcript(&[&["resources", "fake"], &["resources", "fake", "--json"]]),
    );
    golden(
        "read",
        &rig.transcript(&[
            &["read", "fake/fake:///one"],
            &["read", "fake/one"],
            &["read", "fake", "fake:///two", "--json"],
            &["read", "fake/fake:///zebra"],
            &["read", "fake/zebra"],
            &["read", "fake"],
        ]),
    );
    golden("prompts", &rig.transcript(&[&["prompts", "fake"], &["prompts", "fake", "--json"]]));
    golden(
        "prompt",
        &rig.transcript(&[
            &["prompt", "fake/greet", "--subject", "Ada"],
            &["prompt", "fake/greet", "{\"subject\":\"Ada\"}", "--json"],
            &["prompt", "fake/greet"],
            &["prompt", "fake/gret"],
        ]),
    );
    golden(
        "complete",
        &rig.transcript(&[
            &["complete", "prompt", "fake/greet", "subject", "A"],
            &["complete", "prompt", "fake/greet", "subject", "--json"],
            &["complete", "tool", "fake/greet", "subject"],
        ]),
    );
}

#[test]
fn reload_prints_the_changes_or_the_place_of_the_error() {
    let rig = Rig::start();
    let config = rig.fakes.server("fake", &["--rich", "--tasks"]) + &rig.fakes.server("new", &[]);
    rig.daemon.rewrite(&config);
    let changed = rig.transcript(&[&["reload"], &["reload", "--json"], &["reload"]]);
    rig.daemon.rewrite("[servers.fake]\ncomand = \"x\"\n");
    let (code, stdout, stderr) = rig.run(&["reload"]);
    assert_eq!((code, stdout.as_str()), (78, ""), "{stderr}");
    assert!(stderr.contains("metamcp.toml:2:1") && stderr.contains("comand"), "{stderr}");
    golden("reload", &changed);
}

#[test]
fn stop_waits_until_the_service_has_ended() {
    let mut rig = Rig::start();
    let (code, stdout, stderr) = rig.run(&["stop"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "Stopped.\n", ""));
    assert!(rig.daemon.wait_exit().success());

    let mut rig = Rig::start();
    golden("stop", &rig.transcript(&[&["stop", "--json"]]));
    assert!(rig.daemon.wait_exit().success());

    // `stop` also waits for a running call.
    let rig = Rig::start();
    let (code, _, stderr) = rig.run(&["call", "--async", "fake/hold", r#"{"key":"a"}"#]);
    assert_eq!(code, 0, "{stderr}");
    let pid = rig.daemon.pid();
    assert_eq!(rig.run(&["stop"]).0, 0);
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is not reaped yet");
    assert!(state.contains(") Z "), "it has ended: {state}");
}

#[test]
fn an_output_error_is_a_failure_and_a_closed_output_pipe_is_not() {
    let schema_into = |file: std::fs::File| {
        let mut command = daemon::command(&["schema"]);
        let output = command.stdout(file).output().expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full disk");
    let (code, stderr) = schema_into(full);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.starts_with("error: cannot write to standard output: No space left"),
        "{stderr}"
    );

    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let writer = std::os::fd::OwnedFd::from(writer);
    assert_eq!(schema_into(writer.into()), (Some(0), String::new()));
}

#[test]
fn without_a_service_every_client_command_exits_with_69() {
    for arguments in [
        &["status"][..],
        &["servers"],
        &["tools"],
        &["info", "a/b"],
        &["call", "a/b"],
        &["call", "a/b", "--n", "1"],
        &["search", "x"],
        &["grep", "x"],
        &["resources"],
        &["read", "a/b:c"],
        &["prompts"],
        &["prompt", "a/b"],
        &["complete", "prompt", "a/b", "c"],
        &["tasks"],
        &["task", "x"],
        &["auth"],
        &["reload"],
        &["stop"],
    ] {
        let (command, rest) = arguments.split_first().expect("a command");
        let all = [&[*command, "--socket", "/no/such/socket"], rest].concat();
        let (code, stdout, stderr) = daemon::run(&all);
        assert_eq!((code, stdout.as_str()), (69, ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: no service answers at `/no/such/socket`"), "{stderr}");
        assert!(stderr.contains("\nhint: "), "{stderr}");
    }
}

#[test]
fn the_environment_may_name_the_control_socket() {
    let rig = Rig::start();
    let mut command = daemon::command(&["servers", "--json"]);
    command.env("METAMCP_SOCKET", rig.daemon.control());
    let output = command.output().expect("it runs");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"fake\""));
    let mut command = daemon::command(&["info"]);
    let output = command.env("METAMCP_SOCKET", "/no/such").output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("Usage: metamcp info <TOOL>\n"),
        "the option is not on the command line: {stderr}"
    );
}

#[test]
fn consecutive_call_commands_reach_the_same_server_process() {
    let rig = Rig::start();
    let pids: Vec<String> = (1..=3)
        .map(|n_calls| {
            let (code, result, _) = rig.run(&["call", "fake/whoami"]);
            let result: serde_json::Value = serde_json::from_str(&result).expect(&result);
            assert_eq!((code, &result["calls"]), (0, &serde_json::json!(n_calls)));
            result["pid"].to_string()
        })
        .collect();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
}

#[test]
fn logs_reads_the_log_file_of_a_service_that_has_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("metamcp/metamcp.log");
    std::fs::create_dir(directory.path().join("metamcp")).expect("made");
    std::fs::write(&log, "a mcp_server=git\nb mcp_server=github\nc mcp_server=git n=1\n")
        .expect("written");
    let logs = |more: &[&str]| {
        let mut command = daemon::command(&[&["logs"], more].concat());
        for variable in ["XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"] {
            command.env(variable, directory.path());
        }
        let output = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    assert_eq!(logs(&[]).1.lines().count(), 3);
    let of_git = "a mcp_server=git\nc mcp_server=git n=1\n";
    assert_eq!(logs(&["--server", "git"]), (Some(0), of_git.to_owned()));
    assert_eq!(logs(&["--server", "git", "-n", "1"]).1, "c mcp_server=git n=1\n");
    assert_eq!(logs(&["--since", "today"]).0, Some(64));
    assert_eq!(logs(&["--server", "a b"]).0, Some(64));
    std::fs::remove_file(&log).expect("removed");
    assert_eq!(logs(&[]).0, Some(69));
}

#[test]
fn colours_and_hints_are_chosen_on_the_command_line() {
    let rig = Rig::start();
    let has_colour = |arguments: &[&str]| rig.run(arguments).1.contains('\u{1b}');
    assert!(has_colour(&["servers", "--color", "always"]));
    assert!(!has_colour(&["servers", "--color", "never"]) && !has_colour(&["servers"]));
    assert_eq!(rig.run(&["servers", "--color", "blue"]).0, 64);
    let mut command = daemon::command(&["servers"]);
    command.env("METAMCP_SOCKET", rig.daemon.control()).env("CLICOLOR_FORCE", "1");
    let forced = |command: &mut std::process::Command| {
        let output = command.env_remove("NO_COLOR").output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).contains('\u{1b}')
    };
    assert!(forced(&mut command));

    let (_, _, stderr) = daemon::run(&["-q", "status", "--socket", "/no/such/socket"]);
    assert!(stderr.starts_with("error: ") && !stderr.contains("hint: "), "{stderr}");
}

#[test]
fn help_is_grouped_by_task_and_explains_each_command() {
    let (code, overview, _) = daemon::run(&["help"]);
    assert!(code == 0 && overview == daemon::run(&["--help"]).1, "{overview}");
    let (_, all, _) = daemon::run(&["help", "all"]);
    assert!(all.contains("typegen") && all.contains("Print the JSON Schema"), "{all}");
    let (_, call, _) = daemon::run(&["help", "call"]);
    assert!(call.contains("Usage: metamcp call") && call.contains("Example:"), "{call}");
    let (code, _, stderr) = daemon::run(&["help", "stauts"]);
    assert!(code == 64 && stderr.contains("Did you mean `status`?"), "{stderr}");
    let (code, _, stderr) = daemon::run(&["stauts"]);
    assert!(code == 64 && stderr.contains("Did you mean `status`?"), "{stderr}");
}

/// Asks a shell to complete a command line; `None` if the shell is not installed.
fn completed(rig: &Rig, shell: &str, script: &str) -> Option<String> {
    let program =
        std::path::Path::new(env!("CARGO_BIN_EXE_metamcp")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("it is set"));
    #[expect(clippy::disallowed_methods, reason = "a test of the completions starts the shell")]
    let mut command = std::process::Command::new(shell);
    if shell == "zsh" {
        command.arg("-f");
    }
    command.args(["-c", script]);
    command.env("PATH", path).env("METAMCP_SOCKET", rig.daemon.control());
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn shells_complete_the_names_of_tools_servers_and_arguments() {
    let rig = Rig::start();
    assert_eq!(rig.run(&["tools"]).0, 0, "the lists are known");
    let bash = |words: &str, last: &str| {
        let script = format!(
            "source <(metamcp completions bash); COMP_WORDS=(metamcp {words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _metamcp_names metamcp '{last}' ''; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        completed(&rig, "bash", &script).expect("bash is installed")
    };
    assert_eq!(bash("call fake/rows", "fake/rows"), "fake/rows\n");
    assert!(bash("call fake/ro", "fake/ro").contains("fake/routed\n"));
    assert!(bash("call fake/rows --ta", "--ta").contains("--table\n"));
    assert!(bash("logs --server fa", "fa").contains("fake\n"));
    assert!(bash("sta", "sta").contains("status"), "the commands are completed too");
    assert!(!bash("comp", "comp").contains("complete-words"), "it is for shells");
    // Bash splits a word at `=`.
    assert_eq!(bash("logs --level = w", "w"), "warn\n");
    assert_eq!(bash("--color = a", "a"), "auto\nalways\n");
    assert_eq!(bash("logs --server =", "="), bash("logs --server ''", ""));
    for (words, last, expected) in [
        ("help", "con", "connect"),
        ("connect", "cu", "cursor"),
        ("disconnect", "cu", "cursor"),
        ("import --format", "vsc", "vscode"),
        ("demo-server", "cl", "clock"),
        ("man", "metamcp-err", "metamcp-errors"),
        ("call", "fake/row", "fake/rows"),
        ("logs --server", "fak", "fake"),
        ("logs", "--level=w", "--level=warn"),
        ("logs", "--server=fak", "--server=fake"),
        ("-q status", "fak", "fake"),
        ("--color never status", "fak", "fake"),
        ("-q", "--color=al", "--color=always"),
    ] {
        let line = format!("{words} {last}");
        if !last.contains('=') {
            assert_eq!(bash(&line, last), format!("{expected}\n"), "{line}");
        }
        let fish = format!("metamcp completions fish | source; complete -C 'metamcp {line}'");
        if let Some(found) = completed(&rig, "fish", &fish) {
            let names = || found.lines().filter_map(|line| line.split('\t').next());
            assert!(names().any(|name| name == expected), "{line}: {found}");
        }
        let zsh = format!(
            "compdef() {{ }}; compadd() {{ print -l -- $names }}; source <(metamcp completions zsh); \
             words=(metamcp {line}); CURRENT=$#words; _metamcp"
        );
        if let Some(found) = completed(&rig, "zsh", &zsh) {
            assert_eq!(found, format!("{expected}\n"), "{line}");
        }
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = daemon::run(&["completions", shell]);
        assert!(code == 0 && script.contains("metamcp") && script.contains("resources"), "{shell}");
    }
    assert_eq!(daemon::run(&["completions", "cmd"]).0, 64);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("man1").display().to_string();
    assert_eq!(daemon::run(&["man", "--directory", &path]).0, 0);
    let page = |name: &str| std::fs::read_to_string(format!("{path}/{name}")).expect(name);
    assert!(page("metamcp.1").contains("metamcp\\-status(1)"));
    assert!(page("metamcp-call.1").contains("\\-\\-dry\\-run"));
    assert!(page("metamcp-man.1").contains("manual"));
    let logs = page("metamcp-logs.1");
    let footer = format!("\"metamcp {}\" metamcp", env!("CARGO_PKG_VERSION"));
    assert!(logs.lines().any(|line| line.starts_with(".TH") && line.contains(&footer)), "{logs}");
    assert!(!logs.contains('`') && logs.contains("\\fB$XDG_STATE_HOME"), "{logs}");
    assert!(daemon::run(&["man"]).1.starts_with(".ie"), "the page itself");
}
