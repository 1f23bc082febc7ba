use proptest::prelude::*;
use serde_json::json;

use super::*;

mod script_types;

fn tool(name: &str, input: Value) -> Tool {
    Tool {
        server: "git".to_owned(),
        name: name.to_owned(),
        description: None,
        input: Some(input),
        output: None,
    }
}

/// Returns the types of a schema, without the common part of every file.
fn types(schema: &Value) -> String {
    let mut names = TypeNames::default();
    let named = declared("T".to_owned(), schema, &mut names, defaults::TYPEGEN_PARTS_MAX);
    exported(&named).trim().to_owned()
}

/// Returns the type of a schema.
fn of(schema: Value) -> String {
    let text = types(&schema);
    let text = text.strip_prefix("export type T = ").and_then(|text| text.strip_suffix(";"));
    text.expect("one type without a comment").to_owned()
}

#[test]
fn a_tool_is_declared_with_its_types_and_documentation() {
    let mut log = tool(
        "log",
        json!({
            "type": "object",
            "description": "What to show",
            "required": ["path"],
            "additionalProperties": false,
            "properties": {
                "path": { "type": "string", "description": "Ends */ here\n\n@ts-ignore" },
                "since": { "type": "string", "format": "date-time" },
                "max-count": { "type": ["integer", "null"], "default": 10, "minimum": 1 },
                "order": { "enum": ["asc", "desc"], "deprecated": true },
            },
        }),
    );
    log.description = Some("Shows the log".to_owned());
    log.output = Some(json!({ "type": "object", "properties": { "lines": { "type": "array" } } }));
    let plain = Tool { input: None, ..tool("plain", json!(null)) };
    let all = declarations(&[plain, log]);
    let all = all.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    insta::assert_snapshot!(all);
}

#[test]
fn each_keyword_becomes_its_typescript_type() {
    for (schema, expected) in [
        (json!({}), "unknown"),
        (json!(true), "unknown"),
        (json!(false), "never"),
        (json!("nonsense"), "unknown"),
        (json!({ "type": "strange" }), "unknown"),
        (json!({ "type": [] }), "unknown"),
        (json!({ "type": ["string", "null"] }), "null | string"),
        (json!({ "type": "string", "nullable": true }), "string | null"),
        (json!({ "const": { "a": [1, null] } }), "{\n  a: [1, null];\n}"),
        (json!({ "enum": ["a", 1, -2.5, true, null] }), "\"a\" | 1 | -2.5 | true | null"),
        (json!({ "enum": [] }), "never"),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] }), "string | number"),
        (json!({ "anyOf": [{ "type": "string" }, {}] }), "unknown"),
        (json!({ "type": "string", "anyOf": [{ "minLength": 1 }, { "maxLength": 9 }] }), "string"),
        (
            json!({ "type": "array", "items": { "oneOf": [{ "const": 1 }, { "const": 2 }] } }),
            "(1 | 2)[]",
        ),
        (json!({ "type": "array" }), "unknown[]"),
        (json!({ "items": false, "type": "array" }), "[]"),
        (
            json!({ "prefixItems": [{ "type": "string" }, { "enum": [1, 2] }], "minItems": 1 }),
            "[string, (1 | 2)?, ...unknown[]]",
        ),
        (
            json!({ "type": "array", "items": [{ "type": "string" }], "minItems": 1, "additionalItems": false }),
            "[string]",
        ),
        (json!({ "type": "object" }), "{ [key: string]: unknown }"),
        (json!({ "type": "object", "additionalProperties": false }), "{ [key: string]: never }"),
        (json!({ "additionalProperties": { "type": "number" } }), "{ [key: string]: number }"),
        (
            json!({ "patternProperties": { "^x": { "type": "number" } }, "properties": { "a": { "type": "string" } } }),
            "{\n  a?: string;\n  [key: string]: number | string | undefined;\n}",
        ),
        (
            json!({ "properties": { "a": { "type": "array" } }, "additionalProperties": { "type": "number" } }),
            "{\n  a?: unknown[];\n  [key: string]: unknown;\n}",
        ),
        (json!({ "required": ["b"] }), "{\n  b: unknown;\n}"),
        (
            json!({ "allOf": [{ "required": ["a"] }, { "anyOf": [{ "type": "string" }, { "type": "null" }] }] }),
            "{\n  a: unknown;\n} & (string | null)",
        ),
        (json!({ "$ref": "https://example.org/x" }), "unknown"),
        (json!({ "$ref": "#/$defs/none" }), "unknown"),
        (json!({ "$ref": "#" }), "unknown"),
    ] {
        assert_eq!(of(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn a_recursive_schema_becomes_a_named_type() {
    let schema = json!({
        "type": "object",
        "properties": { "tree": { "$ref": "#/$defs/the%20node" }, "self": { "$ref": "#" } },
        "$defs": {
            "the node": { "type": "array", "items": { "$ref": "#/$defs/the node" } },
            "loop": { "anyOf": [{ "$ref": "#/$defs/pool" }, { "type": "null" }] },
            "pool": { "anyOf": [{ "$ref": "#/$defs/loop" }, { "type": "string" }] },
        },
        "anyOf": [{ "$ref": "#/$defs/loop" }, { "type": "number" }],
    });
    insta::assert_snapshot!(types(&schema), @r"
    export type T = {
      self?: T;
      tree?: TTheNode;
    } & (TLoop | number);

    export type TTheNode = TTheNode[];

    export type TLoop = unknown;

    export type TPool = TLoop | string;
    ");
}

#[test]
fn a_type_with_too_many_alternatives_loses_some_of_them() {
    let choice = |keyword: &str| {
        let all = (0..100).map(|n| json!({ "properties": { format!("{keyword}{n}"): {} } }));
        json!({ "anyOf": all.collect::<Vec<_>>() })
    };
    let text = types(&json!({ "allOf": [choice("a"), choice("b"), choice("c")] }));
    assert!(text.contains("a99") && !text.contains("b0") && !text.contains("c0"));
}

#[test]
fn the_order_of_tools_does_not_change_the_declarations() {
    let [one, two] = ["one", "two"].map(|name| tool(name, json!({ "type": "object" })));
    let expected = declarations(&[one.clone(), two.clone()]);
    assert_eq!(declarations(&[two.clone(), one.clone(), two]), expected);
}

#[test]
fn a_type_that_is_too_deep_or_too_large_is_unknown() {
    let deep = (0..100).fold(json!({ "type": "string" }), |inner, _| {
        json!({ "additionalProperties": { "type": "number" }, "properties": { "a": inner } })
    });
    let text = types(&deep);
    assert_eq!(text.matches("a?: {").count(), defaults::TYPEGEN_DEPTH_MAX);
    let many =
        (0..2 * defaults::TYPEGEN_PARTS_MAX).map(|n| (n.to_string(), json!({ "type": "null" })));
    let many: serde_json::Map<String, Value> = many.collect();
    let text = types(&json!({ "properties": many }));
    assert_eq!(text.matches("?: null;").count(), defaults::TYPEGEN_PARTS_MAX - 1);
    assert_eq!(text.matches("?: unknown;").count(), defaults::TYPEGEN_PARTS_MAX + 1);
}

/// Returns whether all brackets outside strings and comments are balanced.
fn is_balanced(text: &str) -> bool {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(found) = rest.chars().next() {
        let n_bytes = match found {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => match rest[2..].find("*/") {
                Some(end) => end + 4,
                None => return false,
            },
            '"' => {
                let mut end = 1;
                loop {
                    match rest.as_bytes().get(end) {
                        Some(b'\\') => end += 2,
                        Some(b'"') => break end + 1,
                        Some(b'\n') | None => return false,
                        Some(_) => end += 1,
                    }
                }
            }
            '{' | '[' | '(' => {
                open.push(found);
                1
            }
            '}' | ']' | ')' => {
                let opened = match found {
                    '}' => '{',
                    ']' => '[',
                    _ => '(',
                };
                if open.pop() != Some(opened) {
                    return false;
                }
                1
            }
            found => found.len_utf8(),
        };
        rest = rest.get(n_bytes..).unwrap_or_default();
    }
    open.is_empty()
}

/// Generates any value; most objects have keywords of schemas.
fn any_schema() -> impl Strategy<Value = Value> {
    const KEYWORDS: [&str; 24] = [
        "type",
        "properties",
        "items",
        "prefixItems",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "definitions",
        "additionalProperties",
        "patternProperties",
        "required",
        "enum",
        "const",
        "description",
        "format",
        "default",
        "nullable",
        "title",
        "minItems",
        "maxItems",
        "unevaluatedProperties",
        "additionalItems",
    ];
    let word = prop_oneof![
        prop::sample::select(&KEYWORDS[..]).prop_map(str::to_owned),
        prop::sample::select(&["object", "array", "string", "null", "integer"][..])
            .prop_map(str::to_owned),
        prop::sample::select(&["#", "#/$defs/a", "#/properties/a", "#/$defs/a/items"][..])
            .prop_map(str::to_owned),
        ".{0,12}",
        Just("a".to_owned()),
        Just("*/ \" \u{2028} \u{202e} @ts-expect-error \\".to_owned()),
    ];
    let leaf = prop_oneof![
        word.clone().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u8>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(6, 96, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(word.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_declaration_of_any_schema_is_balanced_and_bounded(
        schema in any_schema(), name in ".{0,12}", description in ".{0,40}"
    ) {
        let mut found = tool(&name, schema.clone());
        found.description = Some(description);
        found.output = Some(schema.clone());
        let text = declarations(&[found]);
        prop_assert!(is_balanced(&text), "{}", text);
        prop_assert!(text.len() < (64 << 10) + 64 * schema.to_string().len(), "{}", text.len());
        let strange = ['\u{202e}', '\u{2028}'];
        prop_assert!(!text.contains(strange));
    }
}
