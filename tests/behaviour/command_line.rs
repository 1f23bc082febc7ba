//! `check`, `serve` and `status`: their output, their exit codes and the control socket.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{
    client::running,
    daemon::{self, Daemon},
    fake::Fakes,
};

/// Runs `metamcp status` against a daemon.
pub(crate) fn status(daemon: &Daemon, more: &[&str]) -> (i32, String, String) {
    let socket = daemon.control().display().to_string();
    let mut arguments = vec!["status", "--socket", &socket];
    arguments.extend(more);
    daemon::run(&arguments)
}

#[test]
fn check_exits_with_0_for_a_valid_file_and_with_78_for_an_invalid_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let good = directory.path().join("good.toml");
    let bad = directory.path().join("bad.toml");
    fs::write(&good, "[servers.a]\ncommand = \"sh\"\n").expect("written");
    fs::write(&bad, "[servers.a]\ncommand = \"x\"\n[servers.b]\ncomand = \"y\"\n")
        .expect("written");

    let (code, stdout, stderr) = daemon::run(&["check", &good.display().to_string()]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.ends_with("good.toml: ok, 1 server\n"), "{stdout}");
    let diagnostic = |arguments: &[&str]| {
        let bad = bad.display().to_string();
        let (code, stdout, stderr) = daemon::run(&[arguments, &[&bad]].concat());
        assert_eq!((code, stdout.as_str()), (78, ""));
        stderr.replace(&bad, "bad.toml")
    };
    let expected = diagnostic(&["check"]);
    assert_eq!(diagnostic(&["serve", "--config"]), expected);
    insta::assert_snapshot!(expected, @r#"
    error: unknown key `comand`
     --> bad.toml:4:1
      |
    4 | comand = "*"
      | ^^^^^^
      = help: did you mean `command`?
    "#);
}

/// Runs `metamcp check` on a text; returns code and standard error.
fn checked(name: &str, text: &str, more: &[&str]) -> (i32, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join(name);
    fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    let (code, _, stderr) = daemon::run(&[&["check", "--offline", &file], more].concat());
    (code, stderr.replace(&directory.path().display().to_string(), "DIR"))
}

#[test]
fn check_reports_missing_programs_and_credentials() {
    let (code, stderr) = checked("c.toml", "[servers.a]\ncommand = \"/no/such\"\n", &[]);
    assert_eq!(code, 78);
    assert!(stderr.contains("server `a`: there is no program `/no/such`"), "{stderr}");
    let text = "[servers.a]\ncommand = \"no-such\"\nenv = { T = \"credential:t\" }\n";
    let (code, stderr) = checked("c.toml", text, &[]);
    assert_eq!(code, 0);
    assert!(stderr.contains("warning: server `a`: there is no program `no-such` in"), "{stderr}");
    let expected = "warning: server `a`: there is no credential `t` in `DIR/credentials`\n";
    assert!(stderr.contains(expected), "{stderr}");
    assert_eq!(checked("c.toml", text, &["--no-files"]), (0, String::new()));
}

#[test]
fn a_command_that_is_a_list_is_refused_with_the_two_keys() {
    let (code, stderr) =
        checked("c.toml", "[servers.a]\ncommand = [\"npx\", \"-y\", \"x\"]\n", &[]);
    assert_eq!(code, 78);
    insta::assert_snapshot!(stderr);
}

#[test]
fn a_json_file_in_place_of_the_configuration_names_the_import() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("mcp.json");
    fs::write(&file, "{ \"mcpServers\": {} }\n").expect("written");
    let path = file.display().to_string();
    for arguments in [&["check", &path][..], &["serve", &path], &["serve", "--config", &path]] {
        let (code, _, stderr) = daemon::run(arguments);
        assert_eq!(code, 78);
        assert!(stderr.starts_with("error: the file is JSON, and not TOML\n"), "{stderr}");
        assert!(stderr.contains(&format!("metamcp import {path}")), "{stderr}");
    }
}

#[test]
fn a_service_whose_port_is_taken_names_the_program_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (file, socket) = (directory.path().join("c.toml"), directory.path().join("c.sock"));
    let text = format!("[listen]\nhttp = \"{address}\"\ncontrol = {socket:?}\n");
    fs::write(&file, text).expect("written");
    let refused = || {
        let ended = daemon::serve(&file).wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(1));
        String::from_utf8_lossy(&ended.stderr).into_owned()
    };
    let stderr = refused();
    assert!(stderr.contains(&format!("cannot listen on {address}")), "{stderr}");
    // The service has dropped the capability to see other programs of root.
    let holder = match rustix::process::geteuid().is_root() {
        true => "a program of `root` listens there\n".to_owned(),
        false => format!("(pid {}) listens there\n", std::process::id()),
    };
    assert!(stderr.contains(&holder), "{stderr}");

    let daemon = Daemon::with("").ready();
    let text = format!("[listen]\nhttp = \"{}\"\ncontrol = {socket:?}\n", daemon.address());
    fs::write(&file, text).expect("written");
    let stderr = refused();
    assert!(stderr.contains(" listens there and is a metamcp service\n"), "{stderr}");
    assert!(stderr.contains("metamcp status"), "{stderr}");
}

#[test]
fn check_names_a_missing_file() {
    let (code, _, stderr) = daemon::run(&["check", "/no/such/file.toml"]);
    assert_eq!(code, 78);
    assert!(
        stderr.contains("cannot read configuration `/no/such/file.toml`: No such file"),
        "{stderr}"
    );
}

#[test]
fn wrong_usage_exits_with_64_and_help_with_0() {
    let (code, stdout, stderr) = daemon::run(&["statsu"]);
    assert_eq!((code, stdout.as_str()), (64, ""));
    let expected = "error: there is no command `statsu`\nhint: Did you mean `status`?\n";
    assert_eq!(stderr, expected);
    assert_eq!(daemon::run(&["demo-server", "clok"]).0, 64);
    let (code, stdout, _) = daemon::run(&["--help"]);
    assert_eq!(code, 0);
    crate::cli::golden("help", &stdout);
}

#[test]
fn without_a_service_status_exits_with_69() {
    let (code, _, stderr) = daemon::run(&["status", "--socket", "/no/such/socket"]);
    assert_eq!(code, 69);
    assert!(stderr.contains("no service answers at `/no/such/socket`"), "{stderr}");
}

#[test]
fn a_user_without_access_to_the_control_socket_learns_the_reason_and_the_remedy() {
    use std::os::unix::{fs::PermissionsExt as _, net::UnixListener, process::CommandExt as _};
    const OTHER_USER: u32 = 65_534;
    let is_root = rustix::process::geteuid().is_root();
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("control.sock");
    let _listener = UnixListener::bind(&socket).expect("bound");
    // Root may use every socket, so it asks as another user, who may pass through the directory.
    let mode = if is_root { 0o660 } else { 0 };
    fs::set_permissions(&socket, fs::Permissions::from_mode(mode)).expect("changed");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("changed");
    for command in ["status", "tools", "doctor"] {
        let mut command = daemon::command(&[command, "--socket", &socket.display().to_string()]);
        if is_root {
            command.uid(OTHER_USER).gid(OTHER_USER);
        }
        let (code, stdout, stderr) = daemon::finish(command);
        let seen = stdout + &stderr;
        assert!(code == 69 || code == 1, "{seen}");
        assert!(seen.contains("the service runs, but you may not talk to it: "), "{seen}");
        let remedy = if is_root { "sudo usermod -aG root " } else { "listen.control_group" };
        assert!(seen.contains(remedy), "{seen}");
    }
}

#[tokio::test]
async fn status_shows_every_server() {
    let fakes = Fakes::new();
    let config = fakes.server("idle", &[]) + "[servers.broken]\ncommand = \"/no/such/program\"\n";
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/");
    let pid = client.call("idle__whoami", json!({})).await["pid"].clone();
    client.tool("broken__x", json!({})).await;

    let (code, table, _) = status(&daemon, &[]);
    assert_eq!(code, 0);
    assert!(table.lines().next().is_some_and(|line| line.ends_with(", 1 of 20 connections")));
    let row = |name: &str| {
        let row = table.lines().find(|line| line.starts_with(name)).expect(name);
        row.split_whitespace().take(8).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let idle = row("idle");
    assert!(idle.starts_with("idle idle legacy ") && idle.ends_with(" s ago 0 0"), "{idle}");
    assert!(row("broken").starts_with("broken failed - - 0 0"), "{}", row("broken"));
    assert!(table.contains("there is no directory `/no`"), "{table}");

    let held = running(daemon.client("/servers/idle").hold("k"));
    daemon.client("/servers/idle").call("held", json!({ "at_least": 1 })).await;
    assert!(status(&daemon, &[]).1.contains("idle    active"), "with a request in flight");
    daemon.client("/servers/idle").call("release", json!({ "key": "k" })).await;
    held.end().await;

    let (_, json, _) = status(&daemon, &["--json"]);
    let status: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(status["servers"][1]["pid"], pid);
}

#[tokio::test]
async fn a_service_in_a_shell_prints_client_configuration_and_removes_its_socket() {
    use std::io::{BufRead as _, BufReader};
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("run/control.sock");
    let config = directory.path().join("c.toml");
    let text = format!("[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {socket:?}\n");
    fs::write(&config, text).expect("written");
    // A killed service left this socket behind, and no process listens at it.
    fs::create_dir(directory.path().join("run")).expect("made");
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("bound"));
    let mut service = daemon::serve(&config);
    let mut lines = BufReader::new(service.stdout.take().expect("piped")).lines();
    let mut printed = String::new();
    while !printed.contains("Stop with") {
        printed.push_str(&lines.next().expect("a line").expect("readable"));
        printed.push('\n');
    }
    assert!(
        printed.contains("\"mcpServers\"") && printed.contains("http://127.0.0.1:"),
        "{printed}"
    );
    assert!(!printed.contains("http://127.0.0.1:0/"), "the real port is printed: {printed}");
    let second = daemon::serve(&config).wait_with_output().expect("it ends");
    assert_eq!(second.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
    let expected = format!("another metamcp (pid {}) already answers", service.id());
    assert!(stderr.contains(&expected), "{stderr}");

    daemon::signal(service.id(), Signal::INT);
    assert!(service.wait().expect("it ends").success());
    assert!(!socket.exists());
}

#[tokio::test]
async fn the_control_socket_answers_invalid_lines_with_an_error_code() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let fakes = Fakes::new();
    let secret = fakes.server("fake", &[]) + "env = { TOKEN = \"hunter2\" }\n";
    let daemon = Daemon::with(secret).ready();
    let stream = tokio::net::UnixStream::connect(daemon.control()).await.expect("connected");
    let mut stream = BufReader::new(stream);
    for (line, code) in [
        ("nonsense", "PARSE_ERROR"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"daemon/dance"}"#, "METHOD_NOT_FOUND"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1}"#, "INVALID_REQUEST"),
    ] {
        stream.write_all(format!("{line}\n").as_bytes()).await.expect("written");
        let mut answer = String::new();
        stream.read_line(&mut answer).await.expect("an answer");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["error"]["data"]["code"], code);
    }
    let question = "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"servers/list\"}\n";
    stream.write_all(question.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_line(&mut answer).await.expect("an answer");
    assert!(!answer.contains("hunter2"));
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!((&answer["id"], &answer["result"][0]["name"]), (&json!("x"), &json!("fake")));
}

#[test]
fn a_stop_before_the_service_is_ready_removes_its_socket() {
    let fakes = Fakes::new();
    let directory = tempfile::tempdir().expect("a directory");
    let (socket, config) = (directory.path().join("control.sock"), directory.path().join("c.toml"));
    let gate = fakes.path("never").display().to_string();
    let server = fakes.server("slow", &["--start-gate", &gate]) + "start = \"prewarm\"\n";
    let listen = format!("[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {socket:?}\n");
    fs::write(&config, listen + &server).expect("written");
    let mut service = daemon::serve(&config);
    while fakes.pids("slow").is_empty() {
        std::thread::yield_now();
    }
    assert!(socket.exists());

    daemon::signal(service.id(), Signal::TERM);
    assert!(service.wait().expect("it ends").success());
    assert!(!socket.exists());
}

#[test]
fn a_regular_file_at_the_control_socket_path_is_not_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (precious, config) = (directory.path().join("precious"), directory.path().join("c.toml"));
    fs::write(&precious, "data").expect("written");
    let listen = format!("[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {precious:?}\n");
    fs::write(&config, listen).expect("written");

    let (code, _, stderr) = daemon::run(&["serve", "--config", &config.display().to_string()]);

    assert_eq!(code, 1);
    assert!(stderr.contains("exists and is not a socket"), "{stderr}");
    assert_eq!(fs::read_to_string(&precious).expect("readable"), "data");
}
