//! Every random request gets an answer that the specification allows.
//!
//! A failure prints the seed. `tests/fuzz` tests the parsers for as long as you like.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use serde_json::{json, value::RawValue};
use tokio::{net::TcpStream, task::JoinSet};

use crate::harness::{
    DEADLINE,
    daemon::Daemon,
    fake::{Fakes, is_alive},
    mutated_request::MutatedRequest,
    random::SeededRandom,
    stream::EventStream,
};

/// The number of messages sent over each connection, one after the other.
const N_REQUESTS: usize = 1000;

const N_CONNECTIONS: usize = 4;

/// The statuses that the specification has for a POST.
const STATUSES: [u16; 8] = [200, 202, 400, 404, 405, 406, 413, 415];

/// A client that reconnects after the service has closed its connection.
struct ReconnectingClient {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
    tasks: JoinSet<hyper::Result<()>>,
}

impl ReconnectingClient {
    fn new(address: SocketAddr) -> Self {
        Self { address, sender: None, tasks: JoinSet::new() }
    }

    async fn send(&mut self, mutant: &MutatedRequest) -> Response<Incoming> {
        let is_open = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !is_open {
            let stream = TcpStream::connect(self.address).await.expect("it listens");
            let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
            self.tasks.spawn(connection);
            self.sender = Some(sender);
        }
        let mut request = Request::builder().method(&mutant.method).uri(mutant.path);
        request = request.header("host", self.address.to_string());
        for (name, value) in &mutant.headers {
            request = request.header(name, &value[..]);
        }
        let request = request.body(Full::new(mutant.body.clone().into())).expect("a request");
        let sender = self.sender.as_mut().expect("it is open");
        let answer = tokio::time::timeout(DEADLINE, sender.send_request(request)).await;
        answer.expect("it does not hang").expect("it is answered")
    }

    /// Sends a request and checks the answer; returns the status.
    async fn check(&mut self, mutant: &MutatedRequest) -> StatusCode {
        let answer = self.send(mutant).await;
        let (status, headers) = (answer.status(), answer.headers().clone());
        assert!(STATUSES.contains(&status.as_u16()), "{status}");
        let content_type = headers.get("content-type").map(|value| value.to_str().expect("text"));
        if content_type == Some("text/event-stream") {
            assert_message(&EventStream::new(answer).next_data().await, mutant);
            // More events may follow.
            self.sender = None;
            return status;
        }
        let body = tokio::time::timeout(DEADLINE, answer.into_body().collect()).await;
        let body = body.expect("a body in time").expect("a whole body").to_bytes();
        if status == StatusCode::ACCEPTED {
            assert!(body.is_empty());
            return status;
        }
        assert_eq!(content_type, Some("application/json"), "{status}");
        let text = str::from_utf8(&body).expect("UTF-8");
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(messages) => {
                messages.iter().for_each(|message| assert_message(message.get(), mutant));
            }
            Err(_) => assert_message(text, mutant),
        }
        status
    }
}

/// A JSON object with unparsed values, because some numbers exceed every Rust type.
type Members = BTreeMap<String, Box<RawValue>>;

/// Checks that `text` is a message, and that an answer with an id has that of the request.
fn assert_message(text: &str, mutant: &MutatedRequest) {
    let message: Members = serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"));
    let member = |name: &str| message.get(name).map(|value| value.get());
    assert_eq!(member("jsonrpc"), Some(r#""2.0""#), "{text}");
    if member("method").is_some() {
        return;
    }
    assert!(member("result").is_some() != member("error").is_some(), "{text}");
    if let Some(error) = member("error") {
        let error: Members = serde_json::from_str(error).unwrap_or_else(|_| panic!("{text}"));
        assert!(error["code"].get().parse::<i64>().is_ok(), "{text}");
        assert!(error["message"].get().starts_with('"'), "{text}");
    }
    let id = member("id").unwrap_or("null");
    let is_an_id = id == "null" || id.starts_with(|first: char| "\"-0123456789".contains(first));
    assert!(is_an_id, "{text}");
    let request: Option<Members> = serde_json::from_slice(&mutant.body).ok();
    if let Some(request) = request.filter(|_| id != "null") {
        assert_eq!(Some(id), request.get("id").map(|id| id.get()), "the id of the request");
    }
}

#[tokio::test]
async fn every_random_request_is_answered_with_a_specified_status() {
    let fakes = Fakes::new();
    let servers = fakes.server("legacy", &[]) + &fakes.server("both", &["--era", "both"]);
    let daemon = Daemon::with(servers).ready();
    let echo = async |name: &str| {
        let client = daemon.client(&format!("/servers/{name}"));
        assert_eq!(client.call("echo", json!({ "value": name })).await["value"], name);
    };
    echo("legacy").await;
    echo("both").await;
    let pids = ["legacy", "both"].map(|name| fakes.pids(name));
    let mut random = SeededRandom::new();

    let mutants: Vec<Vec<MutatedRequest>> = (0..N_CONNECTIONS)
        .map(|_| (0..N_REQUESTS).map(|n| MutatedRequest::new(&mut random, n)).collect())
        .collect();
    let address = daemon.address();
    let mut clients = JoinSet::new();
    for mutants in mutants {
        clients.spawn(async move {
            let mut client = ReconnectingClient::new(address);
            let mut statuses = BTreeSet::new();
            for mutant in &mutants {
                let _guard = PrintOnPanic(mutant);
                statuses.insert(client.check(mutant).await.as_u16());
            }
            statuses
        });
    }
    let mut statuses = BTreeSet::new();
    while let Some(checked) = clients.join_next().await {
        statuses.extend(checked.expect("every request is answered as specified"));
    }
    // The requests cause many different statuses.
    assert!([200, 202, 400, 405, 406, 415].iter().all(|status| statuses.contains(status)));

    echo("legacy").await;
    echo("both").await;
    for (name, pids) in ["legacy", "both"].iter().zip(pids) {
        assert_eq!(fakes.pids(name), pids, "no process of `{name}` has ended");
        assert!(pids.iter().any(|pid| is_alive(*pid)));
    }
    assert!(!daemon.log().contains("panic"), "{}", daemon.log());
}

/// A guard that prints a request if the test panics.
struct PrintOnPanic<'a>(&'a MutatedRequest);

impl Drop for PrintOnPanic<'_> {
    #[expect(clippy::print_stderr, reason = "the test harness shows it with the failed test")]
    fn drop(&mut self) {
        let Self(MutatedRequest { method, path, headers, body }) = self;
        if !std::thread::panicking() {
            return;
        }
        eprintln!("{method} {path}");
        for (name, value) in headers {
            eprintln!("{name}: {}", value.escape_ascii());
        }
        let start = &body[..body.len().min(4000)];
        eprintln!("{} bytes: {}", body.len(), start.escape_ascii());
    }
}
