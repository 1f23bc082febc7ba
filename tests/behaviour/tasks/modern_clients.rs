//! Clients of 2026-07-28 and tasks of legacy servers.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::{
    Rig, SERVERS, ask_modern, call, error_code, extension, start_modern_task, task_support,
};
use crate::{
    all,
    harness::{era_client::Era, modern::refusal},
};

async fn rig() -> Rig {
    Rig::start(Era::Legacy, "").await
}

#[tokio::test]
async fn tasks_of_a_legacy_server_are_declared_in_modern_terms() {
    let rig = rig().await;
    for server in SERVERS {
        let client = rig.with_tasks(server);
        let declared = client.discover().await.answer()["result"]["capabilities"].clone();
        assert_eq!(declared["extensions"], extension(), "{server}: {declared}");
        assert_eq!(declared.get("tasks"), None, "{server}");
        let listed = ask_modern(&client, "tools/list", &json!({})).await;
        assert!(
            task_support(&listed).iter().all(|support| support.is_null()),
            "{server}: {listed}"
        );
    }
}

#[tokio::test]
async fn only_a_call_of_a_tool_that_requires_a_task_becomes_one() {
    let rig = rig().await;
    for server in SERVERS {
        let client = rig.with_tasks(server);
        let value = json!({ "value": 7 });
        let created = ask_modern(&client, "tools/call", &call("job", &value)).await;
        let task = created["result"].clone();
        assert_eq!(task.get("task"), None, "{created}");
        let actual =
            json!([task["resultType"], task["status"], task["ttlMs"], task["pollIntervalMs"]]);
        assert_eq!(actual, json!(["task", "working", 60_000, 10]), "{created}");
        let names = ["createdAt", "lastUpdatedAt", "taskId"];
        assert!(names.iter().all(|name| task[name].is_string()), "{created}");

        let named = json!({ "taskId": task["taskId"] });
        let working = ask_modern(&client, "tasks/get", &named).await["result"].clone();
        let actual = json!([working["resultType"], working["status"], working["ttlMs"]]);
        assert_eq!(actual, json!(["complete", "working", 60_000]), "{working}");
        for other in ["result", "ttl", "pollInterval"] {
            assert_eq!(working.get(other), None, "{working}");
        }
        let ended = ask_modern(&client, "tasks/get", &named).await["result"].clone();
        assert_eq!(
            (&ended["status"], &ended["resultType"]),
            (&json!("completed"), &json!("complete"))
        );
        let actual = json!({ "taskId": named["taskId"], "answers": {}, "value": 7 });
        assert_eq!(ended["result"]["structuredContent"], actual, "{ended}");

        assert_eq!(client.call("job_maybe", value.clone()).await["taskId"], Value::Null);
        assert_eq!(client.call("echo", value).await["value"], 7, "{server}");
        let seen = rig.seen(server).await;
        let jobs = ["job", "job_maybe"].map(|tool| {
            let task = if tool == "job" { json!({}) } else { Value::Null };
            json!({ "tool": tool, "task": task, "extension": false })
        });
        assert_eq!(seen["jobs"], json!(jobs), "{server}");
    }
}

#[tokio::test]
async fn a_client_without_the_tasks_extension_is_told_that_the_tool_requires_it() {
    let rig = rig().await;
    for server in SERVERS {
        let client = rig.modern(server);
        let reply = client.tool("job", json!({})).await;
        assert_eq!(refusal(&reply), (StatusCode::BAD_REQUEST, Some(-32021)), "{server}");
        let required = reply.answer()["error"]["data"]["requiredCapabilities"].clone();
        assert_eq!(required, json!({ "extensions": extension() }), "{server}");
        assert_eq!(client.call("job_maybe", json!({})).await["taskId"], Value::Null);
        let jobs = rig.seen(server).await["jobs"].as_array().map_or(0, Vec::len);
        assert_eq!(jobs, 1, "{server}: the server received no call of `job`");
    }
}

#[tokio::test]
async fn a_task_reports_its_end_in_the_terms_of_the_modern_era() {
    let rig = rig().await;
    for server in SERVERS {
        let client = rig.with_tasks(server);
        for fails in ["tool", "rpc"] {
            let plan = json!({ "steps": ["completed"], "fails": fails });
            let named = start_modern_task(&client, &plan).await;
            let shown = ask_modern(&client, "tasks/get", &named).await["result"].clone();
            assert_eq!(shown["resultType"], "complete", "{shown}");
            match fails {
                "tool" => {
                    assert_eq!(shown["status"], "completed", "{shown}");
                    assert_eq!(shown["result"]["isError"], true, "{shown}");
                    assert_eq!(shown.get("error"), None);
                }
                _ => {
                    assert_eq!(shown["status"], "failed", "{shown}");
                    let error = json!({ "code": -32050, "message": "the job failed" });
                    assert_eq!(shown["error"], error);
                    assert_eq!(shown.get("result"), None);
                }
            }
            let actual = ask_modern(&client, "tasks/cancel", &named).await;
            assert_eq!(actual["result"]["resultType"], "complete", "it is acknowledged: {actual}");
        }
        let named = start_modern_task(&client, &json!({ "steps": ["working"] })).await;
        let actual = ask_modern(&client, "tasks/cancel", &named).await["result"].clone();
        let actual = json!([actual["resultType"], actual["taskId"], actual["status"]]);
        assert_eq!(actual, json!(["complete", null, null]), "{server}");
        let shown = ask_modern(&client, "tasks/get", &named).await["result"].clone();
        assert_eq!(shown["status"], "cancelled", "{shown}");
        assert_eq!((shown.get("result"), shown.get("error")), (None, None));
    }
}

#[tokio::test]
async fn an_update_of_a_known_task_is_acknowledged() {
    let rig = rig().await;
    for server in SERVERS {
        let client = rig.with_tasks(server);
        let mut update = start_modern_task(&client, &json!({ "steps": ["working"] })).await;
        update["inputResponses"] = json!({ "who": { "action": "decline" } });
        let actual = ask_modern(&client, "tasks/update", &update).await["result"].clone();
        let actual = json!([actual["resultType"], actual["taskId"], actual["status"]]);
        assert_eq!(actual, json!(["complete", null, null]), "{server}");
    }
}

#[tokio::test]
async fn a_modern_client_is_refused_an_unknown_task_or_task_method() {
    let rig = rig().await;
    for server in SERVERS {
        let client = rig.with_tasks(server);
        let unknown = json!({ "taskId": "unknown", "inputResponses": {} });
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let answer = ask_modern(&client, method, &unknown).await;
            assert_eq!(error_code(&answer).0, -32602, "{server} {method}");
        }
        for method in ["tasks/result", "tasks/list"] {
            let reply = client.request(json!(1), method, unknown.clone()).await;
            assert_eq!(refusal(&reply), (StatusCode::NOT_FOUND, Some(-32601)), "{server} {method}");
        }
        let named = start_modern_task(&client, &json!({})).await;
        let message = client.message(&json!(1), "tasks/get", named);
        let headers = client.headers(&message).into_iter().map(|(name, value)| match &*name {
            "mcp-name" => (name, "another".to_owned()),
            _ => (name, value),
        });
        let headers: Vec<(String, String)> = headers.collect();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let reply = client.http.send(hyper::Method::POST, &headers, message.to_string()).await;
        assert_eq!(refusal(&reply), (StatusCode::BAD_REQUEST, Some(-32020)), "{server}");
    }
}

#[tokio::test]
async fn a_client_without_the_tasks_extension_cannot_access_a_task() {
    let rig = rig().await;
    for server in SERVERS {
        let mut named = start_modern_task(&rig.with_tasks(server), &json!({})).await;
        named["inputResponses"] = json!({});
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let reply = rig.modern(server).request(json!(1), method, named.clone()).await;
            assert_eq!(refusal(&reply), (StatusCode::BAD_REQUEST, Some(-32021)), "{method}");
        }
    }
}

#[tokio::test]
async fn two_clients_with_the_same_ids_get_their_own_results() {
    let rig = rig().await;
    for server in SERVERS {
        let ended = all((0..2).map(async |n| {
            let client = rig.with_tasks(server).named(&format!("n{n}"));
            let named = start_modern_task(&client, &json!({ "value": n })).await;
            loop {
                let shown = ask_modern(&client, "tasks/get", &named).await["result"].clone();
                if shown["status"] != "working" {
                    return (named, shown);
                }
            }
        }))
        .await;
        for (n, (named, shown)) in ended.iter().enumerate() {
            let actual = &shown["result"]["structuredContent"];
            let own = (&named["taskId"], &json!(n));
            assert_eq!((&actual["taskId"], &actual["value"]), own, "{server}: {shown}");
        }
    }
}
