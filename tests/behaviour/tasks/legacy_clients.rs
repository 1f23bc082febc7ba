//! Clients of 2025-11-25 and tasks of modern servers.

use serde_json::{Value, json};

use super::{RELATED, Rig, SERVERS, as_task, ask, call, error_code, start_task, task_support};
use crate::{
    all,
    harness::{client::running, era_client::Era},
    server_status, until,
};

async fn rig() -> Rig {
    Rig::start(Era::Modern, "").await
}

#[tokio::test]
async fn tasks_of_a_modern_server_are_declared_in_legacy_terms() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, capabilities) = rig.legacy(server).await;
        let tasks = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        assert_eq!(capabilities["tasks"], tasks, "{server}: the extension has no list");
        assert_eq!(capabilities.get("extensions"), None, "{server}");
        let listed = ask(&client, "tools/list", &json!({})).await;
        assert!(
            task_support(&listed).iter().all(|support| **support == "optional"),
            "{server}: {listed}"
        );
    }
}

#[tokio::test]
async fn a_legacy_client_starts_a_task_polls_it_and_fetches_its_result() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        let created = ask(&client, "tools/call", &as_task("job", &json!({ "value": 7 }))).await;
        let task = created["result"]["task"].clone();
        assert_eq!(created["result"].get("resultType"), None, "{created}");
        let names = ["createdAt", "lastUpdatedAt", "taskId"];
        assert!(names.iter().all(|name| task[name].is_string()), "{created}");
        let actual = json!([task["status"], task["ttl"], task["pollInterval"]]);
        assert_eq!(actual, json!(["working", 60_000, 10]), "{created}");

        let named = json!({ "taskId": task["taskId"] });
        for status in ["working", "completed"] {
            let shown = ask(&client, "tasks/get", &named).await["result"].clone();
            let actual =
                json!([shown["taskId"], shown["status"], shown["ttl"], shown["pollInterval"]]);
            assert_eq!(actual, json!([named["taskId"], status, 60_000, 10]), "{shown}");
            for other in ["result", "resultType", "ttlMs", "pollIntervalMs"] {
                assert_eq!(shown.get(other), None, "{shown}");
            }
        }
        let ended = ask(&client, "tasks/result", &named).await["result"].clone();
        assert_eq!(ended["_meta"][RELATED], named, "{ended}");
        assert_eq!(ended.get("resultType"), None, "{ended}");
        let actual = json!({ "taskId": named["taskId"], "answers": {}, "value": 7 });
        assert_eq!(ended["structuredContent"], actual);

        let plain = ask(&client, "tools/call", &call("job_maybe", &json!({}))).await;
        assert_eq!(plain["result"]["structuredContent"]["taskId"], Value::Null, "{plain}");
        let required = ask(&client, "tools/call", &call("job", &json!({}))).await;
        assert!(required["error"].is_object(), "the tool requires a task: {required}");
        let seen = rig.seen(server).await;
        let asked_for = |tool: &str, extension: bool| json!({ "tool": tool, "task": null, "extension": extension });
        let jobs = json!([asked_for("job", true), asked_for("job_maybe", false)]);
        assert_eq!(seen["jobs"], jobs, "{server}: only a call as a task declares the extension");
    }
}

#[tokio::test]
async fn a_call_answered_at_once_becomes_a_finished_task() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        for (fails, status) in [(Value::Null, "completed"), (json!("tool"), "failed")] {
            let plan = json!({ "at_once": true, "value": 7, "fails": fails });
            let named = start_task(&client, &plan).await;
            let shown = ask(&client, "tasks/get", &named).await["result"].clone();
            assert_eq!((&shown["status"], &shown["taskId"]), (&json!(status), &named["taskId"]));
            assert_eq!(shown["ttl"], 5000, "as requested: {shown}");
            for _ in 0..2 {
                let ended = ask(&client, "tasks/result", &named).await["result"].clone();
                assert_eq!(ended["_meta"][RELATED], named, "{ended}");
                assert_eq!(ended["structuredContent"]["value"], 7);
                assert_eq!(ended["isError"] == true, status == "failed");
            }
            let cancelled = ask(&client, "tasks/cancel", &named).await;
            assert_eq!(error_code(&cancelled).0, -32602);
            let (other, _) = rig.legacy(server).await;
            let listed = ask(&other, "tasks/list", &json!({})).await;
            assert!(listed["error"].is_object(), "another client cannot list it: {listed}");
        }
        let plan = json!({ "at_once": true, "fails": "rpc" });
        let failed = ask(&client, "tools/call", &as_task("job", &plan)).await;
        assert_eq!(error_code(&failed).0, -32050, "there is no result to fetch");
        let seen = rig.seen(server).await;
        assert_eq!(seen["requests"].get("tasks/get"), None, "the server is not asked");
    }
}

#[tokio::test]
async fn a_failed_task_is_reported_in_legacy_terms() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        for fails in ["tool", "rpc"] {
            let named = start_task(&client, &json!({ "fails": fails })).await;
            let ended = ask(&client, "tasks/result", &named).await;
            match fails {
                "tool" => {
                    assert_eq!(ended["result"]["isError"], true, "{ended}");
                    assert_eq!(ended["result"]["_meta"][RELATED], named);
                }
                _ => {
                    let error = json!({ "code": -32050, "message": "the job failed" });
                    assert_eq!(ended["error"], error);
                }
            }
            let shown = ask(&client, "tasks/get", &named).await["result"].clone();
            assert_eq!(shown["status"], "failed", "{server} {fails}");
            assert_eq!((shown.get("result"), shown.get("error")), (None, None));
        }
    }
}

#[tokio::test]
async fn a_client_that_waits_for_a_result_receives_the_servers_requests() {
    let rig = rig().await;
    let steps = ["working", "input_required", "working", "input_required", "completed"];
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        let named = start_task(&client, &json!({ "steps": steps, "lags": true })).await;
        let mut stream = client.stream(json!(7), "tasks/result", named.clone()).await;
        for name in ["Ada", "Alan"] {
            let question = stream.message().await;
            assert_eq!(question["method"], "elicitation/create", "{question}");
            assert_eq!(question["params"]["message"], "Who?");
            let answer = json!({ "action": "accept", "content": { "name": name } });
            client.respond(&question["id"], answer).await;
        }
        let ended = stream.message().await;

        assert_eq!(ended["id"], 7, "each request arrives once, although the server lags");
        assert_eq!(ended["result"]["_meta"][RELATED], named);
        let answers = &ended["result"]["structuredContent"]["answers"];
        for (key, name) in [("who", "Ada"), ("who_2", "Alan")] {
            let answer = json!({ "action": "accept", "content": { "name": name } });
            assert_eq!(answers[key], json!({ "result": answer }), "{answers}");
        }
        assert_eq!(rig.seen(server).await["updates"], 2, "{server}");
    }
}

#[tokio::test]
async fn a_wait_for_a_task_that_requires_input_endlessly_is_ended() {
    let rig = rig().await;
    let (client, _) = rig.legacy("pipe").await;
    let named = start_task(&client, &json!({ "steps": vec!["input_required"; 40] })).await;
    let mut stream = client.stream(json!(7), "tasks/result", named).await;
    let mut n_questions = 0;
    let ended = loop {
        let message = stream.message().await;
        if message["method"] != "elicitation/create" {
            break message;
        }
        n_questions += 1;
        client.respond(&message["id"], json!({ "action": "decline" })).await;
    };
    assert_eq!(error_code(&ended).1, "TOO_MANY_QUESTIONS", "{ended}");
    assert_eq!(n_questions, 32);
}

#[tokio::test]
async fn a_task_that_requires_input_reports_it_in_its_status() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        let steps = json!({ "steps": ["input_required", "completed"] });
        let named = start_task(&client, &steps).await;
        let shown = ask(&client, "tasks/get", &named).await["result"].clone();
        assert_eq!(shown["status"], "input_required", "{shown}");
        assert_eq!(
            shown.get("inputRequests"),
            None,
            "the request arrives on the stream of `tasks/result`: {shown}"
        );
    }
}

#[tokio::test]
async fn the_cancellation_of_a_task_ends_the_wait_for_its_result() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        let named = start_task(&client, &json!({ "steps": ["working"] })).await;
        let waiting = running({
            let (client, named) = (client.clone(), named.clone());
            async move { ask(&client, "tasks/result", &named).await }
        });
        let counts = json!({ "counts": { "requests.tasks/get": 1 } });
        rig.modern(server).call("seen", counts).await;

        let cancelled = ask(&client, "tasks/cancel", &named).await["result"].clone();

        let shown = (&cancelled["taskId"], &cancelled["status"], &cancelled["ttl"]);
        assert_eq!(shown, (&named["taskId"], &json!("cancelled"), &json!(60_000)));
        assert_eq!(error_code(&waiting.end().await).1, "TASK_CANCELLED", "{server}");
        assert_eq!(ask(&client, "tasks/get", &named).await["result"]["status"], "cancelled");

        let over = start_task(&client, &json!({ "steps": ["completed"] })).await;
        assert_eq!(error_code(&ask(&client, "tasks/cancel", &over).await).0, -32602, "{server}");
        let ended = ask(&client, "tasks/result", &over).await;
        assert_eq!(ended["result"]["structuredContent"]["taskId"], over["taskId"], "{server}");
    }
}

#[tokio::test]
async fn a_cancelled_task_cannot_be_cancelled_again() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        let named = start_task(&client, &json!({ "steps": ["working"] })).await;
        let cancelled = ask(&client, "tasks/cancel", &named).await;
        assert_eq!(cancelled["result"]["status"], "cancelled", "{server}: {cancelled}");
        assert_eq!(error_code(&ask(&client, "tasks/cancel", &named).await).0, -32602, "{server}");
    }
}

#[tokio::test]
async fn a_server_request_names_the_task_that_it_belongs_to() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        let named = start_task(&client, &json!({ "steps": ["input_required"] })).await;
        let mut stream = client.stream(json!(7), "tasks/result", named.clone()).await;
        let question = stream.message().await;
        assert_eq!(question["params"]["_meta"][RELATED], named, "{server}: {question}");
    }
}

#[tokio::test]
async fn a_client_that_stops_waiting_ends_the_polling_of_its_task() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        let named = start_task(&client, &json!({ "steps": ["working"] })).await;
        let waiting = running({
            let client = client.clone();
            async move { ask(&client, "tasks/result", &named).await }
        });
        let counts = json!({ "counts": { "requests.tasks/get": 2 } });
        rig.modern(server).call("seen", counts).await;

        client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;

        let is_idle =
            async || server_status(&rig.daemon, server).await["in_flight"].as_u64() == Some(0);
        until(is_idle).await;
        let n_before = rig.seen(server).await["requests"]["tasks/get"].as_u64();
        // Another task runs long enough to reveal further polls.
        let steps = ["working", "working", "working", "working", "completed"];
        let other = start_task(&client, &json!({ "steps": steps })).await;
        ask(&client, "tasks/result", &other).await;
        let n_after = rig.seen(server).await["requests"]["tasks/get"].as_u64();
        assert_eq!(n_after, n_before.map(|n| n + 5), "{server}: only the other task was polled");
        drop(waiting);
    }
}

#[tokio::test]
async fn a_legacy_client_is_refused_an_unknown_task_or_task_method() {
    let rig = rig().await;
    for server in SERVERS {
        let (client, _) = rig.legacy(server).await;
        let unknown = json!({ "taskId": "unknown" });
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let answer = ask(&client, method, &unknown).await;
            assert_eq!(error_code(&answer).0, -32602, "{server} {method}");
        }
        let listed = ask(&client, "tasks/list", &json!({})).await;
        assert_eq!(error_code(&listed).0, -32601, "{server}: the extension has no list");
        let updated = ask(&client, "tasks/update", &unknown).await;
        assert_eq!(error_code(&updated).0, -32601, "{server}: the method belongs to the other era");
    }
}

#[tokio::test]
async fn two_clients_with_the_same_ids_get_their_own_results() {
    let rig = rig().await;
    for server in SERVERS {
        let clients = [rig.legacy(server).await.0, rig.legacy(server).await.0];
        let steps = json!(["working", "input_required", "completed"]);
        let ended = all(clients.iter().enumerate().map(async |(n, client)| {
            let named = start_task(client, &json!({ "steps": steps, "value": n })).await;
            let mut stream = client.stream(json!(1), "tasks/result", named.clone()).await;
            let question = stream.message().await;
            let name = json!({ "action": "accept", "content": { "name": format!("n{n}") } });
            client.respond(&question["id"], name).await;
            (named, stream.message().await)
        }))
        .await;
        for (n, (named, answer)) in ended.iter().enumerate() {
            let actual = &answer["result"]["structuredContent"];
            assert_eq!((&actual["taskId"], &actual["value"]), (&named["taskId"], &json!(n)));
            let name = &actual["answers"]["who"]["result"]["content"]["name"];
            assert_eq!(*name, format!("n{n}"), "{server}: {answer}");
        }
    }
}
