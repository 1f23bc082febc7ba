//! Discovery: listing and searching the tools of all servers, page by page.

use serde_json::{Value, json};

use super::{BOTH, call_of, meta};
use crate::{
    harness::{
        daemon::Daemon,
        fake::Fakes,
        meta_client::{MetaClient, each},
    },
    server_status, until,
};

const BROKEN: &str = "[servers.broken]\ncommand = \"/no/such/program\"\n";

/// Returns the names of a server's tools, as it lists them.
async fn tools_of(daemon: &Daemon, server: &str) -> Vec<String> {
    let client = daemon.client(&format!("/servers/{server}"));
    let answer = client.request(json!(1), "tools/list", json!({})).await.answer();
    each(&answer["result"], "tools", "name")
}

/// Reads all pages, and returns a member of each entry.
async fn pages(
    meta: &MetaClient,
    tool: &str,
    arguments: &Value,
    list: &str,
    member: &str,
) -> Vec<String> {
    let mut arguments = arguments.clone();
    let mut all = Vec::new();
    loop {
        let page = meta.value(tool, arguments.clone()).await;
        let entries = page[list].as_array().expect("entries");
        assert!(!entries.is_empty() && entries.len() <= 7, "{page}");
        all.extend(entries.iter().map(|entry| match entry {
            Value::String(name) => name.clone(),
            entry => entry[member].as_str().expect("a text").to_owned(),
        }));
        match page.get("nextCursor") {
            Some(next) => arguments["cursor"] = next.clone(),
            None => return all,
        }
    }
}

#[tokio::test]
async fn discover_without_a_query_lists_all_servers_with_their_state() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &[]) + &fakes.server("two", &["--named", "x"]) + BROKEN;
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;

    let found = meta.value("mcp_discover", json!({})).await;

    assert_eq!(each(&found, "servers", "name"), ["broken", "one", "two"]);
    let [broken, one, two] = &found["servers"].as_array().expect("a list")[..] else {
        panic!("three: {found}")
    };
    let n_tools = tools_of(&daemon, "one").await.len();
    assert_eq!((&one["toolCount"], &two["toolCount"]), (&json!(n_tools), &json!(n_tools + 1)));
    assert_eq!((&one["state"], &one["source"]), (&json!("idle"), &json!("live")), "{found}");
    assert!(one["description"].as_str().is_some_and(|text| text.contains("seen")), "{one}");
    assert_eq!(broken.get("toolCount"), None, "the count is unknown: {broken}");
    let reason = broken["unavailable"].as_str().expect("a reason");
    assert!(reason.contains("/no"), "{reason}");
    assert!(found["message"].as_str().is_some_and(|text| text.contains("`query`")));
}

#[tokio::test]
async fn a_search_is_less_confident_while_servers_are_still_starting() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate");
    let late = fakes.server("late", &["--start-gate", &gate.display().to_string()]);
    let daemon = Daemon::with(fakes.server("one", &["--named", "draw_map"]) + &late).ready();
    let meta = meta(&daemon).await;
    let search = async || meta.value("mcp_discover", json!({ "query": "draw a map" })).await;

    let found = search().await;
    assert_eq!(found["tools"][0]["tool"], "draw_map", "{found}");
    assert_eq!(found["tools"][0]["confidence"], 0.5, "{found}");
    let message = found["message"].as_str().expect("a message");
    for words in ["1 of 2 servers could not be searched", "Still starting: 1, for "] {
        assert!(message.contains(words), "{message}");
    }

    std::fs::write(gate, "").expect("written");
    until(async || {
        let found = search().await;
        let is_confident = found["tools"][0]["confidence"].as_f64() > Some(0.5);
        assert!(is_confident == found["message"].is_null(), "{found}");
        is_confident
    })
    .await;
}

#[tokio::test]
async fn discover_lists_the_tools_of_a_server_in_the_requested_detail() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &["--rich"]) + &fakes.server("other", &[]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    let rows = |found: &Value| {
        let tools = found["tools"].as_array().expect("tools").clone();
        tools.into_iter().find(|tool| tool["tool"] == "rows").expect("it is there")
    };
    let all = json!({ "server": "fake", "limit": 100 });

    let short = meta.value("mcp_discover", all.clone()).await;
    assert_eq!(each(&short, "tools", "tool"), tools_of(&daemon, "fake").await);
    assert!(each(&short, "tools", "server").iter().all(|server| server == "fake"));
    let expected = "Reads rows of a table of the inventory. Each has a name and a size.";
    assert_eq!(rows(&short), json!({ "tool": "rows", "server": "fake", "description": expected }));

    let mut arguments = all.clone();
    arguments["detail"] = json!("schema");
    let schema = rows(&meta.value("mcp_discover", arguments.clone()).await);
    assert_eq!(schema["inputSchema"]["required"], json!(["table"]), "{schema}");
    assert!(schema.get("definition").is_none());

    arguments["detail"] = json!("full");
    let full = rows(&meta.value("mcp_discover", arguments).await);
    let definition = &full["definition"];
    assert_eq!(definition["annotations"]["readOnlyHint"], true, "{full}");
    assert_eq!(definition["inputSchema"], schema["inputSchema"]);
    assert_eq!(definition["outputSchema"]["required"], json!(["total", "rows"]));

    let one = json!({ "server": "fake", "tool": "rows", "detail": "full" });
    let one = meta.value("mcp_discover", one).await;
    assert_eq!(one["tools"], json!([full]));
}

#[tokio::test]
async fn discover_declares_the_types_of_the_tools_on_each_page() {
    let fakes = Fakes::new();
    let config = "[tools]\nresult_bytes_max = 1500\n".to_owned()
        + &fakes.server("fake", &["--rich"])
        + &fakes.server("other-one", &["--named", "odd.name"]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;

    let one = json!({ "server": "fake", "tool": "rows", "detail": "types" });
    let one = meta.value("mcp_discover", one).await;
    let entry = json!({ "tool": "rows", "server": "fake" });
    assert_eq!(one["tools"], json!([entry]), "the description is in the types: {one}");
    let types = one["types"].as_str().expect("a text");
    let (tools, helpers) = types.split_once("declare const console").expect("helpers");
    insta::assert_snapshot!(tools, @r#"
    declare const servers: {
      fake: {
        /** Reads rows of a table of the inventory. Each has a name and a size. */
        rows(args: {
          filter?: { name?: string };
          /** How many rows. (minimum 1, maximum 10000, default 3) */ n?: number;
          /** Is returned as it is. */ previous?: unknown;
          /** Which table. */ table: "parts" | "people";
          /** How many bytes more each row has. (minimum 0, default 0) */ width?: number;
        }): Promise<RowsOutput>;
      };
    };
    type RowsOutput = { rows: { [key: string]: any }[]; total: number };
    "#);
    assert!(helpers.contains("declare function sleep(ms: number): Promise<void>;"), "{helpers}");

    // Each page declares its own tools, and all pages declare all tools.
    let mut arguments = json!({ "server": "fake", "detail": "types", "limit": 100 });
    let (mut declared, mut n_pages) = (Vec::new(), 0);
    loop {
        let page = meta.value("mcp_discover", arguments.clone()).await;
        let types = page["types"].as_str().expect("a text");
        let names = each(&page, "tools", "tool");
        let methods = types.lines().filter_map(|line| {
            let name = line.strip_prefix("    ")?.split_once("(args")?.0;
            (!name.starts_with(' ')).then(|| name.trim_matches('"').to_owned())
        });
        assert_eq!(methods.collect::<Vec<_>>(), names, "{types}");
        assert!(types.len() < 1500 + 800, "{} bytes", types.len());
        declared.extend(names);
        n_pages += 1;
        match page.get("nextCursor") {
            Some(next) => arguments["cursor"] = next.clone(),
            None => break,
        }
    }
    assert_eq!(declared, tools_of(&daemon, "fake").await);
    assert!(n_pages > 1);

    let question = json!({ "query": "odd.name", "detail": "types", "limit": 1 });
    let found = meta.value("mcp_discover", question).await;
    assert!(found["tools"][0]["score"].is_number(), "{found}");
    let types = found["types"].as_str().expect("a text");
    assert!(
        types.contains("  \"other-one\": {\n") && types.contains("\"odd.name\"(args"),
        "{types}"
    );
    let none = json!({ "query": "zebra xylophone", "detail": "types" });
    let none = meta.value("mcp_discover", none).await;
    assert!(none.get("types").is_none(), "{none}");
    // Only tools have types.
    let servers = meta.value("mcp_discover", json!({ "detail": "types" })).await;
    assert!(servers["servers"].is_array() && servers.get("types").is_none(), "{servers}");
}

#[tokio::test]
async fn a_tool_is_found_by_its_purpose_with_a_score_and_a_confidence() {
    let fakes = Fakes::new();
    let config = fakes.server("plain", &[]) + &fakes.server("stock", &["--rich"]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;

    let found = meta.value("mcp_discover", json!({ "query": "rows of the inventory" })).await;
    let first = &found["tools"][0];
    assert_eq!((&first["server"], &first["tool"]), (&json!("stock"), &json!("rows")), "{found}");
    let tools = found["tools"].as_array().expect("tools");
    let scores: Vec<f64> =
        tools.iter().map(|tool| tool["score"].as_f64().expect("a score")).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    for tool in tools {
        let confidence = tool["confidence"].as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&confidence), "{tool}");
    }

    let question = json!({ "query": "count an execution", "server": "plain", "limit": 3 });
    let found = meta.value("mcp_discover", question).await;
    assert_eq!(found["tools"][0]["tool"], "count", "{found}");
    assert!(each(&found, "tools", "server").iter().all(|server| server == "plain"));
    assert_eq!(found["tools"].as_array().map(Vec::len), Some(3));
    let none = meta.value("mcp_discover", json!({ "query": "zebra xylophone" })).await;
    assert_eq!(none["tools"], json!([]), "{none}");
    assert!(none["message"].as_str().is_some_and(|text| text.contains("mcp_provision")));
}

#[tokio::test]
async fn pagination_returns_each_entry_once() {
    let fakes = Fakes::new();
    let servers: Vec<String> = (0..9).map(|n| format!("s{n}")).collect();
    let mut config = BOTH.to_owned() + &fakes.server("fake", &["--page", "5"]);
    for server in &servers {
        config += &fakes.server(server, &[]);
    }
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    let n_tools = tools_of(&daemon, "s0").await.len();

    let all =
        pages(&meta, "mcp_discover", &json!({ "server": "s0", "limit": 7 }), "tools", "tool").await;
    assert_eq!(all, tools_of(&daemon, "s0").await);
    let names = [&["fake".to_owned()], &servers[..]].concat();
    for (tool, list) in [("mcp_discover", "servers"), ("list_namespaces", "namespaces")] {
        assert_eq!(pages(&meta, tool, &json!({ "limit": 7 }), list, "name").await, names);
    }
    let all = pages(&meta, "list_tools", &json!({ "limit": 7 }), "tools", "id").await;
    assert_eq!(all.len(), 10 * n_tools);
    assert!(all.is_sorted_by(|a, b| a.split('/').next() <= b.split('/').next()), "{all:?}");

    let search = json!({ "query": "tool call answer", "limit": 7 });
    let mut found = pages(&meta, "search_tools", &search, "tools", "id").await;
    let n_found = found.len();
    assert!(n_found > 14, "{n_found}");
    found.sort();
    found.dedup();
    assert_eq!(found.len(), n_found, "each tool is found once");
}

#[tokio::test]
async fn a_cursor_is_valid_only_for_its_own_query_and_an_unchanged_catalog() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned() + &fakes.server("fake", &[]) + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    let next = async |tool: &str, arguments: &Value| {
        let page = meta.value(tool, arguments.clone()).await;
        page["nextCursor"]
            .as_str()
            .unwrap_or_else(|| panic!("{tool}: no further page: {page}"))
            .to_owned()
    };
    let with = |arguments: &Value, cursor: &str| {
        let mut arguments = arguments.clone();
        arguments["cursor"] = json!(cursor);
        arguments
    };
    let questions = [
        ("mcp_discover", json!({ "limit": 1 })),
        ("mcp_discover", json!({ "limit": 1, "server": "fake" })),
        ("mcp_discover", json!({ "limit": 1, "query": "call" })),
        ("mcp_discover", json!({ "limit": 1, "query": "call", "detail": "schema" })),
        ("search_tools", json!({ "limit": 1, "query": "call" })),
        ("list_tools", json!({ "limit": 1 })),
        ("list_tools", json!({ "limit": 1, "backend_name": "fake" })),
        ("list_namespaces", json!({ "limit": 1 })),
    ];
    let mut cursors = Vec::new();
    for (tool, arguments) in &questions {
        cursors.push(next(tool, arguments).await);
    }
    let refused = async |tool: &str, arguments: Value, reason: &str| {
        let error = meta.refused(tool, arguments).await;
        assert_eq!(
            (&error["code"], &error["data"]["code"]),
            (&json!(-32602), &json!("INVALID_CURSOR"))
        );
        let message = error["message"].as_str().expect("a text");
        assert!(
            message.starts_with("invalid cursor") && message.contains(reason),
            "{tool}: {message}"
        );
    };
    for (place, (tool, arguments)) in questions.iter().enumerate() {
        for (other, cursor) in cursors.iter().enumerate() {
            match other == place {
                true => drop(meta.value(tool, with(arguments, cursor)).await),
                false => refused(tool, with(arguments, cursor), "other arguments").await,
            }
        }
        let half = &cursors[place][..cursors[place].len() / 2];
        for garbage in ["x", "AAAA", half, "🦀"] {
            refused(tool, with(arguments, garbage), "").await;
        }
    }

    // From here on, the tools have changed.
    daemon.client("/servers/fake").call("flip_tools", json!({})).await;
    let one = json!({ "server": "fake", "tool": "extra_1" });
    until(async || meta.result("mcp_discover", one.clone()).await["isError"] != true).await;
    let listing = json!({ "server": "fake", "limit": 100 });
    until(async || {
        let found = meta.value("mcp_discover", listing.clone()).await;
        each(&found, "tools", "tool").contains(&"extra_1".to_owned())
    })
    .await;
    for ((tool, arguments), cursor) in questions.iter().zip(&cursors) {
        refused(tool, with(arguments, cursor), "changed").await;
        let new_cursor = next(tool, arguments).await;
        meta.value(tool, with(arguments, &new_cursor)).await;
    }
}

#[tokio::test]
async fn discover_names_a_server_that_does_not_start_and_finds_the_others() {
    let fakes = Fakes::new();
    let config = BOTH.to_owned() + &fakes.server("fake", &[]) + BROKEN;
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    for arguments in [json!({ "query": "count an execution" }), json!({ "server": "broken" })] {
        let found = meta.value("mcp_discover", arguments.clone()).await;
        let message = found["message"].as_str().expect("a text");
        assert!(message.contains("`broken`") && message.contains("/no"), "{message}");
        let is_search = arguments.get("query").is_some();
        assert_eq!(found["tools"][0]["tool"] == "count", is_search, "{found}");
    }
    let found = meta.value("search_tools", json!({ "query": "count an execution" })).await;
    assert_eq!(found["tools"][0]["id"], "fake/count");
    let error = meta.error("mcp_discover", json!({ "server": "broken", "tool": "x" })).await;
    assert_eq!(error["code"], "execution_failed");
    assert_eq!(error["details"]["reason"], "server_not_connected", "{error}");
}

#[tokio::test]
async fn the_error_for_an_unknown_server_or_tool_suggests_similar_ones() {
    let fakes = Fakes::new();
    let config =
        BOTH.to_owned() + &fakes.server("github", &[]) + &fakes.server("weather", &["--rich"]);
    let daemon = Daemon::with(config).ready();
    let meta = meta(&daemon).await;
    for (tool, arguments) in [
        ("mcp_discover", json!({ "server": "githup" })),
        ("mcp_discover", json!({ "server": "githup", "query": "x" })),
        ("mcp_discover", json!({ "server": "githup", "tool": "echo" })),
        ("list_tools", json!({ "backend_name": "githup" })),
        ("describe_tool", json!({ "tool_id": "githup/echo", "detail_level": "full" })),
    ] {
        let error = meta.error(tool, arguments).await;
        assert_eq!(error["code"], "no_backends", "{error}");
        assert_eq!(error["details"]["similarServers"], json!(["github"]));
        assert_eq!(error["details"]["availableServers"], json!(["github", "weather"]));
        assert!(
            error["message"].as_str().is_some_and(|text| text.contains("Did you mean `github`?"))
        );
        assert_eq!(error["op"], tool);
    }
    for (tool, arguments) in [
        ("mcp_discover", json!({ "server": "github", "tool": "ecko" })),
        ("describe_tool", json!({ "tool_id": "github/ecko", "detail_level": "schema" })),
        ("list_tool_examples", json!({ "tool_id": "github/ecko" })),
        ("run_tool", json!({ "tool_id": "github/ecko" })),
        ("mcp_call", call_of("github", "ecko", json!({}))),
    ] {
        let error = meta.error(tool, arguments).await;
        assert_eq!(error["code"], "tool_not_found", "{error}");
        assert_eq!(error["details"]["similarTools"][0], "github/echo");
    }
    // Another server has the tool, which metamcp knows once it has read that list.
    meta.value("mcp_discover", json!({ "server": "weather" })).await;
    let error = meta.error("mcp_call", call_of("github", "rows", json!({}))).await;
    assert_eq!(error["details"]["similarTools"][0], "weather/rows", "{error}");
}

#[tokio::test]
async fn tools_are_found_and_described_after_a_restart_without_running_servers() {
    let (fakes, cache) = (Fakes::new(), tempfile::tempdir().expect("a directory"));
    let config = BOTH.to_owned() + &fakes.server("one", &["--rich"]) + &fakes.server("two", &[]);
    let start = || Daemon::with(&*config).env("CACHE_DIRECTORY", cache.path()).ready();
    let questions = [
        ("mcp_discover", json!({ "query": "count an execution" })),
        ("mcp_discover", json!({ "server": "two", "detail": "schema", "limit": 100 })),
        ("mcp_discover", json!({ "server": "one", "tool": "rows", "detail": "full" })),
        ("search_tools", json!({ "query": "rows of a table" })),
        ("list_tools", json!({ "limit": 100 })),
        ("list_namespaces", json!({})),
        ("describe_tool", json!({ "tool_id": "one/rows", "detail_level": "full" })),
        ("list_tool_examples", json!({ "tool_id": "one/rows" })),
    ];
    let answers = async |meta: &MetaClient| {
        let mut answers = Vec::new();
        for (tool, arguments) in &questions {
            answers.push(meta.value(tool, arguments.clone()).await);
        }
        answers
    };
    let mut daemon = start();
    let before = answers(&meta(&daemon).await).await;
    assert!(daemon.stop().success());
    let pids = || [fakes.pids("one"), fakes.pids("two")];
    let n_before = pids();

    let daemon = start();
    let meta = meta(&daemon).await;

    assert_eq!(answers(&meta).await, before);
    let servers = meta.value("mcp_discover", json!({})).await;
    assert_eq!(each(&servers, "servers", "source"), ["cache", "cache"]);
    let unknown =
        meta.error("describe_tool", json!({ "tool_id": "one/rovs", "detail_level": "full" }));
    for server in ["one", "two"] {
        let status = server_status(&daemon, server).await;
        assert_eq!((&status["pid"], &status["connections"]), (&Value::Null, &json!(0)), "{status}");
    }
    assert_eq!(pids(), n_before, "no process was started");
    assert_eq!(unknown.await["details"]["similarTools"][0], "one/rows");
    let called = meta.value("mcp_call", call_of("two", "echo", json!({ "value": 1 }))).await;
    assert_eq!(called, json!({ "value": 1 }));
}
