//! `add`, `remove`, `enable` and `disable`: servers by hand, in the file of the running service.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::harness::{
    daemon::{self, Daemon},
    fake::{self, Fakes},
    terminal::Terminal,
};

/// A running service with a commented file, and fakes for new servers.
struct Rig {
    fakes: Fakes,
    daemon: Daemon,
    before: String,
}

impl Rig {
    fn start() -> Self {
        let fakes = Fakes::new();
        let before = format!("# mine\n\n{}\n# the end\n", fakes.server("stays", &[]).trim_end());
        let daemon = Daemon::with(before.clone()).ready();
        Self { fakes, daemon, before }
    }

    fn directory(&self) -> PathBuf {
        self.daemon.control().parent().expect("a directory").to_owned()
    }

    fn file(&self) -> String {
        fs::read_to_string(self.directory().join("metamcp.toml")).expect("readable")
    }

    /// Runs a command with `input` on its standard input.
    fn run_with(&self, input: &str, arguments: &[&str]) -> (i32, String, String) {
        let socket = self.daemon.control().display().to_string();
        let (command, rest) = arguments.split_first().expect("a command");
        let (code, stdout, stderr) =
            daemon::run_with(input, &[&[*command, "--socket", &socket], rest].concat());
        let directory = self.directory().display().to_string();
        (code, stdout.replace(&directory, "DIR"), stderr.replace(&directory, "DIR"))
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        self.run_with("", arguments)
    }

    /// Adds a fake with further options.
    fn add(&self, name: &str, input: &str, options: &[&str]) -> (i32, String, String) {
        let (program, log) = (fake::program(), self.fakes.path(&format!("{name}.log")));
        let (program, log) = (program.display().to_string(), log.display().to_string());
        let command = ["--", &program, "stdio", "--log", &log];
        self.run_with(input, &[&["add", name], options, &command].concat())
    }
}

#[tokio::test]
async fn an_added_server_is_connected_and_the_rest_of_the_file_stays() {
    let rig = Rig::start();
    let client = rig.daemon.client("/");
    let pid = client.call("stays__whoami", json!({})).await["pid"].clone();

    let (code, stdout, stderr) = rig.add("more", "", &["--env", "LEVEL=debug"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("server `more` is added to `DIR/metamcp.toml`: "), "{stdout}");
    assert!(stdout.ends_with(" tools\n"), "{stdout}");
    assert!(rig.file().starts_with(rig.before.trim_end()), "{}", rig.file());
    assert!(client.call("more__whoami", json!({})).await["pid"].is_number());
    assert_eq!(client.call("stays__whoami", json!({})).await["pid"], pid, "not disturbed");

    let (code, _, stderr) = rig.add("more", "", &[]);
    assert_eq!(code, 1);
    assert!(stderr.contains("server `more` is declared already"), "{stderr}");

    let (code, stdout, _) = rig.run(&["disable", "more"]);
    assert_eq!((code, stdout.as_str()), (0, "server `more` is disabled in `DIR/metamcp.toml`\n"));
    let (_, _, stderr) = rig.run(&["call", "more/whoami"]);
    assert_eq!(stderr, "error: server `more` is disabled\nhint: Run `metamcp enable more`.\n");
    let (code, stdout, stderr) = rig.run(&["enable", "more", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let answer: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(answer["tools"].as_u64() > Some(0), "{answer}");
    assert_eq!(answer["reloaded"], true);

    let (code, stdout, _) = rig.run(&["remove", "more"]);
    assert_eq!((code, stdout.as_str()), (0, "server `more` is removed from `DIR/metamcp.toml`\n"));
    assert_eq!(rig.file(), rig.before);
    assert_eq!(client.call("stays__whoami", json!({})).await["pid"], pid);
    let (code, _, stderr) = rig.run(&["remove", "more"]);
    assert_eq!(code, 1);
    assert!(stderr.starts_with("error: server `more` is not declared in `DIR/"), "{stderr}");
}

#[test]
fn a_dry_run_and_an_invalid_server_change_nothing() {
    let rig = Rig::start();
    let (code, stdout, _) = rig.run(&["add", "x", "https://h/mcp", "--dry-run"]);
    assert_eq!((code, stdout.as_str()), (0, "[servers.x]\nurl = \"https://h/mcp\"\n"));
    for (arguments, code, expected) in [
        (&["add", "x", "ftp://h/mcp"][..], 78, "Nothing is changed"),
        (&["add", "x", "h/mcp"], 64, "`h/mcp` is not a URL"),
        (&["add", "a__b", "https://h/mcp"], 64, "single `_`"),
        (&["add", "x", "--header", "A", "https://h/mcp"], 64, "has no `=`"),
        (&["add", "x", "--env", "TOKEN=hunter2", "--", "x"], 64, "TOKEN=credential:NAME"),
        (&["add", "x", "--", "x", "--token", "hunter2"], 64, "argument 2 of the program"),
        (&["add", "x", "--", "pg postgres://a:hunter2@h/db"], 64, "the name of the program"),
    ] {
        let (found, _, stderr) = rig.run(arguments);
        assert_eq!(found, code, "{stderr}");
        assert!(stderr.contains(expected) && !stderr.contains("hunter2"), "{stderr}");
    }
    assert_eq!(rig.file(), rig.before);
}

#[test]
fn a_server_that_cannot_start_stays_declared_and_the_cause_comes_first() {
    let rig = Rig::start();
    let (code, _, stderr) = rig.run(&["add", "broken", "--", "/no/such/program"]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(stderr);
    assert!(rig.file().contains("[servers.broken]"));
}

#[test]
fn a_file_that_the_service_refuses_is_restored() {
    let rig = Rig::start();
    let mode = |mode| {
        let path = rig.directory().join("metamcp.toml");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
    };
    mode(0o640);
    let token = "\n[listen]\ntoken = \"credential:none\"\n";
    let before = rig.before.clone() + token;
    rig.daemon.rewrite(&before);
    let (code, _, stderr) = rig.run(&["add", "x", "--", "x"]);
    assert_eq!(code, 78, "{stderr}");
    assert!(stderr.contains("there is no `credential:none`"), "{stderr}");
    assert!(stderr.contains("`DIR/metamcp.toml` is as before"), "{stderr}");
    assert_eq!(rig.file(), before);
    let found = fs::metadata(rig.directory().join("metamcp.toml")).expect("there");
    assert_eq!(found.permissions().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn a_secret_is_read_from_standard_input_into_a_private_file() {
    let rig = Rig::start();
    let option = ["--env", "MORE_TOKEN=credential:more"];
    let (code, _, stderr) = rig.add("more", "", &option);
    assert_eq!(code, 64);
    assert!(stderr.contains("no value for the credential `more`"), "{stderr}");
    assert_eq!(rig.file(), rig.before);

    let (code, stdout, stderr) = rig.add("more", "hunter2-hunter2\n", &option);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains(" tools\n"), "the service reads the new secret: {stdout}");
    assert_eq!(stderr, "credential `more` is written to `DIR/credentials/more`\n");
    let path = rig.directory().join("credentials/more");
    assert_eq!(fs::read_to_string(&path).expect("there"), "hunter2-hunter2");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    let client = rig.daemon.client("/servers/more");
    let environment = client.call("env", json!({ "name": "MORE_TOKEN" })).await;
    assert_eq!(environment["value"], "hunter2-hunter2");
    assert!(!rig.file().contains("hunter2"));

    let (code, _, stderr) = rig.run(&["remove", "more"]);
    assert_eq!(code, 0);
    assert!(stderr.contains("its credential `DIR/credentials/more` stays"), "{stderr}");
    let (code, _, stderr) = rig.add("more", "hunter3\n", &option);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        stderr,
        "note: credential `more` exists already and stays as it is: write a new value to `DIR/credentials/more` to replace it\n"
    );
    assert_eq!(fs::read_to_string(&path).expect("there"), "hunter2-hunter2");
}

#[test]
fn a_credential_is_written_beside_the_path_by_which_the_service_reads_the_file() {
    let rig = Rig::start();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let link = elsewhere.path().join("linked.toml");
    std::os::unix::fs::symlink(rig.directory().join("metamcp.toml"), &link).expect("linked");
    let link = link.display().to_string();
    let option = ["--config", &link, "--env", "MORE_TOKEN=credential:more"];
    let (code, stdout, stderr) = rig.add("more", "hunter2-hunter2\n", &option);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains(" tools\n"), "the service reads the new secret: {stdout}");
    assert_eq!(stderr, "credential `more` is written to `DIR/credentials/more`\n");
    assert!(!elsewhere.path().join("credentials").exists());
}

#[test]
fn a_secret_that_is_typed_is_not_shown() {
    let rig = Rig::start();
    let terminal = Terminal::open(80, 24);
    let socket = rig.daemon.control().display().to_string();
    let mut command = daemon::command(&[
        "add",
        "--socket",
        &socket,
        "web",
        "https://127.0.0.1:1/mcp",
        "--header",
        "Authorization=credential:web",
    ]);
    command.stdin(terminal.stream()).stdout(Stdio::piped()).stderr(terminal.stream());
    let process = command.spawn().expect("it starts");
    terminal.wait("Value of `Authorization`, for the credential `web`: ");
    terminal.type_text("Bearer hunter2\r");
    process.wait_with_output().expect("it ends");
    drop(command);
    let path = rig.directory().join("credentials/web");
    assert_eq!(fs::read_to_string(path).expect("there"), "Bearer hunter2");
    assert!(!terminal.close().contains("hunter2"));
}

#[test]
fn without_a_service_the_users_own_file_is_made_and_the_start_is_named() {
    let home = tempfile::tempdir().expect("a directory");
    let home_path = home.path().display().to_string();
    let environment = [
        ("HOME", home_path.as_str()),
        ("XDG_CONFIG_HOME", ""),
        ("XDG_RUNTIME_DIR", home_path.as_str()),
        ("METAMCP_CONFIG", ""),
    ];
    let add = ["add", "web", "https://h/mcp", "--socket", "/no/such/socket"];
    let (code, stdout, stderr) = daemon::run_in(Path::new("/"), &environment, &add);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let file = home.path().join(".config/metamcp/metamcp.toml");
    let expected = format!(
        "server `web` is added to `{}`. No service is running: start it with `metamcp serve`.\n",
        file.display()
    );
    assert_eq!(stdout, expected);
    let text = fs::read_to_string(&file).expect("made");
    assert_eq!(text, "[servers.web]\nurl = \"https://h/mcp\"\n");
}

#[test]
fn the_first_server_replaces_the_demonstration_servers_of_a_running_service() {
    let (home, fakes) = (tempfile::tempdir().expect("a directory"), Fakes::new());
    let home_path = home.path().display().to_string();
    let environment =
        [("HOME", home_path.as_str()), ("XDG_CONFIG_HOME", ""), ("METAMCP_CONFIG", "")];
    let daemon = Daemon::with("").without_file().ready();
    let socket = daemon.control().display().to_string();
    let run = |words: &[&str]| {
        daemon::run_in(Path::new("/"), &environment, &[words, &["--socket", &socket]].concat())
    };

    let (code, _, stderr) = run(&["add", "web", "https://h/mcp", "--header", "no-colon"]);
    assert_eq!(code, 64, "{stderr}");
    assert!(run(&["servers"]).1.contains("clock"), "the demonstration is still served");

    let (program, log) = (fake::program(), fakes.path("mine.log"));
    let (program, log) = (program.display().to_string(), log.display().to_string());
    let add = ["add", "mine", "--socket", &socket, "--", &program, "stdio", "--log", &log];
    let (code, stdout, stderr) = daemon::run_in(Path::new("/"), &environment, &add);
    assert_eq!(code, 0, "{stderr}");
    let file = home.path().join(".config/metamcp/metamcp.toml");
    assert!(stdout.starts_with(&format!("server `mine` is added to `{}`", file.display())));
    assert!(stderr.contains("no longer serves the demonstration servers"), "{stderr}");
    let servers = run(&["servers"]).1;
    assert!(servers.contains("mine") && !servers.contains("clock"), "{servers}");

    // The service reads the file from now on.
    let (code, stdout, stderr) = run(&["remove", "mine"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(!run(&["servers"]).1.contains("mine"));
}

#[test]
fn a_file_of_another_user_is_named_with_its_owner_before_a_secret_is_asked_for() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.path(), open).expect("changed");
    let file = directory.path().join("metamcp.toml");
    fs::write(&file, "").expect("written");
    // A copy that another user can reach. Another process makes it: a child that another test starts
    // just now would inherit a file that is open for writing, which cannot be executed.
    let copy = directory.path().join("metamcp");
    #[expect(clippy::disallowed_methods, reason = "the program runs to its end")]
    let mut copying = std::process::Command::new("cp");
    copying.arg(daemon::PROGRAM).arg(&copy);
    assert_eq!(daemon::finish(copying).0, 0);
    let file = file.display().to_string();
    #[expect(clippy::disallowed_methods, reason = "the program runs as another user, to its end")]
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy).args([
        "add",
        "a",
        "--config",
        &file,
        "--socket",
        "/no/such",
        "--env",
        "T=credential:t",
        "--",
        "x",
    ]);
    command.stdin(Stdio::null());
    let (code, _, stderr) = daemon::finish(command);
    assert_eq!(code, 1, "{stderr}");
    let expected = format!(
        "error: `{file}` belongs to root, and this user cannot change it\nhint: Run `sudo metamcp add a --config {file} --socket /no/such --env T=credential:t -- x`.\n"
    );
    assert_eq!(stderr, expected);
}

#[test]
fn piped_secrets_follow_the_order_of_the_options() {
    let rig = Rig::start();
    let options = ["--env", "ZED=credential:zed", "--env", "ABC=credential:abc"];
    let (code, _, stderr) = rig.add("many", "one\ntwo\nthree\n", &options);
    assert_eq!(code, 64, "{stderr}");
    assert!(stderr.contains("3 lines for 2 credentials"), "{stderr}");
    let (code, _, stderr) = rig.add("many", "one\ntwo\n", &options);
    assert_eq!(code, 0, "{stderr}");
    let value = |name: &str| fs::read_to_string(rig.directory().join("credentials").join(name));
    assert_eq!(value("zed").expect("written"), "one");
    assert_eq!(value("abc").expect("written"), "two");
}

#[test]
fn servers_that_are_added_at_the_same_time_are_all_kept() {
    let rig = Rig::start();
    let names = ["a", "b", "c", "d", "e", "f"];
    let outcomes: Vec<(i32, String)> = std::thread::scope(|scope| {
        let adding = names.map(|name| scope.spawn(|| rig.add(name, "", &[])));
        let done = adding.map(|adding| adding.join().expect("it ends"));
        done.into_iter().map(|(code, _, stderr)| (code, stderr)).collect()
    });
    let file = rig.file();
    for (name, (code, stderr)) in names.iter().zip(&outcomes) {
        assert_eq!(*code, 0, "{name}: {stderr}");
        assert!(file.contains(&format!("[servers.{name}]")), "{name}: {file}");
    }
}

#[test]
fn a_file_that_is_not_toml_is_refused_without_quoting_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("metamcp.toml");
    let text = "[servers.a]\ncommand = \"x\"\nenv = { A = \"ghp_CANARY0123456789\" B = 1 }\n";
    fs::write(&file, text).expect("written");
    let path = file.display().to_string();
    for command in ["remove", "disable"] {
        let arguments = [command, "a", "--config", &path, "--socket", "/no/such/socket"];
        let (code, stdout, stderr) = daemon::run(&arguments);
        assert_eq!(code, 78, "{stderr}");
        assert!(stderr.contains("is not valid TOML") && stderr.contains("metamcp check"));
        assert!(!format!("{stdout}{stderr}").contains("CANARY"), "{stderr}");
    }
    assert_eq!(fs::read_to_string(&file).expect("there"), text);
}
