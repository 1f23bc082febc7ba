use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Options,
    command_words::{ArgumentSource, needs_schema, read},
};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "n": { "type": "integer" },
            "ratio": { "type": "number" },
            "dry_run": { "type": "boolean" },
            "verbose": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "sizes": { "type": "array", "items": { "type": "integer" } },
            "maxResults": { "type": ["integer", "null"] },
            "mode": { "enum": ["fast", 5, true] },
            "filter": { "$ref": "#/$defs/Filter" },
            "labels": { "type": "object", "additionalProperties": { "type": "integer" } },
            "free": { "type": "object" },
            "any": {},
            "text_or_flag": { "anyOf": [{ "type": "boolean" }, { "type": "string" }] },
            "a.b": { "type": "string" },
            "x-y": { "type": "string" },
            "x_y": { "type": "string" },
            "2fa": { "type": "string" },
        },
        "required": ["name"],
        "$defs": {
            "Filter": {
                "type": "object",
                "properties": {
                    "since": { "type": "string" },
                    "not": { "$ref": "#/$defs/Filter" },
                },
            },
        },
    })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Reads words and returns the arguments, or the error and its hint.
fn arguments(given: &[&str]) -> Result<Value, String> {
    let mut options = Options::default();
    match read(&words(given), &schema(), &mut options) {
        Ok(Some(ArgumentSource::Keys(values))) => Ok(Value::Object(values)),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(format!("{}. {}", error.text, error.hint.unwrap_or_default())),
    }
}

#[test]
fn an_argument_value_gets_the_type_that_the_schema_declares() {
    for (given, expected) in [
        (&["--2fa", "off"][..], json!({ "2fa": "off" })),
        (&["--name", "5"][..], json!({ "name": "5" })),
        (&["--name=--x"], json!({ "name": "--x" })),
        (&["--name", "-x"], json!({ "name": "-x" })),
        (&["--name", "null"], json!({ "name": "null" })),
        (&["--n", "-5"], json!({ "n": -5 })),
        (&["--ratio", "0.5"], json!({ "ratio": 0.5 })),
        (&["--ratio", "2"], json!({ "ratio": 2 })),
        (&["--max-results", "null"], json!({ "maxResults": null })),
        (&["--max_results", "3"], json!({ "maxResults": 3 })),
        (&["--mode", "fast"], json!({ "mode": "fast" })),
        (&["--mode", "5"], json!({ "mode": 5 })),
        (&["--any", "{\"a\":1}"], json!({ "any": { "a": 1 } })),
        (&["--any", "word"], json!({ "any": "word" })),
        (&["--any", "\"5\""], json!({ "any": "5" })),
        (&["--text-or-flag", "word"], json!({ "text_or_flag": "word" })),
        (&["--text-or-flag"], json!({ "text_or_flag": true })),
    ] {
        assert_eq!(arguments(given), Ok(expected), "{given:?}");
    }
}

#[test]
fn a_boolean_argument_stands_alone_or_has_a_value() {
    for (given, expected) in [
        (&["--verbose"][..], json!({ "verbose": true })),
        (&["--no-verbose"], json!({ "verbose": false })),
        (&["--verbose", "false"], json!({ "verbose": false })),
        (&["--verbose=true"], json!({ "verbose": true })),
        (&["--verbose", "--n", "1"], json!({ "verbose": true, "n": 1 })),
    ] {
        assert_eq!(arguments(given), Ok(expected), "{given:?}");
    }
}

#[test]
fn a_repeated_key_extends_a_list_and_dots_address_members() {
    for (given, expected) in [
        (&["--tags", "a", "--tags", "5"][..], json!({ "tags": ["a", "5"] })),
        (&["--sizes=1", "--sizes=[2,3]"], json!({ "sizes": [1, 2, 3] })),
        (&["--filter.since", "2026"], json!({ "filter": { "since": "2026" } })),
        (
            &["--filter.not.not.since", "x", "--filter.since", "y"],
            json!({ "filter": { "since": "y", "not": { "not": { "since": "x" } } } }),
        ),
        (&["--filter", "{\"since\":\"x\"}"], json!({ "filter": { "since": "x" } })),
        (&["--labels.a", "1", "--labels.b", "2"], json!({ "labels": { "a": 1, "b": 2 } })),
        (&["--free.any-thing", "word"], json!({ "free": { "any-thing": "word" } })),
        (&["--a.b", "x"], json!({ "a.b": "x" })),
        (&["--x-y", "1", "--x_y", "2"], json!({ "x-y": "1", "x_y": "2" })),
    ] {
        assert_eq!(arguments(given), Ok(expected), "{given:?}");
    }
}

#[test]
fn an_invalid_call_argument_is_reported_with_a_suggestion() {
    let error = |given: &[&str]| arguments(given).expect_err("it is invalid");
    let all = [
        &["--nmae", "x"][..],
        &["--no-verbos"],
        &["--zebra", "x"],
        &["--n", "many"],
        &["--mode", "slow"],
        &["--sizes", "x"],
        &["--name"],
        &["--name", "--n", "1"],
        &["--name", "a", "--name", "b"],
        &["--no-name"],
        &["--n", "1", "word"],
        &["--n", "1", "{}"],
        &["--filter.until", "x"],
        &["--timeout", "soon"],
        &["--json=yes"],
        &["{}", "{}"],
        &["{}", "--n", "1"],
    ];
    insta::assert_snapshot!(all.map(error).join("\n"), @r"
    the tool has no argument `nmae`. Did you mean `--name`? Add `--help` after the tool to see its arguments.
    the tool has no argument `no-verbos`. Did you mean `--verbose`? Add `--help` after the tool to see its arguments.
    the tool has no argument `zebra`. Add `--help` after the tool to see its arguments. Give others as one JSON object.
    `--n` cannot be `many`. Expected: integer.
    `--mode` cannot be `slow`. Expected: one of fast, 5, true.
    `--sizes` cannot be `x`. Expected: integer.
    `--name` needs a value. Write the value after the key. If it begins with `--`, write `--name=VALUE`.
    `--name` needs a value. Write the value after the key. If it begins with `--`, write `--name=VALUE`.
    `--name` is given twice. Give it once. Only a list takes several values.
    `--name` is not a switch. Give it a value: string.
    `word` is not a JSON object. Give the arguments as one JSON object, as `@FILE`, `-` for standard input, or as `--key value`.
    the arguments are given in two ways. Give one JSON object, a file, or `--key value` for each argument.
    the tool has no argument `filter.until`. Add `--help` after the tool to see its arguments. Give others as one JSON object.
    invalid `--timeout`: `soon` is not a duration, expected one such as `250ms`, `30s`, `5m` or `1h`; a number without a unit is in seconds. Write `--timeout 30s`.
    `--json` takes no value. Leave the value out.
    unexpected word `{}` after the arguments. Give one JSON object, `@FILE`, `-`, or `--key value` for each argument.
    the arguments are given in two ways. Give one JSON object, a file, or `--key value` for each argument.
    ");
}

#[test]
fn an_option_that_the_tool_declares_goes_to_the_tool_and_any_other_goes_to_the_cli() {
    let mut options = Options::default();
    let given = words(&["--dry-run", "--json", "--fields", "a,b", "--fields=c", "--timeout", "5s"]);
    let read_words = read(&given, &schema(), &mut options).expect("they are understood");
    let expected = json!({ "dry_run": true });
    assert_eq!(read_words, Some(ArgumentSource::Keys(expected.as_object().unwrap().clone())));
    assert!(options.common.json && !options.dry_run);
    assert_eq!(
        (options.fields.join(" "), options.timeout),
        ("a b c".to_owned(), Some(Duration::from_secs(5)))
    );

    let mut options = Options::default();
    let open = json!({ "type": "object" });
    let read_words =
        read(&words(&["--dry-run", "--x", "1", "--async"]), &open, &mut options).unwrap();
    let expected = json!({ "x": 1 });
    assert_eq!(read_words, Some(ArgumentSource::Keys(expected.as_object().unwrap().clone())));
    assert!(options.dry_run && options.is_async);
}

#[test]
fn arguments_are_read_from_the_source_that_the_words_name() {
    let source = |given: &[&str]| {
        let mut options = Options::default();
        match read(&words(given), &Value::Null, &mut options) {
            Ok(Some(source)) => source,
            other => panic!("{given:?}: {other:?}"),
        }
    };
    assert_eq!(source(&[]), ArgumentSource::Nothing);
    assert_eq!(source(&["{\"a\":1}", "--json"]), ArgumentSource::Json("{\"a\":1}".to_owned()));
    assert_eq!(source(&["-"]), ArgumentSource::Stdin);
    assert_eq!(source(&["@x.json", "--timeout=1"]), ArgumentSource::File("x.json".into()));
    assert_eq!(source(&["--file", "x.json"]), ArgumentSource::File("x.json".into()));
    assert!(!needs_schema(&words(&["{}", "--json"])) && !needs_schema(&words(&["-"])));
    assert!(!needs_schema(&[]) && needs_schema(&words(&["--n", "1"])));
    let mut options = Options::default();
    assert_eq!(read(&words(&["{}", "--help"]), &Value::Null, &mut options), Ok(None));
    assert_eq!(read(&words(&["-h"]), &schema(), &mut options), Ok(None));
}

#[test]
fn the_argument_parser_accepts_a_schema_that_refers_to_itself() {
    let schema = json!({
        "$ref": "#",
        "anyOf": [{ "$ref": "#" }, { "$ref": "#/anyOf/0" }],
        "properties": { "a": { "$ref": "#" } },
    });
    let mut options = Options::default();
    let given = words(&["--a.a.a", "{}"]);
    let Ok(Some(ArgumentSource::Keys(values))) = read(&given, &schema, &mut options) else {
        panic!("it is understood");
    };
    assert_eq!(Value::Object(values), json!({ "a": { "a": { "a": {} } } }));
}

proptest! {
    #[test]
    fn the_argument_parser_never_panics(
        given in prop::collection::vec("(--(no-)?[a-z.]{1,8}(=.*)?|.*)", 0..6),
        kind in prop::sample::select(vec!["string", "array", "object", "boolean", "integer", "?"]),
    ) {
        let schema = json!({ "properties": { "a": { "type": kind }, "b": { "items": { "type": kind } } } });
        let mut options = Options::default();
        let _understood_or_not = read(&given, &schema, &mut options);
    }
}
