//! https to real servers: what metamcp refuses and why, both versions of HTTP, and a proxy.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    POLL,
    harness::{DEADLINE, daemon::run},
    login_rig::{LoginRig, SERVER},
    logins::{client, echo, text_of},
    tls_front::TlsPort,
};

/// The life of access tokens, in seconds: longer than any of these tests takes.
const LONG: u32 = 3600;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_wrong_tls_is_refused_with_reason_and_remedy() {
    let rig = LoginRig::start(LONG);
    for (port, reason, remedy) in [
        (TlsPort::Expired, "expired", "certificate"),
        (TlsPort::WrongName, "elsewhere.example", "name"),
        (TlsPort::UnknownAuthority, "authority", "SSL_CERT_FILE"),
        (TlsPort::OldProtocol, "version of TLS below 1.2", "TLS 1.2 or 1.3"),
    ] {
        let config = [rig.server_at(port), trust(&rig), "auth = \"none\"\n".to_owned()].concat();
        let metamcp = rig.prepare(&config).ready();

        let answer = client(&metamcp).tool("echo", json!({ "text": "no" })).await.answer();
        let config = metamcp.control().with_file_name("metamcp.toml").display().to_string();
        let doctor = ["doctor", "--config", &config, "--server", SERVER];
        let socket = metamcp.control().display().to_string();
        let (code, output, errors) = run(&[&doctor[..], &["--socket", &socket]].concat());

        assert_ne!(code, 0, "{port:?}: {output}{errors}");
        for (source, text) in [("the call", answer.to_string()), ("doctor", output + &errors)] {
            assert!(text.contains(reason), "{source}, {port:?}: no `{reason}` in {text}");
            assert!(text.contains(remedy), "{source}, {port:?}: no `{remedy}` in {text}");
        }
        assert_eq!(rig.answered_at(port), Vec::<[String; 3]>::new(), "no request gets through");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_of_http_is_agreed_with_the_server() {
    let rig = LoginRig::start(LONG);
    for (port, version) in [(TlsPort::Http2, "HTTP/2.0"), (TlsPort::Http1, "HTTP/1.1")] {
        let metamcp = rig.metamcp(&rig.machine_server_at(port));

        assert_eq!(text_of(&echo(&client(&metamcp), version).await), version);

        let answered = rig.answered_at(port);
        assert!(!answered.is_empty());
        assert!(answered.iter().all(|[protocol, ..]| protocol == version), "{answered:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_authority_is_trusted_for_a_server_and_its_authorization_server() {
    let rig = LoginRig::start(LONG);
    let config = rig.machine_server_at(TlsPort::Http2) + &trust(&rig);
    let metamcp = rig.prepare(&config).ready();

    assert_eq!(text_of(&echo(&client(&metamcp), "trusted").await), "trusted");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_requests_to_a_server_and_its_authorization_server_go_through_the_proxy() {
    let rig = LoginRig::start(LONG);
    let proxy = Tinyproxy::start();
    let through = format!("proxy = \"http://127.0.0.1:{}\"\n", proxy.port);
    let metamcp = rig.metamcp(&(rig.machine_server_at(TlsPort::Http2) + &through));

    assert_eq!(text_of(&echo(&client(&metamcp), "through").await), "through");

    let log = proxy.log();
    for port in [TlsPort::Http2, TlsPort::Authorization] {
        let target = rig.origin(port).replace("https://", "CONNECT ");
        assert!(log.contains(&target), "no `{target}`:\n{log}");
    }
}

/// Returns the setting of a server with which metamcp trusts the authority of the rig.
fn trust(rig: &LoginRig) -> String {
    format!("tls.ca = \"{}\"\n", rig.ca().display())
}

/// A proxy that only knows CONNECT; killed and reaped on drop.
struct Tinyproxy {
    process: Child,
    port: u16,
    directory: TempDir,
}

impl Tinyproxy {
    /// Starts the proxy and waits until it listens. tinyproxy takes no open socket and no port 0, so
    /// that another process may be faster at a port.
    fn start() -> Self {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = listener.local_addr().expect("it is bound").port();
            drop(listener);
            let mut proxy = Self::start_at(port);
            while proxy.process.try_wait().expect("it can be waited for").is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return proxy;
                }
                thread::sleep(POLL);
            }
            assert!(Instant::now() < deadline, "tinyproxy does not start:\n{}", proxy.log());
        }
    }

    fn start_at(port: u16) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let settings = directory.path().join("tinyproxy.conf");
        let log = directory.path().join("log");
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 600\nMaxClients 100\n\
             LogLevel Connect\nLogFile \"{}\"\n",
            log.display()
        );
        fs::write(&settings, text).expect("written");
        let mut command = Command::new("tinyproxy");
        command.arg("-d").arg("-c").arg(&settings).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self { process: command.spawn().expect("tinyproxy starts"), port, directory }
    }

    fn log(&self) -> String {
        let path: PathBuf = self.directory.path().join("log");
        fs::read_to_string(path).unwrap_or_default()
    }
}

impl Drop for Tinyproxy {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
