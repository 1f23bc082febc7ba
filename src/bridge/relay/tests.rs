use serde_json::{Value, json};

use super::*;
use crate::ingress::stdio_pipe::DETACHED;

/// A bridge whose client and service are the test itself.
#[derive(Default)]
struct Between {
    relay: BridgeRelay,
    now: Duration,
}

impl Between {
    /// Returns a bridge whose client has completed the handshake.
    fn greeted() -> Self {
        let mut between = Self::default();
        between.relay.attached(between.now);
        between.client(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": { "protocolVersion": "2025-03-26", "capabilities": {} },
        }));
        between.service(&json!({
            "jsonrpc": "2.0", "id": 0, "result": {
                "protocolVersion": "2025-03-26",
                "capabilities": { "tools": { "listChanged": true }, "prompts": {} },
            },
        }));
        between.client(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        between.said();
        between
    }

    fn client(&mut self, message: &Value) {
        self.relay.client_says(message.to_string().into(), self.now);
    }

    fn service(&mut self, message: &Value) {
        self.relay.service_says(message.to_string().into(), self.now);
    }

    fn ask(&mut self, id: u64, method: &str) {
        self.client(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }));
    }

    fn answer(&mut self, id: &Value) {
        self.service(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }

    /// Returns the messages to the client and to the service since the last call.
    fn said(&mut self) -> (Vec<Value>, Vec<Value>) {
        (taken(&mut self.relay.to_client), taken(&mut self.relay.to_service))
    }

    /// Ends the attachment after the service reports `read` messages, and starts another.
    fn restart(&mut self, read: Option<u64>) {
        if let Some(read) = read {
            self.service(
                &json!({ "jsonrpc": "2.0", "method": DETACHED, "params": { "read": read } }),
            );
        }
        self.relay.lost(self.now);
        self.relay.attached(self.now);
    }
}

fn taken(unsent: &mut UnsentMessages) -> Vec<Value> {
    let mut written = Vec::new();
    let writing = unsent.write(&mut written);
    futures_util::FutureExt::now_or_never(writing).expect("it waits for nobody").expect("written");
    let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

fn methods(said: &[Value]) -> Vec<&str> {
    said.iter().map(|message| message["method"].as_str().unwrap_or("-")).collect()
}

fn code(answer: &Value) -> (u64, &str) {
    let code = answer["error"]["data"]["code"].as_str();
    (answer["id"].as_u64().expect("an id"), code.unwrap_or("no error"))
}

#[test]
fn messages_pass_both_ways_as_they_are() {
    let mut between = Between::greeted();
    let odd = Bytes::from_static(br#"{"jsonrpc":"2.0","id":"a","method":"x/y","z":1.0}"#);
    between.relay.client_says(odd.clone(), between.now);
    let mut written = Vec::new();
    let writing = between.relay.to_service.write(&mut written);
    futures_util::FutureExt::now_or_never(writing).expect("at once").expect("written");
    assert_eq!(written, [&odd[..], b"\n"].concat());
    between.answer(&json!("a"));
    assert_eq!(between.said().0, [json!({ "jsonrpc": "2.0", "id": "a", "result": {} })]);
    assert!(!between.relay.has_pending());
}

#[test]
fn a_new_service_is_told_what_the_old_one_knew_and_the_client_hears_nothing_of_it() {
    let mut between = Between::greeted();
    between.client(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": { "level": "error" },
    }));
    for (id, asked, uri) in [
        (2, "resources/subscribe", "a:1"),
        (3, "resources/subscribe", "a:2"),
        (4, "resources/unsubscribe", "a:1"),
    ] {
        let params = json!({ "uri": uri });
        between.client(&json!({ "jsonrpc": "2.0", "id": id, "method": asked, "params": params }));
    }
    (1..=4).for_each(|id| between.answer(&json!(id)));
    between.said();

    between.restart(Some(6));
    let (client, service) = between.said();
    assert_eq!((client.len(), methods(&service)), (0, vec!["initialize"]));
    between.ask(5, "tools/list");
    assert_eq!(between.said().1.len(), 0, "first the handshake");
    between.answer(&service[0]["id"]);

    let (client, service) = between.said();
    assert_eq!(methods(&client), ["notifications/tools/list_changed"]);
    let expected =
        ["notifications/initialized", "logging/setLevel", "resources/subscribe", "tools/list"];
    assert_eq!(methods(&service), expected);
    assert_eq!(service[2]["params"]["uri"], "a:2");
    for own in &service[1..3] {
        between.answer(&own["id"]);
    }
    assert_eq!(between.said().0, Vec::<Value>::new());
}

#[test]
fn the_relay_resends_unread_messages_to_a_restarted_service_in_order() {
    let mut between = Between::greeted();
    between.ask(1, "tools/call");
    between.client(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    between.ask(2, "tools/call");
    between.answer(&json!(1));
    between.said();

    // The handshake consists of two messages.
    between.restart(Some(3));
    let own = between.said().1[0]["id"].clone();
    between.answer(&own);

    let (_, service) = between.said();
    assert_eq!(methods(&service)[1..], ["notifications/roots/list_changed", "tools/call"]);
    assert_eq!(service[2]["id"], 2);
}

#[test]
fn after_a_crash_what_only_reads_is_asked_again_and_a_call_is_not() {
    let mut between = Between::greeted();
    between.ask(1, "tools/call");
    between.ask(2, "tools/list");
    between.ask(3, "x/unknown");
    between.said();

    between.restart(None);
    let (client, service) = between.said();
    let told: Vec<_> = client.iter().map(code).collect();
    assert_eq!(told, [(1, "OUTCOME_UNKNOWN"), (3, "OUTCOME_UNKNOWN")]);
    assert_eq!(client[0]["error"]["code"], -32000);
    between.answer(&service[0]["id"]);
    assert_eq!(between.said().1[1]["id"], 2);
}

#[test]
fn a_read_but_unanswered_request_has_an_unknown_outcome_even_after_an_orderly_restart() {
    let mut between = Between::greeted();
    between.ask(1, "tools/call");
    between.restart(Some(3));
    assert_eq!(code(&between.said().0[0]), (1, "OUTCOME_UNKNOWN"));
}

#[test]
fn the_relay_cancels_a_question_of_a_lost_server_and_drops_its_late_answer() {
    let mut between = Between::greeted();
    let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    let answer = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } });
    between.service(&question);
    assert_eq!(between.said().0[0]["id"], 1);

    between.restart(Some(2));
    let (client, service) = between.said();
    assert_eq!(client[0]["method"], "notifications/cancelled");
    assert_eq!(client[0]["params"]["requestId"], 1);
    between.answer(&service[0]["id"]);
    between.said();
    // Another server's ids start from 1, too.
    between.service(&question);
    assert_eq!(between.said().0[0]["id"], 2);
    between.client(&answer(1));
    assert_eq!(between.said().1, Vec::<Value>::new());
    between.client(&answer(2));
    assert_eq!(between.said().1[0]["id"], 1);
}

#[test]
fn a_question_that_its_server_takes_back_is_taken_back_by_the_number_that_the_client_knows() {
    let mut between = Between::greeted();
    between.service(&json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" }));
    between.service(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "q" },
    }));
    assert_eq!(between.said().0[1]["params"]["requestId"], 1);
}

#[test]
fn a_listener_is_told_once_what_it_hears_of_and_then_that_something_may_have_changed() {
    let mut between = Between::default();
    between.relay.attached(between.now);
    between.client(&json!({
        "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
        "params": { "notifications": { "toolsListChanged": true } },
    }));
    let acknowledged = json!({
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {
            "notifications": { "toolsListChanged": true },
            "_meta": { "io.modelcontextprotocol/subscriptionId": 7 },
        },
    });
    between.service(&acknowledged);
    assert_eq!(between.said().0, std::slice::from_ref(&acknowledged));

    // The service ends the subscription when it stops.
    between.answer(&json!(7));
    between.restart(Some(1));
    let (client, service) = between.said();
    assert_eq!((client.len(), methods(&service)), (0, vec!["subscriptions/listen"]));
    between.service(&acknowledged);

    let (client, _) = between.said();
    assert_eq!(methods(&client), ["notifications/tools/list_changed"]);
    assert_eq!(client[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    between.client(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
    }));
    assert!(!between.relay.has_pending());
}

#[test]
fn messages_wait_for_a_service_that_is_away_for_their_time_and_no_longer() {
    let mut between = Between::greeted();
    between.relay.lost(between.now);
    between.ask(1, "tools/call");
    between.now += Duration::from_secs(5);
    between.ask(2, "tools/list");
    between.client(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 },
    }));
    between.ask(3, "tools/list");
    assert_eq!(between.said(), (Vec::new(), Vec::new()));
    assert_eq!(between.relay.deadline(), Some(defaults::BRIDGE_PATIENCE));

    between.now = defaults::BRIDGE_PATIENCE;
    between.relay.tick(between.now);
    let (client, _) = between.said();
    assert_eq!(client.iter().map(code).collect::<Vec<_>>(), [(1, "SERVICE_UNAVAILABLE")]);
    assert!(client[0]["error"]["data"]["suggestion"].to_string().contains("metamcp serve"));
    between.relay.attached(between.now);
    let own = between.said().1[0]["id"].clone();
    between.answer(&own);
    assert_eq!(between.said().1.last().expect("it was sent")["id"], 3);
}

#[test]
fn more_than_may_wait_is_refused_at_once_and_memory_is_bounded() {
    let mut between = Between::greeted();
    between.relay.lost(between.now);
    let max = defaults::BRIDGE_LINES_MAX as u64;
    (0..=max).for_each(|id| between.ask(id, "tools/list"));
    assert_eq!(
        between.said().0.iter().map(code).collect::<Vec<_>>(),
        [(max, "SERVICE_UNAVAILABLE")]
    );

    let mut large = Between::greeted();
    let text = "x".repeat(4 << 20);
    for id in 0..6 {
        large.client(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": { "x": text } }),
        );
    }
    large.said();
    assert!(large.relay.n_kept <= defaults::BRIDGE_BYTES_MAX);
    large.restart(None);
    let told = large.said().0.len();
    assert!((1..6).contains(&told), "some were not kept: {told}");
    for id in 0..6 {
        large.relay.forget(|request| request.has(&id.to_string()));
    }
}

#[test]
fn a_batch_with_unknown_outcome_is_answered_as_one_batch() {
    let mut between = Between::greeted();
    let batch = |method: &str| {
        json!([
            { "jsonrpc": "2.0", "id": 1, "method": method, "params": {} },
            { "jsonrpc": "2.0", "id": 2, "method": "ping" },
        ])
    };
    between.client(&batch("ping"));
    between.service(&json!([
        { "jsonrpc": "2.0", "id": 2, "result": {} }, { "jsonrpc": "2.0", "id": 1, "result": {} },
    ]));
    assert!(!between.relay.has_pending());
    between.client(&batch("tools/call"));
    between.said();

    between.restart(None);

    let (client, _) = between.said();
    let answers = client[0].as_array().expect("a batch");
    let told: Vec<_> = answers.iter().map(code).collect();
    assert_eq!(told, [(1, "OUTCOME_UNKNOWN"), (2, "OUTCOME_UNKNOWN")]);
}

#[test]
fn a_service_that_refuses_is_quoted_to_those_who_waited() {
    let mut between = Between::greeted();
    between.relay.lost(between.now);
    between.ask(1, "tools/list");
    between.relay.refused("no server `x`".to_owned());
    between.now += defaults::BRIDGE_PATIENCE;
    between.relay.tick(between.now);
    let (client, _) = between.said();
    assert!(client[0]["error"]["message"].to_string().contains("no server `x`"), "{client:?}");
    let remedy = client[0]["error"]["data"]["suggestion"].to_string();
    assert!(!remedy.contains("metamcp serve"), "it runs: {remedy}");
}

proptest::proptest! {
    /// Each request has at most one answer across restarts, and the stored bytes are counted
    /// correctly.
    #[test]
    fn no_request_is_answered_twice(steps in proptest::collection::vec((0..7u8, 0..12u64), 0..80)) {
        let mut between = Between::greeted();
        let (mut next, mut is_up) = (100, true);
        let (mut answers, mut at_service) = (BTreeMap::<u64, u32>::new(), Vec::new());
        for (what, number) in steps {
            match what {
                0 | 1 => {
                    between.ask(next, if what == 0 { "tools/call" } else { "tools/list" });
                    next += 1;
                }
                2 if is_up && !at_service.is_empty() => {
                    let at = usize::try_from(number).unwrap_or(0) % at_service.len();
                    let id: Value = at_service.swap_remove(at);
                    between.answer(&id);
                }
                3 if is_up => {
                    if number % 2 == 0 {
                        between.service(&json!({ "jsonrpc": "2.0", "method": DETACHED, "params": { "read": number } }));
                    }
                    between.relay.lost(between.now);
                    at_service.clear();
                    is_up = false;
                }
                4 if !is_up => {
                    between.relay.attached(between.now);
                    is_up = true;
                }
                5 => {
                    between.now += Duration::from_secs(number);
                    between.relay.tick(between.now);
                }
                6 => between.client(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} })),
                _ => {}
            }
            let (client, service) = between.said();
            at_service.extend(service.iter().map(|message| message["id"].clone()).filter(|id| !id.is_null()));
            for id in client.iter().filter_map(|message| message["id"].as_u64()) {
                *answers.entry(id).or_default() += 1;
            }
            let relay = &between.relay;
            let kept = relay.asked.iter().map(|sent| sent.request.n_bytes()).sum::<usize>()
                + relay.tail.iter().map(|(_, line)| line.len()).sum::<usize>()
                + relay.waiting.iter().map(|waiting| waiting.what.n_bytes()).sum::<usize>();
            proptest::prop_assert_eq!(relay.n_kept, kept);
        }
        proptest::prop_assert!(answers.values().all(|n_answers| *n_answers == 1));
        let waits = (100..next).filter(|id| !answers.contains_key(id)).count();
        proptest::prop_assert_eq!(waits > 0, between.relay.has_pending());
    }
}
