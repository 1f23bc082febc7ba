//! The configuration of the real program, from file, environment variables and flags.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    daemon::{self, Daemon},
    fake::Fakes,
};

/// Runs the program with `text` as configuration file between two groups of arguments.
fn with_file(
    text: &str,
    before: &[&str],
    after: &[&str],
    environment: &[(&str, &str)],
) -> (i32, String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("c.toml");
    fs::write(&path, text).expect("written");
    let path = path.display().to_string();
    let arguments = [before, &[&path], after].concat();
    let (code, stdout, stderr) = daemon::run_in(Path::new("."), environment, &arguments);
    (code, stdout.replace(&path, "c.toml"), stderr.replace(&path, "c.toml"))
}

#[tokio::test]
async fn environment_variables_and_flags_survive_a_reload() {
    let fakes = Fakes::new();
    let server = fakes.server("fake", &[]);
    let daemon = Daemon::with("[pool]\nsize = 5\nreserve_size = 1\n".to_owned() + &server)
        .env("METAMCP_POOL_SIZE", "6")
        .env("METAMCP_POOL_RESERVE_SIZE", "2")
        .env("METAMCP_SERVERS_FAKE_START", "eager")
        .env("METAMCP_NOTHING_OF_OURS", "1")
        .flags(&["--max-connections", "7"])
        .ready();
    let line = || super::command_line::status(&daemon, &[]).1;
    assert!(line().contains("of 7 connections"), "{}", line());
    daemon.wait_log("METAMCP_NOTHING_OF_OURS");

    daemon.rewrite(&("[pool]\nsize = 8\n".to_owned() + &server + &fakes.server("added", &[])));
    daemon.signal(Signal::HUP);
    daemon.wait_log(r#"added=["added"]"#);
    assert!(line().contains("of 7 connections"), "{}", line());
    assert!(daemon.client("/").call("added__whoami", json!({})).await["pid"].is_number());
}

#[test]
fn an_invalid_variable_or_flag_value_exits_with_78_and_is_named() {
    let serve = |arguments: &[&str], environment: &[(&str, &str)]| {
        let (code, stdout, stderr) = with_file("", &["serve", "--config"], arguments, environment);
        assert_eq!((code, stdout.as_str()), (78, ""), "{stderr}");
        stderr
    };
    insta::assert_snapshot!(serve(&[], &[("METAMCP_LISTEN_SESSION", "of")]), @r#"
    error: unknown value `of`
     --> METAMCP_LISTEN_SESSION
      |
      | listen.session = "of"
      |                  ^^^^
      = help: did you mean `off`?
    "#);
    insta::assert_snapshot!(serve(&["--cooldown", "soon"], &[]), @r#"
    error: `soon` is not a duration, expected one such as `250ms`, `30s`, `5m` or `1h`
     --> --cooldown
      |
      | breaker.cooldown = "soon"
      |                    ^^^^^^
      = help: write a number and a unit, as in "250ms", "30s" or "5m"
    "#);
    let stderr = serve(&[], &[("METAMCP_POOL_SIZ", "3")]);
    assert!(stderr.contains("did you mean `METAMCP_POOL_SIZE`?"), "{stderr}");
}

#[test]
fn an_impossible_flag_exits_with_64() {
    for (arguments, word) in [
        (&["--transport", "carrier-pigeon"][..], "streamable-http"),
        (&["--set", "pool.size"], "has no `=`"),
        (&["--tls"], "needs a certificate"),
    ] {
        let (code, _, stderr) = with_file("", &["serve", "--config"], arguments, &[]);
        assert_eq!(code, 64, "{stderr}");
        assert!(stderr.contains(word), "{stderr}");
    }
    let (code, _, stderr) = with_file("", &["check"], &["--max-connections", "3"], &[]);
    assert_eq!(code, 64);
    assert!(stderr.contains("--effective"), "{stderr}");
}

#[test]
fn the_effective_configuration_is_printed_with_the_source_of_each_setting() {
    let file = "[pool]\nsize = 10\n[servers.git]\ncommand = \"git-mcp\"\nenv = { TOKEN = \"hunter2\", KEY = \"credential:k\" }\n";
    let environment = [
        ("METAMCP_POOL_IDLE_TIMEOUT", "2m"),
        ("METAMCP_SERVERS_GIT_RETRY", "never"),
        ("METAMCP_NOTHING_OF_OURS", "1"),
    ];
    let flags = [
        "--stateless",
        "--transport",
        "sse",
        "--port",
        "4000",
        "--failure-threshold",
        "3",
        "--idle-timeout",
        "60",
        "--set",
        "tools.sets=[\"core\", \"metatools\"]",
        "--tls-cert",
        "/c.pem",
        "--tls-key",
        "credential:tls",
    ];
    let (code, stdout, stderr) = with_file(file, &["check", "--effective"], &flags, &environment);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("METAMCP_NOTHING_OF_OURS"), "{stderr}");
    assert!(!stdout.contains("hunter2"));
    insta::assert_snapshot!("effective", stdout);

    // The output is a configuration with the same values.
    let (code, again, stderr) = with_file(&stdout, &["check", "--effective"], &[], &[]);
    assert_eq!(code, 0, "{stderr}");
    let values = |text: &str| text.parse::<toml::Table>().expect("TOML");
    assert_eq!(values(&again), values(&stdout));

    let arguments = [&flags[..], &["--json"]].concat();
    let (_, json, _) = with_file(file, &["check", "--effective"], &arguments, &environment);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        json["pool.size"],
        json!({ "value": 10, "source": { "kind": "file", "file": "c.toml", "line": 2 } })
    );
    assert_eq!(
        json["pool.idle_timeout"],
        json!({ "value": "60s", "source": { "kind": "flag", "name": "--idle-timeout" } })
    );
    assert_eq!(
        json["servers.git.retry"]["source"],
        json!({ "kind": "environment", "name": "METAMCP_SERVERS_GIT_RETRY" })
    );
    assert_eq!(json["pool.min_size"], json!({ "value": 0, "source": { "kind": "default" } }));
    assert_eq!(json["servers.git.env.TOKEN"]["value"], "***");
}

#[test]
fn the_printed_effective_configuration_is_valid_and_hides_credentials_in_urls() {
    let file = "[provision]\ntrusted = [\"internal\"]\n\
        [provision.servers.notes]\nnamespace = \"internal\"\ndescription = \"notes\"\ncommand = \"x\"\n\
        [provision.registry]\nurl = \"http://ada:hunter2@127.0.0.1:1/\"\n\
        [service]\nproxy = \"http://ada:hunter2@127.0.0.1:3/\"\n\
        [servers.far]\nurl = \"http://ada:hunter2@127.0.0.1:2/mcp?key=hunter2\"\n\
        auth = { client_id = \"a\", client_secret = \"env:A\" }\n";

    let (code, stdout, stderr) = with_file(file, &["check", "--effective"], &[], &[]);

    assert_eq!(code, 0, "{stderr}");
    assert!(!stdout.contains("hunter2"), "{stdout}");
    assert!(stdout.contains("http://***@127.0.0.1:2/mcp?***"), "{stdout}");
    let (code, again, stderr) = with_file(&stdout, &["check", "--effective"], &[], &[]);
    assert_eq!(code, 0, "{stderr}");
    let values = |text: &str| text.parse::<toml::Table>().expect("TOML");
    assert_eq!(values(&again), values(&stdout));
    let far = "[servers.far]\nurl = \"ftp://ada:hunter2@h/mcp?key=hunter2\"\n";
    let (_, _, stderr) = with_file(far, &["check"], &[], &[]);
    assert!(stderr.contains("`ftp://***@h/***` is not an http URL"), "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

#[test]
fn the_printed_schema_accepts_the_effective_configuration() {
    let (code, schema, _) = daemon::run(&["schema"]);
    assert_eq!(code, 0);
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    let (_, effective, _) = daemon::run(&["check", "--effective"]);
    let effective: toml::Table = effective.parse().expect("TOML");
    let effective = serde_json::to_value(effective).expect("JSON");
    if let Err(error) = validator.validate(&effective) {
        panic!("{error} at {}", error.instance_path());
    }
    assert!(!validator.is_valid(&json!({ "pool": { "size": 0 } })));
}

#[test]
fn a_device_file_is_refused_as_configuration() {
    let (code, stdout, stderr) = daemon::run_in(Path::new("."), &[], &["check", "/dev/zero"]);
    assert_eq!((code, stdout.as_str()), (78, ""), "{stderr}");
    assert!(
        stderr.contains("/dev/zero") && stderr.contains("more than 16777216 bytes"),
        "{stderr}"
    );
}

#[tokio::test]
async fn the_log_names_a_credential_that_other_users_can_read() {
    let credentials = tempfile::tempdir().expect("a directory");
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
    };
    let path = credentials.path().join("api-key");
    fs::write(&path, "s3cret").expect("written");
    open(&path, 0o644);
    open(credentials.path(), 0o755);
    let daemon = Daemon::with("").env("CREDENTIALS_DIRECTORY", credentials.path()).ready();
    daemon.wait_log("all users can read the credential");
    assert!(daemon.log().contains("the credential `api-key`"), "{}", daemon.log());
}

#[test]
fn the_configuration_path_comes_from_the_flag_the_variable_the_user_or_the_host() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |path: &str, n_servers: usize| {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        let server = |number| format!("[servers.s{number}]\ncommand = \"/bin/true\"\n");
        fs::write(&path, (0..n_servers).map(server).collect::<String>()).expect("written");
        path.display().to_string()
    };
    let (flag, variable) = (file("flag.toml", 4), file("variable.toml", 3));
    let own = file("config/metamcp/metamcp.toml", 2);
    let home = directory.path().join("config").display().to_string();
    let nothing = directory.path().join("nothing").display().to_string();
    let check = |arguments: &[&str], environment: &[(&str, &str)]| {
        let arguments = [&["check", "--offline"], arguments].concat();
        let (code, stdout, stderr) = daemon::run_in(Path::new("."), environment, &arguments);
        (code, stdout + &stderr)
    };
    let ok = |file: &str, n_servers: usize| (0, format!("{file}: ok, {n_servers} servers\n"));
    let both = [("XDG_CONFIG_HOME", home.as_str()), ("METAMCP_CONFIG", variable.as_str())];
    assert_eq!(check(&["--config", &flag], &both), ok(&flag, 4));
    assert_eq!(check(&[&flag], &both), ok(&flag, 4));
    assert_eq!(check(&[], &both), ok(&variable, 3));
    assert_eq!(check(&[], &both[..1]), ok(&own, 2));
    let empty = [both[0], ("METAMCP_CONFIG", "")];
    assert_eq!(check(&[], &empty), ok(&own, 2));

    // A named file that is missing is an error.
    let (code, output) = check(&[], &[both[0], ("METAMCP_CONFIG", &nothing)]);
    assert!(code == 78 && output.contains(&nothing), "{output}");
    let (code, output) = check(&[], &[("XDG_CONFIG_HOME", &nothing)]);
    assert!(code == 78 && output.contains("METAMCP_CONFIG"), "{output}");
}

#[tokio::test]
async fn the_service_logs_the_configuration_file_that_it_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("named.toml");
    let fakes = Fakes::new();
    fs::write(&file, fakes.server("named", &[])).expect("written");
    let path = file.display().to_string();
    let daemon = Daemon::with("").without_file().env("METAMCP_CONFIG", &path).ready();
    daemon.wait_log(&format!("configuration read from `{path}`"));
    assert!(daemon.client("/").call("named__whoami", json!({})).await["pid"].is_number());

    let demonstration = Daemon::with("").without_file().ready();
    demonstration.wait_log("serving the demonstration servers");
}

#[test]
fn check_warns_about_a_stateful_server_that_clients_share() {
    let text = "[servers.browser]\ncommand = \"npx\"\nargs = [\"@playwright/mcp@latest\"]\n";
    let (code, stdout, stderr) = with_file(text, &["check", "--offline"], &[], &[]);
    assert_eq!((code, stdout.as_str()), (0, "c.toml: ok, 1 server\n"));
    let expected = "hint: all clients of `browser` share one browser; with `sharing = \"session\"` each has its own\n";
    assert_eq!(stderr, expected);
    let (_, stdout, _) = with_file(text, &["doctor", "--no-dial", "--config"], &[], &[]);
    assert!(stdout.contains("all clients of `browser` share one browser"), "{stdout}");

    let own = text.to_owned() + "sharing = \"session\"\n";
    let (_, _, stderr) = with_file(&own, &["check", "--offline"], &[], &[]);
    assert_eq!(stderr, "");
}

/// The part of the warning that names the danger of the profile `dev`.
const UNISOLATED: &str = "a script of a client runs without isolation";

#[test]
fn check_and_doctor_warn_about_scripts_without_isolation() {
    let text = "[execute]\nprofile = \"dev\"\n";
    for arguments in [&["check", "--offline"][..], &["check", "--effective"]] {
        let (code, _, stderr) = with_file(text, arguments, &[], &[]);
        assert_eq!(code, 0, "{stderr}");
        let warns = stderr.starts_with("warning: `execute.profile`") && stderr.contains(UNISOLATED);
        assert!(warns, "{stderr}");
    }
    let (_, stdout, _) = with_file(text, &["doctor", "--no-dial", "--config"], &[], &[]);
    assert!(stdout.contains("scripts run without isolation"), "{stdout}");

    let (_, _, stderr) = with_file("[execute]\n", &["check", "--offline"], &[], &[]);
    assert_eq!(stderr, "");
    let (code, _, stderr) =
        with_file("[execute]\nprofile = \"wasm\"\n", &["check", "--offline"], &[], &[]);
    assert_eq!(code, 78, "{stderr}");
    assert!(stderr.contains("profile `wasm` is not built into this metamcp"), "{stderr}");
}

#[tokio::test]
async fn the_log_warns_of_scripts_without_isolation_at_the_start_and_at_each_reload() {
    let text = "[execute]\nprofile = \"dev\"\n";
    let n_warnings = |daemon: &Daemon| daemon.log().matches(UNISOLATED).count();
    let mut daemon = Daemon::with(text).ready();
    daemon.wait_log(UNISOLATED);
    assert!(daemon.log().lines().any(|line| line.contains("WARN") && line.contains(UNISOLATED)));
    assert_eq!(n_warnings(&daemon), 1);

    daemon.reload();
    // The log is written by a thread of its own.
    crate::until(async || n_warnings(&daemon) == 2).await;
    daemon.rewrite("[execute]\n");
    daemon.reload();
    // The log is written by a thread of its own.
    crate::until(async || n_warnings(&daemon) == 2).await;
}
