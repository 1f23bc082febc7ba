//! Clients of either era in front of servers of either era, over both transports.
//!
//! Each cell of the table at the end is a test. In each, two clients use the same ids at the same
//! time, and no answer, server request or notice of one reaches the other.

use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::{
    all,
    harness::{
        client::{Running, running},
        daemon::Daemon,
        era_client::{Era, EraClient, Listener},
        fake::{Fakes, Upstream},
    },
};

/// The transport of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Pipe,
    Http,
}

/// A cell of the table, over one of the transports.
#[derive(Clone, Copy, Debug)]
struct Cell {
    client: Era,
    server: Era,
    transport: Transport,
}

/// The service in front of a server, for one cell of the table.
struct Rig {
    cell: Cell,
    daemon: Daemon,
    _fakes: Fakes,
    _upstream: Option<Upstream>,
}

/// Two clients, each with a call that the server holds until the end.
struct Pair {
    peers: [EraClient; 2],
    held: Vec<Running<Value>>,
}

const NAMES: [&str; 2] = ["one", "two"];

impl Cell {
    /// Starts the service in front of a server that all clients share.
    fn shared(self, options: &[&str]) -> Rig {
        self.start(options, "")
    }

    /// Starts the service in front of a server that asks its clients.
    ///
    /// A legacy server may ask only on a connection that clients do not share.
    fn asking(self) -> Rig {
        match self.server {
            Era::Legacy => self.start(&[], "sharing = \"exclusive\"\n"),
            Era::Modern => self.start(&[], ""),
        }
    }

    fn start(self, options: &[&str], more: &str) -> Rig {
        let era: &[&str] = match self.server {
            Era::Legacy => &["--era", "legacy"],
            Era::Modern => &["--era", "modern"],
        };
        let options = [era, options].concat();
        let fakes = Fakes::new();
        let (config, upstream) = match self.transport {
            Transport::Pipe => (fakes.server("fake", &options) + more, None),
            Transport::Http => {
                let upstream = Upstream::start(&options);
                (upstream.server("fake", more), Some(upstream))
            }
        };
        let daemon = Daemon::with(config).ready();
        Rig { cell: self, daemon, _fakes: fakes, _upstream: upstream }
    }

    /// Returns whether a log message can be assigned to one of two concurrent requests.
    ///
    /// All messages of a server on a pipe share one stream, and a log message names no request.
    fn tells_logs_apart(self) -> bool {
        self.transport == Transport::Http
    }
}

impl Rig {
    async fn peer(&self, name: &str) -> EraClient {
        EraClient::connect(self.cell.client, self.daemon.client("/servers/fake"), name).await
    }

    async fn peers(&self) -> [EraClient; 2] {
        [self.peer(NAMES[0]).await, self.peer(NAMES[1]).await]
    }

    /// Connects both clients and has each call `hold` under id 1.
    async fn pair(&self) -> Pair {
        let peers = self.peers().await;
        let hold =
            |(peer, name): (&EraClient, _)| running(peer.call(1, "hold", json!({ "key": name })));
        let held = peers.iter().zip(NAMES).map(hold).collect();
        self.seen(json!({ "held": 2 })).await;
        Pair { peers, held }
    }

    /// Returns the record of the server, once it reaches each of `counts`.
    async fn seen(&self, counts: Value) -> Value {
        self.peer("observer").await.call(9, "seen", json!({ "counts": counts })).await
    }
}

impl Pair {
    /// Releases the held calls: each client gets its own answer.
    async fn end(self) {
        for name in NAMES {
            let released = self.peers[0].call(8, "release", json!({ "key": name })).await;
            assert_eq!(released["released"], 1, "{name}");
        }
        for (held, name) in self.held.into_iter().zip(NAMES) {
            assert_eq!(held.end().await["key"], name);
        }
    }
}

async fn list(cell: Cell) {
    let rig = cell.shared(&[]);
    let pair = rig.pair().await;
    let listed = all(pair.peers.iter().map(async |peer| {
        for (method, list, first) in [
            ("resources/list", "resources", "one"),
            ("resources/templates/list", "resourceTemplates", "item"),
            ("prompts/list", "prompts", "greet"),
        ] {
            let answer = peer.request(json!(2), method, json!({})).await;
            assert_eq!(answer["id"], 2);
            assert_eq!(answer["result"][list][0]["name"], first, "{method}");
        }
        let read = peer.request(json!(2), "resources/read", json!({ "uri": "fake:///one" })).await;
        assert_eq!(read["result"]["contents"][0]["text"], "the first");
        let unknown = json!({ "uri": "fake:///three" });
        let unknown = peer.request(json!(2), "resources/read", unknown).await;
        let tools = peer.request(json!(2), "tools/list", json!({})).await["result"].clone();
        (tools, read["result"].clone(), unknown["error"]["code"].as_i64())
    }))
    .await;

    for (tools, read, code_of_unknown) in listed {
        let names = tools["tools"].as_array().expect("a list").iter();
        assert!(names.into_iter().any(|tool| tool["name"] == "echo"));
        for result in [tools, read] {
            let modern = ["resultType", "ttlMs", "cacheScope"].map(|key| result.get(key).is_some());
            assert_eq!(modern, [cell.client == Era::Modern; 3], "{cell:?}: {result}");
        }
        let code = if cell.client == Era::Modern { -32602 } else { -32002 };
        assert_eq!(code_of_unknown, Some(code), "{cell:?}");
    }
    pair.end().await;
}

async fn call(cell: Cell) {
    let rig = cell.shared(&[]);
    let pair = rig.pair().await;
    // The server answers neither call before both have arrived.
    let met = all(pair.peers.iter().zip(NAMES).map(|(peer, name)| {
        peer.call(2, "meet", json!({ "n": 2, "value": { "of": name, "exact": "1.0" } }))
    }));
    for (met, name) in met.await.iter().zip(NAMES) {
        assert_eq!(met["value"], json!({ "of": name, "exact": "1.0" }));
    }
    let failed = all(pair.peers.iter().map(async |peer| {
        let error = json!({ "code": -32050, "message": "no", "data": { "why": [1] } });
        let params = json!({ "name": "rpc_error", "arguments": error });
        let failed = peer.request(json!(2), "tools/call", params).await["error"].clone();
        assert_eq!(failed, error);
        let params = json!({ "name": "tool_error", "arguments": {} });
        peer.request(json!(2), "tools/call", params).await["result"]["isError"].clone()
    }));
    assert_eq!(failed.await, [true, true]);
    pair.end().await;
}

async fn progress(cell: Cell) {
    let rig = cell.shared(&[]);
    let pair = rig.pair().await;
    let reported = all(pair.peers.iter().enumerate().map(|(n, peer)| {
        let arguments = json!({ "steps": 3, "n": n, "together": 2 });
        let meta = json!({ "progressToken": "t" });
        let params = json!({ "name": "progress", "arguments": arguments, "_meta": meta });
        peer.messages(json!(2), "tools/call", params)
    }));
    for (n, messages) in reported.await.iter().enumerate() {
        assert_eq!(messages.len(), 4, "{cell:?}: {messages:?}");
        for (step, message) in messages[..3].iter().enumerate() {
            assert_eq!(message["method"], "notifications/progress");
            assert_eq!(message["params"]["progressToken"], "t");
            let text = format!("call {n}, step {}", step + 1);
            assert_eq!(message["params"]["message"], text);
        }
        assert_eq!(messages[3]["result"]["structuredContent"]["n"], n);
    }
    pair.end().await;
}

async fn cancel(cell: Cell) {
    let rig = cell.shared(&[]);
    let Pair { peers, held } = rig.pair().await;
    let mut held = held.into_iter();
    let cancelled = held.next().expect("the call of the first client");

    peers[0].cancel(1).await;
    if cell.client == Era::Modern {
        drop(cancelled);
        rig.seen(json!({ "gone": 1 })).await;
    } else {
        rig.seen(json!({ "gone": 1 })).await;
        drop(cancelled);
    }

    let left = peers[1].call(2, "held", json!({})).await;
    assert_eq!(left["keys"], json!({ "two": 1 }), "{cell:?}: the other call continues");
    peers[1].call(2, "release", json!({ "key": "two" })).await;
    assert_eq!(held.next().expect("the call of the second client").end().await["key"], "two");
    let seen = rig.seen(json!({})).await;
    let signals = ["cancelled", "closed"].map(|signal| seen[signal].as_array().map_or(0, Vec::len));
    assert_eq!(signals.iter().sum::<usize>(), 1, "cancelled once: {seen}");
}

/// Makes the server ask both clients, and checks that each answer reaches its own call.
async fn ask(cell: Cell, method: &str, answer: fn(&str) -> Value) {
    let rig = cell.asking();
    let peers = rig.peers().await;
    let gate = Barrier::new(2);
    let answered = all(peers.iter().zip(NAMES).map(|(peer, name)| {
        let gate = &gate;
        peer.call_with_answer(json!({ "method": method }), answer(name), gate)
    }));
    for ((question, result), name) in answered.await.iter().zip(NAMES) {
        assert_eq!(question["method"], method);
        assert_eq!(result, &json!({ "result": answer(name) }), "{cell:?}: the answer of the other");
    }
}

async fn elicit(cell: Cell) {
    let accept = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    ask(cell, "elicitation/create", accept).await;
}

async fn sample(cell: Cell) {
    let message = |name: &str| {
        let content = json!({ "type": "text", "text": name });
        json!({ "role": "assistant", "content": content, "model": "m", "stopReason": "endTurn" })
    };
    ask(cell, "sampling/createMessage", message).await;
}

async fn roots(cell: Cell) {
    let roots =
        |name: &str| json!({ "roots": [{ "uri": format!("file:///{name}"), "name": name }] });
    ask(cell, "roots/list", roots).await;
}

async fn subscribe(cell: Cell) {
    let rig = cell.shared(&["--subscribe"]);
    let pair = rig.pair().await;
    let (own, end) = (["a:one", "a:two"], "a:end");
    let mut hearings = Vec::new();
    for (peer, uri) in pair.peers.iter().zip(own) {
        hearings.push(peer.listen(&[uri, end]).await);
    }
    rig.seen(json!({ "subscribed": 3, "hearers": 1 })).await;

    for uri in ["a:two", "a:one", end] {
        pair.peers[0].call(2, "touch", json!({ "uri": uri })).await;
    }

    for (hearing, uri) in hearings.iter_mut().zip(own) {
        assert_eq!(updated(hearing).await, uri, "{cell:?}: the resource of the other");
        assert_eq!(updated(hearing).await, end, "{cell:?}: notified once");
    }
    pair.end().await;
}

async fn list_changed(cell: Cell) {
    let rig = cell.shared(&["--subscribe"]);
    let pair = rig.pair().await;
    let mut hearings = Vec::new();
    for peer in &pair.peers {
        hearings.push(peer.listen(&["a:end"]).await);
    }
    rig.seen(json!({ "subscribed": 1, "hearers": 1 })).await;

    let added = pair.peers[0].call(2, "change", json!({ "list": "tools" })).await;

    for (hearing, peer) in hearings.iter_mut().zip(&pair.peers) {
        assert_eq!(hearing.notice().await["method"], "notifications/tools/list_changed");
        let tools = peer.request(json!(2), "tools/list", json!({})).await["result"].clone();
        let mut tools = tools["tools"].as_array().expect("a list").iter();
        assert!(tools.any(|tool| tool["name"] == added["added"]), "{cell:?}");
    }
    pair.peers[0].call(2, "touch", json!({ "uri": "a:end" })).await;
    for hearing in &mut hearings {
        assert_eq!(updated(hearing).await, "a:end", "{cell:?}: notified once");
    }
    pair.end().await;
}

/// Waits for a resource that was updated.
async fn updated(hearing: &mut Listener) -> String {
    let notice = hearing.notice().await;
    assert_eq!(notice["method"], "notifications/resources/updated", "{notice}");
    notice["params"]["uri"].as_str().expect("a URI").to_owned()
}

async fn log_level(cell: Cell) {
    let rig = cell.shared(&["--logging"]);
    let pair = rig.pair().await;
    let mut hearings: Vec<Option<Listener>> = Vec::new();
    for peer in &pair.peers {
        hearings.push(match cell.client {
            Era::Legacy => Some(peer.listen(&[]).await),
            Era::Modern => None,
        });
    }
    let [one, two] = pair.peers.clone();
    let quiet = one.with_level("warning").await;
    let chatty = two.with_level("debug").await;
    rig.seen(json!({ "hearers": u64::from(cell.server == Era::Legacy) })).await;

    let heard = all([quiet, chatty].iter().zip(NAMES).zip(&mut hearings).map(
        async |((peer, name), hearing)| {
            let mut heard = Vec::new();
            for (level, suffix) in [("info", "low"), ("error", "high"), ("emergency", "end")] {
                let arguments =
                    json!({ "level": level, "data": format!("{name} {suffix}"), "related": true });
                let params = json!({ "name": "log", "arguments": arguments });
                let mut messages = peer.messages(json!(2), "tools/call", params).await;
                assert_eq!(messages.pop().expect("an answer")["id"], 2);
                heard.extend(messages.iter().map(data));
            }
            // A message without a known call reaches all listeners.
            let own = own_logs(name);
            let is_missing = |heard: &[String]| !own.iter().all(|own| heard.contains(own));
            while let Some(hearing) = hearing.as_mut().filter(|_| is_missing(&heard)) {
                heard.push(data(&hearing.notice().await));
            }
            heard
        },
    ))
    .await;

    for (heard, own) in heard.iter().zip(NAMES.map(own_logs)) {
        match (cell.client, cell.tells_logs_apart()) {
            (_, true) => assert_eq!(*heard, own, "{cell:?}"),
            // The loop above has received all messages.
            (Era::Legacy, false) => {}
            // No request receives a message that may belong to another one.
            (Era::Modern, false) => {
                assert!(heard.iter().all(|text| own.contains(text)), "{heard:?}");
            }
        }
    }
    assert!(!heard[0].iter().any(|text| text.ends_with("low")), "{cell:?}: {heard:?}");
    pair.end().await;
}

/// Returns the log messages of a client's own calls; the first client sets a high log level.
fn own_logs(name: &str) -> Vec<String> {
    let wanted = ["low", "high", "end"].into_iter().skip(usize::from(name == NAMES[0]));
    wanted.map(|suffix| format!("{name} {suffix}")).collect()
}

/// Returns the data of a log message.
fn data(message: &Value) -> String {
    assert_eq!(message["method"], "notifications/message", "{message}");
    message["params"]["data"].as_str().expect("a text").to_owned()
}

async fn completion(cell: Cell) {
    let rig = cell.shared(&[]);
    let pair = rig.pair().await;
    let completed = all(pair.peers.iter().zip(["A", "G"]).map(|(peer, value)| {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": "greet" },
            "argument": { "name": "subject", "value": value },
        });
        peer.request(json!(2), "completion/complete", params)
    }));
    let values = [json!(["Ada", "Alan"]), json!(["Grace"])];
    for (answer, values) in completed.await.iter().zip(values) {
        assert_eq!(answer["result"]["completion"]["values"], values, "{cell:?}: {answer}");
    }
    pair.end().await;
}

/// Makes a test of each cell: client era, server era and feature.
macro_rules! table {
    ($($name:ident: $client:ident client, $server:ident server;)*) => {$(
        mod $name {
            table!(@ $client, $server: list call progress cancel elicit sample roots subscribe
                list_changed log_level completion);
        }
    )*};
    (@ $client:ident, $server:ident: $($feature:ident)*) => {$(
        #[tokio::test]
        async fn $feature() {
            use super::{Cell, Era, Transport};
            for transport in [Transport::Pipe, Transport::Http] {
                let cell = Cell { client: Era::$client, server: Era::$server, transport };
                super::$feature(cell).await;
            }
        }
    )*};
}

table! {
    legacy_to_legacy: Legacy client, Legacy server;
    legacy_to_modern: Legacy client, Modern server;
    modern_to_legacy: Modern client, Legacy server;
    modern_to_modern: Modern client, Modern server;
}
