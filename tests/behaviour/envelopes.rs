//! Whatever is sent, the answer is one that the specification knows.
//!
//! The seed is printed when it fails. Without a bound: `tests/fuzz`.

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
    dice::Dice,
    fake::{Fakes, is_alive},
    mutant::Mutant,
    stream::EventStream,
};

/// The number of messages sent over each connection, one after the other.
const N_REQUESTS: usize = 1000;

const N_CONNECTIONS: usize = 4;

/// The statuses that the specification has for a POST.
const STATUSES: [u16; 8] = [200, 202, 400, 404, 405, 406, 413, 415];

/// A connection that is opened again when the service has closed it.
struct Line {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
    tasks: JoinSet<hyper::Result<()>>,
}

impl Line {
    fn new(address: SocketAddr) -> Self {
        Self { address, sender: None, tasks: JoinSet::new() }
    }

    async fn send(&mut self, mutant: &Mutant) -> Response<Incoming> {
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

    /// Sends it and checks what comes back; returns the status.
    async fn check(&mut self, mutant: &Mutant) -> StatusCode {
        let answer = self.send(mutant).await;
        let (status, headers) = (answer.status(), answer.headers().clone());
        assert!(STATUSES.contains(&status.as_u16()), "{status}");
        let content_type = headers.get("content-type").map(|value| value.to_str().expect("text"));
        if content_type == Some("text/event-stream") {
            is_message(&EventStream::new(answer).next_data().await, mutant);
            // There may be more to come.
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
            Ok(messages) => messages.iter().for_each(|message| is_message(message.get(), mutant)),
            Err(_) => is_message(text, mutant),
        }
        status
    }
}

/// A JSON object, of which nothing is changed: it may hold what no number can.
type Members = BTreeMap<String, Box<RawValue>>;

/// Checks that it is an answer, to what was asked if that can be told.
fn is_message(text: &str, mutant: &Mutant) {
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
    let asked: Option<Members> = serde_json::from_slice(&mutant.body).ok();
    if let Some(asked) = asked.filter(|_| id != "null") {
        assert_eq!(Some(id), asked.get("id").map(|id| id.get()), "the id of the request");
    }
}

#[tokio::test]
async fn whatever_is_sent_the_answer_has_a_status_that_is_specified() {
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
    let mut dice = Dice::new();

    let mutants: Vec<Vec<Mutant>> = (0..N_CONNECTIONS)
        .map(|_| (0..N_REQUESTS).map(|n| Mutant::new(&mut dice, n)).collect())
        .collect();
    let address = daemon.address();
    let mut lines = JoinSet::new();
    for mutants in mutants {
        lines.spawn(async move {
            let mut line = Line::new(address);
            let mut statuses = BTreeSet::new();
            for mutant in &mutants {
                let _shown = Shown(mutant);
                statuses.insert(line.check(mutant).await.as_u16());
            }
            statuses
        });
    }
    let mut statuses = BTreeSet::new();
    while let Some(checked) = lines.join_next().await {
        statuses.extend(checked.expect("what is shown above is answered as it should be"));
    }
    // They are of many kinds.
    assert!([200, 202, 400, 405, 406, 415].iter().all(|status| statuses.contains(status)));

    echo("legacy").await;
    echo("both").await;
    for (name, pids) in ["legacy", "both"].iter().zip(pids) {
        assert_eq!(fakes.pids(name), pids, "no process of `{name}` has ended");
        assert!(pids.iter().any(|pid| is_alive(*pid)));
    }
    assert!(!daemon.log().contains("panic"), "{}", daemon.log());
}

/// Shows what was sent when that fails the test.
struct Shown<'a>(&'a Mutant);

impl Drop for Shown<'_> {
    #[expect(clippy::print_stderr, reason = "the test harness shows it with the failed test")]
    fn drop(&mut self) {
        let Self(Mutant { method, path, headers, body }) = self;
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
