//! Tasks within an era, and connections without tasks.

use serde_json::{Value, json};

use super::{
    PROTOCOL, RELATED, Rig, SERVERS, as_task, ask, ask_modern, call, error_code, extension,
    initialize, start_modern_task, start_task, task_support, with_task_support,
};
use crate::harness::{
    daemon::Daemon,
    era_client::Era,
    fake::Fakes,
    modern::{Modern, key},
};

const PER_SESSION: &str = "sharing = \"session\"\n";
const EXCLUSIVE: &str = "sharing = \"exclusive\"\n";

#[tokio::test]
async fn a_task_of_a_shared_legacy_server_passes_unchanged_but_cannot_be_listed() {
    let rig = Rig::start(Era::Legacy, "").await;
    for server in SERVERS {
        let (client, capabilities) = rig.legacy(server).await;
        let declared = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        assert_eq!(capabilities["tasks"], declared, "{server}");
        let listed = ask(&client, "tools/list", &json!({})).await;
        let actual: Vec<&Value> =
            task_support(&listed).into_iter().filter(|it| it.is_string()).collect();
        assert_eq!(actual, ["required", "optional"], "{server}: {listed}");

        let created = ask(&client, "tools/call", &as_task("job", &json!({ "value": 7 }))).await;
        let task = created["result"]["task"].clone();
        assert_eq!((&task["ttl"], &task["pollInterval"]), (&json!(5000), &json!(10)));
        let named = json!({ "taskId": task["taskId"] });
        assert_eq!(ask(&client, "tasks/get", &named).await["result"]["status"], "working");
        let ended = ask(&client, "tasks/result", &named).await["result"].clone();
        let actual = (&ended["_meta"][RELATED], &ended["structuredContent"]["value"]);
        assert_eq!(actual, (&named, &json!(7)), "{ended}");
        assert_eq!(error_code(&ask(&client, "tasks/cancel", &named).await).0, -32602);

        let listed = ask(&client, "tasks/list", &json!({})).await;
        assert_eq!(error_code(&listed).0, -32601, "{server}: some tasks belong to other clients");
        let seen = rig.seen(server).await;
        assert_eq!(seen["requests"].get("tasks/list"), None, "{server}");
        assert_eq!(seen["jobs"][0]["task"], json!({ "ttl": 5000 }));
    }
}

#[tokio::test]
async fn a_client_of_a_per_session_legacy_server_may_list_its_tasks_and_receives_their_requests() {
    let rig = Rig::start(Era::Legacy, PER_SESSION).await;
    for server in SERVERS {
        let (client, capabilities) = rig.legacy(server).await;
        assert_eq!(capabilities["tasks"]["list"], json!({}), "{server}: {capabilities}");
        let steps = json!({ "steps": ["input_required", "completed"] });
        let named = start_task(&client, &steps).await;
        let listed = ask(&client, "tasks/list", &json!({})).await["result"]["tasks"].clone();
        let mut listed = listed.as_array().expect("tasks").iter();
        assert!(listed.any(|task| task["taskId"] == named["taskId"]), "{server}");

        let mut stream = client.stream(json!(1), "tasks/result", named.clone()).await;
        let question = stream.message().await;
        assert_eq!(question["params"]["_meta"][RELATED], named, "{question}");
        client.respond(&question["id"], json!({ "action": "decline" })).await;
        let answers = stream.message().await["result"]["structuredContent"]["answers"].clone();
        assert_eq!(answers["who"], json!({ "result": { "action": "decline" } }), "{server}");
    }
}

#[tokio::test]
async fn tasks_of_a_modern_server_pass_unchanged_to_modern_clients() {
    let rig = Rig::start(Era::Modern, "").await;
    for server in SERVERS {
        let client = rig.with_tasks(server);
        let declared = client.discover().await.answer()["result"]["capabilities"].clone();
        assert_eq!(declared["extensions"], extension(), "{server}");
        let steps = json!(["working", "input_required", "completed"]);
        let named = start_modern_task(&client, &json!({ "steps": steps, "value": 7 })).await;
        for status in ["working", "input_required", "input_required"] {
            let shown = ask_modern(&client, "tasks/get", &named).await["result"].clone();
            assert_eq!((&shown["status"], &shown["ttlMs"]), (&json!(status), &json!(60_000)));
            let question = &shown["inputRequests"]["who"]["method"];
            assert_eq!(question == "elicitation/create", status != "working", "{shown}");
        }
        let mut update = named.clone();
        update["inputResponses"] = json!({ "who": { "action": "decline" } });
        let actual = ask_modern(&client, "tasks/update", &update).await;
        assert_eq!(actual["result"]["resultType"], "complete", "{actual}");
        let ended = ask_modern(&client, "tasks/get", &named).await["result"].clone();
        let declined = json!({ "who": { "result": { "action": "decline" } } });
        let expected = json!({ "taskId": named["taskId"], "answers": declined, "value": 7 });
        assert_eq!(ended["result"]["structuredContent"], expected, "{server}");
        let actual = ask_modern(&client, "tasks/cancel", &named).await;
        assert_eq!(actual["result"]["resultType"], "complete", "{actual}");
        let without = rig.modern(server).tool("job", json!({})).await.answer();
        assert_eq!(error_code(&without).0, -32021, "{server}");
    }
}

#[tokio::test]
async fn legacy_clients_have_no_tasks_at_exclusive_servers() {
    for era in [Era::Legacy, Era::Modern] {
        let rig = Rig::start(era, EXCLUSIVE).await;
        for server in SERVERS {
            let (client, capabilities) = rig.legacy(server).await;
            assert_eq!(capabilities.get("tasks"), None, "{era:?} {server}");
            let listed = ask(&client, "tasks/list", &json!({})).await;
            assert_eq!(error_code(&listed).0, -32601, "{server}");
            let plain = ask(&client, "tools/call", &as_task("job_maybe", &json!({}))).await;
            let actual = &plain["result"]["structuredContent"];
            assert_eq!(actual.get("taskId"), Some(&Value::Null), "{server}: {plain}");
            if era == Era::Legacy {
                continue;
            }
            for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
                let answer = ask(&client, method, &json!({ "taskId": "a" })).await;
                let expected = (-32601, "NOT_IN_SERVERS_VERSION");
                assert_eq!(error_code(&answer), expected, "{server} {method}");
            }
        }
        if era == Era::Modern {
            assert_eq!(rig.upstream.log("").await["jobs"][0]["extension"], false);
        }
    }
}

#[tokio::test]
async fn modern_clients_have_no_tasks_at_legacy_servers_that_are_not_shared() {
    for sharing in [PER_SESSION, EXCLUSIVE] {
        let rig = Rig::start(Era::Legacy, sharing).await;
        for server in SERVERS {
            let client = rig.with_tasks(server);
            let declared = client.discover().await.answer()["result"]["capabilities"].clone();
            assert_eq!(declared.get("extensions"), None, "{server} {sharing}: {declared}");
            assert_eq!(declared.get("tasks"), None, "{server} {sharing}: {declared}");
            let plain = client.call("job_maybe", json!({})).await;
            assert_eq!(plain.get("taskId"), Some(&Value::Null), "{server} {sharing}: {plain}");
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let params = json!({ "taskId": "a", "inputResponses": {} });
                let answer = ask_modern(&client, method, &params).await;
                let expected = (-32601, "NOT_IN_SERVERS_VERSION");
                assert_eq!(error_code(&answer), expected, "{server} {sharing} {method}");
            }
        }
    }
}

#[tokio::test]
async fn clients_have_no_tasks_at_ephemeral_servers_or_unshared_modern_ones() {
    const EPHEMERAL: &str = "lifecycle = \"ephemeral\"\n";
    for (era, more) in [
        (Era::Legacy, EPHEMERAL),
        (Era::Modern, EPHEMERAL),
        (Era::Modern, PER_SESSION),
        (Era::Modern, EXCLUSIVE),
    ] {
        let rig = Rig::start(era, more).await;
        for server in SERVERS {
            let client = rig.with_tasks(server);
            let declared = client.discover().await.answer()["result"]["capabilities"].clone();
            assert_eq!(declared.get("extensions"), None, "{era:?} {server} {more}: {declared}");
            let plain = client.call("job_maybe", json!({})).await;
            assert_eq!(plain.get("taskId"), Some(&Value::Null), "{era:?} {server} {more}: {plain}");
            if more == EPHEMERAL {
                let (client, capabilities) = rig.legacy(server).await;
                assert_eq!(capabilities.get("tasks"), None, "{era:?} {server}");
                let plain = ask(&client, "tools/call", &as_task("job_maybe", &json!({}))).await;
                let actual = &plain["result"]["structuredContent"];
                assert_eq!(actual.get("taskId"), Some(&Value::Null), "{era:?} {server}: {plain}");
            }
        }
    }
}

#[tokio::test]
async fn tasks_list_is_refused_and_does_not_reach_a_modern_server() {
    let rig = Rig::start(Era::Modern, "").await;
    for server in SERVERS {
        let listed = ask_modern(&rig.with_tasks(server), "tasks/list", &json!({})).await;
        assert_eq!(error_code(&listed), (-32601, "METHOD_NOT_FOUND"), "{server}");
        assert_eq!(rig.seen(server).await["requests"].get("tasks/list"), None, "{server}");
    }
}

#[tokio::test]
async fn a_legacy_client_has_tasks_at_a_per_session_modern_server() {
    let rig = Rig::start(Era::Modern, PER_SESSION).await;
    for server in SERVERS {
        let (client, capabilities) = rig.legacy(server).await;
        let declared = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        assert_eq!(capabilities["tasks"], declared, "{server}: the extension has no list");
        let named = start_task(&client, &json!({ "value": 7 })).await;
        let ended = ask(&client, "tasks/result", &named).await["result"].clone();
        let actual = &ended["structuredContent"];
        assert_eq!((&actual["taskId"], &actual["value"]), (&named["taskId"], &json!(7)), "{ended}");
        let listed = ask(&client, "tasks/list", &json!({})).await;
        assert_eq!(error_code(&listed), (-32601, "NOT_IN_SERVERS_VERSION"), "{server}");
    }
}

#[tokio::test]
async fn a_task_notification_reaches_only_the_owner_of_the_connection() {
    for (sharing, is_owner) in [("", false), (PER_SESSION, true)] {
        let rig = Rig::start(Era::Legacy, sharing).await;
        for server in SERVERS {
            let (client, _) = rig.legacy(server).await;
            let mut stream = client.listen().await;
            client.call("seen", json!({ "counts": { "hearers": 1 } })).await;
            let params = json!({ "taskId": "a", "status": "working" });
            let notice = json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": params });
            client.call("emit", json!({ "message": notice.to_string() })).await;
            client.call("change", json!({ "list": "tools" })).await;
            let end = "notifications/tools/list_changed";
            let first = stream.message().await;
            let expected = if is_owner { "notifications/tasks/status" } else { end };
            assert_eq!(first["method"], expected, "{server} {sharing}: {first}");
        }
    }
}

/// The paths of the merged view.
const MERGED: [&str; 2] = ["/", "/direct"];

/// Starts the service with a server of each era.
async fn merged() -> (Daemon, Fakes) {
    let fakes = Fakes::new();
    let options = |era| ["--tasks", "--era", era, "--protocol", PROTOCOL];
    let config = fakes.server("old", &options("legacy")) + &fakes.server("new", &options("modern"));
    let daemon = Daemon::with(config).ready();
    for server in ["old", "new"] {
        let client = Modern::new(daemon.client(&format!("/servers/{server}")));
        ask_modern(&client, "tools/list", &json!({})).await;
    }
    (daemon, fakes)
}

#[tokio::test]
async fn no_call_in_the_merged_view_becomes_a_task() {
    let (daemon, _fakes) = merged().await;
    for path in MERGED {
        let (legacy, capabilities) = initialize(daemon.client(path)).await;
        assert_eq!(capabilities.get("tasks"), None, "{path}");
        let modern = with_task_support(Modern::new(daemon.client(path)));
        let declared = modern.discover().await.answer()["result"]["capabilities"].clone();
        assert_eq!(declared["extensions"].get(key("tasks")), None, "{path}: {declared}");
        for server in ["old", "new"] {
            let tool = format!("{server}__job_maybe");
            let answers = [
                ask(&legacy, "tools/call", &as_task(&tool, &json!({}))).await,
                ask_modern(&modern, "tools/call", &call(&tool, &json!({}))).await,
            ];
            for answer in answers {
                let actual = &answer["result"]["structuredContent"];
                assert_eq!(actual.get("taskId"), Some(&Value::Null), "{path} {tool}: {answer}");
            }
            let seen = legacy.call(&format!("{server}__seen"), json!({})).await;
            let jobs = seen["jobs"].as_array().expect("calls");
            let plain = json!({ "tool": "job_maybe", "task": null, "extension": false });
            assert!(jobs.len() >= 2 && jobs.iter().all(|job| *job == plain), "{path}: {seen}");
        }
    }
}

#[tokio::test]
async fn no_tool_in_the_merged_view_declares_task_support_to_modern_clients() {
    let (daemon, _fakes) = merged().await;
    for path in MERGED {
        let modern = with_task_support(Modern::new(daemon.client(path)));
        let listed = ask_modern(&modern, "tools/list", &json!({})).await;
        assert!(task_support(&listed).iter().all(|support| support.is_null()), "{path}: {listed}");
    }
}

#[tokio::test]
async fn clients_of_both_eras_have_tasks_at_the_same_server_at_once() {
    for era in [Era::Legacy, Era::Modern] {
        let rig = Rig::start(era, "").await;
        for server in SERVERS {
            let (legacy, _) = rig.legacy(server).await;
            let modern = rig.with_tasks(server);
            let steps = json!({ "steps": ["working", "working", "completed"] });
            let started =
                [start_task(&legacy, &steps).await, start_modern_task(&modern, &steps).await];
            let by_legacy = async {
                let ended = ask(&legacy, "tasks/result", &started[0]).await;
                ended["result"]["structuredContent"]["taskId"].clone()
            };
            let by_modern = async {
                loop {
                    let shown = ask_modern(&modern, "tasks/get", &started[1]).await;
                    let result = shown["result"]["result"].clone();
                    if result.is_object() {
                        return result["structuredContent"]["taskId"].clone();
                    }
                }
            };
            let (by_legacy, by_modern) = tokio::join!(by_legacy, by_modern);
            let own = started.map(|named| named["taskId"].clone());
            assert_eq!([by_legacy, by_modern], own, "{era:?} {server}");
        }
    }
}
