//! `mcp_execute` and `execute_code`: scripts that call tools.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{BOTH, meta};
use crate::{
    all,
    harness::{
        daemon::Daemon,
        fake::{Fakes, Upstream},
        meta_client::MetaClient,
        modern::{Modern, retry},
    },
    until,
};

fn code(code: &str) -> Value {
    json!({ "code": code })
}

fn accept(_: &str, _: &Value) -> Value {
    json!({ "action": "accept", "content": { "name": "me" } })
}

/// Returns the value of a script.
async fn value(meta: &MetaClient, script: &str) -> Value {
    meta.value("mcp_execute", code(script)).await["value"].clone()
}

/// Returns the sandboxes of a service.
fn n_sandboxes(daemon: &Daemon) -> usize {
    let children = format!("/proc/{0}/task", daemon.pid());
    let threads = std::fs::read_dir(children).expect("it runs").flatten();
    let pids = threads.flat_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    let is_sandbox = |pid: &String| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"sandbox")
    };
    pids.filter(is_sandbox).count()
}

#[tokio::test]
async fn a_script_combines_the_tools_of_several_servers_and_returns_only_its_value() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(
        BOTH.to_owned() + &fakes.server("one", &["--rich"]) + &fakes.server("two-b", &["--rich"]),
    )
    .ready();
    let meta = meta(&daemon).await;

    let script = r#"
        const [few, many] = await Promise.all([
            servers.one.rows({ table: "parts", n: 1 }),
            servers["two-b"].call("rows", { table: "people", n: 3 }),
        ]);
        console.log("rows", few.rows.length);
        return many.rows.map(row => row.name).concat(few.total);
    "#;
    let outcome = meta.value("mcp_execute", code(script)).await;
    assert_eq!(outcome["value"].as_array().map(Vec::len), Some(4), "{outcome}");
    assert_eq!(outcome["output"], "rows 1\n");

    let arguments = json!({ "language": "javascript", "code": "console.log('a'); return null" });
    let outcome = meta.value("execute_code", arguments).await;
    assert_eq!((&outcome["value"], &outcome["stdout"]), (&Value::Null, &json!("a\n")));
    assert!(outcome["durationMs"].is_u64(), "{outcome}");
}

#[tokio::test]
async fn a_script_searches_describes_and_chains_tools() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("one", &["--rich"])).ready();
    let meta = meta(&daemon).await;
    let found = value(
        &meta,
        "const [found] = await searchTools('rows of a table', { server: 'one', limit: 1 });
         const described = await describeTool(found.server, found.tool);
         const args = { table: 'parts', n: 1 };
         const chain = await runChain([{ tool_id: 'one/rows', args }, { tool_id: 'one/tool_error' }]);
         return [found.tool, described.inputSchema.required, chain.results.length, chain.error.code]",
    );
    assert_eq!(found.await, json!(["rows", ["table"], 2, "chain_step_failed"]));
}

#[tokio::test]
async fn a_failed_call_is_an_exception_with_code_server_and_tool() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &["--rich"])).ready();
    let meta = meta(&daemon).await;
    let caught = value(
        &meta,
        "const seen = [];
         for (const [server, tool, args] of [['one', 'tool_error', {}], ['one', 'rows', {}], ['one', 'row', {}], ['on', 'rows', {}]])
           try { await servers[server][tool](args) } catch (error) { seen.push([error.name, error.code, error.server, error.tool]) }
         return seen",
    );
    let expected = json!([
        ["ToolError", "execution_failed", "one", "tool_error"],
        ["ToolError", "validation_input", "one", "rows"],
        ["ToolError", "tool_not_found", "one", "row"],
        ["ToolError", "no_backends", "on", "rows"],
    ]);
    assert_eq!(caught.await, expected);

    let script = "const a = 1;\n  await servers.one.tool_error({});";
    let error = meta.error("mcp_execute", code(script)).await;
    assert_eq!((&error["details"]["line"], &error["details"]["column"]), (&json!(2), &json!(21)));
    assert_eq!(error["tool_id"], "one/tool_error");
    assert_eq!(error["code"], "execution_failed");
}

#[tokio::test]
async fn types_are_removed_and_every_place_is_that_of_the_code_as_written() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &["--rich"])).ready();
    let meta = meta(&daemon).await;
    let script = "interface Row { name: string }\nconst first = (rows: Row[]): string => rows[0]!.name as string;\nreturn first([{ name: 'a' }])";
    assert_eq!(value(&meta, script).await, "a");
    for (script, place) in [
        ("const a: number = 1;\n/* é */ (a as any).b.c", (2, 10)),
        ("type A = string;\nenum B { C }", (2, 1)),
    ] {
        let error = meta.error("mcp_execute", code(script)).await;
        assert_eq!(error["code"], "script_failed", "{error}");
        let found = (&error["details"]["line"], &error["details"]["column"]);
        assert_eq!(found, (&json!(place.0), &json!(place.1)), "{error}");
    }
}

#[tokio::test]
async fn each_limit_of_a_script_is_a_typed_error_with_its_value() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let meta = meta(&daemon).await;
    let long = "x".repeat(51_201);
    for (arguments, name, limit) in [
        (code(&long), "code", json!(51_200)),
        (code("for (;;) console.log('x'.repeat(1e6))"), "output", json!(10_485_760)),
        (code("return 'x'.repeat(1 << 29).length"), "memory", json!(67_108_864)),
        (code("for (;;) await servers.one.whoami()"), "tool_calls", json!(64)),
        (code("await sleep(30_001)"), "sleep", json!(30_000)),
        (code("for (;;) await sleep(0)"), "operations", json!(10_000)),
        (json!({ "code": "for (;;);", "timeout_ms": 100 }), "timeout_ms", json!(100)),
    ] {
        let error = meta.error("mcp_execute", arguments).await;
        let expected = if name == "timeout_ms" { "timeout" } else { "limit_exceeded" };
        assert_eq!(error["code"], expected, "{name}: {error}");
        assert_eq!(error["details"]["limit"], name, "{error}");
        assert_eq!(error["details"]["value"], limit, "{error}");
    }
    until(async || n_sandboxes(&daemon) == 0).await;
}

#[tokio::test]
async fn the_calls_of_a_script_are_told_as_progress_until_it_reports_its_own() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let meta = meta(&daemon).await;
    let script = "await servers.one.whoami(); progress(7, 9, 'half'); await servers.one.whoami()";
    let mut stream = meta.stream("mcp_execute", code(script), &json!("t")).await;
    let (notices, answer) = meta.last("mcp_execute", &mut stream).await;
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let told: Vec<_> = notices.iter().map(|notice| notice["params"].clone()).collect();
    let expected = [
        json!({ "progressToken": "t", "progress": 1.0, "message": "one/whoami" }),
        json!({ "progressToken": "t", "progress": 7.0, "total": 9.0, "message": "half" }),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_cancelled_script_ends_with_its_sandbox_and_its_calls() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let client = daemon.client("/meta").initialized().await;
    let meta = MetaClient::at(client.clone()).await;
    let script = "await servers.one.hold({ key: 'k' })";
    let mut stream = meta.stream("mcp_execute", code(script), &json!("t")).await;
    assert_eq!(stream.message().await["params"]["message"], "one/hold");
    let one = daemon.client("/servers/one");
    one.call("held", json!({ "at_least": 1 })).await;

    client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;

    one.call("seen", json!({ "cancelled": 1 })).await;
    until(async || n_sandboxes(&daemon) == 0).await;
}

#[tokio::test]
async fn scripts_of_several_clients_run_at_once_and_nothing_stays() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let meta = meta(&daemon).await;
    let values = all((0..12).map(|n| {
        let meta = &meta;
        async move { value(meta, &format!("await servers.one.whoami(); return {n}")).await }
    }));
    let expected: Vec<Value> = (0..12).map(|n| json!(n)).collect();
    assert_eq!(values.await, expected);
    until(async || n_sandboxes(&daemon) == 0).await;
}

#[tokio::test]
async fn a_large_value_is_a_preview_from_which_the_client_reads_on() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(BOTH.to_owned() + &fakes.server("one", &[])).ready();
    let meta = meta(&daemon).await;
    for (tool, more) in [("mcp_execute", json!({})), ("execute_code", json!({ "language": "js" }))]
    {
        let mut arguments = more.clone();
        arguments["code"] = json!("return Array.from({ length: 20000 }, (_, n) => n)");
        let result = meta.result(tool, arguments).await;
        let size = &result["structuredContent"]["preview"];
        let mut next = more;
        (next["code"], next["cursor"]) = (json!(""), size["nextCursor"].clone());
        let page = meta.result(tool, next).await;
        assert_ne!(page["isError"], true, "{page}");
        assert!(
            page["content"][0]["text"].as_str().is_some_and(|text| text.len() > 1000),
            "{page}"
        );
    }
}

#[tokio::test]
async fn code_is_not_listed_where_the_operator_disables_it() {
    let fakes = Fakes::new();
    let daemon =
        Daemon::with("[execute]\nenabled = false\n".to_owned() + &fakes.server("one", &[]));
    let daemon = daemon.ready();
    let client = daemon.client("/meta");
    assert!(!super::listed(&client).await.contains(&"mcp_execute".to_owned()));
    // A model may know it from elsewhere.
    let answer = client.tool("mcp_execute", code("return 1")).await.answer();
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["details"]["reason"], "execution_unavailable", "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("execute.enabled")));
}

#[tokio::test]
async fn a_legacy_client_answers_the_question_of_a_call_in_a_script() {
    let fakes = Fakes::new();
    let config = fakes.server("old", &[])
        + "sharing = \"session\"\n"
        + &fakes.server("new", &["--era", "modern"]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/meta").initialized_with(json!({ "elicitation": {} })).await;
    let meta = MetaClient::at(client.clone()).await;
    for server in ["old", "new"] {
        let script = format!(
            "const asked = await servers.{server}.ask({{ method: 'elicitation/create', params: {{ message: 'Who?' }} }});
             return asked.result.content.name"
        );
        let mut stream = meta.stream("mcp_execute", code(&script), &json!("t")).await;
        assert_eq!(stream.message().await["params"]["message"], format!("{server}/ask"));
        let question = stream.message().await;
        assert_eq!(question["params"]["message"], "Who?", "{question}");
        client.respond(&question["id"], accept("", &json!({}))).await;
        let (_, answer) = meta.last("mcp_execute", &mut stream).await;
        assert_eq!(answer["result"]["structuredContent"]["value"], "me", "{answer}");
    }
}

#[tokio::test]
async fn scripts_that_wait_for_a_person_take_no_place_and_no_process() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &[]) + &fakes.server("new", &["--era", "modern"]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/meta").initialized_with(json!({ "elicitation": {} })).await;
    let meta = MetaClient::at(client.clone()).await;
    let mut waiting = Vec::new();
    for n in 0..9 {
        let script = format!(
            "await servers.one.count({{ key: '{n}' }});
             const asked =
                 await servers.new.ask({{ method: 'elicitation/create', params: {{ message: '{n}' }} }});
             return asked.result.content.name"
        );
        let mut stream = meta.stream("mcp_execute", code(&script), &json!("t")).await;
        let question = loop {
            let message = stream.message().await;
            if message["method"] == "elicitation/create" {
                break message;
            }
        };
        waiting.push((stream, question));
    }
    until(async || n_sandboxes(&daemon) == 0).await;
    let other = self::meta(&daemon).await;
    assert_eq!(value(&other, "return 1").await, 1, "another client is not in their way");

    for (mut stream, question) in waiting {
        client.respond(&question["id"], accept("", &json!({}))).await;
        let (_, answer) = meta.last("mcp_execute", &mut stream).await;
        assert_eq!(answer["result"]["structuredContent"]["value"], "me", "{answer}");
    }
    let seen = daemon.client("/servers/one").call("seen", json!({})).await;
    let executions = seen["executions"].as_object().expect("counts");
    assert_eq!(executions.len(), 9, "{executions:?}");
    assert!(executions.values().all(|n| *n == 1), "{executions:?}");
}

#[tokio::test]
async fn the_time_of_a_person_does_not_count_if_two_calls_ask_over_one_pipe() {
    let fakes = Fakes::new();
    let config = fakes.server("old", &[]) + "sharing = \"session\"\n";
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/meta").initialized_with(json!({ "elicitation": {} })).await;
    let meta = MetaClient::at(client.clone()).await;
    let script = "const ask = () =>
            servers.old.ask({ method: 'elicitation/create', params: { message: 'Who?' } });
        return (await Promise.all([ask(), ask()])).map(asked => asked.result.content.name)";
    let mut arguments = code(script);
    arguments["timeout_ms"] = json!(1000);
    let mut stream = meta.stream("mcp_execute", arguments, &json!("t")).await;
    let mut questions = Vec::new();
    while questions.len() < 2 {
        let message = stream.message().await;
        if message["method"] == "elicitation/create" {
            questions.push(message);
        }
    }
    // No process: the clock stands still.
    until(async || n_sandboxes(&daemon) == 0).await;
    for question in questions {
        client.respond(&question["id"], accept("", &json!({}))).await;
    }
    let (_, answer) = meta.last("mcp_execute", &mut stream).await;
    let names = &answer["result"]["structuredContent"]["value"];
    assert_eq!(names, &json!(["me", "me"]), "{answer}");
}

#[tokio::test]
async fn answers_without_the_state_of_a_script_do_not_run_it_again() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &[]) + &fakes.server("new", &["--era", "modern"]);
    let daemon = Daemon::with(config).ready();
    let modern = Modern::new(daemon.client("/meta")).capabilities(json!({ "elicitation": {} }));
    let ask = async |params| modern.request(json!(1), "tools/call", params).await.answer();
    let asked = ask(asking("new")).await["result"].clone();
    let answered = retry(&asking("new"), &asked, accept);
    let state = asked["requestState"].as_str().expect("a state");
    let states = [json!(&state[1..]), json!("foo"), json!(""), json!(5), json!(null)];
    let wrong = states.into_iter().map(|state| {
        let mut params = answered.clone();
        params["requestState"] = state;
        params
    });
    let mut without = answered.clone();
    without.as_object_mut().expect("an object").remove("requestState");
    for params in wrong.chain([without]) {
        let refused = ask(params).await["result"].clone();
        let error = &refused["structuredContent"]["error"];
        assert_eq!(error["code"], "validation_input", "{refused}");
    }
    let again = ask(answered).await;
    assert_eq!(again["result"]["structuredContent"]["value"], "me", "{again}");
    check_executions(&daemon).await;
}

/// A script that counts, asks, and counts again.
fn asking(server: &str) -> Value {
    let script = format!(
        "await servers.one.count({{ key: 'before' }});
         const [asked] = await Promise.all([
             servers.{server}.ask({{ method: 'elicitation/create', params: {{ message: 'Who?' }} }}),
             servers.one.count({{ key: 'beside' }}),
         ]);
         await servers.one.count({{ key: 'after' }});
         return asked.result.content.name"
    );
    json!({ "name": "mcp_execute", "arguments": { "code": script } })
}

/// Asserts that each count of the script ran once.
async fn check_executions(daemon: &Daemon) {
    let seen = daemon.client("/servers/one").call("seen", json!({})).await;
    let expected = json!({ "before": 1, "beside": 1, "after": 1 });
    assert_eq!(seen["executions"], expected);
}

#[tokio::test]
async fn a_script_of_a_modern_client_waits_for_the_answer_and_repeats_nothing() {
    for server in ["old", "new"] {
        let fakes = Fakes::new();
        let config = fakes.server("one", &[])
            + &fakes.server("old", &[])
            + "sharing = \"session\"\n"
            + &fakes.server("new", &["--era", "modern"]);
        let daemon = Daemon::with(config).ready();
        let modern = Modern::new(daemon.client("/meta")).capabilities(json!({ "elicitation": {} }));
        let ask = async |params| modern.request(json!(1), "tools/call", params).await.answer();

        let asked = ask(asking(server)).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let questions = asked["inputRequests"].as_object().expect("questions");
        assert_eq!(questions.values().next().expect("one")["params"]["message"], "Who?");
        until(async || n_sandboxes(&daemon) == 0).await;

        let mut other = retry(&asking(server), &asked, accept);
        other["arguments"]["code"] = json!("return 1");
        assert_eq!(ask(other).await["result"]["isError"], true, "the state is of this script");
        let again = ask(retry(&asking(server), &asked, accept)).await;
        assert_eq!(again["result"]["structuredContent"]["value"], "me", "{again}");
        assert_eq!(again["result"]["resultType"], "complete", "{again}");
        check_executions(&daemon).await;
        let late = ask(retry(&asking(server), &asked, accept)).await;
        assert_eq!(late["result"]["isError"], true, "the script has ended: {late}");
    }
}

#[tokio::test]
async fn a_suspended_script_survives_a_kill_of_the_service() {
    let one = Upstream::start(&[]);
    let new = Upstream::start(&["--era", "modern"]);
    let config = one.server("one", "") + &new.server("new", "");
    let mut daemon = Daemon::with(config).keep_sockets().ready();
    let params = asking("new");
    let ask = async |daemon: &Daemon, params| {
        let modern = Modern::new(daemon.client("/meta")).capabilities(json!({ "elicitation": {} }));
        modern.request(json!(1), "tools/call", params).await.answer()["result"].clone()
    };
    let asked = ask(&daemon, params.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");

    daemon.signal(Signal::KILL);
    daemon.wait_exit();
    daemon.restart();

    let ended = ask(&daemon, retry(&params, &asked, accept)).await;
    assert_eq!(ended["structuredContent"]["value"], "me", "{ended}");
    check_executions(&daemon).await;
}

#[tokio::test]
async fn the_question_of_a_legacy_server_ends_with_the_process_that_held_its_call() {
    let fakes = Fakes::new();
    let one = Upstream::start(&[]);
    let config = one.server("one", "") + &fakes.server("old", &[]) + "sharing = \"session\"\n";
    let mut daemon = Daemon::with(config).keep_sockets().ready();
    let params = asking("old");
    let ask = async |daemon: &Daemon, params| {
        let modern = Modern::new(daemon.client("/meta")).capabilities(json!({ "elicitation": {} }));
        modern.request(json!(1), "tools/call", params).await.answer()["result"].clone()
    };
    let asked = ask(&daemon, params.clone()).await;
    daemon.signal(Signal::KILL);
    daemon.wait_exit();
    daemon.restart();

    let ended = ask(&daemon, retry(&params, &asked, accept)).await;
    let error = &ended["structuredContent"]["error"];
    assert_eq!(error["code"], "outcome_unknown", "{ended}");
    assert_eq!(error["tool_id"], "old/ask", "{ended}");
}
