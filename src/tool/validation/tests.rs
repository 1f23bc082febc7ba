mod hostile;

use proptest::prelude::*;

use super::*;
use crate::config::defaults::PROBLEMS_MAX;

fn check(schema: &Value, args: &Value) -> ArgumentVerdict {
    SchemaCache::default().check(Account::Unknown, &schema.to_string(), &args.to_string(), None)
}

fn lines(schema: &Value, args: &Value) -> Vec<String> {
    match check(schema, args) {
        ArgumentVerdict::Wrong(misfit) => {
            misfit.problems.iter().map(ArgumentProblem::to_string).collect()
        }
        ArgumentVerdict::Doubtful(doubts) => {
            doubts.iter().map(ArgumentProblem::to_string).collect()
        }
        ArgumentVerdict::Fits => Vec::new(),
        ArgumentVerdict::Unchecked(reason) => panic!("{reason}"),
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "branch": { "type": "string", "description": "The branch.", "minLength": 1 },
            "state": { "enum": ["open", "closed"] },
            "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
            "author": {
                "type": "object",
                "properties": { "email": { "type": "string", "pattern": "@" } },
                "required": ["email"],
            },
            "tags": { "type": "array", "items": { "type": "string" }, "uniqueItems": true },
            "since": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
        },
        "required": ["branch"],
        "additionalProperties": false,
    })
}

#[test]
fn valid_arguments_fit_the_schema() {
    let args = json!({ "branch": "main", "limit": 5, "author": { "email": "a@b", "x": 1 } });
    assert_eq!(check(&schema(), &args), ArgumentVerdict::Fits);
    assert_eq!(check(&json!({ "type": "object" }), &json!({ "a": 1 })), ArgumentVerdict::Fits);
}

#[test]
fn a_field_that_may_be_misspelt_is_reported_although_the_schema_allows_others() {
    let schema = json!({
        "type": "object",
        "properties": { "message": { "type": "string" }, "limit": { "type": "integer" } },
    });
    let doubts = |args: &Value| match check(&schema, args) {
        ArgumentVerdict::Doubtful(doubts) => {
            doubts.iter().map(ArgumentProblem::to_string).collect()
        }
        ArgumentVerdict::Fits => Vec::<String>::new(),
        other => panic!("{other:?}"),
    };
    let told = |name: &str, meant: &str| {
        format!("Field '{name}': the tool has no such field; did you mean `{meant}`?")
    };
    assert_eq!(
        doubts(&json!({ "msg": 1, "limti": 2 })),
        [told("limti", "limit"), told("msg", "message")]
    );
    // The similar field is already present, or no field is similar.
    let fine = json!({ "message": "a", "messages": 1, "trace": 2, "m": 3 });
    assert!(doubts(&fine).is_empty(), "{:?}", doubts(&fine));

    // If the field is required, it is an error anyway, which names the written field.
    let required = json!({ "properties": { "message": {} }, "required": ["message"] });
    assert_eq!(
        lines(&required, &json!({ "msg": 1, "other": 2 })),
        ["Field 'message': it is missing; did you write `msg` instead?"]
    );
    assert_eq!(lines(&required, &json!({ "x": 1 })), ["Field 'message': it is missing"]);
    // If a schema may allow more fields, there are no guesses.
    let mut open = schema.clone();
    open["patternProperties"] = json!({ "^m": {} });
    assert_eq!(check(&open, &json!({ "msg": 1 })), ArgumentVerdict::Fits);
}

#[test]
fn an_unknown_enum_value_is_reported_with_the_most_similar_of_many_values() {
    let names: Vec<String> = (0..1000).map(|n| format!("value-{n}")).collect();
    let schema = json!({ "properties": { "a": { "enum": names } } });
    let said = |value: &str| lines(&schema, &json!({ "a": value })).concat();
    assert_eq!(
        said("Value_77"),
        "Field 'a': it must be one of 1000 values; did you mean `value-77`?"
    );
    assert!(said("something else").ends_with("or 980 others"), "{}", said("something else"));
}

#[test]
fn each_problem_names_its_field_and_what_it_must_be() {
    for (args, expected) in [
        (json!({}), "Field 'branch': it is missing"),
        (json!({ "branch": 7 }), "Field 'branch': it must be a string, not a number"),
        (json!({ "branch": "" }), "Field 'branch': it must have at least 1 characters"),
        (
            json!({ "branch": "b", "brnch": 1 }),
            "Field 'brnch': there is no such field; did you mean `branch`?",
        ),
        (
            json!({ "branch": "b", "somewhere_else": 1 }),
            "Field 'somewhere_else': there is no such field; use one of `author`, `branch`, `limit`, `since`, `state`, `tags`",
        ),
        (
            json!({ "branch": "b", "state": "opn" }),
            r#"Field 'state': it must be one of "open", "closed""#,
        ),
        (json!({ "branch": "b", "limit": 0 }), "Field 'limit': it must be at least 1"),
        (json!({ "branch": "b", "limit": 101 }), "Field 'limit': it must be at most 100"),
        (
            json!({ "branch": "b", "limit": "5" }),
            "Field 'limit': it must be an integer, not a string",
        ),
        (json!({ "branch": "b", "author": {} }), "Field 'author.email': it is missing"),
        (
            json!({ "branch": "b", "author": { "email": "x" } }),
            "Field 'author.email': it must match the pattern `@`",
        ),
        (
            json!({ "branch": "b", "tags": ["a", 1] }),
            "Field 'tags[1]': it must be a string, not a number",
        ),
        (
            json!({ "branch": "b", "tags": ["a", "a"] }),
            "Field 'tags': its items must differ from each other",
        ),
        (
            json!({ "branch": "b", "since": [] }),
            "Field 'since': it must be a string or an integer, not an array",
        ),
        (json!([]), "The arguments: it must be an object, not an array"),
    ] {
        assert_eq!(lines(&schema(), &args), [expected], "{args}");
    }
}

#[test]
fn a_value_that_matches_no_alternative_is_reported_against_the_nearest_one() {
    let schema = json!({ "properties": { "to": { "oneOf": [
        { "type": "object", "required": ["id"] },
        { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name", "of"] },
        { "type": "string" },
    ] } } });
    assert_eq!(
        lines(&schema, &json!({ "to": { "name": "x" } })),
        [r#"Field 'to': it matches none of 3 alternatives; in the nearest, "id" is missing"#]
    );
}

#[test]
fn the_error_of_wrong_arguments_lists_problems_and_expected_values() {
    let ArgumentVerdict::Wrong(misfit) = check(&schema(), &json!({ "limit": 0, "stat": "open" }))
    else {
        panic!("it does not fit")
    };
    let error = misfit.to_error(&ToolId::new("git", "log"));
    assert_eq!(error.code, ErrorCode::ValidationInput);
    assert!(!error.retryable);
    let expected = &error.details["expected"];
    assert_eq!(
        expected["branch"],
        json!({ "type": "string", "description": "The branch.", "minLength": 1 })
    );
    assert_eq!(expected["limit"]["maximum"], 100);
    insta::assert_snapshot!(error.text(), @r"
    `git/log` was not called: the arguments do not match its schema. Fix these problems and call again.
    - Field 'limit': it must be at least 1
    - Field 'stat': there is no such field; did you mean `state`?
    - Field 'branch': it is missing
    ");
}

#[test]
fn the_number_of_reported_problems_is_limited_and_a_long_value_is_not_repeated() {
    let args = json!({ "tags": vec![json!({ "x": "y".repeat(10_000) }); 1000] });
    let ArgumentVerdict::Wrong(misfit) = check(&schema(), &args) else { panic!("it does not fit") };
    assert!(misfit.has_more && misfit.problems.len() == PROBLEMS_MAX);
    assert!(misfit.to_error(&ToolId::new("a", "b")).to_result().len() < 8000);

    let many: serde_json::Map<String, Value> =
        (0..10_000).map(|n| (format!("{n}{}", "x".repeat(1000)), json!(1))).collect();
    let ArgumentVerdict::Wrong(misfit) = check(&schema(), &Value::Object(many)) else {
        panic!("it")
    };
    assert!(misfit.to_error(&ToolId::new("a", "b")).to_result().len() < 16_000);
}

#[test]
fn an_unusable_schema_lets_the_call_through() {
    for (schema, reason) in [
        (json!({ "type": "strnig" }), "is unusable"),
        (json!({ "$ref": "http://127.0.0.1:9/schema.json" }), "is unusable"),
        (json!({ "$ref": "#/$defs/none" }), "is unusable"),
        (json!({ "$schema": "https://example.org/own" }), "is unusable"),
        (json!({ "properties": { "a": { "pattern": "(?=a" } } }), "is unusable"),
        (json!({ "description": "x".repeat(SCHEMA_BYTES_MAX) }), "reads at most"),
    ] {
        match check(&schema, &json!({})) {
            ArgumentVerdict::Unchecked(why) => assert!(why.to_string().contains(reason), "{why}"),
            other => panic!("{schema}: {other:?}"),
        }
    }
    let verdict = SchemaCache::default().check(Account::Unknown, "{}", r#"{"a":1e400}"#, None);
    assert_eq!(verdict, ArgumentVerdict::Unchecked(UncheckedArguments::Unreadable));
}

#[test]
fn a_pattern_with_lookaround_is_matched_within_a_limit() {
    let schema = json!({ "properties": {
        "mail": { "pattern": "^(?!\\.)(?!.*\\.\\.)[a-z.]+@[a-z.]+$" },
        "bomb": { "pattern": "^(?=a)((a+)+)+(?!b)$" },
        "n": { "type": "integer" },
    } });
    assert_eq!(check(&schema, &json!({ "mail": "a.b@c.d", "n": 1 })), ArgumentVerdict::Fits);
    let wrong = lines(&schema, &json!({ "mail": "a..b@c.d", "n": "1" }));
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    let long = format!("{}!", "a".repeat(5000));
    assert_eq!(check(&schema, &json!({ "bomb": long })), ArgumentVerdict::Fits);
}

#[test]
fn a_schema_is_read_as_the_draft_that_it_declares() {
    let tuple = json!({ "properties": { "a": { "items": [{ "type": "string" }] } } });
    let mut old = tuple.clone();
    old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    let args = json!({ "a": [1] });
    assert_eq!(lines(&old, &args), ["Field 'a[0]': it must be a string, not a number"]);
    assert!(matches!(check(&tuple, &args), ArgumentVerdict::Unchecked(_)));
    let new = json!({ "properties": { "a": { "prefixItems": [{ "type": "string" }] } } });
    assert_eq!(lines(&new, &args), ["Field 'a[0]': it must be a string, not a number"]);
}

#[test]
fn the_check_of_a_recursive_schema_ends() {
    let tree = json!({
        "$defs": { "node": {
            "type": "object",
            "properties": { "children": { "items": { "$ref": "#/$defs/node" } } },
        } },
        "$ref": "#/$defs/node",
    });
    assert_eq!(lines(&tree, &json!({ "children": [{ "children": [7] }] })).len(), 1);
    for endless in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }),
        json!({ "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }, { "not": { "$ref": "#/$defs/a" } }] } }, "$ref": "#/$defs/a" }),
    ] {
        drop(check(&endless, &json!({ "a": 1 })));
    }
}

#[test]
fn only_cheap_checks_run_at_once() {
    let validators = SchemaCache::default();
    let (schema, broken) = (r#"{"required":["a"]}"#, "{");
    for schema in [schema, broken] {
        assert_eq!(
            validators.check_briefly(Account::Unknown, schema, "{}"),
            None,
            "it is not compiled yet"
        );
        let verdict = validators.check(Account::Unknown, schema, "{}", None);
        assert_eq!(
            validators.check_briefly(Account::Unknown, schema, "{}"),
            Some(verdict),
            "{schema}"
        );
    }
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(INLINE_BYTES_MAX));
    assert_eq!(validators.check_briefly(Account::Unknown, schema, &large), None);
    let too_large = " ".repeat(SCHEMA_BYTES_MAX + 1);
    assert!(matches!(
        validators.check_briefly(Account::Unknown, &too_large, "{}"),
        Some(ArgumentVerdict::Unchecked(_))
    ));
}

#[test]
fn the_schema_cache_keeps_compiled_schemas_and_evicts_the_least_recently_used() {
    let validators = SchemaCache::default();
    let schema = |n: usize| format!(r#"{{"title":"{n}"}}"#);
    for n in 0..VALIDATORS_MAX {
        assert_eq!(
            validators.check(Account::Unknown, &schema(n), "{}", None),
            ArgumentVerdict::Fits
        );
    }
    let known = |n| validators.lock(|cache| cache.by_key.contains_key(&key(&schema(n))));
    validators.check(Account::Unknown, &schema(0), "{}", None);
    validators.check(Account::Unknown, &schema(VALIDATORS_MAX), "{}", None);
    assert!(known(0) && !known(1) && known(VALIDATORS_MAX));
    let large = |n: usize| format!(r#"{{"title":"{n}{}"}}"#, "x".repeat(SCHEMA_BYTES_MAX / 2));
    for n in 0..=2 * VALIDATORS_BYTES_MAX / SCHEMA_BYTES_MAX {
        validators.check(Account::Unknown, &large(n), "{}", None);
    }
    let (bytes, sum) = validators
        .lock(|cache| (cache.bytes, cache.by_key.values().map(|known| known.bytes).sum::<usize>()));
    assert!(bytes == sum && bytes <= VALIDATORS_BYTES_MAX, "{bytes} {sum}");
    let n_known = validators.lock(|cache| cache.by_key.len());
    assert!(n_known < VALIDATORS_MAX, "their bytes are the tighter bound: {n_known}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_schema_gives_a_verdict(
        keyword in "(type|enum|required|properties|items|anyOf|\\$ref|\\$id|pattern|const|not|if|minimum|\\$schema|\\$defs)",
        value in prop_oneof![
            Just(json!(null)), Just(json!([])), Just(json!({})), Just(json!("x")), Just(json!(-1)),
            Just(json!([{}])), Just(json!({ "x": "y" })), Just(json!({ "x": { "$ref": "#" } })), Just(json!("#")),
        ],
        args in prop_oneof![Just(json!({})), Just(json!({ "x": 1 })), Just(json!({ "x": { "x": [] } }))],
    ) {
        if let ArgumentVerdict::Wrong(misfit) = check(&json!({ (keyword): value }), &args) {
            prop_assert!(!misfit.to_error(&ToolId::new("a", "b")).text().is_empty());
        }
    }
}
