//! `metamcp doctor` for servers over HTTP: each phase, with its reason and remedy.

use std::{fs, net::TcpListener, path::Path, sync::atomic::Ordering};

use serde_json::{Value, json};

use super::{doctor::with_placeholders, logins::log_in};
use crate::harness::{
    daemon::{self, Daemon},
    fake::Upstream,
    login_upstream::LoginUpstream,
    scripted_upstream::ScriptedUpstream,
    tls::Authority,
    tls_front::TlsFront,
};

/// The report about one server.
struct Report {
    code: i32,
    text: String,
    json: Value,
}

impl Report {
    /// Runs the doctor for the server `up`, once for people and once for programs.
    fn of(config: &str, daemon: Option<&Daemon>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, socket) = (directory.path().join("c.toml"), directory.path().join("none.sock"));
        fs::write(&file, format!("[listen]\nhttp = \"127.0.0.1:0\"\n{config}")).expect("written");
        let socket = daemon.map_or(socket, |daemon| daemon.control().to_owned());
        let paths = [file.display().to_string(), socket.display().to_string()];
        let run = |more: &[&str]| {
            let usual = ["doctor", "--config", &paths[0], "--socket", &paths[1], "--server", "up"];
            let (code, stdout, stderr) = daemon::run(&[&usual, more].concat());
            assert_eq!(stderr, "", "{stdout}");
            (code, stdout)
        };
        let (code, text) = run(&[]);
        let json = serde_json::from_str(&run(&["--json"]).1).expect("JSON");
        Self { code, text, json }
    }

    /// Returns the names of the phases; a failed one has a `!`.
    fn phases(&self) -> Vec<String> {
        let phases = self.json["servers"][0]["phases"].as_array().expect("phases");
        let name = |phase: &Value| {
            assert!(phase["ms"].is_u64(), "{phase}");
            let failed = if phase["failed"] == true { "!" } else { "" };
            format!("{}{failed}", phase["name"].as_str().expect("a name"))
        };
        phases.iter().map(name).collect()
    }

    /// Returns a finding about the server.
    fn finding(&self, number: usize) -> &Value {
        let all = self.json["findings"].as_array().expect("findings");
        let about = all.iter().filter(|finding| finding["server"] == "up");
        about.into_iter().nth(number).unwrap_or_else(|| panic!("{}", self.text))
    }

    /// Returns the lines about the server, with placeholders for `origin` and for durations.
    fn lines(&self, origin: &str) -> String {
        let at = self.text.find(" up: ").and_then(|at| self.text[..at].rfind('\n'));
        let about = &self.text[at.unwrap_or_else(|| panic!("{}", self.text))..];
        with_placeholders(&about.replace(origin, "ORIGIN"), Path::new("/nowhere"))
    }

    #[track_caller]
    fn assert_shows(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.text.contains(part), "`{part}` is not in:\n{}", self.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_shows_each_phase_of_an_https_server() {
    let (upstream, authority) = (Upstream::start(&[]), Authority::new());
    let front = TlsFront::start(&authority, &upstream.url, true).await;
    let trusted =
        format!("[servers.up]\nurl = {:?}\ntls = {{ ca = {:?} }}\n", front.url, authority.ca());
    let report = Report::of(&trusted, None);
    assert_eq!(report.code, 0, "{}", report.text);
    assert_eq!(report.phases(), ["resolve", "connect", "TLS", "handshake", "tools/list", "end"]);
    let tls = &report.json["servers"][0]["tls"];
    assert_eq!((&tls["version"], &tls["protocol"]), (&json!("TLS 1.3"), &json!("h2")));
    assert!(tls["certificateDays"].as_u64() > Some(14), "{tls}");
    report.assert_shows(&[
        "ok      up: connected, ",
        "http: resolve ",
        ", TLS 1.3, h2, certificate for ",
    ]);

    let plain = Report::of(&format!("[servers.up]\nurl = {:?}\n", upstream.url), None);
    assert!(!plain.phases().contains(&"TLS".to_owned()), "{}", plain.text);
    assert!(plain.json["servers"][0].get("tls").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_the_phase_that_fails_with_reason_and_remedy() {
    let (upstream, authority) = (Upstream::start(&[]), Authority::new());
    let front = TlsFront::start(&authority, &upstream.url, false).await;
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("bound").port();
    drop(closed);
    for (url, phases, why, fix) in [
        (
            "https://no-such-host.invalid/mcp".to_owned(),
            &["resolve!"][..],
            "the name `no-such-host.invalid` cannot be resolved",
            "Check the host in the URL",
        ),
        (
            format!("https://localhost:{port}/mcp"),
            &["resolve", "connect!"],
            "refuses connections",
            "Check its host and port",
        ),
        (
            front.url.clone(),
            &["resolve", "connect", "TLS!"],
            "no authority that metamcp trusts has issued its certificate",
            "Name the PEM file of its authority",
        ),
    ] {
        let report = Report::of(&format!("[servers.up]\nurl = {url:?}\n"), None);
        assert_eq!(report.code, 1, "{}", report.text);
        assert_eq!(report.phases(), phases, "{}", report.text);
        report.assert_shows(&["error   up: cannot be connected", why, fix, " (failed)"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_shows_the_login_of_the_service_and_requests_no_token() {
    let upstream = LoginUpstream::start();
    let config = upstream.server("");
    let origin = upstream.http.url.trim_end_matches("/mcp");
    let alone = Report::of(&config, None);
    assert_eq!((alone.code, &alone.finding(0)["level"]), (0, &json!("note")), "{}", alone.text);
    insta::assert_snapshot!("login_without_service", alone.lines(origin));
    assert_eq!(alone.phases(), ["connect", "handshake", "discovery"], "{}", alone.text);

    let daemon = Daemon::with(&config).ready();
    let _refused = daemon.client("/servers/up").tool("echo", json!({})).await;
    let without = Report::of(&config, Some(&daemon));
    assert_eq!(without.code, 1, "{}", without.text);
    insta::assert_snapshot!("login_needed", without.lines(origin));
    assert_eq!(without.phases(), ["connect", "handshake", "discovery", "token!"]);

    log_in(&daemon).await;
    let with = Report::of(&config, Some(&daemon));
    assert_eq!(with.code, 0, "{}", with.text);
    insta::assert_snapshot!("logged_in", with.lines(origin));
    assert_eq!(with.phases(), ["connect", "handshake", "discovery", "token"]);
    let login = &with.json["servers"][0]["login"];
    assert_eq!((&login["pkce"], &login["service"]["state"]), (&json!(true), &json!("logged_in")));
    assert_eq!(upstream.state.n_registered.load(Ordering::Relaxed), 1, "only the login registers");
    assert_eq!(upstream.n_grants("refresh_token"), 0, "the service owns the tokens");
    upstream.assert_secret(&format!("{}{}", with.text, with.json));
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_a_login_that_cannot_be_discovered() {
    let upstream = ScriptedUpstream::start(|request, response| {
        let status = if request.verb == "POST" { 401 } else { 500 };
        response.page(status, "text/plain", "broken");
        true
    });
    let report = Report::of(&upstream.server("auth = { client_id = \"known\" }"), None);
    assert_eq!(report.phases(), ["connect", "handshake", "discovery!"], "{}", report.text);
    report
        .assert_shows(&["error   up: requires a login that metamcp cannot start", "answered 500"]);

    let report = Report::of(&upstream.server("auth = \"none\""), None);
    assert_eq!(report.phases(), ["connect", "handshake!"], "no login was asked for");
    report.assert_shows(&["Check the credentials in `headers`"]);
}

#[test]
fn check_reads_the_certificates_for_servers_but_no_credentials() {
    let authority = Authority::new();
    authority.write(&authority.issue());
    let file = authority.path("c.toml");
    let check = |tls: &str| {
        let text = format!("[servers.up]\nurl = \"https://up.example/\"\ntls = {{ {tls} }}\n");
        fs::write(&file, text).expect("written");
        daemon::run(&["check", "--offline", &file.display().to_string()])
    };
    let ca = format!("ca = {:?}", authority.ca());
    assert_eq!(check(&ca).0, 0);
    assert_eq!(
        check("ca = \"credential:ca\", certificate = \"credential:a\", key = \"credential:b\"").0,
        0
    );

    let (code, _, stderr) = check("ca = \"/no/such/ca.pem\"");
    let expected = "server `up`: cannot use `/no/such/ca.pem` as `tls.ca`: No such file";
    assert!(code == 78 && stderr.contains(expected) && stderr.contains("hint: "), "{stderr}");
    let pair = format!(
        "certificate = {:?}, key = {:?}",
        authority.path("chain.pem"),
        authority.path("key.pem")
    );
    assert_eq!(check(&pair).0, 0);
    fs::write(authority.path("key.pem"), authority.issue().key).expect("written");
    let (code, _, stderr) = check(&pair);
    assert!(code == 78 && stderr.contains("does not belong to the first certificate"), "{stderr}");
}
