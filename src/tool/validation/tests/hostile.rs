//! Tests with schemas and arguments that are made to take long.

use std::time::Duration;

use serde_json::Map;
use tokio::time::Instant;

use super::*;
use crate::config::defaults::COSTLY_ACCOUNTS_MAX;

/// The maximum duration of a check in a debug build, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

const LEVELS: usize = 40;

/// The steps of these checks: enough for ordinary schemas, and soon spent in a debug build.
const STEPS: u64 = 500_000;

/// Returns a chain of definitions under `key`, each made of the next by `level`; `leaf` is last.
fn reference_chain(key: &str, n: usize, leaf: Value, level: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for number in 0..n {
        let next = json!({ "$ref": format!("#/{key}/d{}", number + 1) });
        definitions.insert(format!("d{number}"), level(next));
    }
    definitions.insert(format!("d{n}"), leaf);
    json!({ (key): definitions, "$ref": format!("#/{key}/d0") })
}

fn twice(keyword: &'static str) -> impl Fn(Value) -> Value {
    move |next| json!({ (keyword): [next.clone(), next] })
}

fn draft_7(mut schema: Value) -> Value {
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema
}

/// Returns the verdict of a check, and asserts that it took no longer than a check may.
fn timely(name: &str, schema: &Value, args: &Value) -> ArgumentVerdict {
    let since = Instant::now();
    let verdict = match CompiledSchema::new(&schema.to_string()) {
        Ok(compiled) => compiled
            .check(&args.to_string(), STEPS, None)
            .unwrap_or(ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly)),
        Err(reason) => ArgumentVerdict::Unchecked(reason),
    };
    let took = since.elapsed();
    assert!(took < PATIENCE, "{name} took {took:?}: {verdict:?}");
    verdict
}

fn is_reported(verdict: &ArgumentVerdict) -> bool {
    matches!(verdict, ArgumentVerdict::Unchecked(reason) if reason.should_report())
}

#[test]
fn a_schema_that_doubles_with_each_level_is_left_unchecked() {
    let leaf = || json!({ "type": "string" });
    let objects = |next: Value| json!({ "if": next.clone(), "then": next.clone(), "else": next });
    let negated = |next: Value| json!({ "anyOf": [{ "not": { "not": next.clone() } }, next] });
    let dependent =
        |next: Value| json!({ "dependentSchemas": { "a": { "anyOf": [next.clone(), next] } } });
    for (name, schema) in [
        ("anyOf", reference_chain("$defs", LEVELS, leaf(), twice("anyOf"))),
        ("oneOf", reference_chain("$defs", LEVELS, leaf(), twice("oneOf"))),
        ("allOf", reference_chain("$defs", LEVELS, json!({ "type": "object" }), twice("allOf"))),
        ("an unknown place", reference_chain("x-defs", LEVELS, leaf(), twice("anyOf"))),
        ("never", reference_chain("$defs", LEVELS, json!(false), twice("anyOf"))),
        ("never, elsewhere", reference_chain("x-defs", LEVELS, json!(false), twice("anyOf"))),
        ("always", reference_chain("$defs", LEVELS, json!(true), twice("allOf"))),
        ("empty values", reference_chain("x-defs", LEVELS, json!({ "enum": [] }), twice("anyOf"))),
        ("draft 7", draft_7(reference_chain("definitions", LEVELS, leaf(), twice("anyOf")))),
        (
            "draft 7, never",
            draft_7(reference_chain("x-defs", LEVELS, json!(false), twice("anyOf"))),
        ),
        ("if", reference_chain("$defs", LEVELS, leaf(), objects)),
        ("not", reference_chain("$defs", LEVELS, leaf(), negated)),
        ("dependentSchemas", reference_chain("$defs", LEVELS, leaf(), dependent)),
    ] {
        let verdict = timely(name, &schema, &json!({ "a": 1 }));
        assert!(is_reported(&verdict), "{name}: {verdict:?}");
    }
    let mut unevaluated = reference_chain("$defs", LEVELS, leaf(), twice("anyOf"));
    unevaluated["unevaluatedProperties"] = json!(false);
    assert!(is_reported(&timely("unevaluated", &unevaluated, &json!({ "a": 1 }))));
    let mut unevaluated = reference_chain("$defs", 8, json!({ "type": "object" }), twice("anyOf"));
    unevaluated["unevaluatedProperties"] = json!(false);
    assert!(matches!(timely("few", &unevaluated, &json!({ "a": 1 })), ArgumentVerdict::Wrong(_)));
}

#[test]
fn the_check_of_a_long_reference_chain_ends() {
    let as_it_is = |next: Value| next;
    let leaf = || json!({ "type": "string" });
    let wrapped = |next: Value| json!({ "allOf": [next] });
    for (name, schema) in [
        ("references", reference_chain("$defs", 3000, leaf(), as_it_is)),
        ("references, draft 7", draft_7(reference_chain("definitions", 3000, leaf(), as_it_is))),
        ("lists of one", reference_chain("$defs", 3000, leaf(), wrapped)),
        ("lists of one, draft 7", draft_7(reference_chain("x-defs", 3000, leaf(), wrapped))),
    ] {
        let verdict = timely(name, &schema, &json!({ "a": 1 }));
        assert!(is_reported(&verdict), "{name}: {verdict:?}");
    }
    let mut nested = leaf();
    for _ in 0..120 {
        nested = json!({ "not": nested });
    }
    assert!(is_reported(&timely("nested", &nested, &json!({}))));
}

#[test]
fn a_reference_that_cannot_be_bounded_is_not_followed() {
    let inner = || reference_chain("x", LEVELS, json!(false), twice("anyOf"));
    for (name, schema) in [
        ("in a value", json!({ "const": { "a": inner() }, "$ref": "#/const/a" })),
        ("an anchor in no part", json!({ "x": { "$anchor": "n" }, "$ref": "#n" })),
        (
            "another resource",
            json!({ "$defs": { "r": { "$id": "http://a/b", "$ref": "#/x/d0" } } }),
        ),
        ("ours", json!({ "x": { "!metamcp": true } })),
    ] {
        let verdict = timely(name, &schema, &json!({ "a": 1 }));
        assert!(matches!(verdict, ArgumentVerdict::Unchecked(_)), "{name}: {verdict:?}");
    }
    // A pointer may be written in other ways.
    let encoded = reference_chain("x-defs", LEVELS, json!(false), |_| json!({}));
    let mut encoded = encoded.to_string().replace("{}", "true");
    for number in 0..LEVELS {
        let next = json!({ "$ref": format!("json-schema:///#/x%2Ddefs/d{}", number + 1) });
        let level = json!({ "anyOf": [next.clone(), next] });
        encoded =
            encoded.replace(&format!("\"d{number}\":true"), &format!("\"d{number}\":{level}"));
    }
    let schema: Value = serde_json::from_str(&encoded).expect("JSON");
    let verdict = timely("encoded", &schema, &json!({ "a": 1 }));
    assert!(is_reported(&verdict), "{verdict:?}");
}

#[test]
fn schemas_that_take_long_to_compile_are_abandoned() {
    let mut scopes = Map::new();
    for number in 0..LEVELS {
        for side in ["a", "b"] {
            let next = |side: &str| json!({ "$ref": format!("http://x/{side}{}", number + 1) });
            let part = json!({ "$id": format!("http://x/{side}{number}"), "anyOf": [next("a"), next("b")] });
            scopes.insert(format!("{side}{number}"), part);
        }
    }
    for side in ["a", "b"] {
        let part = json!({ "$id": format!("http://x/{side}{LEVELS}"), "$dynamicRef": "#n", "$dynamicAnchor": "n" });
        scopes.insert(format!("{side}{LEVELS}"), part);
    }
    let scopes = json!({ "$defs": scopes, "$ref": "http://x/a0" });
    assert!(is_reported(&timely("dynamic scopes", &scopes, &json!({ "a": 1 }))));

    let name = "n".repeat(100_000);
    let parts: Vec<Value> = (0..4000).map(|n| json!({ "minLength": n })).collect();
    let long = json!({ "properties": { (name): { "anyOf": parts } } });
    assert!(is_reported(&timely("long paths", &long, &json!({ "a": 1 }))));

    let many: Map<String, Value> = (0..4000)
        .map(|n| (format!("p{n}"), json!({ "pattern": format!("^(a{{{n},4000}})$") })))
        .collect();
    assert!(is_reported(&timely("patterns", &json!({ "properties": many }), &json!({}))));
    let nested = json!({ "pattern": "((a{100}){100}){100}" });
    assert!(is_reported(&timely("a pattern", &nested, &json!({}))));
    let looking = json!({ "pattern": "(?=a)(((a{100}){100}){100})" });
    assert!(matches!(
        timely("it looks around", &looking, &json!({})),
        ArgumentVerdict::Fits | ArgumentVerdict::Doubtful(_) | ArgumentVerdict::Unchecked(_)
    ));
}

// One row for each case: a table, however long.
#[test]
fn arguments_that_take_long_are_left_unchecked() {
    let collide: Vec<Value> = (0..14_u32)
        .flat_map(|depth| (0..3000).map(move |n| (depth, n)))
        .map(|(depth, n)| (0..depth).fold(json!(u64::MAX - n), |inner, _| json!([inner])))
        .collect();
    let large_enum: Vec<Value> = (0..500).map(|n| json!({ "a": vec!["x"; 50], "b": n })).collect();
    let wrong = json!({ "x".repeat(100_000): vec![1; 20_000] });
    let mut deep = json!(7);
    for _ in 0..100 {
        deep = json!({ "c": deep });
    }
    let groups: String = (0..100_000).map(|n| format!("(?<g{n}>)")).collect();
    let both = json!({ "$ref": "#" });
    let string = json!({ "type": "string" });
    for (name, schema, args) in [
        (
            "uniqueItems",
            json!({ "properties": { "a": { "uniqueItems": true } } }),
            json!({ "a": collide }),
        ),
        (
            "enum",
            json!({ "additionalProperties": { "items": { "enum": large_enum } } }),
            json!({ "a": vec![json!({ "a": vec!["x"; 50], "b": -1 }); 10_000] }),
        ),
        ("errors", json!({ "additionalProperties": { "items": string } }), wrong),
        (
            "a path for each error",
            json!({ "additionalProperties": { "items": { "anyOf": vec![string.clone(); 100] } } }),
            json!({ "a": vec![1; 20_000] }),
        ),
        (
            "two ways into each level",
            json!({ "properties": { "c": { "anyOf": [
                { "allOf": [both.clone()], "minProperties": 2 }, { "allOf": [both], "required": ["x"] },
            ] } } }),
            json!({ "c": deep }),
        ),
        (
            "a pattern of many states",
            json!({ "properties": { "a": { "pattern": "^[ab]*a[ab]{2000}c" } } }),
            json!({ "a": "ab".repeat(500_000) }),
        ),
        (
            "a pattern that looks around",
            json!({ "properties": { "a": { "items": { "pattern": "^(?=a)((a+)+)+(?!b)$" } } } }),
            json!({ "a": vec!["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"; 2000] }),
        ),
        (
            "patterns of names",
            json!({ "patternProperties": (0..1000).map(|n| (format!("^a.*b{n}$"), string.clone())).collect::<Map<_, _>>() }),
            Value::Object((0..10_000).map(|n| (format!("a{n}"), json!(1))).collect()),
        ),
        (
            "patterns of each name",
            json!({ "propertyNames": { "allOf": vec![json!({ "pattern": "^[ab]*a[ab]{500}c" }); 100] } }),
            json!({ "ab".repeat(10_000): 1 }),
        ),
        (
            "a text that is a pattern",
            draft_7(json!({ "properties": { "a": { "format": "regex" } } })),
            json!({ "a": groups }),
        ),
        (
            "nothing to look at",
            json!({ "additionalProperties": { "items": { "anyOf": vec![false; 2000] } } }),
            json!({ "a": vec![1; 10_000] }),
        ),
    ] {
        let verdict = timely(name, &schema, &args);
        assert!(is_reported(&verdict), "{name}: {verdict:?}");
    }
}

#[test]
fn the_schema_cache_remembers_costly_arguments_and_still_checks_other_arguments() {
    let validators = SchemaCache::default();
    let schema = json!({ "properties": {
        "a": { "uniqueItems": true },
        "b": { "type": "string" },
    } });
    let schema = schema.to_string();
    // Their digests are equal, as a float cannot tell them apart, so all are compared.
    let pairs = (0..64).flat_map(|one| (0..64).map(move |other| [one, other]));
    let items: Vec<[u64; 2]> = pairs.map(|pair| pair.map(|n| u64::MAX - n)).collect();
    let costly = json!({ "a": items }).to_string();
    let verdict = validators.check(Account::Unknown, &schema, &costly, None);
    assert_eq!(verdict, ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly));
    assert_eq!(validators.check_briefly(Account::Unknown, &schema, &costly), Some(verdict));
    assert!(matches!(
        validators.check_briefly(Account::Unknown, &schema, r#"{"b":1}"#),
        Some(ArgumentVerdict::Wrong(_))
    ));
}

#[test]
fn costly_arguments_of_one_account_leave_those_of_another_one_checked() {
    let [attacker, other] = [Account::User(1), Account::User(2)];
    let compiled = CompiledSchema::new("{}").expect("it is compiled");
    compiled.remember_cost(attacker, "{}");
    assert!(compiled.is_too_costly(attacker, "{ }") && !compiled.is_too_costly(other, "{ }"));
    // The account that was remembered first is evicted.
    for user in (3..).take(COSTLY_ACCOUNTS_MAX - 1) {
        compiled.remember_cost(Account::User(user), "{}");
    }
    assert!(compiled.is_too_costly(attacker, "{}"));
    compiled.remember_cost(other, "{}");
    assert!(!compiled.is_too_costly(attacker, "{}") && compiled.is_too_costly(other, "{}"));
}

#[test]
fn a_schema_that_is_slow_to_prepare_is_left_unchecked() {
    let patterns = |pattern: String| {
        let parts = (0..100).map(|n| (n.to_string(), json!({ "pattern": pattern })));
        json!({ "properties": parts.collect::<Map<_, _>>() })
    };
    let long = "x".repeat(100_000);
    // Many names for one place; each leads to a long reference.
    let names = (0..4096_u32).map(|bits| {
        let letters = (0..12).map(|n| if bits >> n & 1 == 0 { "%61" } else { "a" });
        json!({ "$ref": format!("#/$defs/{}", letters.collect::<String>()) })
    });
    let mut chain = json!({ "allOf": names.collect::<Vec<_>>() });
    chain["$defs"] = json!({ "aaaaaaaaaaaa": { "$ref": format!("#/$defs/{long}") } });
    chain["$defs"][&long] = json!({ "type": "string" });
    for (name, schema) in [
        ("classes that nothing is left of", patterns(r"[\w&&a]".repeat(200))),
        ("classes of all characters", patterns(r"(?i)[\x00-\x{10ffff}&&a]".repeat(40))),
        ("a long reference by many names", chain),
    ] {
        let verdict = timely(name, &schema, &json!({}));
        assert_eq!(verdict, ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly), "{name}");
    }
}

#[test]
fn a_check_stops_when_its_caller_has_gone() {
    let schema = reference_chain("$defs", LEVELS, json!({ "type": "string" }), twice("anyOf"));
    let gone = StopFlag::default();
    gone.store(true, std::sync::atomic::Ordering::Relaxed);
    let validators = SchemaCache::default();
    let stopped = validators.check(Account::Unknown, &schema.to_string(), "{}", Some(&gone));
    assert_eq!(stopped, ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly));
    // A stopped check does not count against the schema.
    assert_eq!(validators.check_briefly(Account::Unknown, &schema.to_string(), "{}"), None);
}

/// Generates schemas as people write them.
fn ordinary() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": ["integer", "null"] })),
        Just(json!({ "enum": ["a", "b", 1] })),
        Just(json!({ "const": { "a": 1 } })),
        Just(json!({ "pattern": "^a+$" })),
        Just(json!({ "minimum": 2, "maxLength": 1 })),
        Just(json!({ "minItems": 1, "uniqueItems": true })),
        Just(json!({ "$ref": "#/$defs/leaf" })),
        Just(json!({ "$ref": "#" })),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| json!({ "anyOf": [a, b] })),
            two.clone().prop_map(|(a, b)| json!({ "oneOf": [a, b] })),
            two.clone().prop_map(|(a, b)| json!({ "allOf": [a, b] })),
            two.clone().prop_map(|(a, b)| json!({ "if": a, "then": b, "else": { "not": {} } })),
            two.clone()
                .prop_map(|(a, b)| json!({ "properties": { "a": a }, "additionalProperties": b })),
            two.clone().prop_map(
                |(a, b)| json!({ "patternProperties": { "^a": a }, "unevaluatedProperties": b })
            ),
            two.clone().prop_map(|(a, b)| json!({ "prefixItems": [a], "items": b })),
            two.prop_map(|(a, b)| json!({ "contains": a, "propertyNames": b })),
            inner.clone().prop_map(|a| json!({ "not": a })),
            inner.prop_map(|a| json!({ "type": "array", "items": a, "minItems": 1 })),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(1.0)),
        Just(json!(3)),
        Just(json!("a")),
        Just(json!("ab")),
        Just(json!({ "a": 1 })),
        Just(json!([1, 1])),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("(a|ab|b)", inner, 0..3).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn the_verdict_equals_that_of_the_unprepared_schema(
        part in ordinary(), args in value(), is_old in any::<bool>(),
    ) {
        let mut schema = json!({ "$defs": { "leaf": { "type": "string" } }, "allOf": [part] });
        if is_old {
            schema = draft_7(schema);
        }
        let plain = jsonschema::options().offline().build(&schema);
        match (check(&schema, &args), plain) {
            (ArgumentVerdict::Fits | ArgumentVerdict::Doubtful(_), Ok(plain)) => prop_assert!(plain.is_valid(&args)),
            (ArgumentVerdict::Wrong(_), Ok(plain)) => prop_assert!(!plain.is_valid(&args)),
            (ArgumentVerdict::Unchecked(_), Err(_)) => {}
            (other, plain) => prop_assert!(false, "{:?}, {}", other, plain.is_ok()),
        }
    }

    #[test]
    fn a_check_never_exceeds_its_step_budget(
        part in ordinary(), args in value(), steps in 0..400_u64,
    ) {
        let schema = json!({ "$defs": { "leaf": { "type": "string" } }, "allOf": [part] });
        let Ok(compiled) = CompiledSchema::new(&schema.to_string()) else { return Ok(()) };
        let args = args.to_string();
        let all = compiled.check(&args, u64::MAX, None).expect("enough steps");
        match compiled.check(&args, steps, None) {
            Ok(verdict) => prop_assert_eq!(verdict, all),
            Err(stopped) => prop_assert_eq!(stopped, CheckStopped::Spent),
        }
    }
}
