use proptest::prelude::*;
use serde_json::json;

use super::*;

fn marks(schema: &Value) -> Result<Vec<HeaderParameter>, HeaderMarkError> {
    header_parameters(&schema.to_string())
}

fn of_property(property: &Value) -> Result<Vec<HeaderParameter>, HeaderMarkError> {
    marks(&json!({ "type": "object", "properties": { "a": property } }))
}

#[test]
fn a_value_that_a_header_cannot_carry_is_encoded() {
    for (value, header) in [
        ("us-west1", "us-west1"),
        ("a b", "a b"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        assert_eq!(encode(value), header);
        assert_eq!(decode(header).as_deref(), Some(value));
    }
}

#[test]
fn an_undecodable_header_differs_from_an_empty_one() {
    for broken in ["=?base64?SGVsbG8?=", "=?base64?!?=", "=?base64?/w==?=", "\u{7f}", "ä"] {
        assert_eq!(decode(broken), None, "{broken}");
    }
    for (header, value) in [
        ("  x\t", "x"),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
        ("=?base64?", "=?base64?"),
        ("=?base64??=", ""),
    ] {
        assert_eq!(decode(header).as_deref(), Some(value), "{header}");
    }
}

proptest! {
    #[test]
    fn any_value_survives_header_encoding(value in "\\PC{0,12}|[ -~\t\r\n]{0,12}|=\\?base64\\?.{0,4}\\?=") {
        let header = encode(&value);
        prop_assert!(header.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{header}");
        let decoded = decode(&header);
        prop_assert_eq!(decoded.as_deref(), Some(value.as_str()));
    }
}

#[test]
fn marked_arguments_of_a_schema_are_found_with_their_paths() {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "x-mcp-header": { "type": "string" },
            "inner": { "type": "object", "properties": {
                "n": { "type": ["integer", "null"], "x-mcp-header": "N" },
            }},
            "sql": { "type": "string", "default": { "x-mcp-header": "no schema" } },
        },
    });
    let mut found = marks(&schema).expect("marks");
    found.sort_by(|one, other| one.header.cmp(&other.header));
    let found: Vec<_> = found.iter().map(|one| (one.header.as_str(), one.path.join("/"))).collect();
    assert_eq!(
        found,
        [("mcp-param-n", "inner/n".to_owned()), ("mcp-param-region", "region".to_owned())]
    );
    assert_eq!(marks(&json!({ "type": "object" })), Ok(Vec::new()));
}

#[test]
fn a_tool_with_an_invalid_header_mark_is_rejected() {
    let string = |mark: Value| json!({ "type": "string", "x-mcp-header": mark });
    for name in [json!(""), json!("a b"), json!("a\r\nb"), json!("ä"), json!("a:b"), json!(7)] {
        assert!(
            matches!(of_property(&string(name.clone())), Err(HeaderMarkError::Name(_))),
            "{name}"
        );
    }
    for kind in [json!("number"), json!("object"), json!("array"), json!("null"), json!(["null"])] {
        let property = json!({ "type": kind, "x-mcp-header": "A" });
        assert_eq!(of_property(&property), Err(HeaderMarkError::Kind("A".into())), "{kind}");
    }
    assert_eq!(
        of_property(&json!({ "x-mcp-header": "A" })),
        Err(HeaderMarkError::Kind("A".into()))
    );
    let twice = json!({ "properties": { "a": string(json!("Ab")), "b": string(json!("aB")) } });
    assert_eq!(marks(&twice), Err(HeaderMarkError::Twice("mcp-param-ab".into())));
    let mark = string(json!("A"));
    for misplaced in [
        json!({ "x-mcp-header": "A", "type": "object" }),
        json!({ "properties": { "a": { "type": "array", "items": mark } } }),
        json!({ "properties": { "a": { "prefixItems": [mark] } } }),
        json!({ "oneOf": [{ "properties": { "a": mark } }] }),
        json!({ "if": { "properties": { "a": mark } } }),
        json!({ "additionalProperties": mark }),
        json!({ "$defs": { "a": mark } }),
    ] {
        assert!(matches!(marks(&misplaced), Err(HeaderMarkError::Place(_))), "{misplaced}");
    }
}

#[test]
fn a_parameter_header_must_agree_with_its_argument() {
    let argument =
        HeaderParameter { header: "mcp-param-a".into(), path: vec!["o".into(), "a".into()] };
    for (value, header, agrees) in [
        (json!("x"), Some("x"), true),
        (json!("x"), Some("=?base64?eA==?="), true),
        (json!("x"), Some("X"), false),
        (json!("x"), Some("=?base64?eA?="), false),
        (json!("x"), None, false),
        (json!("42.0"), Some("42"), false),
        (json!(42), Some("42"), true),
        (json!(42), Some("42.0"), true),
        (json!(42.0), Some("42"), true),
        (json!(42), Some("43"), false),
        (json!(42), Some("forty-two"), false),
        (json!(-7), Some("-7"), true),
        (json!(true), Some("true"), true),
        (json!(true), Some("True"), false),
        (json!(null), None, true),
        (json!(null), Some("null"), false),
        (json!({}), None, true),
        (json!(1.5), None, true),
        (json!(1_u64 << 53), None, true),
    ] {
        let arguments = json!({ "o": { "a": value } });
        assert_eq!(argument.agrees(&arguments, header), agrees, "{value} {header:?}");
    }
    assert!(argument.agrees(&json!({}), None));
    assert!(!argument.agrees(&Value::Null, Some("x")), "nothing to repeat");
}

#[test]
fn the_arguments_of_a_call_are_found() {
    let call = |params| Message::request("tools/call", params);
    let found = arguments(&call(Some(r#"{"name":"a","arguments":{"b":1}}"#)));
    assert_eq!(found.as_deref(), Some(r#"{"b":1}"#));
    assert_eq!(arguments(&call(Some(r#"{"name":"a"}"#))), None);
    assert_eq!(arguments(&call(None)), None);
}

#[test]
fn tools_with_marked_arguments_are_found_on_a_page() {
    let tool = |name, mark| {
        json!({ "name": name, "inputSchema": {
            "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": mark } },
        }})
    };
    let plain = json!({ "name": "plain", "inputSchema": { "type": "object" } });
    let page = json!({ "tools": [plain, tool("good", "A"), tool("bad", "")] }).to_string();
    let found = marked_tools(&page);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["good"]);
    assert_eq!(found["good"][0].header, "mcp-param-a");
    assert!(marked_tools("{}").is_empty());
}
