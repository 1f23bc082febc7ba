//! `metamcp doctor`: what it finds, and what it says.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{daemon, daemon::Daemon, fake::Fakes};

/// Runs the doctor on a configuration, with a secret in the environment.
fn doctor(config: &Path, more: &[&str]) -> (i32, String) {
    let config = config.display().to_string();
    let mut command = daemon::command(&[&["doctor", "--config", &config], more].concat());
    command.env("DOCTOR_SECRET", "hunter2-hunter2").env_remove("CREDENTIALS_DIRECTORY");
    let (code, stdout, stderr) = daemon::finish(command);
    assert_eq!(stderr, "", "{stdout}");
    assert!(!stdout.contains("hunter2"), "a secret: {stdout}");
    (code, stdout)
}

/// Returns a text without what differs from run to run.
fn steady(text: &str, directory: &Path) -> String {
    let text = text.replace(&directory.display().to_string(), "DIR");
    let mut steady = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|found: char| found.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let end = number.find(|found: char| !found.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        steady.push_str(before);
        let varies = after.starts_with(" ms") || before.ends_with("\"ms\": ");
        steady.push_str(if varies { "N" } else { number });
        rest = after;
    }
    steady.push_str(rest);
    steady
}

/// Writes a configuration with servers of every kind.
fn ward(fakes: &Fakes) -> TempDir {
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

/// Returns the part of a report that is about servers and what they are called.
fn of_servers(text: &str, directory: &Path) -> String {
    let text = steady(text, directory);
    let names = ["crash: ", "locked: ", "missing: ", "newest: ", "noisy: ", "slow: ", "well: "];
    let mut shown = String::new();
    let mut is_shown = false;
    for line in text.lines() {
        if !line.starts_with(' ') {
            is_shown =
                names.iter().any(|name| line.get(8..).is_some_and(|it| it.starts_with(name)));
        }
        if is_shown {
            shown.push_str(line);
            shown.push('\n');
        }
    }
    shown
}

#[test]
fn each_server_is_dialled_by_itself_and_what_is_wrong_is_told_with_the_remedy() {
    let fakes = Fakes::new();
    let directory = ward(&fakes);
    let config = directory.path().join("c.toml");

    let (code, told) = doctor(&config, &[]);

    assert_eq!(code, 1, "{told}");
    insta::assert_snapshot!("servers", of_servers(&told, directory.path()));
    let (_, told) = doctor(&config, &["--nix"]);
    insta::assert_snapshot!("servers_nix", of_servers(&told, directory.path()));
}

#[test]
fn one_server_is_examined_alone_and_as_json() {
    let fakes = Fakes::new();
    let directory = ward(&fakes);
    let config = directory.path().join("c.toml");

    let (code, told) = doctor(&config, &["--server", "noisy", "--json"]);

    assert_eq!(code, 0, "warnings are no errors: {told}");
    insta::assert_snapshot!("one_json", steady(&told, directory.path()));
    let (code, told) = doctor(&config, &["--server", "crash", "--json"]);
    assert_eq!(code, 1);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let stderr: Vec<&str> = told["servers"][0]["stderr"]
        .as_array()
        .expect("lines")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(stderr, ["one", "token [secret] [secret]"]);
}

#[test]
fn a_configuration_that_is_refused_is_shown_with_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("c.toml");
    fs::write(&config, "[servers.a]\ncomand = \"x\"\n").expect("written");
    let (code, told) = doctor(&config, &["--no-dial"]);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("did you mean `command`?") && told.contains("c.toml:2:1"), "{told}");
}

#[test]
fn a_socket_that_was_left_behind_is_told_from_one_that_answers() {
    let fakes = Fakes::new();
    let directory = ward(&fakes);
    let config = directory.path().join("c.toml");
    let socket = directory.path().join("control.sock");
    drop(UnixListener::bind(&socket).expect("bound"));
    let (_, told) = doctor(&config, &["--no-dial"]);
    assert!(told.contains("warning nobody listens at `"), "{told}");

    let daemon = Daemon::with(fakes.server("well", &[])).ready();
    let answers = daemon.control().display().to_string();
    let config = directory.path().join("d.toml");
    fs::write(&config, format!("[listen]\nhttp = \"{}\"\n", daemon.address())).expect("written");
    let (_, told) = doctor(&config, &["--no-dial", "--socket", &answers]);
    assert!(told.contains("ok      the service answers at its control socket"), "{told}");
    let strangers = format!("clients are answered at {}, and strangers are not", daemon.address());
    assert!(told.contains(&strangers), "{told}");
    // Without the socket, the directory belongs to another program.
    let nowhere = directory.path().join("nowhere.sock").display().to_string();
    let (code, told) = doctor(&config, &["--no-dial", "--socket", &nowhere]);
    let other = format!("another metamcp listens at {}", daemon.address());
    assert!(code == 1 && told.contains(&other), "{told}");
}

#[test]
fn the_file_is_the_one_that_the_service_reads_and_the_doctor_says_why() {
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
    let told = |more: &[&str], shell: Option<&str>| {
        let mut command = daemon::command(&[&["doctor", "--no-dial"], more].concat());
        command.env("XDG_CONFIG_HOME", directory.path()).env_remove("METAMCP_CONFIG");
        command.envs(shell.map(|file| ("METAMCP_CONFIG", file)));
        daemon::finish(command).1
    };
    let says = |told: &str, name: &str, why: &str| {
        let line = format!("{}: 0 servers\n", path(name));
        assert!(told.contains(&line) && told.contains(why), "{name}: {told}");
    };

    unit("");
    says(&told(&[], None), "unit", "`Environment=METAMCP_CONFIG=` of metamcp.service names it.");
    unit(&format!("--config {}", path("command")));
    says(&told(&[], None), "command", "`ExecStart=` of metamcp.service names it.");
    let shell = path("shell");
    let of_shell = told(&[], Some(&shell));
    says(&of_shell, "shell", "`METAMCP_CONFIG` of this environment names it.");
    says(&told(&["--config", &path("flag")], Some(&shell)), "flag", "`--config` names it.");
}

#[test]
fn a_service_that_asks_for_the_token_is_told_from_one_that_does_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("c.toml");
    let told = |daemon: &Daemon| {
        let (socket, address) = (daemon.control().display().to_string(), daemon.address());
        let text = format!("[listen]\nhttp = \"{address}\"\ntoken = \"env:DOCTOR_SECRET\"\n");
        fs::write(&config, text).expect("written");
        doctor(&config, &["--no-dial", "--socket", &socket])
    };
    let asking = Daemon::with("[listen]\ntoken = \"env:DOCTOR_SECRET\"\n");
    let asking = asking.env("DOCTOR_SECRET", "a-token-of-many-letters").ready();
    let (_, said) = told(&asking);
    assert!(said.contains("clients are answered at ") && !said.contains("the token"), "{said}");
    let (code, said) = told(&Daemon::with("").ready());
    assert!(code == 1 && said.contains(" asks nobody for the token"), "{said}");
}
