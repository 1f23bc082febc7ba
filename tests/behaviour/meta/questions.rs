//! Servers that ask the client during a call through a meta tool.

use serde_json::{Value, json};

use super::{BOTH, call_of};
use crate::harness::{
    daemon::Daemon,
    fake::Fakes,
    meta::Meta,
    modern::{Modern, retry},
};

const OWNED: &str = "sharing = \"session\"\n";

fn asking() -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "Who?" } })
}

fn accept(_: &str, _: &Value) -> Value {
    json!({ "action": "accept", "content": { "name": "me" } })
}

/// Returns the two calls of a tool, and where its value is in their answers.
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
async fn a_legacy_client_is_asked_and_its_answer_reaches_the_server() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned()
        + &fakes.server("old", &[])
        + OWNED
        + &fakes.server("new", &["--era", "modern"])
        + OWNED;
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/meta").initialized_with(json!({ "elicitation": {} })).await;
    let meta = Meta::at(client.clone()).await;
    for server in ["old", "new"] {
        for (tool, arguments, place) in calls(server) {
            let mut stream = meta.stream(tool, arguments, &json!("t")).await;
            assert_eq!(stream.message().await["params"]["message"], "started");
            let question = stream.message().await;
            assert_eq!(question["method"], "elicitation/create", "{server} {tool}: {question}");
            assert_eq!(question["params"]["message"], "Who?");

            client.respond(&question["id"], accept("", &json!({}))).await;

            let (_, answer) = meta.last(tool, &mut stream).await;
            let told = answer.pointer(place).unwrap_or_else(|| panic!("{answer}"));
            assert_eq!(told["result"], accept("", &json!({})), "{server} {tool}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_modern_client_comes_back_and_the_call_that_was_held_goes_on() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned()
        + &fakes.server("old", &[])
        + OWNED
        + &fakes.server("new", &["--era", "modern"]);
    let daemon = Daemon::with(config).ready();
    let modern = Modern::new(daemon.client("/meta")).capabilities(json!({ "elicitation": {} }));
    let meta = Meta::modern(modern).await;
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
            let told = answer.pointer(place).unwrap_or_else(|| panic!("{answer}"));
            assert_eq!(told["result"], accept("", &json!({})), "{server} {tool}: {answer}");
            if server == "old" {
                let refused = meta.reply(tool, again).await.answer();
                let error = refused
                    .get("error")
                    .unwrap_or(&refused["result"]["structuredContent"]["error"]);
                assert!(error.is_object(), "a held call goes on once: {refused}");
            }
        }
    }
}

#[tokio::test]
async fn a_client_without_elicitation_receives_the_error_that_the_server_returns() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned() + &fakes.server("old", &[]) + OWNED;
    let daemon = Daemon::with(config).ready();
    let meta = Meta::at(daemon.client("/meta").initialized().await).await;
    let answer = meta.answer("mcp_call", call_of("old", "ask", asking())).await;
    let told = &answer["result"]["structuredContent"];
    assert!(told["error"]["code"].is_i64(), "the server was refused an answer: {answer}");
}

#[tokio::test]
async fn a_step_of_a_chain_may_ask_and_the_chain_goes_on() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned()
        + &fakes.server("old", &[])
        + OWNED
        + &fakes.server("new", &["--era", "modern"])
        + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/meta").initialized_with(json!({ "elicitation": {} })).await;
    let meta = Meta::at(client.clone()).await;
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
    let told = &answer["result"]["structuredContent"];
    assert_eq!(told["results"][1]["structured"]["result"], accept("", &json!({})), "{answer}");
    assert_eq!(told["final"], json!({ "value": 3 }));

    // A client that must come back for it cannot go on in the middle of a chain: the server is told
    // so, or, where it is of that era too, the step has failed.
    let modern = Modern::new(daemon.client("/meta")).capabilities(json!({ "elicitation": {} }));
    let meta = Meta::modern(modern).await;
    let told = meta.value("run_chain", steps("old")).await;
    assert_eq!(told["results"][1]["structured"]["error"]["data"]["code"], "CAPABILITY_MISSING");
    assert_eq!(told["final"], json!({ "value": 3 }));
    let failed = meta.result("run_chain", steps("new")).await;
    assert_eq!(failed["isError"], true, "{failed}");
    let told = &failed["structuredContent"];
    assert_eq!((&told["error"]["step_index"], &told["final"]), (&json!(1), &json!({ "value": 1 })));
    let remedy = told["results"][1]["error"]["message"].as_str().expect("words");
    assert!(remedy.contains("Call it alone"), "{remedy}");

    // One that cannot be asked at all keeps what was done before.
    let told = Meta::at(daemon.client("/meta").initialized().await).await;
    let told = told.result("run_chain", steps("new")).await["structuredContent"].clone();
    assert_eq!((&told["error"]["step_index"], &told["final"]), (&json!(1), &json!({ "value": 1 })));
    let rpc = &told["results"][1]["error"]["details"]["rpc"];
    assert_eq!(rpc["data"]["requiredCapabilities"], json!({ "elicitation": {} }), "{told}");
}
