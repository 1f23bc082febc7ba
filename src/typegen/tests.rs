use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tool(server: &str, name: &str, input: Value) -> Tool {
    let description = Some("Does it.".to_owned());
    Tool { server: server.into(), name: name.into(), description, input, output: None }
}

/// Returns the type that a schema becomes, and those that it needs.
fn shown(schema: Value) -> String {
    let mut names = Names::new([]);
    let types = Converter::new(&schema, "T", &mut names).convert();
    let text: String = types.iter().map(|(name, found)| declaration(name, found)).collect();
    text.trim_end().replace("\n\n", "\n")
}

#[test]
fn a_tool_becomes_two_types_and_a_line_in_the_interface() {
    let mut log = tool(
        "git",
        "git_log",
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "Where it is. */ alert(1) /*" },
                "max-count": { "type": "integer", "minimum": 1, "default": 10 },
            },
            "required": ["path"],
        }),
    );
    log.output = Some(json!({ "type": "object", "properties": { "n": { "type": "number" } } }));
    let clash = tool("git", "git.log", json!({ "type": "object" }));
    insta::assert_snapshot!(declarations(&[log.clone(), clash, log], "1.2.3"));
}

#[test]
fn nothing_at_all_is_a_module_too() {
    let text = declarations(&[], "1.2.3");
    assert!(text.contains("export interface MetamcpTools {\n}\n"), "{text}");
}

#[test]
fn plain_schemas_are_plain_types() {
    for (schema, expected) in [
        (json!(true), "unknown"),
        (json!(false), "never"),
        (json!({}), "unknown"),
        (json!({ "type": "integer" }), "number"),
        (json!({ "type": ["string", "null"] }), "string | null"),
        (json!({ "type": "string", "nullable": true }), "string | null"),
        (json!({ "enum": ["a", 1, null, true, "a"] }), r#""a" | 1 | null | true"#),
        (json!({ "const": { "a": [1, "b"] } }), "{\n  a: [1, \"b\"];\n}"),
        (json!({ "type": "array" }), "unknown[]"),
        (json!({ "items": { "enum": [1, 2] } }), "(1 | 2)[]"),
        (json!({ "prefixItems": [{ "type": "string" }], "minItems": 1 }), "[string, ...unknown[]]"),
        (
            json!({ "items": [{ "type": "string" }, { "type": "null" }], "additionalItems": false }),
            "[string?, null?]",
        ),
        (json!({ "type": "object" }), "{ [key: string]: unknown }"),
        (json!({ "type": "object", "additionalProperties": false }), "{ [key: string]: never }"),
        (json!({ "additionalProperties": { "type": "number" } }), "{ [key: string]: number }"),
        (
            json!({ "properties": { "a": { "type": "string" } }, "patternProperties": { "^x": { "type": "number" } } }),
            "{\n  a?: string;\n  [key: string]: number | string | undefined;\n}",
        ),
        (json!({ "required": ["a b"] }), "{\n  \"a b\": unknown;\n}"),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] }), "string | number"),
        (
            json!({ "allOf": [{ "required": ["a"] }, { "oneOf": [{ "type": "string" }, { "type": "null" }] }] }),
            "{\n  a: unknown;\n} & (string | null)",
        ),
        (json!({ "$ref": "https://example.com/other" }), "unknown"),
        (json!({ "$ref": "#/nowhere" }), "unknown"),
        (json!({ "type": "magic" }), "unknown"),
    ] {
        assert_eq!(shown(schema.clone()), format!("export type T = {expected};"), "{schema}");
    }
}

#[test]
fn what_refers_to_itself_has_a_name() {
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": {
            "node": { "type": "object", "properties": {
                "children": { "type": "array", "items": { "$ref": "#/$defs/node" } },
                "parent": { "anyOf": [{ "$ref": "#tree" }, { "type": "null" }] },
            } },
            "a~b/c": { "$anchor": "tree", "$ref": "#" },
        },
    });
    insta::assert_snapshot!(shown(tree), @r"
    export type T = TNode;
    export type TNode = {
      children?: TNode[];
      parent?: TA0b1c | null;
    };
    export type TA0b1c = T;
    ");
}

#[test]
fn what_would_be_the_same_as_itself_is_taken_apart() {
    let circle = json!({
        "anyOf": [{ "$ref": "#/definitions/a" }, { "type": "null" }],
        "definitions": {
            "a": { "allOf": [{ "$ref": "#/definitions/b" }, { "required": ["x"] }] },
            "b": { "$ref": "#" },
            "c": { "$ref": "#/definitions/c" },
        },
    });
    let text = shown(circle);
    assert!(
        text.contains("TB = unknown") || text.contains("TA = {") || text.contains("T = unknown"),
        "{text}"
    );
    assert_eq!(shown(json!({ "$ref": "#" })), "export type T = unknown;");
}

#[test]
fn what_is_too_deep_too_large_or_too_much_is_cut_off() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    let text = shown(deep);
    assert!(text.contains("unknown") && text.lines().count() < 60, "{text}");
    let values: Vec<u32> = (0..10_000).collect();
    assert_eq!(shown(json!({ "enum": values })), "export type T = number;");
    let properties: serde_json::Map<String, Value> =
        (0..20_000).map(|number| (format!("p{number}"), json!({ "type": "string" }))).collect();
    assert!(shown(json!({ "properties": properties })).len() < 200);
}

#[test]
fn words_of_a_server_end_no_comment_and_no_string() {
    let nasty = "*/ export const x = 1; /*\n\u{2028}\u{202e}\"'`${x}\\ \u{0}";
    let mut tool = tool(
        nasty,
        nasty,
        json!({
            "properties": { nasty: { "description": nasty, "const": nasty, "format": nasty } },
        }),
    );
    tool.description = Some(nasty.to_owned());
    let text = declarations(&[tool], "1");
    balanced(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    let code = without_words(&text);
    assert!(!code.contains("const x"), "{code}");
    assert!(!text.contains('\u{202e}'), "{text}");
}

/// Returns the text without its comments and strings.
fn without_words(text: &str) -> String {
    let mut code = String::new();
    let mut left = text;
    while let Some(first) = left.chars().next() {
        if left.starts_with("//") {
            left = left.find('\n').map_or("", |end| &left[end..]);
        } else if left.starts_with("/*") {
            left = left.find("*/").map_or("/", |end| &left[end + 2..]);
        } else if first == '"' {
            let mut is_escaped = false;
            let end = left[1..].char_indices().find(|(_, found)| {
                let is_end = *found == '"' && !is_escaped;
                is_escaped = *found == '\\' && !is_escaped;
                is_end || *found == '\n'
            });
            left = end.map_or("\"", |(end, _)| &left[end + 2..]);
            code.push('_');
        } else {
            code.push(first);
            left = &left[first.len_utf8()..];
        }
    }
    code
}

/// Tells what is wrong with a text that should be TypeScript, as far as signs tell.
fn balanced(text: &str) -> Result<(), String> {
    let code = without_words(text);
    let mut open = Vec::new();
    let mut before = ' ';
    for found in code.chars() {
        match found {
            '{' | '[' | '(' | '<' => open.push(found),
            '}' | ']' | ')' => {
                let wanted = match found {
                    '}' => '{',
                    ']' => '[',
                    _ => '(',
                };
                if open.pop() != Some(wanted) {
                    return Err(format!("`{found}` closes nothing"));
                }
            }
            '>' if before != '=' && open.pop() != Some('<') => {
                return Err("`>` closes nothing".into());
            }
            '|' | '&' if before == '|' || before == '&' => return Err("two signs".into()),
            found if found.is_ascii_graphic() || found.is_ascii_whitespace() => {}
            found => return Err(format!("`{}` is out of place", found.escape_default())),
        }
        if !found.is_whitespace() {
            before = found;
        }
    }
    let left = open.len();
    if left == 0 { Ok(()) } else { Err(format!("{left} are not closed: {open:?}")) }
}

/// Any JSON that looks like a schema now and then.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop_oneof![
            Just("object"),
            Just("array"),
            Just("string"),
            Just("null"),
            Just("#"),
            Just("#/$defs/a"),
            Just("#/properties/a"),
            Just("*/")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let name = prop_oneof![
            Just("type"),
            Just("properties"),
            Just("required"),
            Just("items"),
            Just("prefixItems"),
            Just("anyOf"),
            Just("oneOf"),
            Just("allOf"),
            Just("$ref"),
            Just("$defs"),
            Just("enum"),
            Just("const"),
            Just("additionalProperties"),
            Just("patternProperties"),
            Just("nullable"),
            Just("description"),
            Just("format"),
            Just("a"),
            Just("b"),
            Just("minItems"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name, inner.clone(), 0..6).prop_map(|members| {
                Value::Object(
                    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                )
            }),
            prop::collection::btree_map(".{0,6}", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_becomes_a_text_that_can_be_read(input in schemas(), output in schemas(), name in ".{0,12}") {
        let tool = Tool { server: "s".into(), name, description: None, input, output: Some(output) };
        let text = declarations(std::slice::from_ref(&tool), "1");
        prop_assert_eq!(balanced(&text), Ok(()), "{}", text);
        prop_assert!(text.len() < 1 << 20);
        prop_assert_eq!(declarations(&[tool], "1"), text);
    }
}
