use proptest::prelude::*;

use super::*;
use crate::{
    capacity_holder::Account, config::defaults::SUMMARY_CHARS_MAX, meta::reply::structured_answer,
};

const DEFINITION: &str = r##"{"name":"log","title":"Log","description":"Shows the commits\nof a branch. Newest first.","inputSchema":{"type":"object","properties":{"branch":{"type":"string"},"limit":{"type":"integer","default":10,"minimum":1},"order":{"enum":["new","old"]},"paths":{"type":"array","items":{"type":"string"}},"author":{"$ref":"#/$defs/author"},"since":{"type":["string","null"]}},"required":["branch","author","paths"],"$defs":{"author":{"type":"object","properties":{"email":{"type":"string","examples":["a@b.c"]},"name":{"type":"string"}},"required":["email"]}}},"annotations":{"readOnlyHint":true,"openWorldHint":false},"x":1e400}"##;

fn described(definition: &str) -> DescribedTool<'_> {
    DescribedTool::new(ToolId::new("git", "log"), definition)
}

#[test]
fn a_tool_is_described_at_the_requested_level() {
    let log = described(DEFINITION);
    assert_eq!(log.summary(), "Shows the commits of a branch. Newest first.");
    assert_eq!(log.notes(), "Shows the commits\nof a branch. Newest first.");
    assert_eq!(
        log.discovered(DetailLevel::Summary),
        r#"{"tool":"log","server":"git","description":"Shows the commits of a branch. Newest first."}"#
    );
    let schema: Value = serde_json::from_str(&log.discovered(DetailLevel::Schema)).expect("JSON");
    assert_eq!(schema["inputSchema"]["required"], json!(["branch", "author", "paths"]));
    assert!(
        log.discovered(DetailLevel::Full).ends_with(&format!(r#""definition":{DEFINITION}}}"#))
    );
    assert_eq!(
        log.listed(),
        r#"{"id":"git/log","name":"log","namespace":"git","shortDescription":"Shows the commits of a branch. Newest first.","tags":["read-only"]}"#
    );
}

#[test]
fn the_levels_of_a_description_add_to_each_other() {
    let log = described(DEFINITION);
    let of = |detail| -> Map<String, Value> {
        let text = log.described(detail, 5).replace("1e400", "1");
        serde_json::from_str(&text).expect("JSON")
    };
    let keys = |detail| of(detail).keys().cloned().collect::<Vec<String>>();
    assert_eq!(keys(DetailLevel::Summary), ["summary"]);
    assert_eq!(keys(DetailLevel::Schema), ["schemaInfo", "summary", "tool"]);
    assert_eq!(keys(DetailLevel::Full), ["examples", "notes", "schemaInfo", "summary", "tool"]);
    assert!(
        log.described(DetailLevel::Schema, 5).contains(DEFINITION),
        "it is as its server wrote it"
    );
    assert_eq!(
        of(DetailLevel::Schema)["schemaInfo"],
        json!({
            "required": ["branch", "author", "paths"],
            "defaults": { "limit": 10 },
            "types": {
                "branch": "string", "limit": "integer", "order": "enum", "author": "any",
                "paths": "array of string", "since": "string or null",
            },
        })
    );
}

#[test]
fn examples_have_the_required_arguments_and_then_those_with_values() {
    let found = described(DEFINITION).examples(5);
    let args: Vec<&Value> = found.iter().map(|example| &example.args).collect();
    let least = json!({
        "branch": "<branch>", "author": { "email": "a@b.c" }, "paths": ["<paths>"],
    });
    let mut most = least.clone();
    most["limit"] = json!(10);
    most["order"] = json!("new");
    assert_eq!(args, [&least, &most]);
    assert_eq!(described(DEFINITION).examples(1).len(), 1);

    let given =
        json!({ "inputSchema": { "examples": [{ "a": 1 }, 7], "properties": { "a": {} } } });
    let given = given.to_string();
    let found = described(&given).examples(5);
    assert_eq!(found[0].args, json!({ "a": 1 }));
    assert_eq!((found[0].title, found[0].id.as_str()), ("An example of the server", "example-1"));
}

#[test]
fn an_example_fits_its_schema() {
    let log = described(DEFINITION);
    let validators = crate::tool::SchemaCache::default();
    for example in log.examples(5) {
        let verdict =
            validators.check(Account::Unknown, &log.schema(), &example.args.to_string(), None);
        assert_eq!(verdict, crate::tool::ArgumentVerdict::Fits, "{}", example.args);
    }
}

#[test]
fn a_long_description_is_cut_and_a_recursive_schema_is_bounded() {
    let mut schema = json!({ "$ref": "#/$defs/a", "$defs": { "a": {
        "type": "object", "properties": { "a": { "$ref": "#/$defs/a" }, "n": { "$ref": "#/$defs/n" } },
        "required": ["a", "n"],
    }, "n": { "$ref": "#/$defs/n" } } });
    let of = |schema: &Value, words: &str| {
        json!({ "description": words, "inputSchema": schema }).to_string()
    };
    let words = "word ".repeat(10_000);
    let endless = of(&schema, &words);
    let tool = described(&endless);
    assert!(
        tool.summary().chars().count() <= SUMMARY_CHARS_MAX && tool.summary().ends_with("word…")
    );
    assert!(tool.notes().chars().count() <= NOTES_CHARS_MAX);
    assert!(json!(tool.examples(5)).to_string().len() < 20_000);

    schema["examples"] = json!([{ "x": "y".repeat(100_000), "z": vec![json!({}); 10_000] }]);
    let large = of(&schema, &words);
    let tool = described(&large);
    for shown in [tool.described(DetailLevel::Full, 5), tool.discovered(DetailLevel::Full)] {
        assert!(shown.len() < 80_000, "{}", shown.len());
    }
}

#[test]
fn a_schema_that_grows_with_each_level_has_a_small_example() {
    let names: Vec<String> = (0..50).map(|n| format!("p{n}")).collect();
    let properties: Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({ "$ref": "#" }))).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    let definition = json!({ "inputSchema": schema }).to_string();
    assert!(json!(described(&definition).examples(5)).to_string().len() < 20_000);
}

#[test]
fn a_described_schema_carries_the_warnings_of_a_destructive_tool() {
    let declared = r#"{"name":"drop","description":"d","inputSchema":{},"annotations":{"destructiveHint":true,"readOnlyHint":false}}"#;
    for (detail, n_warnings) in
        [(DetailLevel::Summary, 0), (DetailLevel::Schema, 3), (DetailLevel::Full, 3)]
    {
        for answer in
            [described(declared).discovered(detail), described(declared).described(detail, 5)]
        {
            let told: Value = serde_json::from_str(&answer).expect("JSON");
            let warnings = told["warnings"].as_array().map_or(0, Vec::len);
            assert_eq!(warnings, n_warnings, "{told}");
        }
    }
    let told: Value = serde_json::from_str(
        &described(DEFINITION).discovered(DetailLevel::Schema).replace("1e400", "1"),
    )
    .expect("JSON");
    assert_eq!(told.get("warnings"), None, "it only reads");
}

#[test]
fn control_characters_of_a_server_are_removed_from_summaries_and_kept_in_its_definition() {
    let definition = r#"{"name":"a","description":"red \u001b[31m\u202eder\ntwo","inputSchema":{"description":"x\u0007y"}}"#;
    let tool = described(definition);
    assert_eq!(tool.summary(), "red [31m der two");
    assert_eq!(tool.notes(), "red  [31m der\ntwo");
    assert_eq!(tool.examples(1)[0].result_hint.as_deref(), Some("x y"));
    let full: Value = serde_json::from_str(&tool.discovered(DetailLevel::Full)).expect("JSON");
    let own: Value = serde_json::from_str(definition).expect("JSON");
    assert_eq!(full["definition"], own);
}

#[test]
fn a_text_is_cut_between_words_if_it_has_any() {
    assert_eq!(cut("one two three", 20), "one two three");
    assert_eq!(cut("one two three", 10), "one two…");
    assert_eq!(cut("ääääääää", 4), "äää…");
    assert_eq!(cut("abc", 0), "…");
}

proptest! {
    #[test]
    fn no_definition_is_too_odd(
        text in ".{0,40}",
        value in prop_oneof![
            Just(json!(null)), Just(json!([])), Just(json!({})), Just(json!("#")), Just(json!(7)),
            Just(json!({ "x": { "$ref": "#/inputSchema" } })), Just(json!([{ "type": 7 }])),
        ],
        keyword in "(type|properties|required|examples|enum|anyOf|\\$ref|items|default)",
    ) {
        let schema = json!({ (keyword.clone()): value, "properties": { "a": { (keyword): value } } });
        for definition in [
            text.clone(), value.to_string(),
            json!({ "inputSchema": value, "description": text, "title": value }).to_string(),
            json!({ "inputSchema": schema, "annotations": value }).to_string(),
        ] {
            let tool = described(&definition);
            for detail in [DetailLevel::Summary, DetailLevel::Schema] {
                let shown = tool.discovered(detail);
                prop_assert!(serde_json::from_str::<Value>(&shown).is_ok());
            }
            let shown = structured_answer(&tool.described(DetailLevel::Full, 5));
            prop_assert!(serde_json::from_str::<Value>(&shown).is_ok(), "{}", shown);
            prop_assert!(serde_json::from_str::<Value>(&tool.listed()).is_ok());
        }
    }
}
