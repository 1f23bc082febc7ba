//! Calls of clients of 2026-07-28 that are held because a legacy server asks in the middle of them.

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

fn asking() -> Value {
    json!({ "name": "ask", "arguments": { "method": "elicitation/create", "params": { "message": "Who?" } } })
}

fn accept(_: &str, _: &Value) -> Value {
    json!({ "action": "accept", "content": { "name": "me" } })
}

async fn call(client: &Modern, params: Value) -> Value {
    client.request(json!(1), "tools/call", params).await.answer()
}

/// Returns the code of an error and its name.
fn refused(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let name = error["data"]["code"].as_str().unwrap_or_default();
    (error["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}")), name)
}

#[tokio::test]
async fn a_call_goes_on_where_its_client_was_asked() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    for (path, name) in [("/servers/fake", "ask"), ("/", "fake__ask")] {
        let client = client(&daemon, path);
        let mut params = asking();
        params["name"] = json!(name);

        let asked = call(&client, params.clone()).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required");
        let questions = asked["inputRequests"].as_object().expect("questions");
        let question = questions.values().next().expect("one");
        assert_eq!(
            question,
            &json!({ "method": "elicitation/create", "params": { "message": "Who?" } })
        );

        let mut again = retry(&params, &asked, accept);
        // Some clients write the members in another order the second time.
        again["_meta"] = json!({ "x": 1 });
        let answer = call(&client, again.clone()).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        let told = &answer["result"]["structuredContent"];
        assert_eq!(told["result"], accept("", &json!({})), "{answer}");

        assert_eq!(refused(&call(&client, again).await), (-32602, "UNKNOWN_STATE"), "once");
    }
}

#[tokio::test]
async fn a_state_is_good_for_the_request_that_it_was_given_out_for() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    let client = client(&daemon, "/servers/fake");
    let asked = call(&client, asking()).await["result"].clone();
    let right = retry(&asking(), &asked, accept);

    let mut other_arguments = right.clone();
    other_arguments["arguments"]["params"]["message"] = json!("Where?");
    let mut other_tool = right.clone();
    other_tool["name"] = json!("echo");
    for wrong in [other_arguments, other_tool] {
        assert_eq!(refused(&call(&client, wrong).await), (-32602, "UNKNOWN_STATE"));
    }
    let state = asked["requestState"].as_str().expect("a state");
    for altered in [format!("{state}0"), state[..state.len() - 1].to_owned(), "x".to_owned()] {
        let mut wrong = right.clone();
        wrong["requestState"] = json!(altered);
        assert_eq!(refused(&call(&client, wrong).await), (-32602, "UNKNOWN_STATE"), "{altered}");
    }

    let answer = call(&client, right).await;
    assert_eq!(answer["result"]["resultType"], "complete", "none of that has cost it: {answer}");
}

#[tokio::test]
async fn a_client_that_leaves_the_answer_out_is_asked_again() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    let client = client(&daemon, "/servers/fake");
    let first = call(&client, asking()).await["result"].clone();
    let mut bare = retry(&asking(), &first, accept);
    bare["inputResponses"] = json!({ "other": {} });

    let second = call(&client, bare).await["result"].clone();

    assert_eq!(second["resultType"], "input_required");
    assert_eq!(second["inputRequests"], first["inputRequests"]);
    let answer = call(&client, retry(&asking(), &second, accept)).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_and_the_server_knows() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    let client = Modern::new(daemon.client("/servers/fake"));
    let answer = call(&client, asking()).await;
    let told = &answer["result"]["structuredContent"]["error"];
    assert_eq!(told["data"]["code"], "CAPABILITY_MISSING", "{answer}");
}

#[tokio::test]
async fn abandoned_held_calls_leave_a_connection_for_other_calls() {
    let fakes = Fakes::new();
    let declared = fakes.server("fake", &[]) + EXCLUSIVE + "max_connections = 2\n";
    let daemon = Daemon::with(declared).ready();
    let client = client(&daemon, "/servers/fake");
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push(call(&client, asking()).await["result"].clone());
    }

    let kept = asked.pop().expect("the last");
    let given_up = asked.pop().expect("the one before");
    let again = |asked: &Value| call(&client, retry(&asking(), asked, accept));
    assert_eq!(refused(&again(&given_up).await), (-32602, "UNKNOWN_STATE"));
    assert_eq!(again(&kept).await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_clients_to_come_back() {
    let fakes = Fakes::new();
    let mut daemon = Daemon::with(fakes.server("fake", &[]) + EXCLUSIVE).ready();
    let asked = call(&client(&daemon, "/servers/fake"), asking()).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");

    assert!(daemon.stop().success());

    let log = daemon.log();
    assert!(!log.contains("cut off"), "{log}");
}

#[tokio::test]
async fn a_client_that_visits_no_addresses_is_not_sent_to_one() {
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
        assert_eq!(refused(&answer), (-32021, "CAPABILITY_REQUIRED"));
        let required = &answer["error"]["data"]["requiredCapabilities"];
        assert_eq!(required, &json!({ "elicitation": { "url": {} } }));
    }

    let able = Modern::new(daemon.client("/servers/fake"))
        .capabilities(json!({ "elicitation": { "url": {} } }));
    let answer = able.tool("rpc_error", demand).await.answer();
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
}
