//! The search for secrets of logins in everything that others can read.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::json;
use tokio::time::Instant;

use crate::{
    harness::{
        DEADLINE,
        daemon::{Daemon, run},
    },
    login_rig::{LoginRig, SERVER},
    logins::{client, echo, text_of},
    tls_front::TlsPort,
};

/// The directory below the state directory that has the tokens.
const TOKEN_STORE: &str = "oauth";

/// The shortest piece of a secret that is searched for, because messages are cut.
const PIECE: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_login_leaves_the_token_store() {
    let rig = LoginRig::start(4);
    let machine = rig.machine_server_at(TlsPort::Http1).replace(SERVER, "automatic");
    let metamcp = rig.metamcp(&[rig.server(), machine].concat());
    let mut seen = vec![("metamcp login", rig.log_in(&metamcp))];

    // Everything that can happen to a token: use, refresh, a refusal for its scope, and a lost answer.
    for text in ["one", "two"] {
        let n_refreshes = rig.n_grants("refresh_token");
        let answer = echo(&client(&metamcp), text).await;
        assert_eq!(text_of(&answer), text);
        seen.push(("an answer", answer.to_string()));
        call_until(&metamcp, || rig.n_grants("refresh_token") > n_refreshes).await;
    }
    let refused = client(&metamcp).tool("administer", json!({ "text": "no" })).await;
    seen.push(("a refusal", format!("{:?}{}", refused.headers, refused.body)));
    let automatic = metamcp.client("/servers/automatic").initialized().await;
    let answer = automatic.tool("echo", json!({ "text": "machine" })).await;
    assert_eq!(text_of(&answer.answer()), "machine");
    let n_requests = rig.token_requests().len();
    rig.lose_next_token();
    call_until(&metamcp, || rig.token_requests().len() > n_requests).await;

    seen.extend(commands(&metamcp));
    seen.extend(process(&metamcp));
    seen.push(("the log", metamcp.log()));
    let secrets = rig.secrets();
    assert!(secrets.len() > 8, "the rig knows them: {}", secrets.len());
    let secrets = pieces(&secrets);
    for (source, text) in &seen {
        assert_no_secret(source, text.as_bytes(), &secrets);
    }
    let (stored, others): (Vec<_>, Vec<_>) =
        files(&state(&metamcp)).into_iter().partition(|file| is_in_store(&metamcp, file));
    for file in others {
        let bytes = fs::read(&file).unwrap_or_default();
        assert_no_secret(&file.display().to_string(), &bytes, &secrets);
    }
    let is_found =
        |file: &PathBuf| secret_in(&fs::read(file).expect("readable"), &secrets).is_some();
    assert!(stored.iter().any(is_found), "the search finds the tokens where they belong");
    for file in stored {
        let mode = fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }

    let socket = metamcp.control().display().to_string();
    let (code, output, errors) = run(&["logout", SERVER, "--socket", &socket]);
    assert_eq!(code, 0, "{output}{errors}");
    assert_no_secret("metamcp logout", (output + &errors).as_bytes(), &secrets);
    assert_no_secret("the log", metamcp.log().as_bytes(), &secrets);
}

/// Calls a tool, whatever the answer, until a condition holds.
async fn call_until(metamcp: &Daemon, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        echo(&client(metamcp), "again").await;
        assert!(Instant::now() < deadline, "calls cause no request for a token");
    }
}

/// Returns the output of all commands that show logins.
fn commands(metamcp: &Daemon) -> Vec<(&'static str, String)> {
    let socket = metamcp.control().display().to_string();
    let config = state(metamcp).join("metamcp.toml").display().to_string();
    let commands: [&[&str]; 6] = [
        &["auth", "--socket", &socket],
        &["auth", "--json", "--socket", &socket],
        &["status", "--socket", &socket],
        &["status", "--json", "--socket", &socket],
        &["servers", "--json", "--socket", &socket],
        &["doctor", "--config", &config, "--socket", &socket],
    ];
    commands
        .into_iter()
        .map(|arguments| {
            let (_, output, errors) = run(arguments);
            assert!(!output.is_empty(), "{arguments:?}: {errors}");
            ("a command", format!("{arguments:?}\n{output}{errors}"))
        })
        .collect()
}

/// Returns the properties of the process of the service that every user can see.
fn process(metamcp: &Daemon) -> Vec<(&'static str, String)> {
    let read = |file: &'static str| {
        let bytes = fs::read(format!("/proc/{}/{file}", metamcp.pid())).expect("it runs");
        (file, String::from_utf8_lossy(&bytes).into_owned())
    };
    ["cmdline", "environ", "comm"].map(read).to_vec()
}

/// Returns the state directory.
fn state(metamcp: &Daemon) -> PathBuf {
    metamcp.control().parent().expect("it is in a directory").to_owned()
}

fn is_in_store(metamcp: &Daemon, file: &Path) -> bool {
    file.starts_with(state(metamcp).join(TOKEN_STORE))
}

/// Returns all files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let kind = entry.file_type().expect("a file");
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}

/// Returns the pieces of all secrets.
fn pieces(secrets: &BTreeSet<String>) -> HashSet<&[u8]> {
    secrets.iter().flat_map(|secret| secret.as_bytes().chunks_exact(PIECE)).collect()
}

/// Returns the first piece of a secret that a text contains.
fn secret_in(text: &[u8], secrets: &HashSet<&[u8]>) -> Option<String> {
    let found = text.windows(PIECE).find(|window| secrets.contains(window));
    found.map(|piece| String::from_utf8_lossy(piece).into_owned())
}

#[track_caller]
fn assert_no_secret(source: &str, text: &[u8], secrets: &HashSet<&[u8]>) {
    assert_eq!(secret_in(text, secrets), None, "{source} has a piece of a secret");
}
