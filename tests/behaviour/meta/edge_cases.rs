//! Rare and large cases of the meta view, and reloads.

use serde_json::{Value, json};

use super::{BOTH, CORE, METATOOLS, call_of, listed, meta};
use crate::{
    all,
    harness::{
        daemon::Daemon,
        fake::Fakes,
        meta_client::{MetaClient, each},
        modern::Modern,
    },
};

const PER_SESSION: &str = "sharing = \"session\"\n";

#[tokio::test]
async fn a_chain_passes_large_values_whole_and_returns_previews() {
    let fakes = Fakes::new();
    let config = "[tools]\nsets = [\"metatools\"]\nresult_bytes_max = 4096\n".to_owned()
        + &fakes.server("fake", &["--rich"]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    let large = json!({ "table": "parts", "n": 50, "width": 500 });
    let steps = json!({ "steps": [
        { "tool_id": "fake/rows", "args": large },
        { "tool_id": "fake/rows", "args": { "table": "parts", "n": 1 }, "use_previous": true },
    ] });

    let result = meta.result("run_chain", steps).await;

    assert_eq!(result["isError"], false, "{result}");
    let outcome = &result["structuredContent"];
    assert!(outcome.to_string().len() < 6000, "{} bytes", outcome.to_string().len());
    let shown = outcome["results"][0]["structured"].as_str().expect("a text");
    assert!(shown.starts_with("{\"") && shown.contains("bytes left out"), "{shown}");
    // The size of the second result shows that its step received the whole first result.
    let last = outcome["final"].as_str().expect("a text");
    let left_out = last.rsplit_once("[… ").and_then(|(_, words)| words.split(' ').next());
    let left_out: usize = left_out.and_then(|n| n.parse().ok()).expect("a number");
    assert!(left_out > 25_000, "{last}");
}

#[tokio::test]
async fn a_per_session_server_is_found_by_all_clients_and_called_only_with_a_session() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned() + &fakes.server("own", &["--rich"]) + PER_SESSION;
    let daemon = Daemon::with(config).ready();
    let without_session = meta(&daemon).await;
    let found = without_session.value("mcp_discover", json!({ "query": "rows of a table" })).await;
    assert_eq!(each(&found, "tools", "tool")[0], "rows");
    let pid = async |meta: &MetaClient| {
        meta.value("mcp_call", call_of("own", "whoami", json!({}))).await["pid"].clone()
    };

    let clients =
        [daemon.client("/meta").initialized().await, daemon.client("/meta").initialized().await];
    let [one, two] = clients.map(MetaClient::at);
    let (one, two) = (one.await, two.await);
    assert_ne!(pid(&one).await, pid(&two).await);
    assert_eq!(pid(&one).await, pid(&one).await);
    let steps = json!({ "steps": [{ "tool_id": "own/whoami" }, { "tool_id": "own/whoami" }] });
    let outcome = one.value("run_chain", steps).await;
    assert_eq!(outcome["final"]["pid"], pid(&one).await);

    let error = without_session.error("mcp_call", call_of("own", "whoami", json!({}))).await;
    assert_eq!(error["details"]["reason"], "session_required", "{error}");
    let message = error["message"].as_str().expect("a text");
    for word in ["`own`", "`initialize`", "`Mcp-Session-Id`", "`sharing`"] {
        assert!(message.contains(word), "{message}");
    }
    let modern = MetaClient::modern(Modern::new(daemon.client("/meta"))).await;
    assert!(pid(&modern).await.is_u64(), "a modern client needs no session");
}

#[tokio::test]
async fn a_step_that_times_out_ends_the_chain() {
    let fakes = Fakes::new();
    let config = "[service]\nrequest_timeout = \"1s\"\n".to_owned()
        + "[tools]\nsets = [\"metatools\"]\n"
        + &fakes.server("fake", &[]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    let steps = json!({ "steps": [
        { "tool_id": "fake/echo", "args": { "value": 1 } },
        { "tool_id": "fake/hold", "args": { "key": "k" } },
        { "tool_id": "fake/count", "args": { "key": "never" } },
    ] });

    let result = meta.result("run_chain", steps).await;

    let outcome = &result["structuredContent"];
    assert_eq!(
        (&outcome["error"]["code"], &outcome["error"]["details"]["cause_code"]),
        (&json!("chain_step_failed"), &json!("timeout"))
    );
    assert_eq!(
        (&outcome["error"]["step_index"], &outcome["final"]["value"]),
        (&json!(1), &json!(1))
    );
    let seen = daemon.client("/servers/fake").call("seen", json!({ "cancelled": 1 })).await;
    assert_eq!(seen["executions"], json!({}));
}

#[tokio::test]
async fn odd_queries_of_a_model_are_answered() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &["--rich"])).ready();
    let meta = meta(&daemon).await;
    let long = "rows of a table ".repeat(5000);
    for query in ["表格 🦀 ~!@#$%^&*()", "\u{0}\u{7}\n\t", "a", "SELECT * FROM x", &long] {
        meta.value("mcp_discover", json!({ "query": query })).await;
        meta.value("search_tools", json!({ "query": query, "limit": 1_000_000 })).await;
    }
    let nothing =
        json!({ "query": "", "server": null, "detail": null, "limit": null, "cursor": "" });
    let found = meta.value("mcp_discover", nothing).await;
    assert_eq!(each(&found, "servers", "name"), ["fake"], "empty arguments are ignored");
    let error = meta.error("mcp_discover", json!({ "tool": "echo" })).await;
    assert_eq!(error["details"]["reason"], "invalid_format", "{error}");
    let found = meta.value("mcp_discover", json!({ "tool": "fake/echo" })).await;
    assert_eq!(each(&found, "tools", "tool"), ["echo"]);
    let error = meta.error("mcp_discover", json!({ "server": "x".repeat(100_000) })).await;
    assert!(error.to_string().len() < 2000, "{} bytes", error.to_string().len());
    let listed = meta.http.request(json!(1), "tools/list", json!({ "cursor": "x" })).await.answer();
    assert_eq!(listed["error"]["data"]["code"], "INVALID_CURSOR", "{listed}");
}

#[tokio::test]
async fn concurrent_clients_with_the_same_ids_get_their_own_answers() {
    const N_CLIENTS: usize = 12;
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;
    let calls = (0..N_CLIENTS).map(|n| {
        let meta = meta.clone();
        async move {
            let args = json!({ "n": N_CLIENTS, "value": n });
            let value = match n % 3 {
                0 => meta.value("mcp_call", call_of("fake", "meet", args)).await,
                1 => meta.value("run_tool", json!({ "tool_id": "fake/meet", "args": args })).await
                    ["structured"]
                    .clone(),
                _ => {
                    let steps = json!({ "steps": [{ "tool_id": "fake/meet", "args": args }] });
                    meta.value("run_chain", steps).await["final"].clone()
                }
            };
            (n, value)
        }
    });
    for (n, value) in all(calls).await {
        assert_eq!(value["value"], n, "{value}");
    }
    assert_eq!(fakes.pids("fake").len(), 1);
}

#[tokio::test]
async fn a_reload_changes_the_meta_tools_and_notifies_clients() {
    let fakes = Fakes::new();
    let config = |sets: &str| format!("[tools]\nsets = [{sets:?}]\n") + &fakes.server("fake", &[]);
    let mut daemon = Daemon::with(config("core")).ready();
    let client = daemon.client("/meta").initialized().await;
    let mut stream = client.listen().await;
    let wanted = json!({ "toolsListChanged": true });
    let mut modern = Modern::new(daemon.client("/meta")).listen(json!("l"), wanted).await;
    modern.message().await;
    assert_eq!(listed(&client).await, CORE);

    daemon.rewrite(&config("metatools"));
    daemon.reload();

    assert_eq!(listed(&client).await, METATOOLS);
    let gone = client.tool("mcp_call", json!({})).await.answer();
    assert_eq!(gone["error"]["data"]["code"], "TOOL_NOT_FOUND");
    for stream in [&mut stream, &mut modern] {
        let notice = stream.message().await;
        assert_eq!(notice["method"], "notifications/tools/list_changed", "{notice}");
    }

    let plain = config("metatools").replacen("[tools]", "[tools]\nalways_load = false", 1);
    daemon.rewrite(&plain);
    daemon.reload();

    let notice = stream.message().await;
    assert_eq!(notice["method"], "notifications/tools/list_changed", "{notice}");
    let list = client.request(json!(2), "tools/list", json!({})).await;
    assert!(!list.body.contains("alwaysLoad"), "{}", list.body);
}

#[tokio::test]
async fn a_server_is_found_after_a_reload_adds_it_and_not_after_one_removes_it() {
    let fakes = Fakes::new();
    let (one, two) = (fakes.server("one", &[]), fakes.server("two", &["--rich"]));
    let mut daemon = Daemon::with(one.clone()).ready();
    let meta = meta(&daemon).await;
    let find = async || {
        let found = meta.value("mcp_discover", json!({ "query": "rows of the inventory" })).await;
        each(&found, "tools", "server").contains(&"two".to_owned())
    };
    assert!(!find().await);
    for (config, has_two) in [(one.clone() + &two, true), (one, false)] {
        daemon.rewrite(&config);
        daemon.reload();
        assert_eq!(find().await, has_two);
        let called = meta.result("mcp_call", call_of("two", "echo", json!({ "value": 1 }))).await;
        assert_eq!(called["isError"] != true, has_two, "{called}");
    }
}

#[tokio::test]
async fn the_error_for_a_tool_that_requires_a_task_says_so() {
    let fakes = Fakes::new();
    let options = |era| ["--tasks", "--era", era, "--protocol", "2025-11-25"];
    let config = fakes.server("old", &options("legacy")) + &fakes.server("new", &options("modern"));
    let daemon = Daemon::with(config).ready();
    let takes = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let clients = [
        meta(&daemon).await,
        MetaClient::modern(Modern::new(daemon.client("/meta"))).await,
        MetaClient::modern(Modern::new(daemon.client("/meta")).capabilities(takes)).await,
    ];
    for server in ["old", "new"] {
        for meta in &clients {
            let answer = meta.answer("mcp_call", call_of(server, "job", json!({}))).await;
            let error: &Value = match answer.get("error") {
                Some(error) => error,
                None => &answer["result"]["structuredContent"]["error"],
            };
            let message = error["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
            assert!(message.contains("task"), "{server}: {answer}");
        }
    }
}
