use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn fields(paths: &[&str]) -> FieldSelection {
    FieldSelection::parse(paths.iter().copied()).expect("paths")
}

fn of(paths: &[&str], value: &str) -> Option<String> {
    found(&fields(paths), value)
}

fn found(fields: &FieldSelection, value: &str) -> Option<String> {
    let search = &mut Search { n_bytes_left: FIELD_BYTES_READ_MAX, stop: &AtomicBool::new(false) };
    fields.of(value, search)
}

fn apply(fields: &FieldSelection, result: &str) -> String {
    fields.apply(result, &AtomicBool::new(false))
}

#[test]
fn a_selected_field_keeps_its_position_and_its_spelling() {
    let value = r#"{"total":1e400,"rows":[{"name":"a","size":1.0},{"name":"b"},{"size":2},7],"x":{"y":{"z":null}}}"#;
    for (paths, expected) in [
        (&["total"][..], r#"{"total":1e400}"#),
        (&["rows[].name"], r#"{"rows":[{"name":"a"},{"name":"b"}]}"#),
        (&["rows.name"], r#"{"rows":[{"name":"a"},{"name":"b"}]}"#),
        (&["rows[].size"], r#"{"rows":[{"size":1.0},{"size":2}]}"#),
        (&["x.y.z"], r#"{"x":{"y":{"z":null}}}"#),
        (&["x.y", "x.y.z"], r#"{"x":{"y":{"z":null}}}"#),
        (&["none", "x.none", "total.none", "total"], r#"{"total":1e400}"#),
    ] {
        assert_eq!(of(paths, value).as_deref(), Some(expected), "{paths:?}");
    }
    assert_eq!(of(&["none"], value), None);
    assert_eq!(of(&["rows[].none"], value), None);
}

#[test]
fn two_fields_of_one_array_come_back_together() {
    let value = r#"{"rows":[{"a":1,"b":2,"c":3},{"b":4},{"c":5}]}"#;
    assert_eq!(
        of(&["rows[].a", "rows[].b"], value).as_deref(),
        Some(r#"{"rows":[{"a":1,"b":2},{"b":4}]}"#)
    );
}

#[test]
fn nested_arrays_and_an_array_as_the_whole_value_are_searched() {
    assert_eq!(of(&["[].a"], r#"[{"a":1},{"b":2}]"#).as_deref(), Some(r#"[{"a":1}]"#));
    assert_eq!(of(&["a"], r#"[{"a":1},{"b":2}]"#).as_deref(), Some(r#"[{"a":1}]"#));
    let value = r#"{"r":[[{"a":1,"b":0}],[{"b":2}],{"a":3}]}"#;
    assert_eq!(of(&["r[][].a"], value).as_deref(), Some(r#"{"r":[[{"a":1}],{"a":3}]}"#));
}

#[test]
fn a_field_selection_does_not_follow_excessive_nesting() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(of(&["a"], &deep), None);
}

#[test]
fn a_malformed_path_is_refused() {
    for path in ["", ".", "a.", ".a", "a..b", "[]", "a.[]"] {
        assert!(matches!(FieldSelection::parse([path]), Err(FieldPathError::Empty(_))), "{path}");
    }
    let deep = "a.".repeat(FIELD_DEPTH_MAX) + "a";
    assert_eq!(FieldSelection::parse([&*deep]), Err(FieldPathError::Deep));
    assert_eq!(FieldSelection::parse(vec!["a"; FIELDS_MAX + 1]), Err(FieldPathError::Many));
}

#[test]
fn fields_are_selected_from_the_structured_value_and_the_text_that_repeats_it() {
    let result = r#"{"x":1e400,"content":[{"type":"text","text":"{ \"a\": 1, \"b\": 2 }"},{"type":"text","text":"{\"a\":3}"}],"structuredContent":{"a":1,"b":2},"isError":false}"#;
    assert_eq!(
        apply(&fields(&["b"]), result),
        r#"{"x":1e400,"content":[{"type":"text","text":"{\"b\":2}"},{"type":"text","text":"{\"a\":3}"}],"structuredContent":{"b":2},"isError":false}"#
    );
}

#[test]
fn fields_that_the_structured_value_lacks_are_selected_from_json_texts() {
    let image = r#"{ "type":"image","data":"AAAA","mimeType":"image/png"}"#;
    let result = format!(
        r#"{{"content":[{{"type":"text","text":"{{\"a\":1,\"b\":2}}","annotations":{{"priority":1e0}}}},{image},{{"type":"text","text":"a is 1"}},{{"type":"text","text":"[{{\"c\":1}}]"}}],"structuredContent":{{"c":1}}}}"#
    );
    assert_eq!(
        apply(&fields(&["a"]), &result),
        format!(
            r#"{{"content":[{{"type":"text","text":"{{\"a\":1}}","annotations":{{"priority":1e0}}}},{image},{{"type":"text","text":"a is 1"}},{{"type":"text","text":"[{{\"c\":1}}]"}}],"structuredContent":{{"c":1}}}}"#
        )
    );
}

#[test]
fn a_result_without_the_fields_stays_whole_behind_a_list_of_its_paths() {
    let is_whole = "This is the whole result";
    for (content, structured, words) in [
        (r#"[ {"type":"text","text":"{\"a\":1}"} ]"#, "", "Its paths: a"),
        (r#"[{"type":"text","text":"{\"a\":"}]"#, "", "it has no such parts"),
        (r#"[{"type":"text","text":"words"},{"type":"image"}]"#, "", "selects parts of JSON"),
        ("[]", r#"{"rows": [ {"a":1e400} ]}"#, "Its paths: rows[].a"),
    ] {
        let structured = match structured {
            "" => String::new(),
            value => format!(r#","structuredContent":{value}"#),
        };
        let result = format!(r#"{{"content":{content}{structured}}}"#);
        let told = apply(&fields(&["b"]), &result);
        let read: Value = serde_json::from_str(&told.replace("1e400", "1")).expect("JSON");
        let note = read["content"][0]["text"].as_str().expect("a text");
        assert!(note.contains(is_whole) && note.contains(words), "{note}");
        assert!(told.ends_with(&format!("{structured}}}")), "{told}");
        assert!(told.contains(&content[1..]), "{told}");
        assert_eq!(apply(&FieldSelection::default(), &result), result);
    }
    let alone = apply(&fields(&["b"]), r#"{"structuredContent":{"a":1}}"#);
    assert!(alone.contains("Its paths: a") && alone.contains(r#""structuredContent":{"a":1}"#));
}

#[test]
fn failures_and_malformed_results_stay_unchanged() {
    for result in [
        r#"{ "content": [ {"type":"text","text":"{\"a\":1}"} ], "isError": true }"#,
        r#"{"content":"{\"b\":1}"}"#,
        "[]",
        "{",
        "",
    ] {
        assert_eq!(apply(&fields(&["b"]), result), result);
        assert_eq!(apply(&FieldSelection::default(), result), result);
    }
}

#[test]
fn a_slow_or_abandoned_field_selection_stops_and_leaves_the_result_whole() {
    // Each nested array is read again.
    let nested = format!("{}{}{}", "[".repeat(30), "[1],".repeat(3 << 20), "[1]");
    let nested = format!("{nested}{}", "]".repeat(30));
    let result = format!(r#"{{"content":[],"structuredContent":{nested}}}"#);
    let told = apply(&fields(&["a"]), &result);
    assert!(
        told.contains(TOO_LONG) && told.ends_with(&result[result.len() - 99..]),
        "{}",
        &told[..99]
    );

    let result = r#"{"content":[],"structuredContent":{"a":{"b":1}}}"#;
    let stopped = fields(&["a.b"]).apply(result, &AtomicBool::new(true));
    assert!(stopped.contains(TOO_LONG), "{stopped}");
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[abc]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns whether `part` is `whole` with some parts left out.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(name, value)| whole.get(name).is_some_and(|whole| is_part(value, whole))),
        (Value::Array(part), Value::Array(whole)) => {
            let mut rest = whole.iter();
            part.iter().all(|item| rest.any(|whole| is_part(item, whole)))
        }
        (part, whole) => part == whole,
    }
}

proptest! {
    #[test]
    fn a_field_selection_returns_a_part_of_the_original_value(
        value in json(),
        paths in prop::collection::vec("[abc](\\[\\])?(\\.[abc](\\[\\])?){0,3}", 1..4),
    ) {
        let fields = FieldSelection::parse(paths.iter().map(String::as_str)).expect("paths");
        if let Some(found) = found(&fields, &value.to_string()) {
            let found: Value = serde_json::from_str(&found).expect("JSON");
            prop_assert!(is_part(&found, &value), "{} of {}", found, value);
            prop_assert_eq!(super::tests::found(&fields, &found.to_string()), Some(found.to_string()));
        }
        let result = json!({ "content": value, "structuredContent": value }).to_string();
        let applied = apply(&fields, &result);
        prop_assert!(serde_json::from_str::<Value>(&applied).is_ok());
    }

    #[test]
    fn any_path_and_any_result_are_handled_without_a_panic(path in ".{0,30}", text in ".{0,60}") {
        if let Ok(fields) = FieldSelection::parse([path.as_str()]) {
            drop(apply(&fields, &text));
        }
    }
}
