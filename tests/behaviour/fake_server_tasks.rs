//! The tasks of the scriptable fake server, in both eras.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::harness::{
    client::{Client, running},
    fake::Upstream,
    fake_stdio::FakeStdio,
    modern::{Modern, key, refusal},
};

const LEGACY: [&str; 3] = ["--tasks", "--protocol", "2025-11-25"];
const MODERN: [&str; 3] = ["--tasks", "--era", "modern"];
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Returns a client that declares the tasks extension.
fn with_tasks(upstream: &Upstream) -> Modern {
    let extensions = json!({ key("tasks"): {} });
    Modern::new(upstream.client()).capabilities(json!({ "extensions": extensions }))
}

fn job_call(arguments: Value) -> Value {
    json!({ "name": "job", "arguments": arguments })
}

fn task_call(arguments: Value) -> Value {
    json!({ "name": "job", "arguments": arguments, "task": { "ttl": 5000 } })
}

async fn request_legacy(client: &Client, method: &str, params: Value) -> Value {
    client.request(json!(1), method, params).await.answer()
}

async fn request_modern(client: &Modern, method: &str, params: Value) -> Value {
    client.request(json!(1), method, params).await.answer()
}

/// Starts a legacy task and returns the parameters that name it.
async fn start_legacy(client: &Client, arguments: Value) -> Value {
    let created =
        request_legacy(client, "tools/call", task_call(arguments)).await["result"]["task"].clone();
    assert_eq!(created["status"], "working", "{created}");
    json!({ "taskId": created["taskId"] })
}

/// Starts a modern task and returns the parameters that name it.
async fn start_modern(client: &Modern, arguments: Value) -> Value {
    let created = request_modern(client, "tools/call", job_call(arguments)).await["result"].clone();
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    json!({ "taskId": created["taskId"] })
}

fn execution(listed: &Value) -> Vec<&Value> {
    let tools = listed["result"]["tools"].as_array().expect("tools").iter();
    tools.filter(|tool| tool["name"] != "echo").map(|tool| &tool["execution"]).collect()
}

#[tokio::test]
async fn a_legacy_task_of_the_fake_advances_with_each_poll() {
    let upstream = Upstream::start(&LEGACY);
    let client = upstream.client().initialized().await;
    let listed = request_legacy(&client, "tools/list", json!({})).await;
    let declared: Vec<&Value> =
        execution(&listed).into_iter().filter(|it| it.is_object()).collect();
    let expected = ["required", "optional"].map(|word| json!({ "taskSupport": word }));
    assert_eq!(declared, expected.iter().collect::<Vec<_>>());

    let created = request_legacy(&client, "tools/call", task_call(json!({ "value": 7 }))).await;
    let created = created["result"]["task"].clone();
    let times = json!([created["ttl"], created["pollInterval"]]);
    assert_eq!(times, json!([5000, 10]), "{created}");
    let named = json!({ "taskId": created["taskId"] });
    for status in ["working", "completed", "completed"] {
        let shown = request_legacy(&client, "tasks/get", named.clone()).await["result"].clone();
        assert_eq!(shown["status"], status, "{shown}");
        assert_eq!((shown.get("result"), shown.get("resultType")), (None, None));
    }
    let ended = request_legacy(&client, "tasks/result", named.clone()).await["result"].clone();
    assert_eq!(ended["_meta"][RELATED], named);
    let answer = json!({ "taskId": named["taskId"], "answers": {}, "value": 7 });
    assert_eq!(ended["structuredContent"], answer);
    let listed = request_legacy(&client, "tasks/list", json!({})).await["result"]["tasks"].clone();
    assert_eq!(listed[0]["taskId"], named["taskId"]);
    let seen = client.call("seen", json!({})).await;
    assert_eq!(seen["jobs"][0]["task"], json!({ "ttl": 5000 }));
    let counted = json!([seen["tasks"], seen["executions"]["job"]]);
    assert_eq!(counted, json!([1, 1]), "{seen}");
}

#[tokio::test]
async fn the_fake_refuses_invalid_legacy_task_requests() {
    let upstream = Upstream::start(&LEGACY);
    let client = upstream.client().initialized().await;
    let over = start_legacy(&client, json!({ "steps": ["completed"] })).await;
    let unknown = json!({ "taskId": "unknown" });
    let echo = json!({ "name": "echo", "arguments": { "value": 1 }, "task": {} });
    for (method, params, code) in [
        ("tools/call", job_call(json!({})), -32601),
        ("tools/call", echo, -32601),
        ("tasks/update", over.clone(), -32601),
        ("tasks/cancel", over, -32602),
        ("tasks/get", unknown.clone(), -32602),
        ("tasks/cancel", unknown.clone(), -32602),
        ("tasks/result", unknown, -32602),
    ] {
        let refused = request_legacy(&client, method, params.clone()).await;
        assert_eq!(refused["error"]["code"], code, "{method} {params}: {refused}");
    }
    let plain = request_legacy(&client, "tools/call", json!({ "name": "job_maybe" })).await;
    assert_eq!(plain["result"]["structuredContent"]["taskId"], Value::Null, "{plain}");
}

#[tokio::test]
async fn a_legacy_task_fails_as_a_tool_or_as_a_request_and_can_be_cancelled() {
    let upstream = Upstream::start(&LEGACY);
    let client = upstream.client().initialized().await;
    for fails in ["tool", "rpc"] {
        let named = start_legacy(&client, json!({ "steps": ["completed"], "fails": fails })).await;
        let shown = request_legacy(&client, "tasks/get", named.clone()).await["result"].clone();
        assert_eq!(shown["status"], "failed", "{fails}");
        let ended = request_legacy(&client, "tasks/result", named.clone()).await;
        match fails {
            "tool" => assert_eq!(ended["result"]["isError"], true),
            _ => assert_eq!(ended["error"]["code"], -32050),
        }
    }
    let named = start_legacy(&client, json!({ "steps": ["working"] })).await;
    let waiting = running({
        let (client, named) = (client.clone(), named.clone());
        async move { request_legacy(&client, "tasks/result", named).await }
    });
    upstream.log("requests.tasks/result=3").await;
    let cancelled = request_legacy(&client, "tasks/cancel", named.clone()).await["result"].clone();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(waiting.end().await["error"]["code"], -32000);
    let again = request_legacy(&client, "tasks/cancel", named).await;
    assert_eq!(again["error"]["code"], -32602);
}

#[tokio::test]
async fn a_client_that_waits_for_a_legacy_task_receives_its_elicitation() {
    let mut pipe = FakeStdio::start(&LEGACY);
    let request = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let steps = json!({ "steps": ["working", "input_required", "completed"] });
    let created = pipe.ask(&request(1, "tools/call", task_call(steps))).await;
    let named = json!({ "taskId": created["result"]["task"]["taskId"] });

    let question = pipe.ask(&request(2, "tasks/result", named.clone())).await;
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["_meta"][RELATED], named);
    let answer =
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } });
    let ended = pipe.ask(&answer).await;

    let answers = &ended["result"]["structuredContent"]["answers"];
    assert_eq!(answers["who"], json!({ "result": { "action": "accept" } }), "{ended}");
}

#[tokio::test]
async fn a_modern_task_waits_for_its_input_and_returns_its_result() {
    let upstream = Upstream::start(&MODERN);
    let client = with_tasks(&upstream);
    let listed = request_modern(&client, "tools/list", json!({})).await;
    assert!(execution(&listed).iter().all(|execution| execution.is_null()));
    let declared = client.discover().await.answer()["result"]["capabilities"].clone();
    assert_eq!(declared["extensions"], json!({ key("tasks"): {} }));
    assert_eq!(declared.get("tasks"), None);

    let steps = ["working", "input_required", "input_required", "completed"];
    let named = start_modern(&client, json!({ "steps": steps, "lags": true })).await;
    let get = async || request_modern(&client, "tasks/get", named.clone()).await["result"].clone();
    let first = get().await;
    assert_eq!((&first["status"], &first["ttlMs"]), (&json!("working"), &json!(60_000)));
    for key in ["who", "who_2"] {
        for _ in 0..2 {
            let waiting = get().await;
            assert_eq!(waiting["inputRequests"][key]["method"], "elicitation/create", "{waiting}");
        }
        for responses in [json!({ "other": {} }), json!({ key: { "action": "decline" } })] {
            let mut update = named.clone();
            update["inputResponses"] = responses;
            let answer = request_modern(&client, "tasks/update", update).await["result"].clone();
            assert_eq!(answer["resultType"], "complete");
        }
        assert!(get().await["inputRequests"][key].is_object(), "the update takes effect later");
    }
    let ended = get().await;
    assert_eq!((&ended["status"], &ended["resultType"]), (&json!("completed"), &json!("complete")));
    let answer = &ended["result"]["structuredContent"];
    assert_eq!(answer["taskId"], named["taskId"]);
    let declined = json!({ "result": { "action": "decline" } });
    assert_eq!(answer["answers"], json!({ "who": declined, "who_2": declined }));
    assert_eq!(client.call("seen", json!({})).await["updates"], 4);
}

#[tokio::test]
async fn a_modern_task_requires_a_client_with_the_extension() {
    let upstream = Upstream::start(&MODERN);
    let (client, without) = (with_tasks(&upstream), Modern::new(upstream.client()));
    let named = start_modern(&client, json!({})).await;
    for (method, params) in [
        ("tools/call", job_call(json!({}))),
        ("tasks/get", named.clone()),
        ("tasks/update", named.clone()),
        ("tasks/cancel", named),
    ] {
        let refused = without.request(json!(1), method, params).await;
        assert_eq!(refusal(&refused), (StatusCode::BAD_REQUEST, Some(-32021)), "{method}");
        let required = &refused.answer()["error"]["data"]["requiredCapabilities"];
        assert_eq!(required, &json!({ "extensions": { key("tasks"): {} } }));
    }
    let called = [without.call("job_maybe", json!({})).await, {
        let at_once = json!({ "at_once": true, "value": 7 });
        client.call("job", at_once).await
    }];
    assert_eq!(called[0]["taskId"], Value::Null);
    assert_eq!(called[1], json!({ "taskId": null, "answers": {}, "value": 7 }));
    let seen = client.call("seen", json!({})).await;
    let with: Vec<&Value> =
        seen["jobs"].as_array().expect("jobs").iter().map(|job| &job["extension"]).collect();
    assert_eq!(with, [true, false, true]);
}

#[tokio::test]
async fn a_modern_task_ends_with_the_statuses_and_errors_of_its_era() {
    let upstream = Upstream::start(&MODERN);
    let client = with_tasks(&upstream);
    for (fails, status) in [("tool", "completed"), ("rpc", "failed")] {
        let plan = json!({ "steps": ["completed"], "fails": fails });
        let named = start_modern(&client, plan).await;
        let shown = request_modern(&client, "tasks/get", named.clone()).await["result"].clone();
        assert_eq!(shown["status"], status, "{shown}");
        let is_tool = (&shown["result"]["isError"], &shown["error"]["code"]);
        let expected =
            if fails == "tool" { [json!(true), json!(null)] } else { [json!(null), json!(-32050)] };
        assert_eq!(is_tool, (&expected[0], &expected[1]));
        let answer = request_modern(&client, "tasks/cancel", named).await;
        assert_eq!(
            answer["result"]["resultType"], "complete",
            "the cancellation is acknowledged: {answer}"
        );
    }
    let named = start_modern(&client, json!({ "steps": ["working"] })).await;
    request_modern(&client, "tasks/cancel", named.clone()).await;
    let shown = request_modern(&client, "tasks/get", named.clone()).await["result"].clone();
    assert_eq!(shown["status"], "cancelled");
    for method in ["tasks/result", "tasks/list"] {
        let refused = client.request(json!(1), method, named.clone()).await;
        assert_eq!(refusal(&refused), (StatusCode::NOT_FOUND, Some(-32601)), "{method}");
    }
    let unknown = json!({ "taskId": "unknown", "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = client.request(json!(1), method, unknown.clone()).await;
        assert_eq!(refusal(&refused), (StatusCode::OK, Some(-32602)), "{method}");
        let message = client.message(&json!(1), method, named.clone());
        let mut headers = client.headers(&message);
        headers.retain(|(name, _)| name != "mcp-name");
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let refused = client.http.send(hyper::Method::POST, &headers, message.to_string()).await;
        assert_eq!(refusal(&refused), (StatusCode::BAD_REQUEST, Some(-32020)), "{method}");
    }
}

#[tokio::test]
async fn the_fake_has_no_tasks_without_the_tasks_option() {
    for era in ["legacy", "modern"] {
        let mut pipe = FakeStdio::start(&["--era", era]);
        let client = Modern::new(Client::new(String::new()));
        let params = json!({ "taskId": "a" });
        let get = client.message(&json!(1), "tasks/get", params);
        assert_eq!(pipe.ask(&get).await["error"]["code"], -32601, "{era}");
        let list = client.message(&json!(2), "tools/list", json!({}));
        assert!(!pipe.ask(&list).await.to_string().contains("job_maybe"));
    }
}
