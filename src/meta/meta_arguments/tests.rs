use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{config::ToolSet, meta::arguments::DiscoverDetail};

fn read(tool: MetaTool, arguments: &serde_json::Value) -> Result<MetaArguments, ArgumentError> {
    MetaArguments::read(tool, Some(&arguments.to_string()))
}

fn call(arguments: &serde_json::Value) -> CallArguments {
    match read(MetaTool::Call, arguments).expect("arguments") {
        MetaArguments::Call(call) => call,
        other => panic!("{other:?}"),
    }
}

/// Returns the error that a client sees, on lines.
fn told(tool: MetaTool, arguments: &str) -> String {
    let error = MetaArguments::read(tool, Some(arguments)).expect_err("it is wrong");
    format!("{}\n{error}\n{}", error.code(), error.hint())
}

#[test]
fn each_tool_without_arguments_names_the_missing_one_or_uses_defaults() {
    for (tool, missing) in [
        (MetaTool::Discover, None),
        (MetaTool::Provision, Some("intent")),
        (MetaTool::Call, Some("tool")),
        (MetaTool::Execute, Some("code")),
        (MetaTool::SearchTools, Some("query")),
        (MetaTool::ListNamespaces, None),
        (MetaTool::ListTools, None),
        (MetaTool::DescribeTool, Some("tool_id")),
        (MetaTool::ListToolExamples, Some("tool_id")),
        (MetaTool::RunTool, Some("tool_id")),
        (MetaTool::RunChain, Some("steps")),
        (MetaTool::ExecuteCode, Some("language")),
    ] {
        for text in [None, Some("{}")] {
            match (MetaArguments::read(tool, text), missing) {
                (Ok(_), None) => {}
                (Err(error @ ArgumentError::Missing { .. }), Some(missing)) => {
                    assert_eq!(
                        error.to_string(),
                        format!("argument `{missing}` of `{}` is missing", tool.name())
                    );
                    let told = String::from_utf8(error.to_rpc().render(Some("1")).to_vec());
                    let told = told.expect("text");
                    assert!(told.contains(r#""code":"MISSING_PARAMETER""#), "{told}");
                    assert!(told.contains(r#""code":-32602"#), "{told}");
                }
                (other, _) => panic!("{}: {other:?}", tool.name()),
            }
        }
    }
    assert!(
        matches!(read(MetaTool::DescribeTool, &json!({"tool_id": "a/b"})), Err(ArgumentError::Missing { field, .. }) if field == "detail_level")
    );
}

#[test]
fn an_omitted_argument_has_its_default() {
    let Ok(MetaArguments::Discover(discover)) =
        read(MetaTool::Discover, &json!({"query": "", "tool": null}))
    else {
        panic!("arguments")
    };
    assert_eq!(
        discover,
        DiscoverArguments {
            query: None,
            server: None,
            tool: None,
            detail: DiscoverDetail::default(),
            page: PageArguments { limit: 20, cursor: None },
        }
    );
    let plain = call(&json!({"server": "git", "tool": "log"}));
    assert_eq!(plain.args, "{}");
    assert!(plain.fields.is_empty() && plain.timeout.is_none() && plain.cursor.is_none());
}

#[test]
fn arguments_for_the_server_keep_every_byte() {
    let text = r#"{"server":"git","tool":"log","args":{ "n" : 1e400, "a":1.0 }}"#;
    let Ok(MetaArguments::Call(call)) = MetaArguments::read(MetaTool::Call, Some(text)) else {
        panic!("arguments")
    };
    assert_eq!(call.args, r#"{ "n" : 1e400, "a":1.0 }"#);
}

#[test]
fn an_argument_with_only_one_possible_meaning_is_accepted_in_any_form() {
    for args in [json!({"n": 1}), json!("{\"n\":1}"), json!(" {\"n\":1} ")] {
        assert_eq!(call(&json!({"server": "git", "tool": "log", "args": args})).args, "{\"n\":1}");
    }
    for args in [json!(null), json!(""), json!({}), json!("{}")] {
        assert_eq!(call(&json!({"server": "git", "tool": "log", "args": args})).args, "{}");
    }
    let all = json!({"tool": "git/log", "args": {"n": 1}});
    let wrapped = MetaArguments::read(MetaTool::Call, Some(&json!(all.to_string()).to_string()));
    assert_eq!(wrapped, read(MetaTool::Call, &all));
    assert_eq!(call(&all).tool, RequestedTool { server: None, tool: "git/log".into() });
    let paths = |fields| call(&json!({"tool": "git/log", "fields": fields})).fields;
    assert_eq!(paths(json!("a.b")), paths(json!(["a.b"])));
    assert_eq!(paths(json!("[\"a\"]")), paths(json!(["a"])));
    assert_eq!(paths(json!("a, b[].c,")), paths(json!(["a", "b[].c"])));

    let chain = |steps| read(MetaTool::RunChain, &json!({ "steps": steps }));
    let one = json!({"tool_id": "a/b", "args": {"n": 1}, "use_previous": true});
    let plain = chain(json!([one]));
    assert!(plain.is_ok());
    for steps in [
        json!(json!([one]).to_string()),
        json!([one.to_string()]),
        json!(json!([one.to_string()]).to_string()),
        json!(one),
        json!(one.to_string()),
    ] {
        assert_eq!(chain(steps.clone()), plain, "{steps}");
    }
}

#[test]
fn limits_are_clamped_to_their_range_and_timeouts_out_of_range_are_refused() {
    let limit = |limit: serde_json::Value| {
        read(MetaTool::SearchTools, &json!({"query": "x", "limit": limit})).map(|read| match read {
            MetaArguments::SearchTools { page, .. } => page.limit,
            other => panic!("{other:?}"),
        })
    };
    for (asked, expected) in
        [(json!(7), 7), (json!(0), 1), (json!(-3), 1), (json!(1e9), 100), (json!("5"), 5)]
    {
        assert_eq!(limit(asked), Ok(expected));
    }
    assert!(limit(json!(1.5)).is_err() && limit(json!("many")).is_err());
    assert!(limit(json!(true)).is_err() && limit(json!(1e300)).is_err());

    let timeout = |ms: u64| {
        read(MetaTool::Call, &json!({"tool": "git/log", "timeoutMs": ms})).map(|read| match read {
            MetaArguments::Call(call) => call.timeout,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(timeout(600_000), Ok(Some(Duration::from_secs(600))));
    assert!(timeout(0).is_err() && timeout(600_001).is_err());
}

#[test]
fn an_error_names_the_field_and_the_remedy() {
    let call =
        |more: &str| told(MetaTool::Call, &format!(r#"{{"server":"git","tool":"log",{more}}}"#));
    insta::assert_snapshot!(call(r#""arguments":{}"#), @r"
    INVALID_ARGUMENTS
    `mcp_call` has no argument `arguments`
    Did you mean `args`?
    ");
    insta::assert_snapshot!(call(r#""timeout_ms":5"#), @r"
    INVALID_ARGUMENTS
    `mcp_call` has no argument `timeout_ms`
    Did you mean `timeoutMs`?
    ");
    insta::assert_snapshot!(call(r#""repository":5"#), @r"
    INVALID_ARGUMENTS
    `mcp_call` has no argument `repository`
    The tool takes `server`, `tool`, `args`, `fields`, `timeoutMs`, `cursor`.
    ");
    insta::assert_snapshot!(call(r#""args":{},"server":"other""#), @r"
    INVALID_ARGUMENTS
    argument `server` of `mcp_call` occurs twice
    Send `server` once.
    ");
    insta::assert_snapshot!(call(r#""args":[1]"#), @r"
    INVALID_ARGUMENTS
    argument `args` of `mcp_call` is invalid: it must be an object, not an array
    Pass this as `args`: Its arguments, as in its inputSchema. Default: none.
    ");
    insta::assert_snapshot!(call(r#""fields":["a..b"]"#), @r#"
    INVALID_ARGUMENTS
    argument `fields` of `mcp_call` is invalid: `a..b` is not a path: a name is missing
    Pass this as `fields`: Only these parts of a JSON result, e.g. ["total", "rows[].name"].
    "#);
    insta::assert_snapshot!(told(MetaTool::Call, r#"{"tool":"log"}"#), @r"
    MISSING_PARAMETER
    argument `server` of `mcp_call` is missing
    Add `server`: The tool's server.
    ");
    insta::assert_snapshot!(told(MetaTool::Discover, r#"{"detail":"all"}"#), @r"
    INVALID_ARGUMENTS
    argument `detail` of `mcp_discover` is invalid: it must be one of summary, schema, full, types
    Pass this as `detail`: summary: the description. schema: also the inputSchema. full: the whole definition. types: TypeScript for scripts.
    ");
    insta::assert_snapshot!(told(MetaTool::RunChain, r#"{"steps":[{"tool_id":"a/b"},{"tool":"a/c"}]}"#), @r"
    INVALID_ARGUMENTS
    `run_chain` has no argument `steps[1].tool`
    Did you mean `tool_id`?
    ");
    insta::assert_snapshot!(told(MetaTool::RunChain, r#"{"steps":[{"tool_id":"a/b"},7]}"#), @r"
    INVALID_ARGUMENTS
    argument `steps[1]` of `run_chain` is invalid: it must be an object, not a number
    Pass this as `steps[1]`: The tools to run, in this order.
    ");
    insta::assert_snapshot!(told(MetaTool::RunTool, "[]"), @r"
    INVALID_ARGUMENTS
    the arguments of `run_tool` are not an object
    Send the arguments of `run_tool` by name, in an object.
    ");
}

#[test]
fn each_field_of_each_definition_is_read() {
    let value = |schema: &serde_json::Value| match schema["type"].as_str().expect("a type") {
        "string" => schema["enum"].get(0).cloned().unwrap_or(json!("a/b")),
        "integer" => json!(3),
        "boolean" => json!(true),
        "object" => json!({"x": 1}),
        _ => match schema["items"]["type"].as_str() {
            Some("string") => json!(["x"]),
            _ => json!([{"tool_id": "a/b", "args": {"x": 1}, "use_previous": true}]),
        },
    };
    for tool in [ToolSet::Core, ToolSet::Metatools].iter().flat_map(|set| MetaTool::of_set(*set)) {
        let definition: serde_json::Value =
            serde_json::from_str(tool.definition()).expect("a definition");
        let properties = definition["inputSchema"]["properties"].as_object().expect("fields");
        let required =
            definition["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        let least: serde_json::Map<_, _> = properties
            .iter()
            .filter(|(name, _)| required.contains(&json!(name)))
            .map(|(name, schema)| (name.clone(), value(schema)))
            .collect();
        let plain = read(*tool, &json!(least)).expect("the required arguments are enough");
        for (name, schema) in properties {
            let mut more = least.clone();
            more.insert(name.clone(), value(schema));
            // The first word, and a `true` that is the default, change nothing.
            let is_only_word = schema["enum"].as_array().is_some_and(|words| words.len() == 1);
            if is_only_word {
                let mut other = more.clone();
                other.insert(name.clone(), json!("another"));
                assert!(read(*tool, &json!(other)).is_err(), "{}: {name}", tool.name());
            }
            let is_usual = is_only_word || schema["default"] == value(schema);
            let found = read(*tool, &json!(more)).expect(name);
            let is_same = found == plain;
            assert_eq!(is_same, least.contains_key(name) || is_usual, "{}: {name}", tool.name());
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in ".{0,60}", number in 0..12usize) {
        let all = [ToolSet::Core, ToolSet::Metatools];
        let tool = *all.iter().flat_map(|set| MetaTool::of_set(*set)).nth(number).expect("twelve");
        drop(MetaArguments::read(tool, Some(&text)));
        for member in ["args", "tool_id", "steps", "limit", "fields", "detail"] {
            let text = json!({ "tool": text, (member): text }).to_string();
            drop(MetaArguments::read(tool, Some(&text)));
        }
    }
}
