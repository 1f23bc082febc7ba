//! `metamcp doctor`: its findings and its output.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use metamcp::confine::isolation_support;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::harness::{daemon, daemon::Daemon, fake::Fakes};

/// Runs the doctor on a configuration, with a secret in the environment.
fn doctor(config: &Path, more: &[&str]) -> (i32, String) {
    let config = config.display().to_string();
    let mut command = daemon::command(&[&["doctor", "--config", &config], more].concat());
    command.env("DOCTOR_SECRET", "hunter2-hunter2").env_remove("CREDENTIALS_DIRECTORY");
    let (code, stdout, stderr) = daemon::finish(command);
    assert_eq!(stderr, "", "{stdout}");
    assert!(!stdout.contains("hunter2"), "a secret is printed: {stdout}");
    (code, stdout)
}

/// Returns a text with placeholders for the directory and for durations.
pub(crate) fn with_placeholders(text: &str, directory: &Path) -> String {
    let text = text.replace(&directory.display().to_string(), "DIR");
    let mut replaced = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|found: char| found.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let end = number.find(|found: char| !found.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        replaced.push_str(before);
        let varies = after.starts_with(" ms") || before.ends_with("\"ms\": ");
        replaced.push_str(if varies { "N" } else { number });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// Writes a configuration with a healthy server and one server for each kind of problem.
fn faulty_configuration(fakes: &Fakes) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let shell = |name: &str, script: &str| {
        format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n")
    };
    let config = format!(
        "[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {:?}\n",
        directory.path().join("control.sock")
    ) + &fakes.server("well", &["--named", "page.click"])
        + &fakes.server("noisy", &["--noise-at-start", "2", "--no-eof-exit"])
        + &shell("crash", "echo one >&2; echo \"token $TOKEN $API_TOKEN\" >&2; exit 7")
        + "env = { TOKEN = \"env:DOCTOR_SECRET\", API_TOKEN = \"hunter2\" }\n"
        + &shell("slow", "cat >/dev/null")
        + "start_timeout = \"1s\"\n"
        + "[servers.missing]\ncommand = \"/no/such/program\"\n"
        + "[servers.locked]\ncommand = \"x\"\nenv = { KEY = \"credential:locked\" }\n"
        + "[servers.newest]\ncommand = \"/no/such/npx\"\nargs = [\"-y\", \"@scope/server\"]\n";
    let file = directory.path().join("c.toml");
    fs::write(&file, config).expect("written");
    // The usual permissions, whatever the umask of the test run.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("changed");
    directory
}

/// Returns the lines of a report that concern servers, in the order of their names. The report has
/// them in the order in which the servers finish.
fn server_lines(text: &str, directory: &Path) -> String {
    let text = with_placeholders(text, directory);
    let names = ["crash: ", "locked: ", "missing: ", "newest: ", "noisy: ", "slow: ", "well: "];
    let mut shown = [const { String::new() }; 7];
    let mut place = None;
    for line in text.lines() {
        if !line.starts_with(' ') {
            place =
                names.iter().position(|name| line.get(8..).is_some_and(|it| it.starts_with(name)));
        }
        if let Some(place) = place {
            shown[place].push_str(line);
            shown[place].push('\n');
        }
    }
    shown.concat()
}

#[test]
fn doctor_connects_to_each_server_and_reports_problems_with_remedies() {
    let fakes = Fakes::new();
    let directory = faulty_configuration(&fakes);
    let config = directory.path().join("c.toml");

    let (code, report) = doctor(&config, &[]);

    assert_eq!(code, 1, "{report}");
    insta::assert_snapshot!("servers", server_lines(&report, directory.path()));
    let (_, report) = doctor(&config, &["--nix"]);
    insta::assert_snapshot!("servers_nix", server_lines(&report, directory.path()));
}

#[test]
fn doctor_examines_one_server_and_prints_json() {
    let fakes = Fakes::new();
    let directory = faulty_configuration(&fakes);
    let config = directory.path().join("c.toml");

    let (code, report) = doctor(&config, &["--server", "noisy", "--json"]);

    assert_eq!(code, 0, "warnings are no errors: {report}");
    insta::assert_snapshot!("one_json", with_placeholders(&report, directory.path()));
    let (code, report) = doctor(&config, &["--server", "crash", "--json"]);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let stderr: Vec<&str> = report["servers"][0]["stderr"]
        .as_array()
        .expect("lines")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(stderr, ["one", "token [secret] [secret]"]);
}

#[test]
fn doctor_prints_each_finding_at_once_and_names_the_phase_in_which_a_server_hangs() {
    let fakes = Fakes::new();
    let directory = tempfile::tempdir().expect("a directory");
    let (config, pid_file) = (directory.path().join("c.toml"), directory.path().join("pid"));
    let script =
        format!("echo $$ > {}; echo waiting for a lock >&2; cat >/dev/null", pid_file.display());
    let text = "[listen]\nhttp = \"127.0.0.1:0\"\n".to_owned()
        + &fakes.server("well", &[])
        + &format!("[servers.hangs]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n");
    fs::write(&config, text).expect("written");
    let config = config.display().to_string();
    let mut command = daemon::command(&["doctor", "--config", &config, "--timeout", "3s"]);
    let mut process = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();

    let first = lines.next().expect("a line").expect("text");
    assert!(first.ends_with("c.toml: 2 servers"), "{first}");
    // The first finding is printed while the server still hangs.
    assert!(process.try_wait().expect("readable").is_none());
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    let place = |text: &str| {
        let found = rest.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("`{text}` is missing: {rest:#?}"))
    };
    let late = place("error   hangs: does not finish within 3s: it hangs in `handshake`");
    assert!(place("well: connected") < late, "{rest:#?}");
    assert!(place("stderr| waiting for a lock") > late, "{rest:#?}");
    assert_eq!(process.wait().expect("it ends").code(), Some(1));
    let pid = fs::read_to_string(pid_file).expect("written");
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the hanging server is ended");
}

#[test]
fn doctor_examines_a_host_with_a_service_and_a_server_that_hang() {
    let fakes = Fakes::new();
    let directory = tempfile::tempdir().expect("a directory");
    let (config, socket) = (directory.path().join("c.toml"), directory.path().join("control.sock"));
    let text = format!("[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {socket:?}\n")
        + &fakes.server("well", &[])
        + "[servers.hangs]\ncommand = \"sh\"\nargs = [\"-c\", \"cat >/dev/null\"]\n";
    fs::write(&config, text).expect("written");
    let _listener = UnixListener::bind(&socket).expect("bound");
    let begin = Instant::now();

    let (code, report) = doctor(&config, &[]);

    assert!(begin.elapsed() < Duration::from_secs(12), "{:?}: {report}", begin.elapsed());
    assert_eq!(code, 1, "{report}");
    for expected in [
        "c.toml: 2 servers\n",
        "accepted the connection and did not answer within 2 s: it hangs or is stopped\n",
        "well: connected, ",
        "hangs: does not finish within 10s: it hangs in `handshake`\n",
    ] {
        assert!(report.contains(expected), "`{expected}` is missing: {report}");
    }
}

#[test]
fn doctor_connects_a_server_behind_eight_that_hang() {
    let directory = tempfile::tempdir().expect("a directory");
    let (config, flag) = (directory.path().join("c.toml"), directory.path().join("flag"));
    let mut text = "[listen]\nhttp = \"127.0.0.1:0\"\n".to_owned();
    // Each of the eight hangs until the ninth has started.
    for index in 0..8 {
        let waits = format!("until test -e {}; do sleep 0.1; done; exit 1", flag.display());
        text += &format!("[servers.a{index}]\ncommand = \"sh\"\nargs = [\"-c\", {waits:?}]\n");
    }
    text += &format!("[servers.last]\ncommand = \"touch\"\nargs = [{flag:?}]\n");
    fs::write(&config, text).expect("written");

    let (_, report) = doctor(&config, &[]);

    assert!(!report.contains("does not finish"), "{report}");
    assert_eq!(report.matches(": cannot be connected\n").count(), 9, "{report}");
}

#[test]
fn doctor_without_probes_reports_the_states_of_servers_in_the_service() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(
        fakes.server("well", &[])
            + "[servers.broken]\ncommand = \"false\"\n"
            + "[servers.locked]\ncommand = \"x\"\nenv = { KEY = \"credential:locked\" }\n",
    )
    .ready();
    let socket = daemon.control().display().to_string();
    for server in ["well", "broken"] {
        daemon::finish(daemon::command(&["tools", server, "--socket", &socket]));
    }
    let mut command = daemon::command(&["doctor", "--no-dial", "--socket", &socket]);
    command.env_remove("METAMCP_CONFIG");

    let (code, report, _) = daemon::finish(command);

    assert_eq!(code, 1, "{report}");
    assert!(report.contains("ok      well: the service is connected to it\n"), "{report}");
    assert!(report.contains("error   broken: the service cannot connect it\n"), "{report}");
    assert!(!report.contains("not examined"), "{report}");
}

#[test]
fn doctor_removes_a_stale_socket_only_on_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let (config, socket) = (directory.path().join("c.toml"), directory.path().join("control.sock"));
    let text = format!("[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {socket:?}\n");
    fs::write(&config, text).expect("written");
    drop(UnixListener::bind(&socket).expect("bound"));
    doctor(&config, &["--no-dial"]);
    assert!(socket.exists());
    let (_, report) = doctor(&config, &["--no-dial", "--fix"]);
    assert!(report.contains("control.sock` is removed."), "{report}");
    assert!(!socket.exists());
}

#[test]
fn doctor_reads_the_file_of_the_running_service_and_reports_where_the_service_differs() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("only-here");
    fs::write(&program, "#!/bin/sh\nexit 1\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("changed");
    let daemon = Daemon::with("[servers.elsewhere]\ncommand = \"only-here\"\n").ready();
    let socket = daemon.control().display().to_string();
    let report_of = |more: &[&str]| {
        let arguments = [&["doctor", "--socket", &socket], more].concat();
        let mut command = daemon::command(&arguments);
        let path = std::env::var("PATH").expect("it is set");
        command.env("PATH", format!("{}:{path}", directory.path().display()));
        command.env_remove("METAMCP_CONFIG");
        daemon::finish(command)
    };
    let (code, report, _) = report_of(&[]);
    assert_eq!(code, 1, "{report}");
    assert!(report.contains("The running service reads it."), "{report}");
    assert!(report.contains("ok      the service runs as `"), "{report}");
    assert!(report.contains("elsewhere: the service cannot start `only-here`"), "{report}");
    assert!(!report.contains("All is well"), "{report}");

    let other = directory.path().join("other.toml");
    fs::write(&other, "[listen]\nhttp = \"127.0.0.1:0\"\n").expect("written");
    let (_, report, _) = report_of(&["--config", &other.display().to_string()]);
    assert!(report.contains("warning the service runs with `"), "{report}");
}

#[test]
fn doctor_shows_the_place_of_a_configuration_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("c.toml");
    fs::write(&config, "[servers.a]\ncomand = \"x\"\n").expect("written");
    let (code, report) = doctor(&config, &["--no-dial"]);
    assert_eq!(code, 1, "{report}");
    assert!(
        report.contains("did you mean `command`?") && report.contains("c.toml:2:1"),
        "{report}"
    );
}

#[test]
fn doctor_distinguishes_a_stale_socket_from_one_that_answers() {
    let fakes = Fakes::new();
    let directory = faulty_configuration(&fakes);
    let config = directory.path().join("c.toml");
    let socket = directory.path().join("control.sock");
    drop(UnixListener::bind(&socket).expect("bound"));
    let (_, report) = doctor(&config, &["--no-dial"]);
    assert!(report.contains("warning no service listens at `"), "{report}");

    let daemon = Daemon::with(fakes.server("well", &[])).ready();
    let answers = daemon.control().display().to_string();
    let config = directory.path().join("d.toml");
    fs::write(&config, format!("[listen]\nhttp = \"{}\"\n", daemon.address())).expect("written");
    let (_, report) = doctor(&config, &["--no-dial", "--socket", &answers]);
    assert!(report.contains("ok      the service answers at its control socket"), "{report}");
    let hosts = format!("{} answers clients, and refuses foreign host names", daemon.address());
    assert!(report.contains(&hosts), "{report}");
    // Without the socket, the directory belongs to another program.
    let nowhere = directory.path().join("nowhere.sock").display().to_string();
    let (code, report) = doctor(&config, &["--no-dial", "--socket", &nowhere]);
    let other = format!("another metamcp listens at {}", daemon.address());
    assert!(code == 1 && report.contains(&other), "{report}");
}

#[test]
fn doctor_reads_the_configuration_of_the_service_and_names_its_source() {
    let directory = tempfile::tempdir().expect("a directory");
    let units = directory.path().join("systemd/user");
    fs::create_dir_all(&units).expect("made");
    let path = |name: &str| directory.path().join(name).display().to_string();
    for name in ["flag", "shell", "command", "unit"] {
        fs::write(path(name), "[listen]\nhttp = \"127.0.0.1:0\"\n").expect("written");
    }
    let unit = |start: &str| {
        let text = format!("[Service]\nExecStart=/bin/true {start}\nEnvironment=METAMCP_CONFIG=");
        fs::write(units.join("metamcp.service"), text + &path("unit")).expect("written");
    };
    let doctor_report = |more: &[&str], shell: Option<&str>| {
        let mut command = daemon::command(&[&["doctor", "--no-dial"], more].concat());
        command.env("XDG_CONFIG_HOME", directory.path()).env_remove("METAMCP_CONFIG");
        command.envs(shell.map(|file| ("METAMCP_CONFIG", file)));
        daemon::finish(command).1
    };
    let assert_source = |report: &str, name: &str, why: &str| {
        let line = format!("{}: 0 servers\n", path(name));
        assert!(report.contains(&line) && report.contains(why), "{name}: {report}");
    };

    unit("");
    assert_source(
        &doctor_report(&[], None),
        "unit",
        "`Environment=METAMCP_CONFIG=` of metamcp.service names it.",
    );
    unit(&format!("--config {}", path("command")));
    assert_source(
        &doctor_report(&[], None),
        "command",
        "`ExecStart=` of metamcp.service names it.",
    );
    let shell = path("shell");
    let of_shell = doctor_report(&[], Some(&shell));
    assert_source(&of_shell, "shell", "`METAMCP_CONFIG` of this environment names it.");
    assert_source(
        &doctor_report(&["--config", &path("flag")], Some(&shell)),
        "flag",
        "`--config` names it.",
    );
}

#[test]
fn doctor_reports_a_service_that_does_not_require_its_token() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("c.toml");
    let doctor_report = |daemon: &Daemon| {
        let (socket, address) = (daemon.control().display().to_string(), daemon.address());
        let text = format!("[listen]\nhttp = \"{address}\"\ntoken = \"env:DOCTOR_SECRET\"\n");
        fs::write(&config, text).expect("written");
        doctor(&config, &["--no-dial", "--socket", &socket])
    };
    let asking = Daemon::with("[listen]\ntoken = \"env:DOCTOR_SECRET\"\n");
    let asking = asking.env("DOCTOR_SECRET", "a-token-of-many-letters").ready();
    let (_, report) = doctor_report(&asking);
    assert!(report.contains(" answers clients, ") && !report.contains(" no token"), "{report}");
    let (code, report) = doctor_report(&Daemon::with("").ready());
    assert!(code == 1 && report.contains(" requires no token"), "{report}");
}

/// Answers the doctor at a socket as a service whose unit forbids the isolation of scripts.
fn serve_filtered(stream: UnixStream) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|n_bytes| n_bytes > 0) {
        let request: Value = serde_json::from_str(&line).expect("a request");
        let scripts = json!({ "available": false, "isolationError": "the call is refused" });
        let result = match request["method"].as_str() {
            Some("daemon/status") => json!({ "scripts": scripts }),
            _ => json!([]),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        // The doctor may have left.
        drop(writeln!(reader.get_mut(), "{answer}"));
        line.clear();
    }
}

#[test]
fn doctor_reports_the_isolation_of_scripts_as_the_running_service_sees_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("c.toml");
    let report_of = |section: &str, socket: &Path| {
        fs::write(&config, format!("[listen]\nhttp = \"127.0.0.1:0\"\n{section}"))
            .expect("written");
        doctor(&config, &["--no-dial", "--socket", &socket.display().to_string()]).1
    };
    let is_supported = isolation_support().is_ok();
    let nowhere = directory.path().join("nowhere.sock");
    let daemon = Daemon::with("").ready();
    for (socket, isolated) in [
        (nowhere.clone(), "ok      this host can isolate scripts\n"),
        (daemon.control(), "ok      the service can isolate scripts\n"),
    ] {
        let report = report_of("", &socket);
        let expected = if is_supported { isolated } else { "warning scripts cannot be isolated\n" };
        assert!(report.contains(expected), "{report}");
    }
    assert!(report_of("[execute]\nenabled = false\n", &nowhere).contains("scripts are disabled"));

    let socket = directory.path().join("filtered.sock");
    let listener = UnixListener::bind(&socket).expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(|| serve_filtered(stream));
        }
    });
    let report = report_of("", &socket);
    let expected = match is_supported {
        true => {
            "warning the service cannot isolate scripts, although this shell can\n        the call is refused\n"
        }
        false => "The service: the call is refused\n",
    };
    assert!(report.contains(expected), "{report}");
}
