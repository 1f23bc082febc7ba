//! Clients that must send a token: admission, refusals, and the sources of the token.

use std::fs;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use hyper::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::harness::{
    DEADLINE,
    client::{MCP_HEADERS, Reply},
    daemon::{self, Daemon, Start},
    fake::Fakes,
    tls::Authority,
};

const TOKEN: &str = "canary-0123456789abcdef";
const LISTEN: &str = "[listen]\ntoken = \"credential:token\"\n";
const PATH: &str = "/servers/fake";

/// A directory with the token as a credential.
struct Credentials(TempDir);

impl Credentials {
    fn new() -> Self {
        let credentials = Self(tempfile::tempdir().expect("a directory"));
        credentials.write(TOKEN);
        credentials
    }

    fn write(&self, token: &str) {
        fs::write(self.0.path().join("token"), format!("{token}\n")).expect("written");
    }

    /// Prepares a service that can read the credential.
    fn daemon(&self, config: &str) -> Start {
        Daemon::with(config).env("CREDENTIALS_DIRECTORY", self.0.path())
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Returns the challenge and the error code of a refusal for lack of the right token.
#[track_caller]
fn refusal(reply: &Reply) -> (String, String) {
    assert_eq!(reply.status, 401, "{reply:?}");
    assert_eq!(reply.headers["content-type"], "application/json");
    let challenge = reply.headers["www-authenticate"].to_str().expect("visible ASCII");
    let error = &reply.answer()["error"];
    assert_eq!(error["code"], -32600);
    assert!(error["data"]["suggestion"].as_str().is_some_and(|text| text.contains("Bearer TOKEN")));
    (challenge.to_owned(), error["data"]["code"].as_str().expect("a name").to_owned())
}

#[tokio::test]
async fn every_request_except_for_healthz_requires_the_token() {
    let (fakes, credentials) = (Fakes::new(), Credentials::new());
    let config =
        LISTEN.to_owned() + "rpc = true\nlegacy_sse = true\n[service]\nlog_level = \"trace\"\n";
    let daemon = credentials.daemon(&(config + &fakes.server("fake", &[]))).ready();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let status = r#"{"jsonrpc":"2.0","id":1,"method":"daemon/status"}"#;
    let requests = [
        (Method::POST, "/", list),
        (Method::POST, "/mcp", list),
        (Method::POST, "/direct", list),
        (Method::POST, "/meta", list),
        (Method::POST, PATH, list),
        (Method::POST, PATH, "nonsense"),
        (Method::GET, PATH, ""),
        (Method::DELETE, PATH, ""),
        (Method::GET, "/sse", ""),
        (Method::GET, "/servers/fake/sse", ""),
        (Method::POST, "/messages", list),
        (Method::POST, "/rpc", status),
        (Method::GET, "/status", ""),
        (Method::GET, "/readyz", ""),
        (Method::GET, "/no/such/path", ""),
        (Method::POST, "/healthz", ""),
        (Method::GET, "/healthz/", ""),
    ];
    let (right, wrong) = (bearer(TOKEN), bearer("canary-0123456789abcdeg"));
    for (method, path, body) in &requests {
        let client = daemon.client(path);
        let send = async |more: &[(&str, &str)]| {
            let headers = [&MCP_HEADERS[..], more].concat();
            client.send(method.clone(), &headers, *body).await
        };
        let (challenge, name) = refusal(&send(&[]).await);
        assert_eq!(
            (challenge.as_str(), name.as_str()),
            (r#"Bearer realm="metamcp""#, "TOKEN_REQUIRED")
        );
        let other = refusal(&send(&[("authorization", "Basic bm86Ym9keQ==")]).await);
        assert_eq!(other, (challenge, name), "another scheme carries no token");
        let (challenge, name) = refusal(&send(&[("authorization", &wrong)]).await);
        assert!(challenge.ends_with(r#", error="invalid_token""#), "{challenge}");
        assert_eq!(name, "TOKEN_INVALID");
    }
    assert!(fakes.pids("fake").is_empty(), "no server is started for them");
    for method in [Method::GET, Method::HEAD] {
        assert_eq!(daemon.client("/healthz").send(method, &[], "").await.status, 200);
    }

    for (method, path, body) in &requests {
        let headers = [&MCP_HEADERS[..], &[("authorization", &right)]].concat();
        let answer = daemon.client(path).open(method.clone(), &headers, *body).await;
        assert_ne!(answer.status(), 401, "{method} {path}");
    }
    let answer = daemon.client("/rpc").post(status).await.answer();
    assert!(answer["error"]["data"]["context"].is_object(), "an error with a context: {answer}");
    assert!(!daemon.log().contains("canary"), "the token is not in the log");
    let shown = daemon.client("/status").header("authorization", &right).get().await.body;
    assert!(shown.contains("fake") && !shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn a_client_with_the_token_is_served() {
    let (fakes, credentials) = (Fakes::new(), Credentials::new());
    let config = LISTEN.to_owned() + &fakes.server("fake", &[]);
    let daemon = credentials.daemon(&config).ready();

    let client = daemon.client(PATH).header("authorization", &bearer(TOKEN)).initialized().await;
    let _stream = client.listen().await;
    assert_eq!(client.call("echo", json!({ "value": 7 })).await["value"], 7);

    // The origin of a web page is checked before the token.
    let page = client.send(Method::POST, &[("origin", "https://evil.example")], "").await;
    assert_eq!(page.status, 403);
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_preflight_without_the_token_and_read_answers() {
    let (fakes, credentials) = (Fakes::new(), Credentials::new());
    let page = ("origin", "https://chat.example");
    let listen = LISTEN.to_owned() + "allowed_origins = [\"https://chat.example\"]\n";
    let daemon = credentials.daemon(&(listen + &fakes.server("fake", &[]))).ready();
    let client = daemon.client(PATH);
    let wanted = [
        page,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type,mcp-protocol-version"),
    ];

    let preflight = client.send(Method::OPTIONS, &wanted, "").await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.body, "");
    assert_eq!(preflight.headers["access-control-allow-origin"], page.1);
    assert_eq!(preflight.headers["access-control-allow-headers"], wanted[2].1);
    assert_eq!(preflight.headers["access-control-allow-methods"], "GET, POST, DELETE");
    assert!(preflight.headers["vary"].to_str().expect("text").contains("Origin"));

    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let refused = client.send(Method::POST, &[page], ping).await;
    assert_eq!(refused.status, 401, "a request needs the token");
    assert_eq!(
        refused.headers["access-control-allow-origin"], page.1,
        "the page can read the reason"
    );
    let served = client.clone().header("authorization", &bearer(TOKEN));
    let answer = served.clone().header(page.0, page.1).initialized().await;
    let answer = answer.post(ping).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["vary"], "Origin");
    let exposed = answer.headers["access-control-expose-headers"].to_str().expect("text");
    for name in ["Mcp-Session-Id", "MCP-Protocol-Version"] {
        assert!(exposed.contains(name), "{exposed}");
    }

    // Refused: an origin that is not allowed, a page of this host, and the control interface.
    for other in ["https://evil.example", "http://localhost:5173", "null"] {
        let wanted = [("origin", other), wanted[1], wanted[2]];
        let answer = client.send(Method::OPTIONS, &wanted, "").await;
        assert!(answer.status.is_client_error(), "{other}: {answer:?}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"), "{other}");
    }
    let operators = client.at("/rpc").send(Method::OPTIONS, &wanted, "").await;
    assert!(!operators.headers.contains_key("access-control-allow-origin"), "{operators:?}");
    let plain = served.post(ping).await;
    assert_eq!(plain.headers["vary"], "Origin", "a cache must not give it to a page");
    let without_origins =
        credentials.daemon(&(LISTEN.to_owned() + &fakes.server("fake", &[]))).ready();
    let without_origins = without_origins.client(PATH).header("authorization", &bearer(TOKEN));
    assert!(
        !without_origins.post(ping).await.headers.contains_key("vary"),
        "answers do not vary without allowed origins"
    );
}

#[tokio::test]
async fn a_client_that_guesses_tokens_is_slowed_and_logged_while_the_right_token_is_served() {
    let (fakes, credentials) = (Fakes::new(), Credentials::new());
    let config = LISTEN.to_owned() + &fakes.server("fake", &[]);
    let daemon = credentials.daemon(&config).ready();
    let mut tries: FuturesUnordered<_> = (0..100)
        .map(|number| {
            let guess = bearer(&format!("canary-{number:016}"));
            let client = daemon.client(PATH).header("authorization", &guess);
            async move { client.post(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await }
        })
        .collect();

    let refused = loop {
        let reply = tries.next().await.expect("an answer of 429");
        if reply.status != 401 {
            break reply;
        }
    };
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.headers["retry-after"], "5");
    assert_eq!(refused.answer()["error"]["data"]["code"], "TOKENS_WRONG");
    let client = daemon.client(PATH).header("authorization", &bearer(TOKEN)).initialized().await;
    assert_eq!(client.call("echo", json!({ "value": 7 })).await["value"], 7);
    drop(tries);

    let log = daemon.log();
    assert_eq!(log.matches("wrong token").count(), 1, "{log}");
    assert!(log.contains("a client (user "), "{log}");
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test]
async fn operators_and_clients_at_the_control_socket_need_no_token() {
    let (fakes, credentials) = (Fakes::new(), Credentials::new());
    let daemon = credentials.daemon(&(LISTEN.to_owned() + &fakes.server("fake", &[]))).ready();

    assert_eq!(crate::command_line::status(&daemon, &[]).0, 0);
    let socket = daemon.control().display().to_string();
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n";
    let (code, stdout, stderr) = daemon::run_with(ping, &["stdio", "--socket", &socket]);
    assert_eq!((code, stdout.trim()), (0, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#), "{stderr}");
}

/// A connection on which the test writes requests byte for byte.
struct RawConnection(TcpStream);

impl RawConnection {
    async fn connect(daemon: &Daemon) -> Self {
        Self(TcpStream::connect(daemon.address()).await.expect("a connection"))
    }

    async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("written");
    }

    /// Reads the head of the next answer, and its body.
    async fn answer(&mut self) -> (String, String) {
        let reading = async {
            let mut read = Vec::new();
            let is_head = |read: &[u8]| read.ends_with(b"\r\n\r\n");
            while !is_head(&read) {
                read.push(self.0.read_u8().await.expect("an answer"));
            }
            let head = String::from_utf8(read).expect("UTF-8").to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.expect("a length").parse().expect("a number")];
            self.0.read_exact(&mut body).await.expect("a whole body");
            (head, String::from_utf8(body).expect("UTF-8"))
        };
        tokio::time::timeout(DEADLINE, reading).await.expect("in time")
    }

    /// Asserts that the service closes the connection without another byte.
    async fn end(mut self) {
        let read = tokio::time::timeout(DEADLINE, self.0.read(&mut [0; 1])).await.expect("in time");
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
}

/// Returns the head of a POST.
fn head(more: &str) -> String {
    format!(
        "POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\r\n\r\n"
    )
}

#[tokio::test]
async fn a_connection_can_be_reused_after_a_refusal() {
    let (fakes, credentials) = (Fakes::new(), Credentials::new());
    let daemon = credentials.daemon(&(LISTEN.to_owned() + &fakes.server("fake", &[]))).ready();
    let mut connection = RawConnection::connect(&daemon).await;
    let body = "x".repeat(200_000);
    let right = format!("authorization: {}\r\ncontent-length: 40", bearer(TOKEN));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for round in 0..3 {
        connection.write(head(&format!("content-length: {}", body.len()))).await;
        // In pieces, like clients that send the head first.
        for piece in body.as_bytes().chunks(70_000) {
            connection.write(piece).await;
        }
        let (head, _) = connection.answer().await;
        assert!(head.starts_with("http/1.1 401 "), "{round}: {head}");
        connection.write(self::head("transfer-encoding: chunked")).await;
        connection.write("3\r\nabc\r\n0\r\n\r\n").await;
        assert!(connection.answer().await.0.starts_with("http/1.1 401 "));
        connection.write(self::head(&right) + ping).await;
        let (head, answer) = connection.answer().await;
        assert!(head.starts_with("http/1.1 200 "), "{round}: {head}");
        assert_eq!(answer, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    }
}

#[tokio::test]
async fn a_refusal_does_not_read_a_long_body_or_one_that_expects_100_continue() {
    let credentials = Credentials::new();
    let daemon = credentials.daemon(LISTEN).ready();
    for more in ["content-length: 4000000", "content-length: 9\r\nexpect: 100-continue"] {
        let mut connection = RawConnection::connect(&daemon).await;
        connection.write(head(more)).await;
        let (head, _) = connection.answer().await;
        assert!(head.starts_with("http/1.1 401 "), "{more}: {head}");
        assert!(head.contains("connection: close"), "{more}: {head}");
        connection.end().await;
    }
}

#[tokio::test]
async fn a_refusal_does_not_wait_for_the_rest_of_a_body() {
    let credentials = Credentials::new();
    let daemon = credentials.daemon(LISTEN).ready();
    let mut connection = RawConnection::connect(&daemon).await;
    connection.write(head("content-length: 100")).await;
    connection.write("x").await;
    let (head, _) = connection.answer().await;
    assert!(head.starts_with("http/1.1 401 ") && head.contains("connection: close"), "{head}");
    connection.end().await;
}

/// Returns the HTTP status of a request with this token.
async fn status_for(daemon: &Daemon, token: &str) -> u16 {
    daemon.client("/status").header("authorization", &bearer(token)).get().await.status.as_u16()
}

#[tokio::test]
async fn a_reload_reads_the_token_again_and_keeps_the_old_one_if_the_new_one_is_invalid() {
    let credentials = Credentials::new();
    let mut daemon = credentials.daemon(LISTEN).ready();
    assert_eq!(status_for(&daemon, TOKEN).await, 200);

    let second = "another-canary-0123456789";
    credentials.write(second);
    assert_eq!(status_for(&daemon, TOKEN).await, 200, "nothing is read without a reload");
    daemon.reload();
    daemon.wait_log("new requests are checked against the new `listen.token` token=true");
    assert_eq!(status_for(&daemon, second).await, 200);
    assert_eq!(status_for(&daemon, TOKEN).await, 401);

    credentials.write("canary");
    let notices = daemon.reload();
    let ready = notices.last().expect("a notice");
    assert!(
        ready.contains("configuration refused: the client token `credential:token`"),
        "{ready}"
    );
    daemon.wait_log("openssl rand -hex 32");
    assert_eq!(status_for(&daemon, second).await, 200, "the old token stays valid");

    daemon.rewrite("");
    daemon.reload();
    assert_eq!(daemon.client("/status").get().await.status, 200);
    assert!(!daemon.log().contains("canary") && !daemon.notices().concat().contains("canary"));
}

#[test]
fn an_unusable_token_is_a_configuration_error() {
    let credentials = Credentials::new();
    let mut short = credentials.daemon(LISTEN);
    credentials.write("canary");
    short = short.flags(&[]);
    for (start, reason) in [
        (short, "has 6 characters and needs at least 16"),
        (Daemon::with(LISTEN), "add `LoadCredential="),
        (Daemon::with("[listen]\ntoken = \"env:NO_SUCH_TOKEN\"\n"), "Set the variable"),
        (Daemon::with("[listen]\ntoken = \"canary-canary-canary\"\n"), "write \"credential:NAME\""),
        (
            Daemon::with("").env("METAMCP_LISTEN_TOKEN", "canary-canary"),
            "`token` is not a reference",
        ),
        (Daemon::with("").flags(&["--set", "listen.token=canary-canary"]), "is not a reference"),
    ] {
        let mut daemon = start.spawn();
        assert_eq!(daemon.wait_exit().code(), Some(78), "{reason}");
        let log = daemon.log();
        assert!(log.contains(reason) && !log.contains("canary"), "{reason}: {log}");
    }
}

#[tokio::test]
async fn a_token_from_an_environment_variable_is_used_and_never_shown() {
    let fakes = Fakes::new();
    let config =
        "[listen]\ntoken = \"env:METAMCP_TOKEN\"\n".to_owned() + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config.clone()).env("METAMCP_TOKEN", TOKEN).ready();
    assert!(
        !daemon.log().contains("METAMCP_TOKEN"),
        "no warning about the variable: {}",
        daemon.log()
    );
    assert_eq!(status_for(&daemon, TOKEN).await, 200);
    let client = daemon.client(PATH).header("authorization", &bearer(TOKEN));
    for name in ["METAMCP_TOKEN", "CREDENTIALS_DIRECTORY"] {
        let found = client.call("env", json!({ "name": name })).await;
        assert_eq!(found["value"], json!(null), "no server receives it: {found}");
    }

    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("c.toml"), config).expect("written");
    let arguments = ["check", "--effective", "c.toml"];
    let (code, shown, _) =
        daemon::run_in(directory.path(), &[("METAMCP_TOKEN", TOKEN)], &arguments);
    assert_eq!(code, 0);
    assert!(
        shown.contains("token = \"env:METAMCP_TOKEN\"") && !shown.contains("canary"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_non_loopback_socket_is_served_only_with_tls_and_a_token() {
    let (credentials, authority) = (Credentials::new(), Authority::new());
    let tls = authority.listen("").1;
    let token = "token = \"credential:token\"\n";
    let start = |config: &str| credentials.daemon(config).at("0.0.0.0:0");
    for (config, missing) in [
        (String::new(), "`listen.tls` and `listen.token` are not set"),
        (tls.clone(), "`listen.token` is not set"),
        (LISTEN.to_owned(), "`listen.tls` is not set"),
    ] {
        let mut refused = start(&config).spawn();
        assert_eq!(refused.wait_exit().code(), Some(78));
        let log = refused.log();
        assert!(log.contains("is not a loopback address, and") && log.contains(missing), "{log}");
        assert!(
            log.contains("hint: Set both `listen.tls` and `listen.token`, or write 127.0.0.1"),
            "{log}"
        );
    }

    let both = tls.clone() + token;
    let mut daemon = start(&both).ready();
    let mut client = authority.connect(daemon.address()).await;
    let mut status = async |headers: &[(&str, &str)]| {
        let answer = client.open(Method::GET, "/status", headers, String::new()).await;
        let status = answer.status().as_u16();
        // Read to its end, so that the connection can be used again.
        http_body_util::BodyExt::collect(answer.into_body()).await.expect("a whole body");
        status
    };
    assert_eq!(status(&[]).await, 401);
    assert_eq!(status(&[("authorization", &bearer(TOKEN))]).await, 200);

    for config in [&tls, LISTEN] {
        daemon.rewrite(config);
        let notices = daemon.reload();
        let ready = notices.last().expect("a notice");
        assert!(ready.contains("configuration refused: `0.0.0.0:"), "{ready}");
        assert_eq!(status(&[]).await, 401, "the old configuration is in force");
    }
}

#[test]
fn the_printed_client_configuration_includes_the_token() {
    use std::io::{BufRead as _, BufReader};
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("metamcp.toml");
    let socket = directory.path().join("control.sock");
    // Any variable whose value is long enough.
    let text = format!(
        "[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {socket:?}\ntoken = \"env:CACHE_DIRECTORY\"\n"
    );
    fs::write(&config, text).expect("written");
    let mut service = daemon::serve(&config);
    let lines = BufReader::new(service.stdout.take().expect("piped")).lines();
    let printed: Vec<String> = lines.map_while(Result::ok).take_while(|line| line != "}").collect();

    service.kill().expect("it runs");
    service.wait().expect("it ends");
    let printed = printed.join("\n");
    assert!(
        printed.contains(r#""headers": { "Authorization": "Bearer ${METAMCP_TOKEN}" }"#),
        "{printed}"
    );
}
