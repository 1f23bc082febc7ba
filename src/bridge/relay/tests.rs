use serde_json::{Value, json};

use super::*;
use crate::ingress::stdio_pipe::DETACHED;

/// A bridge whose client and service are the test itself.
#[derive(Default)]
struct BridgeRig {
    relay: BridgeRelay,
    now: Duration,
}

impl BridgeRig {
    /// Returns a bridge whose client has completed the handshake.
    fn greeted() -> Self {
        let mut bridge = Self::default();
        bridge.relay.attached(bridge.now);
        bridge.client(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": { "protocolVersion": "2025-03-26", "capabilities": {} },
        }));
        bridge.service(&json!({
            "jsonrpc": "2.0", "id": 0, "result": {
                "protocolVersion": "2025-03-26",
                "capabilities": { "tools": { "listChanged": true }, "prompts": {} },
            },
        }));
        bridge.client(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        bridge.sent();
        bridge
    }

    fn client(&mut self, message: &Value) {
        self.relay.receive_from_client(message.to_string().into(), self.now);
    }

    fn service(&mut self, message: &Value) {
        self.relay.receive_from_service(message.to_string().into(), self.now);
    }

    fn ask(&mut self, id: u64, method: &str) {
        self.client(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} }));
    }

    fn answer(&mut self, id: &Value) {
        self.service(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }

    /// Returns the messages to the client and to the service since the last call.
    fn sent(&mut self) -> (Vec<Value>, Vec<Value>) {
        (taken(&mut self.relay.to_client), taken(&mut self.relay.to_service))
    }

    /// Ends the attachment after the service reports `read` messages, and starts another.
    fn restart(&mut self, read: Option<u64>) {
        if let Some(read) = read {
            self.service(
                &json!({ "jsonrpc": "2.0", "method": DETACHED, "params": { "read": read } }),
            );
        }
        self.relay.detached(self.now);
        self.relay.attached(self.now);
    }
}

fn taken(unsent: &mut UnsentMessages) -> Vec<Value> {
    let mut written = Vec::new();
    let writing = unsent.write(&mut written);
    futures_util::FutureExt::now_or_never(writing).expect("it does not wait").expect("written");
    let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

fn methods(sent: &[Value]) -> Vec<&str> {
    sent.iter().map(|message| message["method"].as_str().unwrap_or("-")).collect()
}

fn code(answer: &Value) -> (u64, &str) {
    let code = answer["error"]["data"]["code"].as_str();
    (answer["id"].as_u64().expect("an id"), code.unwrap_or("no error"))
}

#[test]
fn the_relay_passes_messages_unchanged_in_both_directions() {
    let mut bridge = BridgeRig::greeted();
    let odd = Bytes::from_static(br#"{"jsonrpc":"2.0","id":"a","method":"x/y","z":1.0}"#);
    bridge.relay.receive_from_client(odd.clone(), bridge.now);
    let mut written = Vec::new();
    let writing = bridge.relay.to_service.write(&mut written);
    futures_util::FutureExt::now_or_never(writing).expect("at once").expect("written");
    assert_eq!(written, [&odd[..], b"\n"].concat());
    bridge.answer(&json!("a"));
    assert_eq!(bridge.sent().0, [json!({ "jsonrpc": "2.0", "id": "a", "result": {} })]);
    assert!(!bridge.relay.has_pending());
}

#[test]
fn the_relay_restores_the_session_at_a_restarted_service_unnoticed_by_the_client() {
    let mut bridge = BridgeRig::greeted();
    bridge.client(&json!({
        "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": { "level": "error" },
    }));
    for (id, asked, uri) in [
        (2, "resources/subscribe", "a:1"),
        (3, "resources/subscribe", "a:2"),
        (4, "resources/unsubscribe", "a:1"),
    ] {
        let params = json!({ "uri": uri });
        bridge.client(&json!({ "jsonrpc": "2.0", "id": id, "method": asked, "params": params }));
    }
    (1..=4).for_each(|id| bridge.answer(&json!(id)));
    bridge.sent();

    bridge.restart(Some(6));
    let (client, service) = bridge.sent();
    assert_eq!((client.len(), methods(&service)), (0, vec!["initialize"]));
    bridge.ask(5, "tools/list");
    assert_eq!(bridge.sent().1.len(), 0, "first the handshake");
    bridge.answer(&service[0]["id"]);

    let (client, service) = bridge.sent();
    assert_eq!(methods(&client), ["notifications/tools/list_changed"]);
    let expected =
        ["notifications/initialized", "logging/setLevel", "resources/subscribe", "tools/list"];
    assert_eq!(methods(&service), expected);
    assert_eq!(service[2]["params"]["uri"], "a:2");
    for own in &service[1..3] {
        bridge.answer(&own["id"]);
    }
    assert_eq!(bridge.sent().0, Vec::<Value>::new());
}

#[test]
fn the_relay_resends_unread_messages_to_a_restarted_service_in_order() {
    let mut bridge = BridgeRig::greeted();
    bridge.ask(1, "tools/call");
    bridge.client(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    bridge.ask(2, "tools/call");
    bridge.answer(&json!(1));
    bridge.sent();

    // The handshake consists of two messages.
    bridge.restart(Some(3));
    let own = bridge.sent().1[0]["id"].clone();
    bridge.answer(&own);

    let (_, service) = bridge.sent();
    assert_eq!(methods(&service)[1..], ["notifications/roots/list_changed", "tools/call"]);
    assert_eq!(service[2]["id"], 2);
}

#[test]
fn after_a_crash_the_relay_repeats_reading_requests_and_no_calls() {
    let mut bridge = BridgeRig::greeted();
    bridge.ask(1, "tools/call");
    bridge.ask(2, "tools/list");
    bridge.ask(3, "x/unknown");
    bridge.sent();

    bridge.restart(None);
    let (client, service) = bridge.sent();
    let failures: Vec<_> = client.iter().map(code).collect();
    assert_eq!(failures, [(1, "OUTCOME_UNKNOWN"), (3, "OUTCOME_UNKNOWN")]);
    assert_eq!(client[0]["error"]["code"], -32000);
    bridge.answer(&service[0]["id"]);
    assert_eq!(bridge.sent().1[1]["id"], 2);
}

#[test]
fn a_read_but_unanswered_request_has_an_unknown_outcome_even_after_an_orderly_restart() {
    let mut bridge = BridgeRig::greeted();
    bridge.ask(1, "tools/call");
    bridge.restart(Some(3));
    assert_eq!(code(&bridge.sent().0[0]), (1, "OUTCOME_UNKNOWN"));
}

#[test]
fn the_relay_cancels_a_question_of_a_lost_server_and_drops_its_late_answer() {
    let mut bridge = BridgeRig::greeted();
    let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    let answer = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } });
    bridge.service(&question);
    assert_eq!(bridge.sent().0[0]["id"], 1);

    bridge.restart(Some(2));
    let (client, service) = bridge.sent();
    assert_eq!(client[0]["method"], "notifications/cancelled");
    assert_eq!(client[0]["params"]["requestId"], 1);
    bridge.answer(&service[0]["id"]);
    bridge.sent();
    // Another server's ids start from 1, too.
    bridge.service(&question);
    assert_eq!(bridge.sent().0[0]["id"], 2);
    bridge.client(&answer(1));
    assert_eq!(bridge.sent().1, Vec::<Value>::new());
    bridge.client(&answer(2));
    assert_eq!(bridge.sent().1[0]["id"], 1);
}

#[test]
fn the_relay_forwards_a_withdrawn_question_with_the_id_that_the_client_knows() {
    let mut bridge = BridgeRig::greeted();
    bridge.service(&json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" }));
    bridge.service(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "q" },
    }));
    assert_eq!(bridge.sent().0[1]["params"]["requestId"], 1);
}

#[test]
fn a_subscription_is_acknowledged_once_and_after_a_restart_reports_possible_changes() {
    let mut bridge = BridgeRig::default();
    bridge.relay.attached(bridge.now);
    bridge.client(&json!({
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
    bridge.service(&acknowledged);
    assert_eq!(bridge.sent().0, std::slice::from_ref(&acknowledged));

    // The service ends the subscription when it stops.
    bridge.answer(&json!(7));
    bridge.restart(Some(1));
    let (client, service) = bridge.sent();
    assert_eq!((client.len(), methods(&service)), (0, vec!["subscriptions/listen"]));
    bridge.service(&acknowledged);

    let (client, _) = bridge.sent();
    assert_eq!(methods(&client), ["notifications/tools/list_changed"]);
    assert_eq!(client[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    bridge.client(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
    }));
    assert!(!bridge.relay.has_pending());
}

#[test]
fn a_message_waits_for_an_absent_service_until_its_timeout() {
    let mut bridge = BridgeRig::greeted();
    bridge.relay.detached(bridge.now);
    bridge.ask(1, "tools/call");
    bridge.now += Duration::from_secs(5);
    bridge.ask(2, "tools/list");
    bridge.client(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 },
    }));
    bridge.ask(3, "tools/list");
    assert_eq!(bridge.sent(), (Vec::new(), Vec::new()));
    assert_eq!(bridge.relay.deadline(), Some(defaults::BRIDGE_TIMEOUT));

    bridge.now = defaults::BRIDGE_TIMEOUT;
    bridge.relay.tick(bridge.now);
    let (client, _) = bridge.sent();
    assert_eq!(client.iter().map(code).collect::<Vec<_>>(), [(1, "SERVICE_UNAVAILABLE")]);
    assert!(client[0]["error"]["data"]["suggestion"].to_string().contains("metamcp serve"));
    bridge.relay.attached(bridge.now);
    let own = bridge.sent().1[0]["id"].clone();
    bridge.answer(&own);
    assert_eq!(bridge.sent().1.last().expect("it was sent")["id"], 3);
}

#[test]
fn surplus_messages_for_an_absent_service_are_refused_and_memory_is_bounded() {
    let mut bridge = BridgeRig::greeted();
    bridge.relay.detached(bridge.now);
    let max = defaults::BRIDGE_LINES_MAX as u64;
    (0..=max).for_each(|id| bridge.ask(id, "tools/list"));
    assert_eq!(
        bridge.sent().0.iter().map(code).collect::<Vec<_>>(),
        [(max, "SERVICE_UNAVAILABLE")]
    );

    let mut large = BridgeRig::greeted();
    let text = "x".repeat(4 << 20);
    for id in 0..6 {
        large.client(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": { "x": text } }),
        );
    }
    large.sent();
    assert!(large.relay.n_kept <= defaults::BRIDGE_BYTES_MAX);
    large.restart(None);
    let failures = large.sent().0.len();
    assert!((1..6).contains(&failures), "some were not kept: {failures}");
    for id in 0..6 {
        large.relay.forget(|request| request.has(&id.to_string()));
    }
}

#[test]
fn a_batch_with_unknown_outcome_is_answered_as_one_batch() {
    let mut bridge = BridgeRig::greeted();
    let batch = |method: &str| {
        json!([
            { "jsonrpc": "2.0", "id": 1, "method": method, "params": {} },
            { "jsonrpc": "2.0", "id": 2, "method": "ping" },
        ])
    };
    bridge.client(&batch("ping"));
    bridge.service(&json!([
        { "jsonrpc": "2.0", "id": 2, "result": {} }, { "jsonrpc": "2.0", "id": 1, "result": {} },
    ]));
    assert!(!bridge.relay.has_pending());
    bridge.client(&batch("tools/call"));
    bridge.sent();

    bridge.restart(None);

    let (client, _) = bridge.sent();
    let answers = client[0].as_array().expect("a batch");
    let failures: Vec<_> = answers.iter().map(code).collect();
    assert_eq!(failures, [(1, "OUTCOME_UNKNOWN"), (2, "OUTCOME_UNKNOWN")]);
}

#[test]
fn waiting_requests_fail_with_the_reason_that_the_service_gives_for_its_refusal() {
    let mut bridge = BridgeRig::greeted();
    bridge.relay.detached(bridge.now);
    bridge.ask(1, "tools/list");
    bridge.relay.refused("no server `x`".to_owned());
    bridge.now += defaults::BRIDGE_TIMEOUT;
    bridge.relay.tick(bridge.now);
    let (client, _) = bridge.sent();
    assert!(client[0]["error"]["message"].to_string().contains("no server `x`"), "{client:?}");
    let remedy = client[0]["error"]["data"]["suggestion"].to_string();
    assert!(!remedy.contains("metamcp serve"), "it runs: {remedy}");
}

proptest::proptest! {
    /// Each request has at most one answer across restarts, and the stored bytes are counted
    /// correctly.
    #[test]
    fn no_request_is_answered_twice(steps in proptest::collection::vec((0..7u8, 0..12u64), 0..80)) {
        let mut bridge = BridgeRig::greeted();
        let (mut next, mut is_up) = (100, true);
        let (mut answers, mut at_service) = (BTreeMap::<u64, u32>::new(), Vec::new());
        for (step, number) in steps {
            match step {
                0 | 1 => {
                    bridge.ask(next, if step == 0 { "tools/call" } else { "tools/list" });
                    next += 1;
                }
                2 if is_up && !at_service.is_empty() => {
                    let at = usize::try_from(number).unwrap_or(0) % at_service.len();
                    let id: Value = at_service.swap_remove(at);
                    bridge.answer(&id);
                }
                3 if is_up => {
                    if number % 2 == 0 {
                        bridge.service(&json!({ "jsonrpc": "2.0", "method": DETACHED, "params": { "read": number } }));
                    }
                    bridge.relay.detached(bridge.now);
                    at_service.clear();
                    is_up = false;
                }
                4 if !is_up => {
                    bridge.relay.attached(bridge.now);
                    is_up = true;
                }
                5 => {
                    bridge.now += Duration::from_secs(number);
                    bridge.relay.tick(bridge.now);
                }
                6 => bridge.client(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} })),
                _ => {}
            }
            let (client, service) = bridge.sent();
            at_service.extend(service.iter().map(|message| message["id"].clone()).filter(|id| !id.is_null()));
            for id in client.iter().filter_map(|message| message["id"].as_u64()) {
                *answers.entry(id).or_default() += 1;
            }
            let relay = &bridge.relay;
            let kept = relay.unanswered.iter().map(|sent| sent.request.n_bytes()).sum::<usize>()
                + relay.recent.iter().map(|(_, line)| line.len()).sum::<usize>()
                + relay.waiting.iter().map(|(_, message)| message.n_bytes()).sum::<usize>();
            proptest::prop_assert_eq!(relay.n_kept, kept);
        }
        proptest::prop_assert!(answers.values().all(|n_answers| *n_answers == 1));
        let waits = (100..next).filter(|id| !answers.contains_key(id)).count();
        proptest::prop_assert_eq!(waits > 0, bridge.relay.has_pending());
    }
}
