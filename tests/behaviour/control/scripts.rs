//! The scripts of operators at the control socket.

use serde_json::{Value, json};

use super::assert_complete;
use crate::harness::{daemon::Daemon, fake::Fakes, operator::Operator, script::execute_section};

/// A service with a shared server and a server with a connection per client.
fn daemon(fakes: &Fakes) -> Daemon {
    let config = execute_section().to_owned()
        + &fakes.server("one", &[])
        + &fakes.server("own", &[])
        + "sharing = \"session\"\n";
    Daemon::with(config).ready()
}

#[tokio::test]
async fn a_script_of_an_operator_returns_its_value_its_output_and_its_calls() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let mut operator = Operator::at(&daemon).await;
    let code = "console.log('calls'); const { value } = await servers.one.echo({ value: [1.5, 'ä'] }); return { value, args };";
    let params =
        json!({ "code": code, "args": ["a", "--b"], "timeout": 60_000, "maxToolCalls": 1 });
    let mut result = operator.result("scripts/run", params).await;
    assert!(result["durationMs"].take().is_u64());
    let value = json!({ "value": [1.5, "ä"], "args": ["a", "--b"] });
    let expected =
        json!({ "value": value, "output": "calls\n", "durationMs": null, "toolCalls": 1 });
    assert_eq!(result, expected);
    let result = operator.result("scripts/run", json!({ "code": "" })).await;
    assert_eq!((&result["value"], &result["toolCalls"]), (&Value::Null, &json!(0)));
    assert!(result.get("output").is_none());
}

#[tokio::test]
async fn the_error_of_a_script_has_its_place_its_output_and_a_stable_name() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let mut operator = Operator::at(&daemon).await;
    let mut failing = async |params: Value| {
        let error = operator.error("scripts/run", params).await;
        assert_complete(&error);
        let data = &error["data"];
        (data["code"].as_str().expect("a name").to_owned(), data["context"].clone(), error)
    };

    let code = "console.log('before');\n  const f = () => servers.one.tool_error({});\nawait f();";
    let (name, context, _) = failing(json!({ "code": code })).await;
    assert_eq!(name, "EXECUTION_FAILED");
    assert_eq!((&context["line"], &context["column"]), (&json!(2), &json!(31)));
    assert_eq!(
        (&context["output"], &context["tool"]),
        (&json!("before\n"), &json!("one/tool_error"))
    );
    assert_eq!(context["stack"], json!(["at f (2:31)", "at <anonymous> (3:7)"]));

    let (name, context, error) = failing(json!({ "code": "null.x" })).await;
    assert_eq!((name.as_str(), &context["line"]), ("SCRIPT_FAILED", &json!(1)));
    let message = error["message"].as_str().expect("a text");
    assert!(message.starts_with("TypeError: ") && !message.contains("line"), "{message}");

    let (name, context, _) = failing(json!({ "code": "await sleep(20_000)", "timeout": 50 })).await;
    assert_eq!((name.as_str(), &context["limit"]), ("TIMEOUT", &json!("timeout")));
    let (name, context, _) = failing(json!({ "code": " ".repeat(51_201) })).await;
    assert_eq!((name.as_str(), &context["limit"]), ("LIMIT_EXCEEDED", &json!("code")));
    let long = json!({ "code": " ".repeat(51_000), "args": ["ä".repeat(101)] });
    assert_eq!(failing(long).await.0, "LIMIT_EXCEEDED");
    let twice = "await servers.one.whoami({}); await servers.one.whoami({})";
    let (name, context, _) = failing(json!({ "code": twice, "maxToolCalls": 1 })).await;
    assert_eq!((name.as_str(), &context["limit"]), ("LIMIT_EXCEEDED", &json!("tool_calls")));

    assert_eq!(failing(json!({})).await.0, "MISSING_PARAMETER");
    for (name, value) in [
        ("maxToolCalls", json!(0)),
        ("maxToolCalls", json!(1001)),
        ("timeout", json!(0)),
        ("args", json!([1])),
    ] {
        let (code, context, _) = failing(json!({ "code": "", name: value })).await;
        assert_eq!((code.as_str(), &context["parameter"]), ("INVALID_PARAMS", &json!(name)));
    }
}

#[tokio::test]
async fn the_calls_of_a_script_share_one_connection_that_ends_with_it() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let mut operator = Operator::at(&daemon).await;
    let code = "const a = await servers.own.whoami({}); return [a.pid, (await servers.own.whoami({})).pid]";
    let first = operator.result("scripts/run", json!({ "code": code })).await["value"].take();
    assert_eq!(first[0], first[1]);
    let second = operator.result("scripts/run", json!({ "code": code })).await["value"].take();
    assert_ne!(first, second, "another script is another client");
    crate::until(async || {
        !fakes
            .pids("own")
            .into_iter()
            .any(|pid| first[0] == pid && crate::harness::fake::is_alive(pid))
    })
    .await;
}

#[tokio::test]
async fn a_script_of_an_operator_answers_no_question_and_its_calls_go_on() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let mut operator = Operator::at(&daemon).await;
    for server in ["one", "own"] {
        let code = format!("return await servers.{server}.ask({{ method: 'roots/list' }})");
        let result = operator.result("scripts/run", json!({ "code": code })).await;
        assert!(result["value"].to_string().contains("error"), "{server}: {result}");
    }
}

#[tokio::test]
async fn the_progress_of_a_script_carries_the_operators_token_and_precedes_the_answer() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let mut operator = Operator::at(&daemon).await;
    let code = "await servers.one.whoami({}); progress(5, 10, 'half'); return 1";
    let params = json!({ "code": code, "_meta": { "progressToken": "mine" } });
    operator.request(json!(1), "scripts/run", params).await;
    let expected = [
        json!({ "progressToken": "mine", "progress": 1.0, "message": "one/whoami" }),
        json!({ "progressToken": "mine", "progress": 5.0, "total": 10.0, "message": "half" }),
    ];
    for expected in expected {
        assert_eq!(operator.next().await.expect("progress")["params"], expected);
    }
    assert_eq!(operator.next().await.expect("an answer")["result"]["value"], 1);
    operator.result("scripts/run", json!({ "code": code })).await;
}

#[tokio::test]
async fn a_cancelled_script_ends_with_its_calls() {
    let fakes = Fakes::new();
    let daemon = daemon(&fakes);
    let mut operator = Operator::at(&daemon).await;
    let mut other = Operator::at(&daemon).await;
    let code = "await Promise.all(['a', 'b'].map(key => servers.one.hold({ key })))";
    operator.request(json!(1), "scripts/run", json!({ "code": code })).await;
    let at_least = json!({ "name": "one/held", "arguments": { "at_least": 2 } });
    other.result("tools/call", at_least).await;
    operator
        .send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n")
        .await;
    let seen = json!({ "name": "one/seen", "arguments": { "cancelled": 2 } });
    other.result("tools/call", seen).await;
}

#[tokio::test]
async fn a_disabled_script_is_refused_with_the_key_of_the_configuration() {
    let daemon = Daemon::with("[execute]\nenabled = false\n").ready();
    let mut operator = Operator::at(&daemon).await;
    let error = operator.error("scripts/run", json!({ "code": "return 1" })).await;
    assert_complete(&error);
    assert_eq!(error["data"]["code"], "EXECUTION_UNAVAILABLE");
    assert!(error["message"].to_string().contains("`execute.enabled`"), "{error}");
}
