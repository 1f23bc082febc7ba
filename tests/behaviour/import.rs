//! `metamcp import`: the conversion of other clients' configuration files.
#![expect(clippy::disallowed_methods, reason = "starts the program in another home")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::harness::daemon::{self, Daemon, PROGRAM};

/// The example files, each with the path where its client keeps the file.
const PLACES: [(&str, &str); 17] = [
    ("claude-code-user.json", "home/.claude.json"),
    ("claude-code-project.json", "shop/.mcp.json"),
    ("claude-desktop.json", "home/.config/Claude/claude_desktop_config.json"),
    ("cursor.json", "shop/.cursor/mcp.json"),
    ("vscode-mcp.json", "shop/.vscode/mcp.json"),
    ("vscode-settings.json", "home/.config/Code/User/settings.json"),
    ("windsurf.json", "home/.codeium/windsurf/mcp_config.json"),
    ("codex.toml", "home/.codex/config.toml"),
    ("opencode.jsonc", "home/.config/opencode/opencode.jsonc"),
    ("gemini.json", "shop/.gemini/settings.json"),
    ("zed.json", "home/.config/zed/settings.json"),
    ("goose.yaml", "home/.config/goose/config.yaml"),
    ("cline.json", "home/.cline/data/settings/cline_mcp_settings.json"),
    ("copilot-cli.json", "home/.copilot/mcp-config.json"),
    ("kiro.json", "home/.kiro/settings/mcp.json"),
    ("amp.json", "home/.config/amp/settings.json"),
    ("roo.json", "shop/.roo/mcp.json"),
];

/// Runs `metamcp import` in the project below `root`, with a home directory below `root`.
fn import(root: &Path, arguments: &[&str]) -> (i32, String, String) {
    let project = root.join("shop");
    fs::create_dir_all(&project).expect("made");
    let output = Command::new(PROGRAM)
        .arg("import")
        .args(arguments)
        .current_dir(project)
        .env("HOME", root.join("home"))
        .env_remove("XDG_CONFIG_HOME")
        .env("METAMCP_SOCKET", root.join("no.sock"))
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stdout).expect("UTF-8"),
        String::from_utf8(output.stderr).expect("UTF-8"),
    )
}

#[test]
fn import_reads_the_files_of_all_clients_and_leaves_them_unchanged() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let examples = Path::new("tests/import");
    for (example, place) in PLACES {
        let place = root.join(place);
        fs::create_dir_all(place.parent().expect("below the root")).expect("made");
        fs::copy(examples.join(example), place).expect("copied");
    }

    let (code, toml, stderr) = import(root, &[]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(import(root, &["--all"]), (code, toml.clone(), stderr.clone()));
    let (code, nix, _) = import(root, &["--nix"]);
    assert_eq!(code, 0);
    let (code, json, _) = import(root, &["--json"]);
    assert_eq!(code, 0);
    for text in [&toml, &nix, &json, &stderr] {
        assert!(!text.contains("CANARY"), "{text}");
    }

    let json: Value = serde_json::from_str(&json).expect("JSON");
    let origins = json["servers"].as_array().into_iter().flatten().flat_map(|server| {
        server["origins"].as_array().expect("a list").iter().map(|origin| origin["client"].clone())
    });
    let mut clients: Vec<String> =
        origins.map(|client| client.as_str().expect("a text").to_owned()).collect();
    clients.sort();
    clients.dedup();
    let all = [
        "amp",
        "claude-code",
        "claude-desktop",
        "cline",
        "codex",
        "copilot-cli",
        "cursor",
        "gemini",
        "goose",
        "kiro",
        "opencode",
        "roo",
        "vscode",
        "windsurf",
        "zed",
    ];
    assert_eq!(clients, all);
    assert!(stderr.contains("Credentials to create"), "{stderr}");

    let config = root.join("metamcp.toml");
    fs::write(&config, &toml).expect("written");
    let config = config.display().to_string();
    assert_eq!(daemon::run(&["check", "--no-files", &config]).0, 0);
    for (example, place) in PLACES {
        let is_same = fs::read(examples.join(example)).ok() == fs::read(root.join(place)).ok();
        assert!(is_same, "{place} is unchanged");
    }
}

#[test]
fn import_fails_on_an_unreadable_named_file_and_skips_an_unreadable_usual_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let (code, stdout, stderr) = import(root, &[]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert_eq!(
        stderr,
        "error: no client has a file in its usual place\nhint: Name the file: `metamcp import FILE`.\n"
    );

    fs::write(root.join("shop/.mcp.json"), "{\"token\": CANARY}").expect("written");
    let (code, _, stderr) = import(root, &[".mcp.json"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(stderr, @r"
    error: cannot read `.mcp.json`: not JSON: line 1, column 11
    hint: Correct the file at that place, or name its format with --format.
    ");

    fs::create_dir_all(root.join("home/.cursor")).expect("made");
    let cursor = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
    fs::write(root.join("home/.cursor/mcp.json"), cursor).expect("written");
    let (code, stdout, stderr) = import(root, &[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.ends_with("[servers.a]\ncommand = \"x\"\n"), "{stdout}");
    assert!(stderr.starts_with("warning: cannot read `") && !stderr.contains("CANARY"), "{stderr}");
}

#[test]
fn imported_servers_are_added_to_the_configuration_which_keeps_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    fs::create_dir_all(root.join("home/.cursor")).expect("made");
    let cursor = "{\"mcpServers\": {\"a\": {\"command\": \"other\"}, \"b\": {\"command\": \"y\", \"env\": {\"API_TOKEN\": \"CANARY\"}}}}";
    fs::write(root.join("home/.cursor/mcp.json"), cursor).expect("written");
    let own = "# mine\n[servers.a] # first\ncommand = 'x'\n";
    let config = root.join("own.toml");
    fs::write(&config, own).expect("written");
    let path = config.display().to_string();

    let (code, stdout, stderr) = import(root, &["--write", "--config", &path]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("own.toml: b\n"), "{stdout}");
    assert!(stderr.starts_with("declared already, and left as they are: a\n"), "{stderr}");
    let text = fs::read_to_string(&config).expect("there");
    assert!(text.starts_with(own) && text.contains("[servers.b]\n"), "{text}");
    assert!(!text.contains("CANARY") && !stderr.contains("CANARY"), "{text}{stderr}");

    let (code, stdout, _) = import(root, &["--write", "--config", &path]);
    assert_eq!(code, 0);
    assert!(stdout.starts_with("nothing is added to "), "{stdout}");
    assert_eq!(fs::read_to_string(&config).expect("there"), text);

    let (code, _, stderr) = import(root, &["--write"]);
    assert_eq!(code, 0, "{stderr}");
    let made = fs::read_to_string(root.join("home/.config/metamcp/metamcp.toml")).expect("made");
    assert!(made.contains("[servers.a]") && made.contains("[servers.b]"), "{made}");

    fs::write(&config, "servers = 7\n").expect("written");
    assert_eq!(import(root, &["--write", "--config", &path]).0, 78);
    assert_eq!(fs::read_to_string(&config).expect("there"), "servers = 7\n");
}

#[test]
fn wrong_usage_of_import_exits_with_64() {
    let directory = tempfile::tempdir().expect("a directory");
    for wrong in [
        &["--format", "vi", "x.json"][..],
        &["--format", "cursor"],
        &["--nix", "--json"],
        &["--all", "x.json"],
    ] {
        assert_eq!(import(directory.path(), wrong).0, 64, "{wrong:?}");
    }
}

#[test]
fn an_imported_shell_command_passes_the_original_arguments_to_its_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let arguments = [
        "%s|",
        "it's",
        "a b",
        "$HOME",
        "`id`",
        "",
        "new\nline",
        "\\",
        "\"",
        "--token",
        "se'cr$et x",
        "--header",
        "Authorization: Bearer ab'c",
        "KEY=va lue",
        "ünï",
        "*",
    ];
    let server = serde_json::json!({ "command": "printf", "args": arguments });
    let file = serde_json::json!({ "mcpServers": { "a": server } });
    fs::create_dir_all(root.join("shop")).expect("made");
    fs::write(root.join("shop/.mcp.json"), file.to_string()).expect("written");

    let (code, json, stderr) = import(root, &[".mcp.json", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let settings = &json["servers"][0]["settings"];
    let secrets = [
        ("TOKEN", "credential:a-token", "se'cr$et x"),
        ("AUTHORIZATION", "credential:a-authorization", "Bearer ab'c"),
        ("KEY", "credential:a-key", "va lue"),
    ];
    let mut shell = Command::new(settings["command"].as_str().expect("a text"));
    for argument in settings["args"].as_array().expect("a list") {
        shell.arg(argument.as_str().expect("a text"));
    }
    for (variable, reference, value) in secrets {
        assert_eq!(settings["env"][variable], reference);
        shell.env(variable, value);
    }
    let output = shell.output().expect("it starts");

    let expected: String = arguments[1..].iter().map(|argument| format!("{argument}|")).collect();
    assert_eq!(String::from_utf8(output.stdout).expect("UTF-8"), expected);
}

#[test]
fn every_server_of_a_real_world_file_is_imported_and_accepted() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    fs::create_dir_all(root.join("shop")).expect("made");
    fs::copy("tests/import/remote-servers.json", root.join("shop/.mcp.json")).expect("copied");

    let (code, json, stderr) = import(root, &[".mcp.json", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let servers = json["servers"].as_array().expect("a list");
    let unused: Vec<&Value> = servers.iter().filter(|server| server["state"] != "active").collect();
    assert!(unused.is_empty(), "{unused:#?}");
    let n_with =
        |key: &str| servers.iter().filter(|server| server["settings"][key] != Value::Null).count();
    assert_eq!((servers.len(), n_with("url"), n_with("command")), (23, 19, 4));

    let (_, toml, _) = import(root, &[".mcp.json"]);
    let config = root.join("metamcp.toml");
    fs::write(&config, toml).expect("written");
    let config = config.display().to_string();
    // The authority of `warehouse` is a file of another host.
    let (code, stdout, stderr) = daemon::run(&["check", "--no-files", &config]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let (_, effective, _) = daemon::run(&["check", "--offline", "--effective", &config]);
    assert!(effective.contains("credential:warehouse-client-secret"), "{effective}");
    assert!(!effective.contains("CANARY"), "{effective}");
}

#[test]
fn imports_at_the_same_time_are_all_kept() {
    let daemon = Daemon::with("# mine\r\n").ready();
    let socket = daemon.control().display().to_string();
    let directory = daemon.control().parent().expect("a directory").to_owned();
    let names = ["a", "b", "c", "d", "e", "f"];
    let outcomes: Vec<(i32, String, String)> = std::thread::scope(|scope| {
        let importing = names.map(|name| {
            let file = directory.join(format!("{name}.json"));
            let text = format!(r#"{{"mcpServers": {{"{name}": {{"command": "x-{name}"}}}}}}"#);
            fs::write(&file, text).expect("written");
            let file = file.display().to_string();
            let arguments = ["import", &file, "--write", "--socket", &socket].map(str::to_owned);
            scope.spawn(move || daemon::run(&arguments.each_ref().map(String::as_str)))
        });
        importing.map(|importing| importing.join().expect("it ends")).into()
    });
    let text = fs::read_to_string(directory.join("metamcp.toml")).expect("there");
    assert!(text.starts_with("# mine\r\n"), "{text:?}");
    assert!(!text.replace("\r\n", "").contains('\n'), "{text:?}");
    for (name, (code, stdout, stderr)) in names.iter().zip(&outcomes) {
        assert_eq!(*code, 0, "{name}: {stderr}");
        assert!(text.contains(&format!("[servers.{name}]")), "{name}: {text}");
        assert!(stdout.ends_with("The running service has read it.\n"), "{stdout}");
    }
}

#[test]
fn metamcp_itself_is_left_out_of_an_import_at_the_address_of_the_configuration() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    fs::create_dir_all(root.join("home/.config/metamcp")).expect("made");
    let config = root.join("home/.config/metamcp/metamcp.toml");
    fs::write(config, "[listen]\nhttp = \"127.0.0.1:4711\"\n").expect("written");
    fs::create_dir_all(root.join("shop")).expect("made");
    let servers =
        r#"{"mcpServers": {"a": {"url": "http://localhost:4711/"}, "b": {"command": "x"}}}"#;
    fs::write(root.join("shop/.mcp.json"), servers).expect("written");
    let (code, stdout, stderr) = import(root, &[".mcp.json"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(!stdout.contains("[servers.a]") && stdout.contains("[servers.b]"), "{stdout}");
}
