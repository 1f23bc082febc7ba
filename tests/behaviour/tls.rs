//! HTTP over TLS: versions, certificates, reloads and refusals.

use std::fs;

use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::rustls::ProtocolVersion;

use crate::{
    command_line,
    harness::{
        DEADLINE,
        client::{MCP_HEADERS, request, running},
        daemon::{self, Daemon},
        fake::{Fakes, Upstream},
        tls::Authority,
    },
    until,
};

const PATH: &str = "/servers/fake";

#[tokio::test]
async fn a_call_is_answered_over_tls_1_2_and_1_3() {
    let (fakes, authority) = (Fakes::new(), Authority::new());
    let (issued, listen) = authority.listen("");
    let daemon = Daemon::with(listen + &fakes.server("fake", &[])).ready();

    let mut new = authority.connect(daemon.address()).await;
    assert_eq!(new.version, Some(ProtocolVersion::TLSv1_3));
    assert_eq!(new.alpn.as_deref(), Some("http/1.1"));
    assert!(new.was_shown(&issued));
    let mut old = authority.connect_1_2(daemon.address()).await;
    assert_eq!(old.version, Some(ProtocolVersion::TLSv1_2));

    for connection in [&mut new, &mut old] {
        // More than one record, and more than the socket buffer holds.
        let text = "x".repeat(1 << 20);
        let answer = connection.call(PATH, "echo", json!({ "value": text })).await;
        assert!(answer["value"] == text.as_str());
    }
    assert_eq!(fakes.pids("fake").len(), 1);
}

/// The hello of a client that supports TLS 1.1 at most.
const HELLO_OF_1_1: &[u8] = &[
    22, 3, 1, 0, 71, // a record with a handshake
    1, 0, 0, 67, // a hello
    3, 2, // of TLS 1.1
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, // random
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, // the rest of it
    0, // no session
    0, 4, 0xc0, 0x09, 0xc0, 0x13, // ECDHE with AES-128-CBC
    1, 0, // no compression
    0, 22, // extensions
    0, 10, 0, 4, 0, 2, 0, 23, // P-256
    0, 11, 0, 2, 1, 0, // uncompressed points
    0, 13, 0, 4, 0, 2, 4, 3, // ECDSA with SHA-256
];

#[tokio::test]
async fn a_client_of_tls_1_1_is_refused() {
    let authority = Authority::new();
    let daemon = Daemon::with(authority.listen("").1).ready();
    let mut stream = TcpStream::connect(daemon.address()).await.expect("a connection");
    stream.write_all(HELLO_OF_1_1).await.expect("written");

    let mut answer = Vec::new();
    let read = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
    read.expect("it is closed in time").expect("it is closed in order");

    // A fatal alert: protocol_version.
    assert_eq!((answer[0], &answer[5..]), (21, &[2, 70][..]), "{answer:?}");
}

#[tokio::test]
async fn a_plain_http_client_is_told_to_use_https() {
    let (fakes, authority) = (Fakes::new(), Authority::new());
    let config = authority.listen("").1 + "[service]\nlog_level = \"debug\"\n";
    let daemon = Daemon::with(config + &fakes.server("fake", &[])).ready();

    let probe = daemon.client("/healthz").get().await;
    assert_eq!(probe.status, 400);
    assert!(probe.body.contains("https://"), "{}", probe.body);
    let call = daemon.client(PATH).tool("echo", json!({ "value": "x".repeat(100_000) })).await;
    assert_eq!(call.status, 400);
    daemon.wait_log("the client sent plain HTTP to a port that expects TLS");
    assert!(fakes.pids("fake").is_empty(), "nothing reaches a server");
}

#[tokio::test]
async fn silent_tls_clients_do_not_delay_other_clients() {
    let (fakes, authority) = (Fakes::new(), Authority::new());
    let daemon = Daemon::with(authority.listen("").1 + &fakes.server("fake", &[])).ready();
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(daemon.address()).await.expect("a connection");
        if number % 2 == 0 {
            stream.write_all(&HELLO_OF_1_1[..20]).await.expect("written");
        }
        silent.push(stream);
    }

    let mut client = authority.connect(daemon.address()).await;

    assert_eq!(client.call(PATH, "echo", json!({ "value": 1 })).await["value"], 1);
    drop(silent);
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_tls_handshake() {
    let authority = Authority::new();
    let config = authority.listen("").1 + "[service]\nshutdown_timeout = \"1h\"\n";
    let mut daemon = Daemon::with(config).ready();
    let mut stream = TcpStream::connect(daemon.address()).await.expect("a connection");
    stream.write_all(&HELLO_OF_1_1[..20]).await.expect("written");
    let is_connected = || {
        let (_, shown, _) = command_line::status(&daemon, &["--json"]);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        shown["clients"] == 1
    };
    until(async || is_connected()).await;

    assert!(daemon.stop().success());
}

#[tokio::test]
async fn a_reload_shows_new_connections_the_renewed_certificate_and_keeps_old_ones() {
    let (fakes, authority) = (Fakes::new(), Authority::new());
    let (first, listen) = authority.listen("");
    let mut daemon = Daemon::with(listen + &fakes.server("fake", &[])).ready();
    let mut before = authority.connect(daemon.address()).await;
    assert_eq!(before.call(PATH, "echo", json!({ "value": 1 })).await["value"], 1);

    let second = authority.issue();
    authority.write(&second);
    daemon.reload();

    daemon.wait_log("new connections use the new `listen.tls` tls=true");
    assert_eq!(before.call(PATH, "echo", json!({ "value": 2 })).await["value"], 2);
    let mut after = authority.connect(daemon.address()).await;
    assert!(before.was_shown(&first) && after.was_shown(&second));
    assert_eq!(after.call(PATH, "echo", json!({ "value": 3 })).await["value"], 3);
    assert_eq!(fakes.pids("fake").len(), 1, "no server is restarted");
}

#[tokio::test]
async fn a_reload_with_a_key_of_another_certificate_is_refused() {
    let (fakes, authority) = (Fakes::new(), Authority::new());
    let (first, listen) = authority.listen("");
    let config = listen + &fakes.server("fake", &[]);
    let mut daemon = Daemon::with(config.clone()).ready();
    let second = authority.issue();

    fs::write(authority.path("chain.pem"), &second.chain).expect("written");
    daemon.rewrite(&(config + &fakes.server("added", &[])));
    let notices = daemon.reload();

    let ready = notices.iter().rfind(|notice| notice.contains("READY=1")).expect("a notice");
    assert!(ready.contains("configuration refused: the key "), "{ready}");
    daemon.wait_log("Renew both together");
    assert!(authority.connect(daemon.address()).await.was_shown(&first));
    let status = crate::command_line::status(&daemon, &[]).1;
    assert!(!status.contains("added"), "all of the old configuration is in force: {status}");

    fs::write(authority.path("key.pem"), &second.key).expect("written");
    let notices = daemon.reload();
    assert!(!notices.last().expect("a notice").contains("refused"), "{notices:?}");
    assert!(authority.connect(daemon.address()).await.was_shown(&second));
}

#[tokio::test]
async fn a_reload_turns_tls_on_and_off() {
    let (fakes, authority) = (Fakes::new(), Authority::new());
    let server = fakes.server("fake", &[]);
    let mut daemon = Daemon::with(server.clone()).ready();
    assert_eq!(daemon.client("/healthz").get().await.status, 200);

    daemon.rewrite(&(authority.listen("").1 + &server));
    daemon.reload();
    let mut client = authority.connect(daemon.address()).await;
    assert_eq!(client.call(PATH, "echo", json!({ "value": 1 })).await["value"], 1);

    daemon.rewrite(&server);
    daemon.reload();
    assert_eq!(daemon.client("/healthz").get().await.status, 200);
}

#[tokio::test]
async fn the_certificate_and_the_key_are_read_from_credentials() {
    let authority = Authority::new();
    let issued = authority.listen("").0;
    let tls = "tls = { certificate = \"credential:chain.pem\", key = \"credential:key.pem\" }";
    let directory = authority.path("");
    let config = format!("[listen]\n{tls}\n");
    let daemon = Daemon::with(&config).env("CREDENTIALS_DIRECTORY", &directory).ready();
    assert!(authority.connect(daemon.address()).await.was_shown(&issued));

    let mut without = Daemon::with(&config).spawn();
    assert_eq!(without.wait_exit().code(), Some(78));
    assert!(without.log().contains("or add `LoadCredential="), "{}", without.log());
}

#[test]
fn check_and_serve_refuse_a_key_of_another_certificate() {
    let authority = Authority::new();
    let (_, listen) = authority.listen("");
    let config = authority.path("metamcp.toml");
    fs::write(&config, &listen).expect("written");
    let config = config.display().to_string();
    assert_eq!(daemon::run(&["check", &config]).0, 0);
    fs::write(authority.path("key.pem"), authority.issue().key).expect("written");

    let (code, stdout, stderr) = daemon::run(&["check", &config]);

    assert_eq!((code, stdout.as_str()), (78, ""));
    insta::assert_snapshot!(
        stderr.replace(&authority.path("").display().to_string(), "DIR/"),
        @"
    error: the key `DIR/key.pem` does not belong to the first certificate in `DIR/chain.pem`
    hint: Renew both together, and put the server's own certificate before those of its issuers.
    "
    );
    let (code, _, serve_stderr) = daemon::run(&["serve", "--config", &config]);
    assert_eq!((code, serve_stderr), (78, stderr));
    // `--no-files` is for a configuration of another host.
    assert_eq!(daemon::run(&["check", "--no-files", &config]).0, 0);
}

#[test]
fn the_printed_client_configuration_uses_https() {
    use std::io::{BufRead as _, BufReader};
    let authority = Authority::new();
    let socket = authority.path("control.sock");
    let more = format!("http = \"127.0.0.1:0\"\ncontrol = {socket:?}");
    let config = authority.path("metamcp.toml");
    fs::write(&config, authority.listen(&more).1).expect("written");
    let mut service = daemon::serve(&config);
    let lines = BufReader::new(service.stdout.take().expect("piped")).lines();
    let printed: Vec<String> = lines.map_while(Result::ok).take_while(|line| line != "}").collect();
    let printed = printed.join("\n");

    // The service may not handle signals yet, and it has no server.
    service.kill().expect("it runs");
    service.wait().expect("it ends");
    assert!(printed.contains("Clients:  https://127.0.0.1:"), "{printed}");
    assert!(printed.contains("\"url\": \"https://127.0.0.1:"), "{printed}");
}

#[tokio::test]
async fn a_notification_stream_works_over_tls() {
    let (upstream, authority) = (Upstream::start(&[]), Authority::new());
    let config = authority.listen("keep_alive = \"100ms\"").1 + &upstream.server("fake", "");
    let daemon = Daemon::with(config).ready();
    let mut client = authority.connect(daemon.address()).await;
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let hello = client.post(PATH, "initialize", &hello).await;
    assert_eq!(hello.status, 200);
    client.call(PATH, "echo", json!({ "value": 1 })).await;
    upstream.log("streams_open=1").await;

    let mut stream = client.listen(PATH, &hello.headers).await;
    let keep_alive = stream.next().await.expect("a keep-alive");
    assert!(keep_alive.comment.is_some(), "{keep_alive:?}");
    upstream.push(&json!({ "jsonrpc": "2.0", "method": "notifications/n", "params": 7 })).await;

    assert_eq!(stream.message().await["params"], 7);
}

#[tokio::test]
async fn a_disconnected_tls_client_cancels_its_call() {
    let (fakes, authority) = (Fakes::new(), Authority::new());
    let daemon = Daemon::with(authority.listen("").1 + &fakes.server("fake", &[])).ready();
    let mut client = authority.connect(daemon.address()).await;
    let mut other = authority.connect(daemon.address()).await;
    let held = running(async move { client.call(PATH, "hold", json!({ "key": "k" })).await });
    other.call(PATH, "held", json!({ "at_least": 1 })).await;

    drop(held);

    let seen = other.call(PATH, "seen", json!({ "cancelled": 1 })).await;
    assert!(seen.is_object(), "{seen}");
}

#[tokio::test]
async fn a_shutdown_finishes_a_running_call_over_tls() {
    let (upstream, authority) = (Upstream::start(&[]), Authority::new());
    let config = authority.listen("").1 + &upstream.server("fake", "");
    let mut daemon = Daemon::with(config).ready();
    let mut client = authority.connect(daemon.address()).await;
    let held = running(async move {
        let answer = client.call(PATH, "hold", json!({ "key": "k" })).await;
        (answer, client.end().await)
    });
    // A direct client of the upstream, independent of the service.
    let other = crate::harness::client::Client::new(upstream.url.clone()).initialized().await;
    other.call("held", json!({ "at_least": 1 })).await;

    daemon.signal(Signal::TERM);
    daemon.wait_notice("STOPPING=1", |notice| notice.contains("STOPPING=1"));
    other.call("release", json!({ "key": "k" })).await;

    let (answer, end) = held.end().await;
    assert_eq!(answer["key"], "k", "{answer}");
    assert_eq!(end, Ok(()), "the service closes the TLS connection in order");
    assert!(daemon.wait_exit().success());
}

#[tokio::test]
async fn a_tls_client_that_does_not_read_a_large_answer_is_cut_off() {
    let (fakes, authority) = (Fakes::new(), Authority::new());
    let listen = authority.listen("write_timeout = \"200ms\"").1;
    let config = listen + "[service]\nlog_level = \"debug\"\n" + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let mut slow = authority.connect_slow(daemon.address()).await;
    let params = json!({ "name": "bytes", "arguments": { "n": 12 << 20 } });
    let message = request(&json!(1), "tools/call", &params);
    let answer = slow.open(Method::POST, PATH, &MCP_HEADERS, message).await;

    daemon.wait_log("the client has not read its answer for 0.2 s");
    drop(answer);
}

#[tokio::test]
async fn origins_are_checked_over_tls() {
    let authority = Authority::new();
    let more = "allowed_origins = [\"https://chat.example\"]";
    let daemon = Daemon::with(authority.listen(more).1).ready();
    let mut client = authority.connect(daemon.address()).await;
    for (origin, status) in [
        ("https://localhost:6274", 200),
        ("https://chat.example", 200),
        ("http://chat.example", 403),
        ("https://evil.example", 403),
    ] {
        let headers = [("origin", origin)];
        let answer = client.open(Method::GET, "/healthz", &headers, String::new()).await;
        assert_eq!(answer.status(), status, "{origin}");
        // Read to its end, so that the connection can be used again.
        http_body_util::BodyExt::collect(answer.into_body()).await.expect("a whole body");
    }
}
