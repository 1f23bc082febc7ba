//! `metamcp connect` and `disconnect`: the entry of metamcp in the files of clients.
#![expect(clippy::disallowed_methods, reason = "starts the program in another home")]

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::harness::{
    daemon::{Daemon, PROGRAM},
    terminal::Terminal,
};

/// A home directory in which metamcp changes the files of clients.
struct ClientHome {
    directory: tempfile::TempDir,
}

impl ClientHome {
    fn new(config: &str) -> Self {
        let home = Self { directory: tempfile::tempdir().expect("a directory") };
        home.write(".config/metamcp/metamcp.toml", config);
        fs::create_dir_all(home.path("shop")).expect("made");
        home
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("below the home")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .current_dir(self.path("shop"))
            .env_clear()
            .env("HOME", self.directory.path())
            .env("PATH", self.path("bin"))
            .stdin(Stdio::null());
        command
    }

    /// Runs metamcp, and returns its exit code, and its output with the home as `~`.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        self.finish(self.command(arguments))
    }

    fn finish(&self, mut command: Command) -> (i32, String, String) {
        let output = command.output().expect("it starts");
        let home = self.directory.path().display().to_string();
        // Whether a service answers depends on the host.
        let is_kept = |line: &&str| !line.starts_with("note: no service answers at ");
        let text = |bytes| {
            let text = String::from_utf8(bytes).expect("UTF-8").replace(&home, "~");
            text.split_inclusive('\n').filter(is_kept).collect::<String>()
        };
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }
}

const CURSOR: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"time\": {\n      \"command\": \"mcp-time\",\n      \"env\": { \"API_TOKEN\": \"CANARY-0123456789\" }\n    }\n  }\n}\n";

#[test]
fn a_client_is_connected_with_a_backup_and_disconnected_to_the_same_bytes() {
    let home = ClientHome::new("[servers.time]\ncommand = \"mcp-time\"\n");
    home.write("dotfiles/mcp.json", CURSOR);
    fs::create_dir_all(home.path(".cursor")).expect("made");
    symlink(home.path("dotfiles/mcp.json"), home.path(".cursor/mcp.json")).expect("linked");
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(home.path("dotfiles/mcp.json"), mode).expect("changed");

    let (code, stdout, stderr) = home.run(&["connect", "cursor"]);
    assert_eq!(code, 1, "without a terminal, nothing is written");
    insta::assert_snapshot!(format!("{stdout}{stderr}"));
    assert_eq!(home.run(&["connect", "cursor", "--dry-run"]).0, 0);
    assert_eq!(home.read("dotfiles/mcp.json"), CURSOR);

    let (code, stdout, stderr) = home.run(&["connect", "cursor", "--disable-served", "--yes"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(!stdout.contains("CANARY"), "{stdout}");
    let after = home.read(".cursor/mcp.json");
    assert!(after.contains("// mine") && !after.contains("mcp-time"), "{after}");
    assert!(home.path(".cursor/mcp.json").is_symlink());
    let mode = |path| fs::metadata(home.path(path)).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode("dotfiles/mcp.json"), 0o640);
    assert_eq!(home.read(".cursor/mcp.json.before-metamcp"), CURSOR);
    assert_eq!(mode(".cursor/mcp.json.before-metamcp"), 0o640);

    let (code, stdout, _) = home.run(&["connect", "cursor", "--disable-served", "--yes"]);
    assert_eq!((code, stdout.as_str()), (0, "Cursor is connected already: ~/.cursor/mcp.json\n"));
    let (_, stdout, _) = home.run(&["connect"]);
    let row = stdout.lines().find(|line| line.starts_with("cursor ")).expect("a row");
    assert!(row.contains("metamcp") && row.contains("~/.cursor/mcp.json"), "{stdout}");
    let listed = home.command(&["connect"]).output().expect("it starts").stdout;
    assert!(String::from_utf8_lossy(&listed).contains(" ~/.cursor/mcp.json\n"), "{listed:?}");

    let (code, stdout, _) = home.run(&["disconnect", "cursor", "--yes"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(!stdout.contains("CANARY"), "{stdout}");
    assert_eq!(home.read("dotfiles/mcp.json"), CURSOR);
    assert!(!home.path(".cursor/mcp.json.before-metamcp").exists());
    let (code, stdout, _) = home.run(&["disconnect", "cursor", "--yes"]);
    assert_eq!((code, stdout.as_str()), (0, "Cursor is not connected: ~/.cursor/mcp.json\n"));
}

#[test]
fn changes_of_the_user_after_connecting_stay_when_the_client_is_disconnected() {
    let home = ClientHome::new("[servers.time]\ncommand = \"mcp-time\"\n");
    home.write(".cursor/mcp.json", CURSOR);
    assert_eq!(home.run(&["connect", "cursor", "--disable-served", "--yes"]).0, 0);
    let changed = home.read(".cursor/mcp.json").replace("// mine", "// ours");
    home.write(".cursor/mcp.json", &changed);
    assert_eq!(home.run(&["disconnect", "cursor", "--yes"]).0, 0);
    let text = home.read(".cursor/mcp.json");
    assert!(
        text.contains("// ours") && text.contains("CANARY") && !text.contains("12011"),
        "{text}"
    );
    assert_eq!(home.read(".cursor/mcp.json.before-metamcp"), CURSOR);
}

#[test]
fn a_file_that_connect_made_is_removed_by_disconnect() {
    let home = ClientHome::new("[servers.time]\ncommand = \"mcp-time\"\n");
    for (client, scope, file) in [
        ("claude-code", "project", "shop/.mcp.json"),
        ("claude-code", "user", ".claude.json"),
        ("vscode", "project", "shop/.vscode/mcp.json"),
        ("codex", "user", ".codex/config.toml"),
        ("goose", "user", ".config/goose/config.yaml"),
        ("gemini", "user", ".gemini/settings.json"),
    ] {
        let (code, stdout, stderr) = home.run(&["connect", client, "--scope", scope, "--yes"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert!(home.read(file).contains("http://127.0.0.1:12011/"), "{client}");
        assert_eq!(home.run(&["disconnect", client, "--scope", scope, "--yes"]).0, 0);
        assert!(!home.path(file).exists(), "{client}");
    }
}

#[test]
fn directories_that_connect_made_are_removed_by_disconnect_if_they_are_empty() {
    let home = ClientHome::new("");
    fs::create_dir(home.path(".gemini")).expect("made");
    for client in ["windsurf", "goose", "gemini", "codex"] {
        assert_eq!(home.run(&["connect", client, "--yes"]).0, 0);
        assert_eq!(home.run(&["connect", client, "--name", "again", "--yes"]).0, 0);
    }
    home.write(".codex/auth.json", "{}");
    for client in ["windsurf", "goose", "gemini", "codex"] {
        let (code, stdout, stderr) = home.run(&["disconnect", client, "--yes"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
    }
    assert!(!home.path(".codeium").exists() && !home.path(".config/goose").exists());
    for kept in [".config", ".gemini", ".codex/auth.json"] {
        assert!(home.path(kept).exists(), "{kept}");
    }
}

#[test]
fn entries_that_are_written_at_the_same_time_are_all_kept() {
    let home = ClientHome::new("");
    let names = ["a", "b", "c", "d", "e", "f"];
    let run = |arguments: [&str; 5]| {
        let (code, stdout, stderr) = home.run(&arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    };
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(move || run(["connect", "cursor", "--name", name, "--yes"]));
        }
    });
    let text = home.read(".cursor/mcp.json");
    assert!(names.iter().all(|name| text.contains(&format!("\"{name}\": {{"))), "{text}");
    assert_eq!(home.run(&["disconnect", "cursor", "--yes"]).0, 0);
    assert!(!home.path(".cursor").exists(), "the record has all of them");
}

#[test]
fn the_report_says_whether_an_entry_is_switched_off_or_removed() {
    let home = ClientHome::new("[servers.time]\ncommand = \"mcp-time\"\n");
    for (client, file, [off, on]) in [
        ("cursor", ".cursor/mcp.json", ["removed until `disconnect`: time\n", "restored: time\n"]),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            ["switched off: time\n", "switched on again: time\n"],
        ),
    ] {
        home.write(file, CURSOR);
        for (arguments, report) in [
            (&["connect", client, "--disable-served", "--yes"][..], off),
            (&["disconnect", client, "--yes"], on),
        ] {
            let (code, stdout, stderr) = home.run(arguments);
            assert_eq!(code, 0, "{stderr}");
            assert!(stdout.contains(&format!("\n{report}")), "{client}: {stdout}");
        }
    }
}

#[test]
fn the_entry_follows_the_configuration_and_shows_no_token() {
    let home = ClientHome::new(
        "[listen]\nhttp = \"127.0.0.1:4711\"\ntoken = \"env:METAMCP_TOKEN\"\n[servers.time]\ncommand = \"mcp-time\"\n",
    );
    let shown = |arguments: &[&str]| {
        let (code, stdout, stderr) = home.run(&[&["connect", "--dry-run"], arguments].concat());
        format!("{code}\n{stdout}{stderr}").replace(PROGRAM, "/bin/metamcp")
    };
    insta::assert_snapshot!(
        [
            shown(&["codex", "--server", "time", "--name", "time"]),
            shown(&["zed", "--meta"]),
            shown(&["claude-desktop"]),
            shown(&["cursor", "--server", "tiem"]),
            shown(&["cursr"]),
        ]
        .join("\n")
    );
}

#[test]
fn a_file_that_does_not_parse_is_left_alone_with_an_entry_to_paste() {
    let home = ClientHome::new("[servers.time]\ncommand = \"mcp-time\"\n");
    home.write(".gemini/settings.json", "{ \"token\": CANARY");
    let (code, stdout, stderr) = home.run(&["connect", "gemini", "--yes"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    insta::assert_snapshot!(stderr);
    assert_eq!(home.read(".gemini/settings.json"), "{ \"token\": CANARY");
    assert!(!Path::new(&home.path(".gemini/settings.json.before-metamcp")).exists());
}

#[test]
fn the_entry_leads_to_the_address_of_the_running_service() {
    let home = ClientHome::new("[listen]\nhttp = \"127.0.0.1:12999\"\n");
    let daemon = Daemon::with("").ready();
    let socket = daemon.control().display().to_string();
    let url = format!("\"url\": \"http://{}/\"", daemon.address());

    let (code, stdout, stderr) = home.run(&["connect", "cursor", "--dry-run", "--socket", &socket]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains(&url), "{stdout}");

    // A named file is about another service.
    let file = home.path(".config/metamcp/metamcp.toml").display().to_string();
    let named =
        home.run(&["connect", "cursor", "--dry-run", "--socket", &socket, "--config", &file]);
    assert!(named.1.contains("http://127.0.0.1:12999/"), "{named:?}");
}

#[test]
fn connect_names_the_address_at_which_no_service_answers() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let closed = closed.expect("a port that is closed again");
    let home = ClientHome::new(&format!("[listen]\nhttp = \"{closed}\"\n"));
    let output = home.command(&["connect", "cursor", "--yes"]).output().expect("it starts");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let note = format!("note: no service answers at {closed}: start it with `metamcp serve`\n");
    assert!(stdout.contains(&note), "{stdout}");
}

#[test]
fn an_abbreviated_client_is_answered_with_the_clients_it_may_mean() {
    let home = ClientHome::new("");
    let (code, _, stderr) = home.run(&["connect", "claude"]);
    assert_eq!(code, 64);
    assert!(stderr.contains("use claude-code or claude-desktop"), "{stderr}");
}

#[test]
fn an_entry_for_one_server_switches_off_only_that_server() {
    let home =
        ClientHome::new("[servers.a]\ncommand = \"mcp-a\"\n[servers.b]\ncommand = \"mcp-b\"\n");
    let text = r#"{ "mcpServers": { "a": { "command": "mcp-a" }, "b": { "command": "mcp-b" } } }"#;
    home.write(".cursor/mcp.json", text);
    let connect = ["connect", "cursor", "--server", "a", "--disable-served", "--yes"];
    let (code, _, stderr) = home.run(&connect);
    assert_eq!(code, 0, "{stderr}");
    let left = home.read(".cursor/mcp.json");
    assert!(left.contains("mcp-b") && !left.contains("mcp-a"), "{left}");
}

#[test]
fn a_client_that_starts_programs_gets_the_socket_that_the_user_named() {
    let home = ClientHome::new("");
    let connect = ["connect", "claude-desktop", "--dry-run", "--socket", "/run/other.sock"];
    let (_, stdout, _) = home.run(&connect);
    let words: String =
        stdout.chars().filter(|found| !found.is_whitespace() && *found != '+').collect();
    assert!(words.contains(r#"["stdio","--socket","/run/other.sock"]"#), "{stdout}");
}

#[test]
fn a_file_that_is_named_in_another_way_is_disconnected_to_the_same_bytes() {
    let home = ClientHome::new("");
    home.write("dotfiles/mcp.json", CURSOR);
    fs::create_dir_all(home.path(".cursor")).expect("made");
    symlink(home.path("dotfiles/mcp.json"), home.path(".cursor/mcp.json")).expect("linked");
    for other in ["../dotfiles/mcp.json", "../dotfiles/../.cursor/mcp.json"] {
        assert_eq!(home.run(&["connect", "cursor", "--yes"]).0, 0);
        let (code, stdout, _) = home.run(&["disconnect", "cursor", "--yes", "--file", other]);
        assert_eq!((code, home.read("dotfiles/mcp.json").as_str()), (0, CURSOR), "{stdout}");
        assert!(!home.path(".cursor/mcp.json.before-metamcp").exists(), "{other}");
    }
}

#[test]
fn a_missing_file_behind_a_link_is_made_and_removed_and_the_link_stays() {
    let home = ClientHome::new("");
    fs::create_dir_all(home.path(".cursor")).expect("made");
    symlink("../dotfiles/mcp.json", home.path(".cursor/mcp.json")).expect("linked");
    let (code, _, stderr) = home.run(&["connect", "cursor", "--yes"]);
    assert_eq!(code, 1);
    assert_eq!(
        stderr,
        "error: cannot write `~/.cursor/mcp.json`: it is a link to `~/dotfiles/mcp.json`, whose directory is missing\n"
    );
    fs::create_dir_all(home.path("dotfiles")).expect("made");
    assert_eq!(home.run(&["connect", "cursor", "--yes"]).0, 0);
    assert!(home.read("dotfiles/mcp.json").contains("12011"));
    assert_eq!(home.run(&["disconnect", "cursor", "--yes"]).0, 0);
    assert!(home.path(".cursor/mcp.json").is_symlink() && !home.path("dotfiles/mcp.json").exists());
}

#[test]
fn earlier_backups_stay() {
    let home = ClientHome::new("");
    home.write(".cursor/mcp.json.before-metamcp", "mine");
    assert_eq!(home.run(&["connect", "cursor", "--yes"]).0, 0);
    assert_eq!(home.run(&["disconnect", "cursor", "--yes"]).0, 0);
    assert!(!home.path(".cursor/mcp.json").exists());
    assert_eq!(home.read(".cursor/mcp.json.before-metamcp"), "mine");

    home.write(".cursor/mcp.json", CURSOR);
    assert_eq!(home.run(&["connect", "cursor", "--yes"]).0, 0);
    let edited = home.read(".cursor/mcp.json").replace("// mine", "// ours");
    home.write(".cursor/mcp.json", &edited);
    let (_, stdout, _) = home.run(&["connect", "cursor", "--meta", "--name", "meta", "--yes"]);
    assert!(stdout.contains("backup: ~/.cursor/mcp.json.before-metamcp-3\n"), "{stdout}");
    assert_eq!(home.read(".cursor/mcp.json.before-metamcp-2"), CURSOR);
    assert_eq!(home.read(".cursor/mcp.json.before-metamcp-3"), edited);
    assert_eq!(home.run(&["disconnect", "cursor", "--yes"]).0, 0);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR.replace("// mine", "// ours"));
    assert_eq!(home.read(".cursor/mcp.json.before-metamcp-2"), CURSOR);
}

#[test]
fn an_entry_that_leads_elsewhere_now_stays_with_the_reason() {
    let home = ClientHome::new("");
    assert_eq!(home.run(&["connect", "cursor", "--yes"]).0, 0);
    let changed = home.read(".cursor/mcp.json").replace("http://127.0.0.1:12011/", "https://a/");
    home.write(".cursor/mcp.json", &changed);
    let (code, stdout, _) = home.run(&["disconnect", "cursor", "--yes"]);
    assert_eq!(code, 0);
    assert_eq!(
        stdout,
        "`metamcp` stays as it is: it was changed after `connect`, and is not metamcp any more\nCursor is not connected: ~/.cursor/mcp.json\n"
    );
    assert_eq!(home.read(".cursor/mcp.json"), changed);
}

#[test]
fn a_file_that_changes_while_the_user_is_asked_is_not_written() {
    let home = ClientHome::new("");
    for (arguments, written) in [(["connect", "cursor"], CURSOR), (["disconnect", "cursor"], "{}")]
    {
        home.write(".cursor/mcp.json", CURSOR);
        if arguments[0] == "disconnect" {
            assert_eq!(home.run(&["connect", "cursor", "--yes"]).0, 0);
        }
        let terminal = Terminal::open(80, 24);
        let mut command = home.command(&arguments);
        command.stdin(terminal.stream()).stdout(Stdio::piped()).stderr(terminal.stream());
        let process = command.spawn().expect("it starts");
        terminal.wait("[y/N]");
        let changed = written.replace('}', "}  ");
        home.write(".cursor/mcp.json", &changed);
        terminal.type_text("y\r");
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1));
        drop(command);
        let stderr = terminal.close();
        assert!(
            stderr.contains("meanwhile") && stderr.contains("run the command again"),
            "{stderr}"
        );
        assert_eq!(home.read(".cursor/mcp.json"), changed);
    }
}

#[test]
fn a_client_whose_directory_a_variable_names_has_its_file_there() {
    let home = ClientHome::new("");
    for (client, variable, file) in [
        ("codex", "CODEX_HOME", "moved/config.toml"),
        ("claude-code", "CLAUDE_CONFIG_DIR", "moved/.claude.json"),
    ] {
        let run = |arguments: &[&str]| {
            let mut command = home.command(arguments);
            command.env(variable, home.path("moved"));
            home.finish(command)
        };
        let (code, stdout, stderr) = run(&["connect", client, "--yes"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains(&format!("is connected: ~/{file}\n")), "{stdout}");
        assert!(home.read(file).contains("12011"));
        let (_, _, stderr) = run(&["import"]);
        assert!(stderr.contains("left out: it is metamcp itself"), "{stderr}");
        assert_eq!(run(&["disconnect", client, "--yes"]).0, 0);
        assert!(!home.path(file).exists());
    }
}
