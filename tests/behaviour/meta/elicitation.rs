//! Elicitation during a call through a meta-tool.

use serde_json::{Value, json};

use super::{BOTH, call_of};
use crate::harness::{
    daemon::Daemon,
    fake::Fakes,
    meta_client::MetaClient,
    modern::{Modern, retry},
};

const PER_SESSION: &str = "sharing = \"session\"\n";

fn asking() -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "Who?" } })
}

fn accept(_: &str, _: &Value) -> Value {
    json!({ "action": "accept", "content": { "name": "me" } })
}

/// Returns a call through each meta-tool, with the path of the value in its answer.
fn calls(server: &str) -> [(&'static str, Value, &'static str); 2] {
    let id = format!("{server}/ask");
    [
        ("mcp_call", call_of(server, "ask", asking()), "/result/structuredContent"),
        (
            "run_tool",
            json!({ "tool_id": id, "args": asking() }),
            "/result/structuredContent/structured",
        ),
    ]
}

#[tokio::test]
async fn an_elicitation_reaches_a_legacy_client_and_its_answer_reaches_the_server() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned()
        + &fakes.server("old", &[])
        + PER_SESSION
        + &fakes.server("new", &["--era", "modern"])
        + PER_SESSION;
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/meta").initialized_with(json!({ "elicitation": {} })).await;
    let meta = MetaClient::at(client.clone()).await;
    for server in ["old", "new"] {
        for (tool, arguments, place) in calls(server) {
            let mut stream = meta.stream(tool, arguments, &json!("t")).await;
            assert_eq!(stream.message().await["params"]["message"], "started");
            let question = stream.message().await;
            assert_eq!(question["method"], "elicitation/create", "{server} {tool}: {question}");
            assert_eq!(question["params"]["message"], "Who?");

            client.respond(&question["id"], accept("", &json!({}))).await;

            let (_, answer) = meta.last(tool, &mut stream).await;
            let outcome = answer.pointer(place).unwrap_or_else(|| panic!("{answer}"));
            assert_eq!(outcome["result"], accept("", &json!({})), "{server} {tool}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_modern_client_returns_with_its_input_and_the_held_call_continues() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned()
        + &fakes.server("old", &[])
        + PER_SESSION
        + &fakes.server("new", &["--era", "modern"]);
    let daemon = Daemon::with(config).ready();
    let modern = Modern::new(daemon.client("/meta")).capabilities(json!({ "elicitation": {} }));
    let meta = MetaClient::modern(modern).await;
    for server in ["old", "new"] {
        for (tool, arguments, place) in calls(server) {
            let params = json!({ "name": tool, "arguments": arguments });
            let asked = meta.reply(tool, params.clone()).await.answer()["result"].clone();
            assert_eq!(asked["resultType"], "input_required", "{server} {tool}: {asked}");
            let questions = asked["inputRequests"].as_object().expect("questions");
            let question = questions.values().next().expect("one");
            assert_eq!(
                question,
                &json!({ "method": "elicitation/create", "params": { "message": "Who?" } })
            );

            let again = retry(&params, &asked, accept);
            let answer = meta.reply(tool, again.clone()).await.answer();

            assert_eq!(answer["result"]["resultType"], "complete", "{server} {tool}: {answer}");
            let outcome = answer.pointer(place).unwrap_or_else(|| panic!("{answer}"));
            assert_eq!(outcome["result"], accept("", &json!({})), "{server} {tool}: {answer}");
            if server == "old" {
                let refused = meta.reply(tool, again).await.answer();
                let error = refused
                    .get("error")
                    .unwrap_or(&refused["result"]["structuredContent"]["error"]);
                assert!(error.is_object(), "a held call continues only once: {refused}");
            }
        }
    }
}

#[tokio::test]
async fn a_client_without_elicitation_receives_the_error_that_the_server_returns() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned() + &fakes.server("old", &[]) + PER_SESSION;
    let daemon = Daemon::with(config).ready();
    let meta = MetaClient::at(daemon.client("/meta").initialized().await).await;
    let answer = meta.answer("mcp_call", call_of("old", "ask", asking())).await;
    let outcome = &answer["result"]["structuredContent"];
    assert!(outcome["error"]["code"].is_i64(), "the server received an error: {answer}");
}

#[tokio::test]
async fn a_step_of_a_chain_may_elicit_input_and_the_chain_continues() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned()
        + &fakes.server("old", &[])
        + PER_SESSION
        + &fakes.server("new", &["--era", "modern"])
        + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/meta").initialized_with(json!({ "elicitation": {} })).await;
    let meta = MetaClient::at(client.clone()).await;
    let steps = |server: &str| {
        json!({ "steps": [
            { "tool_id": "two/echo", "args": { "value": 1 } },
            { "tool_id": format!("{server}/ask"), "args": asking() },
            { "tool_id": "two/echo", "args": { "value": 3 } },
        ] })
    };
    let mut stream = meta.stream("run_chain", steps("old"), &json!("t")).await;
    let question = loop {
        let message = stream.message().await;
        if message["method"] == "elicitation/create" {
            break message;
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
    };

    client.respond(&question["id"], accept("", &json!({}))).await;

    let (_, answer) = meta.last("run_chain", &mut stream).await;
    let outcome = &answer["result"]["structuredContent"];
    assert_eq!(outcome["results"][1]["structured"]["result"], accept("", &json!({})), "{answer}");
    assert_eq!(outcome["final"], json!({ "value": 3 }));

    // A modern client cannot return in the middle of a chain. A legacy server receives an error; at
    // a modern server, the step fails.
    let modern = Modern::new(daemon.client("/meta")).capabilities(json!({ "elicitation": {} }));
    let meta = MetaClient::modern(modern).await;
    let outcome = meta.value("run_chain", steps("old")).await;
    assert_eq!(outcome["results"][1]["structured"]["error"]["data"]["code"], "CAPABILITY_MISSING");
    assert_eq!(outcome["final"], json!({ "value": 3 }));
    let failed = meta.result("run_chain", steps("new")).await;
    assert_eq!(failed["isError"], true, "{failed}");
    let outcome = &failed["structuredContent"];
    assert_eq!(
        (&outcome["error"]["step_index"], &outcome["final"]),
        (&json!(1), &json!({ "value": 1 }))
    );
    let remedy = outcome["results"][1]["error"]["message"].as_str().expect("a text");
    assert!(remedy.contains("Call the tool alone"), "{remedy}");

    // A client without elicitation keeps the earlier results.
    let meta = MetaClient::at(daemon.client("/meta").initialized().await).await;
    let outcome = meta.result("run_chain", steps("new")).await["structuredContent"].clone();
    assert_eq!(
        (&outcome["error"]["step_index"], &outcome["final"]),
        (&json!(1), &json!({ "value": 1 }))
    );
    let rpc = &outcome["results"][1]["error"]["details"]["rpc"];
    assert_eq!(rpc["data"]["requiredCapabilities"], json!({ "elicitation": {} }), "{outcome}");
}
