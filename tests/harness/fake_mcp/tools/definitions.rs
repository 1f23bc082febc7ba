//! The table of tools.

use serde_json::{Value, json};

use crate::{fake::Fake, tasks};

/// The annotations of tools.
const HINTS: &[(&str, &str)] = &[
    ("count_idempotent", r#"{"idempotentHint":true,"readOnlyHint":false}"#),
    ("read_only", r#"{"readOnlyHint":true}"#),
];

/// The arguments of `count` and similar tools.
const COUNT: &str = r#"{"key":{"type":"string"},"then":{"type":"string","enum":["answer","hold","exit","exit_first","tell_and_exit"],"description":"The action after the count; `exit_first` answers if the key was executed before, `tell_and_exit` reports progress first."}}"#;

/// The tool with all optional members.
const RICH: &str = r#"{"name":"rows","title":"Rows of a table","description":"Reads rows of a table of the inventory.\n\nEach has a name and a size.","inputSchema":{"type":"object","properties":{"table":{"type":"string","enum":["parts","people"],"description":"Which table."},"n":{"type":"integer","minimum":1,"maximum":10000,"default":3,"description":"How many rows."},"width":{"type":"integer","minimum":0,"default":0,"description":"How many bytes more each row has."},"filter":{"type":"object","properties":{"name":{"type":"string"}},"additionalProperties":false},"previous":{"description":"Is returned as it is."}},"required":["table"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"total":{"type":"integer"},"rows":{"type":"array","items":{"type":"object"}}},"required":["total","rows"]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}"#;

/// Name, description, properties and required arguments of every tool.
const TOOLS: &[(&str, &str, &str, &[&str])] = &[
    (
        "ask",
        "Sends a request to the client and returns its whole answer.",
        r#"{"method":{"type":"string"},"params":{},"on":{"type":"string","enum":["post","get"]}}"#,
        &["method"],
    ),
    ("ask_both", "Asks the client for a name and for its roots at once.", "{}", &[]),
    ("ask_twice", "Asks the client for a name, and then for another one.", "{}", &[]),
    ("bytes", "Returns a text of n bytes.", r#"{"n":{"type":"integer"}}"#, &["n"]),
    (
        "change",
        "Adds an item to a list and notifies the listening clients.",
        r#"{"list":{"type":"string","enum":["tools","prompts","resources"]}}"#,
        &["list"],
    ),
    (
        "crash_at",
        "Writes the first bytes of its answer and exits.",
        r#"{"byte":{"type":"integer"}}"#,
        &["byte"],
    ),
    ("count", "Counts an execution of a key, then answers with the count.", COUNT, &["key"]),
    ("count_idempotent", "As `count`, but may be repeated.", COUNT, &["key"]),
    ("duplicate", "Answers twice.", "{}", &[]),
    ("echo", "Returns `value`, byte for byte.", r#"{"value":{}}"#, &["value"]),
    (
        "emit",
        "Sends `message` verbatim to all listening clients, then answers.",
        r#"{"message":{"type":"string"}}"#,
        &["message"],
    ),
    ("end_listens", "Ends all subscriptions with their results.", "{}", &[]),
    ("env", "Returns an environment variable or null.", r#"{"name":{"type":"string"}}"#, &["name"]),
    ("environ", "Returns the names of all environment variables.", "{}", &[]),
    ("exit", "Exits without answering.", r#"{"code":{"type":"integer"}}"#, &["code"]),
    ("flip_tools", "Adds a tool and sends notifications/tools/list_changed.", "{}", &[]),
    (
        "grandchild",
        "Starts a process that sleeps for ever, and returns its id.",
        r#"{"inherit":{"type":"boolean","description":"Let it keep the pipes of the server open."},"detach":{"type":"boolean","description":"Let it leave the session of the server and ignore SIGTERM."}}"#,
        &[],
    ),
    (
        "held",
        "Returns the held calls, once there are at least `at_least`.",
        r#"{"at_least":{"type":"integer"}}"#,
        &[],
    ),
    (
        "hold",
        "Answers when `release` is called with the same key, or once the file `gate` exists.",
        r#"{"key":{"type":"string"},"gate":{"type":"string"}}"#,
        &["key"],
    ),
    ("late", "Answers only after it has been cancelled.", r#"{"key":{"type":"string"}}"#, &["key"]),
    (
        "log",
        "Sends a log message on the stream of the call, or else to all listening clients.",
        r#"{"level":{"type":"string"},"data":{},"related":{"type":"boolean"}}"#,
        &["level", "data"],
    ),
    (
        "meet",
        "Answers when n calls have arrived: all of them, the last one first.",
        r#"{"n":{"type":"integer"},"value":{}}"#,
        &["n", "value"],
    ),
    (
        "noise",
        "Writes lines that are not JSON to standard output, then answers.",
        r#"{"lines":{"type":"integer"}}"#,
        &["lines"],
    ),
    (
        "pings",
        "Sets whether `ping` is answered from now on.",
        r#"{"mode":{"type":"string","enum":["answer","never"]}}"#,
        &["mode"],
    ),
    (
        "progress",
        "Reports progress for each step, then answers; `n` distinguishes calls, `together` waits for that many calls.",
        r#"{"steps":{"type":"integer"},"n":{"type":"integer"},"together":{"type":"integer"}}"#,
        &["steps"],
    ),
    (
        "raw",
        "Answers with `result` as the verbatim text of the result.",
        r#"{"result":{"type":"string"}}"#,
        &["result"],
    ),
    ("read_only", "As `count`, but says that it changes nothing.", COUNT, &["key"]),
    ("release", "Answers all calls held under a key.", r#"{"key":{"type":"string"}}"#, &["key"]),
    (
        "routed",
        "Returns its arguments; clients must repeat some of them in headers.",
        r#"{"region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"},"urgent":{"type":"boolean","x-mcp-header":"Urgent"},"at":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}},"text":{"type":"string"}}"#,
        &[],
    ),
    (
        "rpc_error",
        "Answers with a JSON-RPC error.",
        r#"{"code":{"type":"integer"},"message":{"type":"string"},"data":{}}"#,
        &["code", "message"],
    ),
    (
        "seen",
        "Returns the received messages, once each count is at least as high.",
        r#"{"cancelled":{"type":"integer"},"meeting":{"type":"integer"},"counts":{"type":"object","description":"As in `/control/log`: `requests.ping`, `levels`, `executions.KEY` …"}}"#,
        &[],
    ),
    (
        "stderr",
        "Writes lines to standard error, then answers.",
        r#"{"lines":{"type":"integer"},"text":{"type":"string"}}"#,
        &["lines"],
    ),
    ("tool_error", "Answers with isError.", "{}", &[]),
    (
        "touch",
        "Notifies the subscribers of a resource that it was updated.",
        r#"{"uri":{"type":"string"}}"#,
        &["uri"],
    ),
    (
        "whoami",
        "Returns process id, number of tool calls and the metadata of the client.",
        "{}",
        &[],
    ),
];

/// Returns the descriptions of all tools for clients of an era.
pub(crate) fn list(fake: &Fake, is_modern: bool) -> Vec<Value> {
    let describe = |name: &str, description: &str, properties: &str, required: &[&str]| {
        let properties: Value = serde_json::from_str(properties).expect("the table holds JSON");
        json!({
            "name": name,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
        })
    };
    let mut tools: Vec<Value> = TOOLS
        .iter()
        .map(|(name, description, properties, required)| {
            let mut tool = describe(name, description, properties, required);
            if let Some((_, hints)) = HINTS.iter().find(|(hinted, _)| hinted == name) {
                tool["annotations"] = serde_json::from_str(hints).expect("the table holds JSON");
            }
            tool
        })
        .collect();
    for number in 1..=fake.state().n_extra_tools {
        tools.push(describe(&format!("extra_{number}"), "Added by `flip_tools`.", "{}", &[]));
    }
    for name in &fake.options.named {
        let mut tool = describe(name, "Added by `--named`.", "{}", &[]);
        if let Some(path) = &fake.options.schema {
            let text = std::fs::read_to_string(path).expect("it is readable");
            tool["inputSchema"] = serde_json::from_str(&text).expect("it is JSON");
            tool["inputSchema"]["title"] = json!(name);
        }
        tools.push(tool);
    }
    for (name, description, properties, execution) in tasks::tools(fake, is_modern) {
        let mut tool = describe(name, description, properties, &[]);
        if let Some(execution) = execution {
            tool["execution"] = execution;
        }
        tools.push(tool);
    }
    if fake.options.rich {
        tools.push(serde_json::from_str(RICH).expect("it is JSON"));
    }
    if fake.options.bad_header {
        let properties =
            r#"{"rows":{"type":"array","items":{"type":"string","x-mcp-header":"Row"}}}"#;
        tools.push(describe("bad_header", "Requires an invalid header.", properties, &[]));
    }
    if fake.options.bad_tool {
        tools.push(json!({ "name": "bad", "description": "Has no input schema." }));
    }
    tools
}

/// Returns whether `flip_tools` or `--named` has added a tool of this name.
pub(super) fn is_extra(fake: &Fake, name: &str) -> bool {
    if fake.options.named.iter().any(|named| named == name) {
        return true;
    }
    let number = name.strip_prefix("extra_").and_then(|number| number.parse().ok());
    number.is_some_and(|number: usize| (1..=fake.state().n_extra_tools).contains(&number))
}
