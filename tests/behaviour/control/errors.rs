//! Errors of the control interface: each has a stable name, a suggestion and a context.

use serde_json::{Value, json};

use super::assert_complete;
use crate::{
    harness::{daemon::Daemon, fake::Fakes, operator::Operator},
    until,
};

/// Returns every method with a valid value for each parameter.
fn methods() -> Vec<(&'static str, Value)> {
    let complete = json!({
        "server": "one", "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "subject", "value": "A" }, "context": {},
    });
    vec![
        ("servers/list", json!({ "memory": true })),
        (
            "tools/list",
            json!({ "server": "one", "includeSchema": true, "schemaDepth": 1, "schemaBudget": 9, "report": true }),
        ),
        ("tools/info", json!({ "name": "one/echo", "path": "value", "schemaDepth": 1 })),
        (
            "tools/call",
            json!({ "name": "one/echo", "arguments": { "value": 1 }, "timeout": 9000, "fields": ["a"] }),
        ),
        ("tools/validate", json!({ "name": "one/echo", "arguments": {} })),
        (
            "tools/grep",
            json!({ "pattern": "x", "includeSchema": true, "schemaDepth": 1, "schemaBudget": 9, "report": true, "limit": 1 }),
        ),
        (
            "tools/search",
            json!({ "query": "x", "server": "one", "strategy": "bm25", "limit": 1, "explain": true }),
        ),
        ("resources/list", json!({ "server": "one", "report": true })),
        ("resources/read", json!({ "server": "one", "uri": "fake:///one" })),
        ("prompts/list", json!({ "server": "one", "report": true })),
        (
            "prompts/get",
            json!({ "server": "one", "name": "greet", "arguments": { "subject": "Ada" } }),
        ),
        ("completions/complete", complete),
        ("auth/status", json!({ "server": "one" })),
        ("daemon/status", json!({ "memory": true })),
        ("config/reload", json!({ "configPath": "/no/such/file" })),
        ("daemon/stop", json!({})),
    ]
}

/// The parameters that are required, with exceptions in [`is_required`].
const REQUIRED: [&str; 7] = ["name", "pattern", "query", "uri", "ref", "argument", "server"];

/// Returns whether `parameter` of `method` is required.
fn is_required(method: &str, parameter: &str) -> bool {
    let may_lack_server = ["list", "status", "search"].iter().any(|end| method.ends_with(end));
    REQUIRED.contains(&parameter) && !(parameter == "server" && may_lack_server)
}

#[tokio::test]
async fn the_error_for_a_missing_unknown_or_mistyped_parameter_names_it() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let mut operator = Operator::at(&daemon).await;
    for (method, params) in methods() {
        let mut unknown = params.clone();
        unknown["memroy"] = json!(1);
        let error = operator.error(method, unknown).await;
        assert_complete(&error);
        assert_eq!(error["data"]["code"], "INVALID_PARAMS", "{error}");
        assert_eq!(error["data"]["context"]["parameter"], "memroy");
        assert!(error["data"]["suggestion"].as_str().expect("a text").contains(method));
        for name in params.as_object().expect("an object").keys() {
            let mut mistyped = params.clone();
            // No parameter accepts this value.
            mistyped[name] = json!([[7]]);
            let error = operator.error(method, mistyped).await;
            assert_complete(&error);
            assert_eq!(error["code"], -32602);
            assert_eq!(error["data"]["context"]["parameter"], json!(name), "{method}: {error}");
            if is_required(method, name) {
                let mut without = params.clone();
                without.as_object_mut().expect("an object").remove(name);
                let error = operator.error(method, without).await;
                assert_complete(&error);
                assert_eq!(error["data"]["code"], "MISSING_PARAMETER", "{method}: {error}");
                assert_eq!(error["data"]["context"]["parameter"], json!(name));
            }
        }
        for params in [json!([]), json!(7)] {
            assert_complete(&operator.error(method, params).await);
        }
    }
}

#[tokio::test]
async fn an_invalid_control_request_is_answered_with_an_explained_error() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();
    let mut operator = Operator::at(&daemon).await;
    let oversized = format!("{{\"x\":\"{}\"}}\n", "x".repeat(4 << 20));
    for (line, code, name) in [
        ("nonsense\n", -32700, "PARSE_ERROR"),
        ("{\"jsonrpc\":\"2.0\",\n", -32700, "PARSE_ERROR"),
        ("\u{fffd}\0\n", -32700, "PARSE_ERROR"),
        ("7\n", -32600, "INVALID_REQUEST"),
        ("[]\n", -32600, "INVALID_REQUEST"),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"servers/list\"}]\n",
            -32600,
            "INVALID_REQUEST",
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n", -32600, "INVALID_REQUEST"),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"servers/list\"}\n", -32600, "INVALID_REQUEST"),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"servers/lits\"}\n",
            -32601,
            "METHOD_NOT_FOUND",
        ),
        (oversized.as_str(), -32600, "LINE_TOO_LONG"),
    ] {
        operator.send(line).await;
        let answer = operator.next().await.expect("an answer");
        assert_complete(&answer["error"]);
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]["code"]),
            (&json!(code), &json!(name))
        );
        assert_eq!(answer["id"].is_null(), name != "METHOD_NOT_FOUND", "{answer}");
    }
    assert!(
        operator.result("servers/list", json!({})).await.is_array(),
        "the connection still works"
    );
}

#[tokio::test]
async fn each_failed_request_gets_a_complete_error_with_its_code() {
    let fakes = Fakes::new();
    let config = "[pool]\nsize = 1\n[breaker]\nfailure_threshold = 3\n".to_owned()
        + &fakes.server("one", &[])
        + &fakes.server("two", &[])
        + "[servers.broken]\ncommand = \"/no/such/program\"\n"
        + "[servers.tripped]\ncommand = \"/no/such/program\"\n";
    let daemon = Daemon::with(config).ready();
    let mut operator = Operator::at(&daemon).await;
    // The tools of this server stay known while the pool has no room for its connection.
    operator.result("tools/list", json!({ "server": "one" })).await;
    let name = |name: &str| json!({ "name": name });
    let server = |name: &str| json!({ "server": name });
    let rpc_error = |code: i64| json!({ "name": "one/rpc_error", "arguments": { "code": code, "message": "no" } });
    let slow_call = json!({ "name": "one/hold", "arguments": { "key": "never" }, "timeout": 50 });
    for (method, params, code) in [
        ("tools/call", name("one/ehco"), "TOOL_NOT_FOUND"),
        ("tools/info", name("one/ehco"), "TOOL_NOT_FOUND"),
        ("tools/validate", name("one/ehco"), "TOOL_NOT_FOUND"),
        ("tools/call", name("oen/echo"), "SERVER_NOT_FOUND"),
        ("tools/info", name("oen:echo"), "SERVER_NOT_FOUND"),
        ("tools/call", name("echo"), "INVALID_FORMAT"),
        ("tools/call", name(""), "INVALID_FORMAT"),
        ("tools/call", name("one/echo"), "INVALID_ARGUMENTS"),
        ("tools/call", slow_call, "TIMEOUT"),
        ("tools/call", rpc_error(-32603), "SERVER_ERROR"),
        ("tools/call", rpc_error(-32602), "SERVER_REFUSED"),
        ("tools/call", json!({ "name": "one/exit", "arguments": { "code": 1 } }), "SERVER_EXITED"),
        ("tools/list", server("oen"), "SERVER_NOT_FOUND"),
        ("tools/search", json!({ "query": "x", "server": "oen" }), "SERVER_NOT_FOUND"),
        ("resources/list", server("oen"), "SERVER_NOT_FOUND"),
        ("prompts/list", server("oen"), "SERVER_NOT_FOUND"),
        ("auth/status", server("oen"), "SERVER_NOT_FOUND"),
        ("resources/read", json!({ "server": "oen", "uri": "x" }), "SERVER_NOT_FOUND"),
        ("prompts/get", json!({ "server": "oen", "name": "x" }), "SERVER_NOT_FOUND"),
        ("tools/grep", json!({ "pattern": "a(" }), "PATTERN_SYNTAX"),
        ("config/reload", json!({ "configPath": "relative.toml" }), "INVALID_PARAMS"),
        ("config/reload", json!({ "configPath": "/no/such/file" }), "CONFIG_INVALID"),
        ("config/reload", json!({ "configPath": "/dev/zero" }), "INVALID_PARAMS"),
        ("tools/list", server("broken"), "SERVER_NOT_CONNECTED"),
    ] {
        let error = operator.error(method, params.clone()).await;
        assert_complete(&error);
        assert_eq!(error["data"]["code"], code, "{method} {params}: {error}");
    }
    until(async || {
        let error = operator.error("tools/call", name("tripped/x")).await;
        assert_complete(&error);
        let code = &error["data"]["code"];
        assert!(code == "SERVER_NOT_CONNECTED" || code == "SERVER_TRIPPED", "{error}");
        // A pause and a failure have different codes.
        let is_tripped = code == "SERVER_TRIPPED";
        assert_eq!(error["code"], if is_tripped { -32010 } else { -32012 });
        assert_eq!(error["data"]["context"]["retryAfterMs"].is_u64(), is_tripped, "{error}");
        is_tripped
    })
    .await;
    let mut other = Operator::at(&daemon).await;
    let held = json!({ "name": "one/hold", "arguments": { "key": "a" } });
    other.request(json!(1), "tools/call", held).await;
    // The first held call is the one that timed out.
    until(async || fakes.n_events("one", "held") == 2).await;
    let call = json!({ "name": "two/echo", "arguments": { "value": 1 }, "timeout": 300 });
    let error = operator.error("tools/call", call).await;
    assert_complete(&error);
    assert_eq!(error["data"]["code"], "POOL_EXHAUSTED", "{error}");
    assert_eq!(error["code"], -32011, "a full pool is temporary");
}
