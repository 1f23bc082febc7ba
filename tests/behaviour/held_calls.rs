//! Held calls: a legacy server asks a client of 2026-07-28 in the middle of a call.

use serde_json::{Value, json};

use crate::harness::{
    daemon::Daemon,
    fake::Fakes,
    modern::{Modern, retry},
};

const EXCLUSIVE: &str = "sharing = \"exclusive\"\n";

fn client(daemon: &Daemon, path: &str) -> Modern {
    Modern::new(daemon.client(path)).capabilities(json!({ "elicitation": {} }))
}

fn ask_call() -> Value {
    json!({ "name": "ask", "arguments": { "method": "elicitation/create", "params": { "message": "Who?" } } })
}

fn accept(_: &str, _: &Value) -> Value {
    json!({ "action": "accept", "content": { "name": "me" } })
}

async fn call(client: &Modern, params: Value) -> Value {
    client.request(json!(1), "tools/call", params).await.answer()
}

/// Returns the JSON-RPC code of an error and its name.
fn error_codes(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let name = error["data"]["code"].as_str().unwrap_or_default();
    (error["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}")), name)
}

#[tokio::test]
async fn a_held_call_continues_with_the_answers_of_its_client() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    for (path, name) in [("/servers/fake", "ask"), ("/", "fake__ask")] {
        let client = client(&daemon, path);
        let mut params = ask_call();
        params["name"] = json!(name);

        let paused = call(&client, params.clone()).await["result"].clone();
        assert_eq!(paused["resultType"], "input_required");
        let questions = paused["inputRequests"].as_object().expect("questions");
        let question = questions.values().next().expect("one");
        assert_eq!(
            question,
            &json!({ "method": "elicitation/create", "params": { "message": "Who?" } })
        );

        let mut again = retry(&params, &paused, accept);
        // Some clients write the members of the retry in another order.
        again["_meta"] = json!({ "x": 1 });
        let answer = call(&client, again.clone()).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        let result = &answer["result"]["structuredContent"];
        assert_eq!(result["result"], accept("", &json!({})), "{answer}");

        assert_eq!(
            error_codes(&call(&client, again).await),
            (-32602, "UNKNOWN_STATE"),
            "valid once"
        );
    }
}

#[tokio::test]
async fn a_request_state_is_valid_only_for_its_own_request() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    let client = client(&daemon, "/servers/fake");
    let paused = call(&client, ask_call()).await["result"].clone();
    let right = retry(&ask_call(), &paused, accept);

    let mut other_arguments = right.clone();
    other_arguments["arguments"]["params"]["message"] = json!("Where?");
    let mut other_tool = right.clone();
    other_tool["name"] = json!("echo");
    for wrong in [other_arguments, other_tool] {
        assert_eq!(error_codes(&call(&client, wrong).await), (-32602, "UNKNOWN_STATE"));
    }
    let state = paused["requestState"].as_str().expect("a state");
    for altered in [format!("{state}0"), state[..state.len() - 1].to_owned(), "x".to_owned()] {
        let mut wrong = right.clone();
        wrong["requestState"] = json!(altered);
        assert_eq!(
            error_codes(&call(&client, wrong).await),
            (-32602, "UNKNOWN_STATE"),
            "{altered}"
        );
    }

    let answer = call(&client, right).await;
    assert_eq!(
        answer["result"]["resultType"], "complete",
        "the invalid retries have not consumed the state: {answer}"
    );
}

#[tokio::test]
async fn a_retry_without_the_answer_is_asked_again() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    let client = client(&daemon, "/servers/fake");
    let first = call(&client, ask_call()).await["result"].clone();
    let mut bare = retry(&ask_call(), &first, accept);
    bare["inputResponses"] = json!({ "other": {} });

    let second = call(&client, bare).await["result"].clone();

    assert_eq!(second["resultType"], "input_required");
    assert_eq!(second["inputRequests"], first["inputRequests"]);
    let answer = call(&client, retry(&ask_call(), &second, accept)).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

#[tokio::test]
async fn a_server_that_asks_a_client_without_elicitation_receives_an_error() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    let client = Modern::new(daemon.client("/servers/fake"));
    let answer = call(&client, ask_call()).await;
    let result = &answer["result"]["structuredContent"]["error"];
    assert_eq!(result["data"]["code"], "CAPABILITY_MISSING", "{answer}");
}

#[tokio::test]
async fn abandoned_held_calls_leave_a_connection_for_other_calls() {
    let fakes = Fakes::new();
    let declared = fakes.server("fake", &[]) + EXCLUSIVE + "max_connections = 2\n";
    let daemon = Daemon::with(declared).ready();
    let client = client(&daemon, "/servers/fake");
    let mut paused = Vec::new();
    for _ in 0..4 {
        paused.push(call(&client, ask_call()).await["result"].clone());
    }

    let kept = paused.pop().expect("the last");
    let given_up = paused.pop().expect("the one before");
    let again = |paused: &Value| call(&client, retry(&ask_call(), paused, accept));
    assert_eq!(error_codes(&again(&given_up).await), (-32602, "UNKNOWN_STATE"));
    assert_eq!(again(&kept).await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_held_calls() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    let paused = call(&client(&daemon, "/servers/fake"), ask_call()).await;
    assert_eq!(paused["result"]["resultType"], "input_required", "{paused}");

    assert!(daemon.stop().success());

    let log = daemon.log();
    assert!(!log.contains("cut off"), "{log}");
}

#[tokio::test]
async fn a_url_elicitation_requires_the_url_capability_of_the_client() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let visit =
        json!({ "mode": "url", "url": "https://x.invalid", "message": "Go", "elicitationId": "1" });
    let demand = json!({ "code": -32042, "message": "visit", "data": { "elicitations": [visit] } });
    for capabilities in [json!({}), json!({ "elicitation": {} })] {
        let client = Modern::new(daemon.client("/servers/fake")).capabilities(capabilities);
        let reply = client.tool("rpc_error", demand.clone()).await;
        assert_eq!(reply.status, 400);
        let answer = reply.answer();
        assert_eq!(error_codes(&answer), (-32021, "CAPABILITY_REQUIRED"));
        let required = &answer["error"]["data"]["requiredCapabilities"];
        assert_eq!(required, &json!({ "elicitation": { "url": {} } }));
    }

    let able = Modern::new(daemon.client("/servers/fake"))
        .capabilities(json!({ "elicitation": { "url": {} } }));
    let answer = able.tool("rpc_error", demand).await.answer();
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
}
