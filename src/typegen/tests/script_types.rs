//! The declarations for scripts.

use super::*;

/// Returns the declarations of these tools.
fn script(tools: &[Tool]) -> String {
    let mut types = ScriptTypes::default();
    for tool in tools {
        let declaration = types.declare(tool, usize::MAX);
        types.add(declaration);
    }
    types.text()
}

/// Returns the lines of a text that declare tools and their types.
fn without_helpers(text: &str) -> &str {
    let (tools, helpers) = text.split_once("declare const console").expect("the helpers");
    assert!(helpers.contains("declare function runChain"), "{helpers}");
    tools
}

/// Returns the declaration of a method with these arguments.
fn method(input: Value) -> String {
    let text = script(&[tool("log", input)]);
    let line = text.lines().find(|line| line.contains("log(")).expect("a method");
    line.trim().to_owned()
}

#[test]
fn a_tool_is_declared_as_the_method_that_a_script_calls() {
    let mut log = tool(
        "log",
        json!({
            "type": "object",
            "properties": {
                "path_of_all": { "type": "string", "title": "Path Of All" },
                "n": { "type": "integer" },
            },
            "required": ["path_of_all"],
        }),
    );
    log.description = Some("Shows the commits\nof a branch. */ Newest first.".to_owned());
    log.output = Some(json!({
        "type": "object",
        "properties": {
            "commits": { "type": "array", "items": { "$ref": "#/$defs/commit" } },
            "more": { "description": "Whatever the server adds" },
        },
        "required": ["commits"],
        "$defs": { "commit": { "type": "object", "properties": { "id": { "type": "string" } } } },
    }));
    let search = tool(
        "search",
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "@ts-ignore words\n\nor a phrase" },
                "limit": { "type": "integer", "minimum": 1, "default": 20 },
                "order": { "enum": ["asc", "desc"], "description": "The order", "default": "asc" },
            },
        }),
    );
    let odd = Tool { server: "my-server".to_owned(), ..tool("odd.name", json!({})) };
    let same = Tool { server: "hg".to_owned(), ..log.clone() };

    insta::assert_snapshot!(without_helpers(&script(&[log, odd, search, same])), @r#"
    declare const servers: {
      git: {
        /** Shows the commits of a branch. *\/ Newest first. */
        log(args: { n?: number; path_of_all: string }): Promise<LogOutput>;
        search(args?: {
          /** minimum 1, default 20 */ limit?: number;
          /** The order (default "asc") */ order?: "asc" | "desc";
          /** ts-ignore words or a phrase */ query?: string;
        }): Promise<any>;
      };
      "my-server": {
        "odd.name"(args?: { [key: string]: unknown }): Promise<any>;
      };
      hg: {
        /** Shows the commits of a branch. *\/ Newest first. */
        log(args: { n?: number; path_of_all: string }): Promise<HgLogOutput>;
      };
    };
    type LogOutput = {
      commits: LogOutputCommit[];
      /** Whatever the server adds */ more?: any;
    };
    type LogOutputCommit = { id?: string };
    type HgLogOutput = {
      commits: HgLogOutputCommit[];
      /** Whatever the server adds */ more?: any;
    };
    type HgLogOutputCommit = { id?: string };
    "#);
}

#[test]
fn arguments_are_optional_if_the_tool_requires_none() {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let none = || json!([]);
    for (schema, expected) in [
        (json!({}), "args?: { [key: string]: unknown }"),
        (json!("nonsense"), "args?: { [key: string]: unknown }"),
        (json!({ "type": "object" }), "args?: { [key: string]: unknown }"),
        (
            json!({ "type": "object", "additionalProperties": false }),
            "args?: { [key: string]: never }",
        ),
        (object(json!({ "a": {} }), none()), "args?: { a?: unknown }"),
        (object(json!({ "a": {} }), json!(["a"])), "args: { a: unknown }"),
        (
            json!({ "anyOf": [object(json!({ "a": {} }), json!(["a"])), object(json!({ "b": {} }), none())] }),
            "args?: { a: unknown } | { b?: unknown }",
        ),
        (
            json!({ "allOf": [object(json!({ "a": {} }), json!(["a"])), object(json!({ "b": {} }), none())] }),
            "args: { a: unknown } & { b?: unknown }",
        ),
        (
            json!({ "$ref": "#/$defs/x", "$defs": { "x": object(json!({ "a": {} }), none()) } }),
            "args?: LogInputX",
        ),
        (object(json!({ "next": { "$ref": "#" } }), none()), "args?: LogInput"),
        (json!(false), "args: never"),
    ] {
        let expected = format!("log({expected}): Promise<any>;");
        assert_eq!(method(schema.clone()), expected, "{schema}");
    }
    let missing = script(&[Tool { input: None, ..tool("log", json!(null)) }]);
    assert!(missing.contains("log(args?: { [key: string]: unknown }): Promise<any>;"), "{missing}");
}

#[test]
fn a_schema_that_refers_to_itself_in_very_many_ways_is_declared_quickly() {
    let choice = |to: usize| json!({ "allOf": [{ "$ref": format!("#/$defs/{to}") }, { "$ref": format!("#/$defs/{}", to + 1) }] });
    let mut all: serde_json::Map<String, Value> =
        (0..200).map(|n| (n.to_string(), choice(n + 1))).collect();
    all.extend(["200", "201"].map(|n| (n.to_owned(), json!({ "type": "object" }))));
    let text = script(&[tool("log", json!({ "$ref": "#/$defs/0", "$defs": all }))]);
    assert!(text.contains("log(args: LogInput0)"), "{text}");
}

#[test]
fn a_tool_whose_name_is_no_method_is_called_by_its_name() {
    let tools = ["call", "then", "new", "get", "constructor", "1st", "a b"]
        .map(|name| tool(name, json!({ "type": "object", "additionalProperties": false })));
    let text = script(&tools);
    let methods: Vec<&str> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix("    ")?
                .strip_suffix("args?: { [key: string]: never }): Promise<any>;")
        })
        .collect();
    let expected = [
        "call(tool: \"call\", ",
        "call(tool: \"then\", ",
        "\"new\"(",
        "get(",
        "constructor(",
        "\"1st\"(",
        "\"a b\"(",
    ];
    assert_eq!(methods, expected, "{text}");
}

#[test]
fn a_declaration_that_is_too_large_leaves_the_last_parts_open() {
    let members: serde_json::Map<String, Value> = (0..1000)
        .map(|n| {
            let member =
                json!({ "type": "object", "properties": { "inner": { "type": "string" } } });
            (format!("member{n}"), member)
        })
        .collect();
    let mut large = tool("log", json!({ "type": "object", "properties": members }));
    large.output = large.input.clone();
    let mut types = ScriptTypes::default();
    let whole = types.declare(&large, usize::MAX).n_bytes();
    for bytes_max in [whole - 1, 10_000, 1_000, 200] {
        let mut types = ScriptTypes::default();
        let declaration = types.declare(&large, bytes_max);
        assert!(declaration.n_bytes() <= bytes_max, "{bytes_max}: {declaration:?}");
        types.add(declaration);
        assert!(is_balanced(&types.text()));
        // A name that a first attempt took is free again.
        assert!(!types.text().contains("LogOutput_"), "{}", types.text());
    }
    let declaration = types.declare(&tool("log", json!({})), 0);
    assert!(declaration.n_bytes() > 0, "a tool is never left out");
}

proptest! {
    #[test]
    fn the_declaration_of_any_tool_for_a_script_is_balanced(
        schema in any_schema(), name in ".{0,12}", description in ".{0,40}"
    ) {
        let mut found = tool(&name, schema.clone());
        found.description = Some(description);
        found.output = Some(schema);
        let text = script(&[found]);
        prop_assert!(is_balanced(&text), "{}", text);
        let strange = ['\u{202e}', '\u{2028}'];
        prop_assert!(!text.contains(strange));
        // A comment that begins with `@` can be a directive to the compiler.
        prop_assert!(!text.contains("/** @"), "{}", text);
    }
}
