//! Shared servers: one process for all clients, and every answer for the client that sent the
//! request.

use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::{Client, request, running},
        daemon::Daemon,
        fake::Fakes,
    },
    server_status, until,
};

/// Ten clients: some with a session id, some without, some with one from before a restart.
async fn ten_clients(daemon: &Daemon, path: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    for number in 0..10 {
        let client = daemon.client(path);
        clients.push(match number % 3 {
            0 => client.initialized().await,
            1 => client,
            _ => client.header("mcp-session-id", "1868a90c-0000-4000-8000-000000000000"),
        });
    }
    clients
}

#[tokio::test]
async fn ten_clients_of_every_kind_share_one_child_per_server() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &[]) + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();

    let direct = ten_clients(&daemon, "/").await;
    let lists =
        all(direct.iter().map(|client| client.request(json!(1), "tools/list", json!({})))).await;
    for list in &lists {
        let tools = list.answer()["result"]["tools"].clone();
        let names: Vec<&str> = tools
            .as_array()
            .expect("tools")
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert!(names.contains(&"one__whoami") && names.contains(&"two__whoami"), "{names:?}");
    }
    let mut pids: Vec<Value> =
        all(direct.iter().map(|client| client.call("one__whoami", json!({})))).await;
    let unprefixed = ten_clients(&daemon, "/servers/one").await;
    pids.extend(all(unprefixed.iter().map(|client| client.call("whoami", json!({})))).await);
    all(direct.iter().map(|client| client.call("two__whoami", json!({})))).await;

    assert_eq!(fakes.pids("one").len(), 1);
    assert_eq!(fakes.pids("two").len(), 1);
    assert!(pids.iter().all(|found| found["pid"] == pids[0]["pid"]), "{pids:?}");
}

#[tokio::test]
async fn twelve_clients_that_all_use_id_1_get_their_own_answers() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let clients: Vec<Client> = (0..12)
        .map(|number| daemon.client(if number % 2 == 0 { "/servers/fake" } else { "/" }))
        .collect();

    // `meet` answers when all twelve are in flight, in the reverse order.
    let answers = all(clients.iter().enumerate().map(|(number, client)| {
        let name = if number % 2 == 0 { "meet" } else { "fake__meet" };
        client.tool(name, json!({ "n": 12, "value": number }))
    }))
    .await;

    for (number, reply) in answers.iter().enumerate() {
        let answer = reply.answer();
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["result"]["structuredContent"]["value"], number, "{answer}");
    }
}

#[tokio::test]
async fn a_request_id_is_returned_exactly_as_written() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");

    for id in ["1", "\"1\"", "0", "-7", "9007199254740993", "1.50", "\"\"", r#""\u00fc\"""#] {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"value":1}}}}}}"#
        );
        let reply = client.post(message).await;
        assert!(reply.body.contains(&format!(r#""id":{id}"#)), "{id}: {}", reply.body);
    }
}

#[tokio::test]
async fn a_result_passes_byte_for_byte() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let result = r#"{"zebra":1e400,"content":[{"type":"video","x":12345678901234567890123}],"a":1.0,"_meta":{"k":"\u00e9"}, "isError" : false}"#;

    let reply = daemon.client("/servers/fake").tool("raw", json!({ "result": result })).await;

    assert!(reply.body.contains(result), "{}", reply.body);
}

#[tokio::test]
async fn unknown_methods_reach_the_server_and_its_errors_reach_the_client_unchanged() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");

    let unknown = client.request(json!(1), "x/unheard-of", json!({ "a": 1 })).await.answer();
    assert_eq!(unknown["error"]["code"], -32601);
    let data = json!({ "keep": [1, "2"] });
    let error = json!({ "code": -31999, "message": "own words", "data": data });
    let failed = client.tool("rpc_error", error.clone()).await.answer();
    assert_eq!(failed["error"], error);
}

#[tokio::test]
async fn progress_reaches_the_calling_client_in_order_and_before_the_answer() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let clients: Vec<Client> = (0..10).map(|_| daemon.client("/servers/fake")).collect();

    // All use the same id and the same progress token.
    let replies = all(clients.iter().enumerate().map(|(number, client)| {
        let arguments = json!({ "steps": 40, "n": number });
        let params = json!({
            "name": "progress", "arguments": arguments, "_meta": { "progressToken": "t" },
        });
        client.request(json!(1), "tools/call", params)
    }))
    .await;

    for (number, reply) in replies.iter().enumerate() {
        let mut messages = reply.messages();
        let answer = messages.pop().expect("an answer");
        assert_eq!(answer["result"]["structuredContent"]["n"], number);
        let steps: Vec<&Value> = messages.iter().map(|message| &message["params"]).collect();
        assert_eq!(steps.len(), 40);
        for (step, params) in (1..).zip(steps) {
            assert_eq!(params["progressToken"], "t");
            assert_eq!(params["progress"], step);
            assert_eq!(params["message"], format!("call {number}, step {step}"));
        }
    }
}

#[tokio::test]
async fn a_cancellation_reaches_the_server_under_the_servers_request_id_and_ends_the_stream() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;
    let other = daemon.client("/servers/fake").initialized().await;
    let held = running(client.clone().hold("mine"));
    let kept = running(other.clone().hold("other"));
    other.call("held", json!({ "at_least": 2 })).await;

    // Both hold id 1: only the one of this session may end.
    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;

    other.call("seen", json!({ "cancelled": 1 })).await;
    assert_eq!(held.end().await.body, "", "a cancelled request has no answer");
    let left = other.call("held", json!({})).await;
    assert!(left.to_string().contains("other") && !left.to_string().contains("mine"), "{left}");
    other.call("release", json!({ "key": "other" })).await;
    assert_eq!(kept.end().await.answer()["id"], 1);
}

#[tokio::test]
async fn a_client_without_a_session_cannot_cancel_a_request_of_another_client() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let held = running(daemon.client("/servers/fake").hold("k"));
    let other = daemon.client("/servers/fake");
    other.call("held", json!({ "at_least": 1 })).await;

    // The running request with id 1 is that of another client.
    let reply = other.notify("notifications/cancelled", json!({ "requestId": 1 })).await;

    assert_eq!(reply.status, 202);
    assert_eq!(other.call("held", json!({})).await["keys"]["k"], 1, "still held");
    other.call("release", json!({ "key": "k" })).await;
    assert!(held.end().await.answer()["result"].is_object());
}

#[tokio::test]
async fn a_disconnected_client_cancels_only_its_own_request() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let other = daemon.client("/servers/fake");
    let hold =
        request(&json!(1), "tools/call", &json!({ "name": "hold", "arguments": { "key": "k" } }));
    let disconnecting = running({
        let client = daemon.client("/servers/fake");
        async move { client.open_post(hold).await }
    });
    other.call("held", json!({ "at_least": 1 })).await;

    drop(disconnecting);

    let seen = other.call("seen", json!({ "cancelled": 1 })).await;
    assert_eq!(seen["cancelled"].as_array().map(Vec::len), Some(1), "{seen}");
    assert_eq!(other.call("echo", json!({ "value": 7 })).await["value"], 7);
}

#[tokio::test]
async fn a_late_or_duplicate_answer_reaches_no_client() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake").initialized().await;

    assert_eq!(client.tool("duplicate", json!({})).await.answer()["id"], 1);
    let late = running({
        let client = client.clone();
        async move { client.tool("late", json!({ "key": "k" })).await }
    });
    // The fake answers `late` only when it is cancelled.
    until(async || client.call("seen", json!({})).await["in_flight"] == 2).await;
    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    assert_eq!(late.end().await.body, "");

    for value in 0..5 {
        assert_eq!(client.call("echo", json!({ "value": value })).await["value"], value);
    }
    // Both are counted: the second answer and the late one.
    let status = daemon.client("/status");
    until(async || status.get().await.answer()["servers"][0]["late_answers"] == 2).await;
}

#[tokio::test]
async fn a_shared_server_may_ping_metamcp_and_is_refused_any_other_request() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");

    let ping = client.call("ask", json!({ "method": "ping" })).await;
    assert_eq!(ping, json!({ "result": {} }));
    let sampling = client.call("ask", json!({ "method": "sampling/createMessage" })).await;
    assert_eq!(sampling["error"]["code"], -32601);
}

#[tokio::test]
async fn a_changed_tool_list_is_read_again_and_an_unchanged_one_is_not() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--page", "5"])).ready();
    let client = daemon.client("/");
    let names = async || {
        let list = client.request(json!(1), "tools/list", json!({})).await.answer();
        list["result"]["tools"].as_array().expect("tools").len()
    };

    let n_before = names().await;
    assert!(n_before > 20, "all pages are read: {n_before}");
    let seen = client.call("fake__seen", json!({})).await;
    names().await;
    let seen_again = client.call("fake__seen", json!({})).await;
    assert_eq!(seen["methods"]["tools/list"], seen_again["methods"]["tools/list"]);

    client.call("fake__flip_tools", json!({})).await;
    assert_eq!(names().await, n_before + 1);
}

#[tokio::test]
async fn the_list_of_a_server_with_a_closed_connection_stays_known() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + "lifecycle = \"ephemeral\"\n").ready();
    let client = daemon.client("/").initialized().await;
    let mut stream = client.listen().await;
    let wait_closed =
        async || until(async || server_status(&daemon, "fake").await["state"] == "closed").await;
    let n_tools = async || {
        let list = client.request(json!(1), "tools/list", json!({})).await.answer();
        list["result"]["tools"].as_array().expect("tools").len()
    };

    let n_before = n_tools().await;
    wait_closed().await;
    assert_eq!(n_tools().await, n_before);
    assert_eq!(fakes.pids("fake").len(), 1);

    // The server changes its list, and is closed with the changed list.
    let held = running(daemon.client("/servers/fake").hold("k"));
    client.call("fake__held", json!({ "at_least": 1 })).await;
    client.call("fake__flip_tools", json!({})).await;
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(n_tools().await, n_before + 1);
    client.call("fake__release", json!({ "key": "k" })).await;
    held.end().await;
    wait_closed().await;
    assert_eq!(n_tools().await, n_before + 1);
    assert_eq!(fakes.pids("fake").len(), 2);

    // The next process has the first list again: a client that read the changed one is notified.
    let held = running(daemon.client("/servers/fake").hold("k"));
    client.call("fake__held", json!({ "at_least": 1 })).await;
    assert_eq!(n_tools().await, n_before);
    assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
    client.call("fake__release", json!({ "key": "k" })).await;
    held.end().await;
}

#[tokio::test]
async fn one_bad_tool_does_not_hide_the_others() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--bad-tool"])).ready();

    let list = daemon.client("/").request(json!(1), "tools/list", json!({})).await;

    assert!(list.body.contains("fake__echo") && !list.body.contains("fake__bad"));
    daemon.wait_log("it has no `inputSchema` of type object");
}

#[tokio::test]
async fn a_server_that_fails_does_not_hide_the_others() {
    let fakes = Fakes::new();
    let config = fakes.server("good", &[]) + "[servers.bad]\ncommand = \"/no/such/program\"\n";
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/");

    let list = client.request(json!(1), "tools/list", json!({})).await;
    assert!(list.body.contains("good__echo"));
    let failed = client.tool("bad__anything", json!({})).await.answer();
    assert_eq!(failed["error"]["data"]["code"], "SERVER_NOT_STARTED");
    let message = failed["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("cannot start `/no/such/program`: there is no directory `/no`"),
        "{message}"
    );
}

#[tokio::test]
async fn prompts_and_resources_are_merged() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &[]) + &fakes.server("two", &["--page", "1"]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/");
    let list = async |method: &str, member: &str| {
        let answer = client.request(json!(1), method, json!({})).await.answer();
        answer["result"][member].as_array().cloned().expect(member)
    };

    let prompts = list("prompts/list", "prompts").await;
    assert_eq!(prompts.len(), 2);
    let name = prompts[1]["name"].as_str().expect("a name");
    assert!(name.starts_with("two__"), "{name}");
    let got = client
        .request(json!(2), "prompts/get", json!({ "name": name, "arguments": { "subject": "x" } }))
        .await
        .answer();
    assert!(got["result"]["messages"].is_array(), "{got}");

    let resources = list("resources/list", "resources").await;
    assert_eq!(resources.len(), 2, "both servers list the same resources");
    let read =
        client.request(json!(3), "resources/read", json!({ "uri": resources[0]["uri"] })).await;
    assert!(read.answer()["result"]["contents"].is_array(), "{read:?}");
    assert_eq!(list("resources/templates/list", "resourceTemplates").await.len(), 1);
    let missing = client.request(json!(4), "resources/read", json!({ "uri": "no:where" })).await;
    assert_eq!(missing.answer()["error"]["code"], -32002);
}

#[tokio::test]
async fn a_progress_token_outside_of_meta_is_ignored() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let params = json!({ "name": "seen", "arguments": {}, "progressToken": "keep" });

    client.request(json!(1), "tools/call", params).await;

    let seen = client.call("seen", json!({})).await;
    assert_eq!(seen["tokens"], json!([]), "{seen}");
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{},"_meta":{}}}"#;
    assert_eq!(client.post(twice).await.status, 400, "duplicate members are ambiguous");
}
