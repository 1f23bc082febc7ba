use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use regex::Regex;
use serde_json::json;

use super::*;
use crate::config::{
    key_paths::{KEYS, ValueKind},
    load::parsed_or_not,
    number_pattern::numbers,
};

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&schema()).expect("a schema")
}

/// Returns a TOML text as JSON, or `None` if it is not TOML.
fn json_of(text: &str) -> Option<Value> {
    serde_json::to_value(toml::from_str::<toml::Table>(text).ok()?).ok()
}

/// Returns the keys as documentation writes them, without tables that have keys of their own.
fn documented() -> BTreeSet<String> {
    KEYS.iter().filter(|key| !key.has_keys).map(|key| key.path_for("NAME").join(".")).collect()
}

#[test]
fn the_schema_is_valid_and_describes_every_key() {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema));
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    insta::assert_snapshot!(format!("{:#}", schema["properties"]["pool"]["properties"]["size"]), @r#"
    {
      "default": 20,
      "description": "The largest number of connections to servers.",
      "maximum": 1024,
      "minimum": 1,
      "type": "integer"
    }
    "#);
    let session = &schema["properties"]["listen"]["properties"]["session"];
    assert_eq!(session["default"], "lenient");
    let words: Vec<_> =
        session["oneOf"].as_array().expect("words").iter().map(|word| &word["const"]).collect();
    assert_eq!(words, ["lenient", "strict", "off"]);
    let text = schema.to_string();
    for nothing in ["\"null\"", ":null", "\"format\""] {
        assert!(!text.contains(nothing), "{nothing}");
    }
    fn find_undescribed(schema: &Value, name: &str, undescribed: &mut Vec<String>) {
        for (key, below) in schema["properties"].as_object().into_iter().flatten() {
            if !below["description"].is_string() {
                undescribed.push(format!("{name}.{key}"));
            }
            find_undescribed(below, &format!("{name}.{key}"), undescribed);
            find_undescribed(
                &below["additionalProperties"],
                &format!("{name}.{key}.NAME"),
                undescribed,
            );
        }
    }
    let mut undescribed = Vec::new();
    find_undescribed(&schema, "", &mut undescribed);
    assert!(undescribed.is_empty(), "without description: {undescribed:?}");
}

#[test]
fn a_key_that_only_a_restart_applies_says_so_beside_its_default() {
    let listen = &schema()["properties"]["listen"]["properties"];
    assert_eq!(listen["http"]["x-reload"], "restart");
    assert_eq!(listen["tls"]["x-reload"], "new connections");
    assert_eq!(listen["rpc"]["x-reload"], Value::Null, "applied at once");
    let server = &schema()["properties"]["servers"]["additionalProperties"];
    assert_eq!(server["x-reload"], "the changed server reconnects");
}

/// Adds the pages below `directory`.
fn add_pages(directory: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

#[test]
fn every_configuration_of_the_documentation_is_valid() {
    let validator = validator();
    let mut n_shown = 0;
    let mut pages = vec![PathBuf::from("README.md")];
    add_pages(Path::new("docs"), &mut pages);
    for text in pages
        .into_iter()
        .map(|page| std::fs::read_to_string(page).expect("text"))
        .flat_map(|text| text.split("```toml\n").skip(1).map(str::to_owned).collect::<Vec<_>>())
    {
        let text = text.split("```").next().expect("an end");
        let value = json_of(text).expect("TOML");
        if let Err(error) = validator.validate(&value) {
            panic!("{error} in:\n{text}");
        }
        n_shown += 1;
    }
    assert!(n_shown >= 6, "{n_shown} shown");
}

/// Values of every type, bounds of ranges, and words of the schema.
const VALUES: [&str; 44] = [
    "\"lazy\"",
    "\"eager\"",
    "0",
    "1",
    "5",
    "-1",
    "64",
    "65",
    "1000",
    "1001",
    "1024",
    "1025",
    "16777217",
    "5000000000",
    "0.5",
    "1.5",
    "true",
    "false",
    "\"\"",
    "\"x\"",
    "\"/x\"",
    "\"0s\"",
    "\"1s\"",
    "\"61s\"",
    "\"24h\"",
    "\"25h\"",
    "\"1d\"",
    "\"info\"",
    "\"safe\"",
    "\"http://h/\"",
    "\"credential:x\"",
    "[]",
    "[\"core\"]",
    "[5]",
    "{}",
    "{ a = 5 }",
    "\"none\"",
    "\"env:\"",
    "\"https://h/oauth/callback\"",
    "[\"X-Project\"]",
    "{ client_id = \"a\", client_secret = \"env:A\", scopes = [\"r\"] }",
    "{ client_secret = \"env:A\" }",
    "{ client_id = \"a\", client_metadata_url = \"https://h/x\" }",
    "{ grant = \"client_credentials\" }",
];

/// Returns a file with this key and only what the key requires.
fn saying(key: &str, value: &str) -> String {
    let server = match key {
        _ if key.ends_with(".command") || key.ends_with(".url") || key.ends_with(".socket") => "",
        _ if key.ends_with(".tls.certificate") => "url = \"https://h/\"\ntls.key = \"/k\"\n",
        _ if key.ends_with(".tls.key") => "url = \"https://h/\"\ntls.certificate = \"/c\"\n",
        _ if key.contains(".tls.") => "url = \"https://h/\"\n",
        _ if key.ends_with("headers") || key.ends_with(".auth") || key.ends_with(".proxy") => {
            "url = \"http://h/\"\n"
        }
        _ if key.ends_with(".unit") => "socket = \"/run/x.sock\"\n",
        _ if key.ends_with(".max_connections") => "command = \"x\"\nsharing = \"session\"\n",
        _ => "command = \"x\"\n",
    };
    match key.split_once("NAME.") {
        Some(("servers.", key)) => format!("[servers.a]\n{server}{key} = {value}\n"),
        Some((_, key)) => {
            let description = if key == "description" { "" } else { "description = \"it\"\n" };
            format!("[provision.servers.a]\n{description}{server}{key} = {value}\n")
        }
        None => match key {
            "listen.tls.certificate" => format!("listen.tls.key = \"/k\"\n{key} = {value}\n"),
            "listen.tls.key" => format!("listen.tls.certificate = \"/c\"\n{key} = {value}\n"),
            "pool.min_size" => format!("pool.size = 1024\n{key} = {value}\n"),
            "service.request_timeout" => {
                format!("service.max_total_timeout = \"24h\"\n{key} = {value}\n")
            }
            "provision.registry.ttl" => {
                format!("provision.registry.url = \"http://h/\"\n{key} = {value}\n")
            }
            "search.embedding.url" => format!("search.embedding.model = \"m\"\n{key} = {value}\n"),
            "search.embedding.model" | "search.embedding.api_key" => {
                let model =
                    if key.ends_with("model") { "" } else { "search.embedding.model = \"m\"\n" };
                format!("search.embedding.url = \"http://h/\"\n{model}{key} = {value}\n")
            }
            key => format!("{key} = {value}\n"),
        },
    }
}

#[test]
fn the_schema_accepts_what_the_loader_accepts_and_nothing_else() {
    let validator = validator();
    let (mut strict, mut lax) = (Vec::new(), Vec::new());
    for key in documented() {
        for value in VALUES {
            let text = saying(&key, value);
            let Some(json) = json_of(&text) else { panic!("{text}") };
            match (parsed_or_not(&text), validator.is_valid(&json)) {
                (Ok(()), false) => strict.push(text),
                (Err(error), true) => lax.push(format!("{text}{error}\n")),
                (Ok(()), true) | (Err(_), false) => {}
            }
        }
    }
    assert!(strict.is_empty(), "refused although it is good:\n{}", strict.join("\n"));
    assert!(lax.is_empty(), "taken although it is not:\n{}", lax.join("\n"));
}

#[test]
fn an_unknown_key_is_refused_in_every_table() {
    let validator = validator();
    let tables: BTreeSet<String> = documented()
        .iter()
        .filter_map(|key| key.rsplit_once('.').map(|(table, _)| table.to_owned()))
        .collect();
    assert!(tables.len() > 12, "{tables:?}");
    for table in tables {
        let text = saying(&format!("{table}.nothing"), "1");
        assert!(!validator.is_valid(&json_of(&text).expect("TOML")), "{text}");
    }
    assert!(!validator.is_valid(&json!({ "nothing": {} })));
    assert!(!validator.is_valid(&json!({ "servers": { "a": {} } })));
    assert!(!validator.is_valid(&json!({ "servers": { "a__b": { "command": "x" } } })));
    assert!(KEYS.iter().any(|key| key.kind == ValueKind::Either));
}

proptest! {
    #[test]
    fn a_pattern_of_numbers_matches_exactly_its_range(least in 1_u64..5_000, more in 0_u64..90_000_000, by in -3_i64..4) {
        let most = least + more;
        let pattern = Regex::new(&format!("^{}$", numbers(least, most))).expect("a pattern");
        for number in [least.saturating_add_signed(by), most.saturating_add_signed(by), u64::midpoint(least, most)] {
            let is_in = (least..=most).contains(&number);
            prop_assert_eq!(pattern.is_match(&number.to_string()), is_in, "{} in {}..={}", number, least, most);
        }
    }
}
