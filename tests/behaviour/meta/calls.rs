//! Calls of servers' tools through the meta-tools: results, spellings, arguments and progress.

use serde_json::{Value, json};

use super::{BOTH, call_of, meta, n_calls};
use crate::harness::{
    daemon::Daemon,
    fake::{Fakes, Upstream, executions},
    meta_client::MetaClient,
    modern::Modern,
};

#[tokio::test]
async fn a_result_passes_byte_for_byte_through_mcp_call() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;
    for result in [
        r#"{"content":[{"type":"text","text":"\u00e9 \/"},{"type":"image","data":"aW1hZ2U=","mimeType":"image/png","_meta":{"a.b/c":1e400}}],"structuredContent":{"n":1e400, "z":[ ]},"isError":false,"_meta":{"x/y":[1.50]},"future":{}}"#,
        r#"{ "content" : [ ] , "isError":true, "structuredContent":{"x":9007199254740993}}"#,
        r#"{"content":[{"type":"of the future","x":[ ]}]}"#,
        "{}",
    ] {
        let params = json!({ "name": "mcp_call", "arguments": call_of("fake", "raw", json!({ "result": result })) });
        let reply = meta.reply("mcp_call", params).await;
        assert!(reply.body.contains(result), "{}", reply.body);
    }
    for value in ["1e400", "9007199254740993", "1.50", r#""\u00e9""#, r#"{"z":1,"a":[ ]}"#] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":"i","method":"tools/call","params":{{"name":"mcp_call","arguments":{{"server":"fake","tool":"echo","args":{{"value":{value}}}}}}}}}"#
        );
        let reply = meta.http.post(call).await;
        let expected = format!(r#""structuredContent":{{"value":{value}}}"#);
        assert!(
            reply.body.contains(&expected) && reply.body.contains(r#""id":"i""#),
            "{}",
            reply.body
        );
    }
}

#[tokio::test]
async fn every_spelling_of_a_tool_name_is_understood() {
    let fakes = Fakes::new();
    let daemon =
        Daemon::with(BOTH.to_owned() + &fakes.server("fake", &["--named", "a/b__c:d"])).ready();
    let meta = meta(&daemon).await;
    let args = json!({ "value": [7] });
    for (server, tool) in [
        (Some("fake"), "echo"),
        (Some("fake"), "fake/echo"),
        (Some("fake"), "fake__echo"),
        (Some("fake"), "fake:echo"),
        (Some(""), "fake/echo"),
        (None, "fake/echo"),
        (None, "fake__echo"),
        (None, "fake:echo"),
    ] {
        let mut arguments = json!({ "tool": tool, "args": args });
        if let Some(server) = server {
            arguments["server"] = json!(server);
        }
        assert_eq!(meta.value("mcp_call", arguments).await, args, "{server:?} {tool}");
        if server.is_none() {
            let ran = meta.value("run_tool", json!({ "tool_id": tool, "args": args })).await;
            assert_eq!(ran["structured"], args);
        }
    }
    // Also for a tool whose name contains separators.
    for tool in ["fake/a/b__c:d", "fake__a/b__c:d", "fake:a/b__c:d"] {
        let called = meta.value("mcp_call", json!({ "tool": tool })).await;
        assert_eq!(called, json!({ "tool": "a/b__c:d" }));
    }
    for args in [json!("{\"value\": [7]}"), json!({ "value": [7] })] {
        assert_eq!(
            meta.value("mcp_call", call_of("fake", "echo", args)).await,
            json!({ "value": [7] })
        );
    }
    for nothing in [json!(null), json!(""), json!({})] {
        let called = meta.value("mcp_call", call_of("fake", "whoami", nothing)).await;
        assert!(called["pid"].is_u64(), "{called}");
    }
    let error = meta.error("run_tool", json!({ "tool_id": "echo" })).await;
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("validation_input"), &json!("invalid_format"))
    );
}

#[tokio::test]
async fn an_invalid_call_is_refused_and_the_error_names_the_argument() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &[])).ready();
    let meta = meta(&daemon).await;
    for (tool, arguments, expected) in [
        ("mcp_call", json!({}), "`tool`"),
        ("mcp_call", json!({ "tool": "echo" }), "`server`"),
        ("mcp_call", json!({ "server": "fake", "tool": "echo", "arg": {} }), "`args`"),
        ("mcp_call", json!({ "server": "fake", "tool": "echo", "args": [1] }), "`args`"),
        ("mcp_call", json!({ "server": "fake", "tool": "echo", "timeoutMs": 0 }), "`timeoutMs`"),
        ("mcp_call", json!({ "server": "fake", "tool": "echo", "fields": ["a..b"] }), "`fields`"),
        ("mcp_discover", json!({ "detail": "everything" }), "`detail`"),
        ("search_tools", json!({}), "`query`"),
        ("describe_tool", json!({ "tool_id": "fake/echo" }), "`detail_level`"),
        ("describe_tool", json!({ "detail_level": "full" }), "`tool_id`"),
        ("list_tool_examples", json!({}), "`tool_id`"),
        ("run_tool", json!({}), "`tool_id`"),
        ("run_chain", json!({ "steps": [] }), "`steps`"),
        ("run_chain", json!({ "steps": [{}] }), "tool_id`"),
    ] {
        let error = meta.refused(tool, arguments.clone()).await;
        assert_eq!(error["code"], -32602, "{error}");
        let text = format!("{} {}", error["message"], error["data"]["suggestion"]);
        assert!(text.contains(expected), "{tool} {arguments}: {text}");
    }
    assert!(fakes.pids("fake").is_empty(), "no server is started");
}

#[tokio::test]
async fn each_wrong_argument_is_named_and_the_server_is_not_called() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &["--rich"])).ready();
    let meta = meta(&daemon).await;
    let wrong = json!({ "tabel": "parts", "n": "many", "filter": { "name": 1 } });
    let calls = [
        ("mcp_call", call_of("fake", "rows", wrong.clone())),
        ("run_tool", json!({ "tool_id": "fake/rows", "args": wrong })),
    ];
    for (tool, arguments) in calls {
        let result = meta.result(tool, arguments).await;
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["code"], "validation_input", "{result}");
        assert_eq!((&error["tool_id"], &error["op"]), (&json!("fake/rows"), &json!(tool)));
        assert_eq!(error["retryable"], false);
        let problems = error["details"]["validationErrors"].as_array().expect("problems");
        let all = problems
            .iter()
            .map(|problem| problem.as_str().expect("a text"))
            .collect::<Vec<_>>()
            .join("\n");
        for part in [
            "Field 'table'",
            "Field 'tabel'",
            "did you mean `table`?",
            "Field 'n'",
            "Field 'filter.name'",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        // The text names the problems, too.
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains("Field 'n'"), "{text}");
    }
    assert_eq!(n_calls(&daemon, "fake").await, 0);
    let good = call_of("fake", "rows", json!({ "table": "parts", "n": 1 }));
    assert_eq!(meta.value("mcp_call", good).await["total"], 1);
}

#[tokio::test]
async fn a_result_is_reduced_to_the_selected_fields() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--rich"])).ready();
    let meta = meta(&daemon).await;
    let fields = async |fields: Value| {
        let mut arguments = call_of("fake", "rows", json!({ "table": "parts", "n": 2 }));
        arguments["fields"] = fields;
        meta.result("mcp_call", arguments).await
    };

    let result = fields(json!(["total", "rows[].name"])).await;
    let expected = json!({ "total": 2, "rows": [{ "name": "parts 1" }, { "name": "parts 2" }] });
    assert_eq!(result["structuredContent"], expected);
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), expected);
    let both = fields(json!(["rows[].size", "rows[].name"])).await;
    let both = &both["structuredContent"]["rows"][0];
    assert_eq!(both, &json!({ "name": "parts 1", "size": 10 }));
    let whole = fields(json!([])).await;
    let mut result = fields(json!(["nothing.there"])).await;
    let note = result["content"].as_array_mut().expect("blocks").remove(0);
    let note = note["text"].as_str().expect("a text");
    assert!(note.contains("Its paths: ") && note.contains("rows[].name"), "{note}");
    assert_eq!(result, whole, "an unknown field changes nothing else");
    assert_eq!(whole["structuredContent"]["rows"][1]["size"], 20);
}

#[tokio::test]
async fn progress_of_a_called_tool_carries_the_clients_token() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &[])).ready();
    let clients =
        [meta(&daemon).await, MetaClient::modern(Modern::new(daemon.client("/meta"))).await];
    for meta in clients {
        for token in [json!("t"), json!(7)] {
            for (tool, arguments) in [
                ("mcp_call", call_of("fake", "progress", json!({ "steps": 3 }))),
                ("run_tool", json!({ "tool_id": "fake/progress", "args": { "steps": 3 } })),
            ] {
                let mut stream = meta.stream(tool, arguments, &token).await;
                let (notices, answer) = meta.last(tool, &mut stream).await;
                let steps: Vec<&Value> =
                    notices.iter().map(|notice| &notice["params"]["progress"]).collect();
                assert_eq!(steps, [0, 1, 2, 3], "the progress of the tool comes last: {notices:?}");
                assert_eq!(notices[0]["params"]["message"], "started");
                assert!(
                    notices.iter().all(|notice| notice["params"]["progressToken"] == token),
                    "{notices:?}"
                );
                let value = &answer["result"]["structuredContent"];
                let value = value.get("structured").unwrap_or(value);
                assert_eq!(value["steps"], 3, "{answer}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_of_a_silent_tool_reports_progress_at_its_start_and_at_its_end() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("fake", &[])).ready();
    let clients =
        [meta(&daemon).await, MetaClient::modern(Modern::new(daemon.client("/meta"))).await];
    for meta in clients {
        for (tool, args, word) in [
            ("echo", json!({ "value": 1 }), "completed"),
            ("tool_error", json!({}), "error"),
            ("rpc_error", json!({ "code": 7, "message": "no" }), "error"),
            ("exit", json!({ "code": 1 }), "error"),
        ] {
            for (meta_tool, arguments) in [
                ("mcp_call", call_of("fake", tool, args.clone())),
                ("run_tool", json!({ "tool_id": format!("fake/{tool}"), "args": args })),
            ] {
                let mut stream = meta.stream(meta_tool, arguments, &json!("t")).await;
                let (notices, _) = meta.last(meta_tool, &mut stream).await;
                let notices: Vec<&Value> = notices.iter().map(|notice| &notice["params"]).collect();
                let report = |progress: u64, message: &str| {
                    json!({
                        "progressToken": "t", "progress": progress, "total": 1, "message": message,
                    })
                };
                assert_eq!(
                    notices,
                    [&report(0, "started"), &report(1, word)],
                    "{meta_tool} {tool}"
                );
            }
        }
        let mut stream =
            meta.stream("mcp_call", call_of("fake", "rows", json!({})), &json!(1)).await;
        let (notices, _) = meta.last("mcp_call", &mut stream).await;
        assert!(notices.is_empty(), "a call that is not made reports no progress: {notices:?}");
    }
}

#[tokio::test]
async fn a_call_through_a_meta_tool_sends_the_headers_that_the_tool_declares() {
    let upstream = Upstream::start(&["--era", "modern"]);
    let daemon = Daemon::with(BOTH.to_owned() + &upstream.server("up", "")).ready();
    let clients =
        [meta(&daemon).await, MetaClient::modern(Modern::new(daemon.client("/meta"))).await];
    let args = json!({ "region": "Zürich", "count": 7, "at": { "zone": "x" } });
    for meta in clients {
        let called = meta.value("mcp_call", call_of("up", "routed", args.clone())).await;
        assert_eq!(called["arguments"], args);
        let step = json!({ "tool_id": "up/routed", "args": args });
        let ran = meta.value("run_tool", step.clone()).await;
        assert_eq!(ran["structured"]["arguments"], args);
        let chained = meta.value("run_chain", json!({ "steps": [step] })).await;
        assert_eq!(chained["final"]["arguments"], args);
        let headers = upstream.log("").await["last_headers"].clone();
        assert_eq!(
            (&headers["mcp-name"], &headers["mcp-param-count"]),
            (&json!("routed"), &json!("7")),
            "{headers}"
        );
    }
}

#[tokio::test]
async fn a_read_only_or_idempotent_call_is_repeated_if_its_server_dies() {
    let fakes = Fakes::new();
    let state = fakes.path("state");
    let path = state.display().to_string();
    let config = BOTH.to_owned() + &fakes.server("fake", &["--state", &path]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    for (n_key, (tool, is_repeated)) in
        [("read_only", true), ("count_idempotent", true), ("count", false)].into_iter().enumerate()
    {
        for way in ["mcp_call", "run_tool", "run_chain"] {
            let key = format!("{way} {n_key}");
            let args = json!({ "key": key, "then": "exit_first" });
            let id = format!("fake/{tool}");
            let result = match way {
                "mcp_call" => meta.result(way, call_of("fake", tool, args)).await,
                "run_tool" => meta.result(way, json!({ "tool_id": id, "args": args })).await,
                _ => meta.result(way, json!({ "steps": [{ "tool_id": id, "args": args }] })).await,
            };
            assert_eq!(result["isError"] != true, is_repeated, "{way} {tool}: {result}");
            let n_done = executions(&state)[&key];
            assert_eq!(n_done, 1 + u64::from(is_repeated), "{way} {tool}");
        }
    }
}

#[tokio::test]
async fn a_call_through_a_meta_tool_never_becomes_a_task() {
    let fakes = Fakes::new();
    let options = |era| ["--tasks", "--era", era, "--protocol", "2025-11-25"];
    let config = fakes.server("old", &options("legacy")) + &fakes.server("new", &options("modern"));
    let daemon = Daemon::with(config).ready();
    let takes = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let modern = Modern::new(daemon.client("/meta")).capabilities(takes);
    let clients = [meta(&daemon).await, MetaClient::modern(modern).await];
    for server in ["old", "new"] {
        for meta in &clients {
            let params = json!({
                "name": "mcp_call", "arguments": call_of(server, "job_maybe", json!({})), "task": { "ttl": 60_000 },
            });
            let answer = meta.reply("mcp_call", params).await.answer();
            let result = &answer["result"]["structuredContent"];
            assert_eq!(result.get("taskId"), Some(&Value::Null), "{server}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_possibly_misspelt_argument_is_passed_on_and_reported_with_the_result() {
    let fakes = Fakes::new();
    let schema = fakes.path("schema.json");
    let properties = json!({ "message": { "type": "string" }, "limit": { "type": "integer" } });
    let open = json!({ "type": "object", "properties": properties });
    std::fs::write(&schema, open.to_string()).expect("written");
    let options = ["--schema", &schema.display().to_string(), "--named", "say"];
    let daemon = Daemon::with(fakes.server("fake", &options)).ready();
    let meta = meta(&daemon).await;

    let misspelt = call_of("fake", "say", json!({ "msg": "hello" }));
    let result = meta.result("mcp_call", misspelt).await;
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("did you mean `message`?"), "{result}");
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!(result["structuredContent"]["tool"], "say", "the tool was called: {result}");

    let right = call_of("fake", "say", json!({ "message": "hello" }));
    assert!(!meta.result("mcp_call", right).await.to_string().contains("did you mean"));
}
