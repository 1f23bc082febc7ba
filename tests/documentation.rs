//! The documentation holds together: its links lead somewhere, the README stays short, and the keys
//! of the configuration are those of the JSON Schema.
//!
//! `REGENERATE=1 cargo test --test documentation` writes what follows from the schema: the tables in
//! `docs/reference/configuration.md`, and `nix/schema.json`, from which the Nix modules make their
//! options.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use metamcp::config::schema::schema;
use serde_json::Value;

/// The length of a README that a visitor reads to its end.
const README_LINES_MAX: usize = 250;

/// The contents of the handbook, as mdbook reads them.
const CONTENTS_PAGE: &str = "docs/SUMMARY.md";

/// The pages of the project, by path, without their code blocks.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "nix/options.md", "tests/FEATURES.md"].map(PathBuf::from).into();
    add_pages(Path::new("docs"), &mut paths);
    paths
        .into_iter()
        .map(|path| (path.clone(), prose(&fs::read_to_string(path).expect("text"))))
        .collect()
}

/// Adds the pages below `directory`.
fn add_pages(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the tests run in the package's directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            add_pages(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}

/// Returns `text` without its fenced code.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns the anchors of a page's headings, as a forge makes them.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| -> String {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

/// Returns the targets of a page's links.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let pages = pages();
    let mut n_links = 0;
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in links(page).filter(|link| !link.contains("://")) {
            n_links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                normalized(&path.parent().unwrap_or(Path::new("")).join(file))
            };
            let has_anchor = anchor.is_empty()
                || pages.get(&target).is_some_and(|page| anchors(page).iter().any(|a| a == anchor));
            if !target.exists() || !has_anchor {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "these links lead nowhere: {broken:#?}");
    assert!(n_links > 50, "{n_links} links");
}

/// Returns `path` without `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

#[test]
fn the_contents_link_every_page_once() {
    let pages = pages();
    let contents = &pages[Path::new(CONTENTS_PAGE)];
    let mut linked: Vec<_> = links(contents).map(|link| Path::new("docs").join(link)).collect();
    linked.sort();
    let expected: Vec<_> = pages
        .into_keys()
        .filter(|path| path.starts_with("docs") && path != Path::new(CONTENTS_PAGE))
        .collect();
    assert_eq!(linked, expected);
}

#[test]
fn the_readme_stays_short() {
    let readme = fs::read_to_string("README.md").expect("text");
    assert!(readme.lines().count() <= README_LINES_MAX, "{} lines", readme.lines().count());
}

/// Checks that the file at `path` is `expected`, or writes it.
fn check_generated(path: &str, expected: &str) {
    if std::env::var_os("REGENERATE").is_some() {
        fs::write(path, expected).expect("writable");
    }
    let is_same = fs::read_to_string(path).expect("text") == expected;
    assert!(
        is_same,
        "{path} is out of date: run `REGENERATE=1 cargo test --test documentation`, then \
         `nix/tests/options-doc --write`"
    );
}

#[test]
fn nix_reads_the_schema_of_the_program() {
    check_generated("nix/schema.json", &format!("{:#}\n", schema()));
}

/// The page with the tables of keys.
const KEYS_PAGE: &str = "docs/reference/configuration.md";

/// The line before a table of keys, up to the name of its section.
const TABLE_START: &str = "<!-- keys of ";

/// The line after a table of keys.
const TABLE_END: &str = "<!-- end of keys -->";

#[test]
fn the_reference_page_has_the_keys_of_the_schema() {
    let schema = schema();
    let page = fs::read_to_string(KEYS_PAGE).expect("text");
    let mut sections = entries(&schema["properties"]).collect::<BTreeMap<_, _>>();
    let mut parts = page.split(TABLE_START);
    let mut generated = parts.next().expect("a beginning").to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").expect("the name of a section");
        let (_, rest) = rest.split_once(TABLE_END).expect("the end of a table");
        let section = sections.remove(name).unwrap_or_else(|| panic!("no section `{name}`"));
        let table = key_table(&schema, name, section);
        generated.push_str(&format!("{TABLE_START}{name} -->\n{table}{TABLE_END}{rest}"));
    }
    assert!(sections.is_empty(), "{KEYS_PAGE} has no table of {:?}", sections.keys());
    check_generated(KEYS_PAGE, &generated);
}

/// Returns the members of a JSON object.
fn entries(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// Returns the table of the keys of a section.
fn key_table(schema: &Value, name: &str, section: &Value) -> String {
    let mut table =
        "| key | type | default | meaning | applied |\n|---|---|---|---|---|\n".to_owned();
    add_rows(schema, name, section, "at once", &mut table);
    table
}

/// Adds a row for each key of the table at `path`, and of the tables in it. `applied` is when a
/// reload applies them.
fn add_rows(schema: &Value, path: &str, table: &Value, applied: &str, rows: &mut String) {
    let applied = table["x-reload"].as_str().unwrap_or(applied);
    let named = &table["additionalProperties"];
    if named["properties"].is_object() {
        return add_rows(schema, &format!("{path}.NAME"), named, applied, rows);
    }
    let server_keys = &schema["properties"]["servers"]["additionalProperties"]["properties"];
    let required = table["required"].as_array().map_or(&[] as &[_], Vec::as_slice);
    for (name, key) in entries(&table["properties"]) {
        // A provisionable server has the keys of a server, which have their own table.
        if path == "provision.servers.NAME" && server_keys[name] == *key {
            continue;
        }
        let path = format!("{path}.{name}");
        let applied = key["x-reload"].as_str().unwrap_or(applied);
        let default = match &key["default"] {
            Value::Null if required.contains(&name.into()) => "required".to_owned(),
            Value::Null => String::new(),
            default => format!("`{default}`"),
        };
        let kind = kind(key);
        let meaning = meaning(key).replace('|', "\\|");
        rows.push_str(&format!("| `{path}` | {kind} | {default} | {meaning} | {applied} |\n"));
        // The table `health` of a server has the keys of the section `health`.
        if key["properties"].is_null()
            || key["properties"] != schema["properties"][name]["properties"]
        {
            for form in std::iter::once(key).chain(key["anyOf"].as_array().into_iter().flatten()) {
                add_rows(schema, &path, form, applied, rows);
            }
        }
    }
}

/// Returns the words that a key or the items of a list accept, with their descriptions.
fn words(key: &Value) -> impl Iterator<Item = (&str, &str)> {
    let key = if key["items"].is_null() { key } else { &key["items"] };
    let key = if key["anyOf"].is_null() { key } else { &key["anyOf"][0] };
    key["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|word| Some((word["const"].as_str()?, word["description"].as_str()?)))
}

/// Returns the meaning of a key and of its words.
fn meaning(key: &Value) -> String {
    let mut meaning = key["description"].as_str().expect("a description").to_owned();
    for (word, description) in words(key) {
        meaning.push_str(&format!(" `{word}`: {description}"));
    }
    meaning
}

/// Returns the type of a key and the range of its values.
fn kind(key: &Value) -> String {
    let range = |least: &str, most: &str| match (&key[least], &key[most]) {
        (_, Value::Null) => None,
        (Value::Null, most) => Some(format!("at most {most}")),
        (least, most) => Some(format!("{least} to {most}")),
    };
    let bytes = range("minLength", "maxLength").map_or(String::new(), |n| format!(", {n} bytes"));
    let listed: Vec<_> = words(key).map(|(word, _)| format!("`{word}`")).collect();
    let listed = listed.join(", ");
    if let Some(title) = key["title"].as_str() {
        // The page describes the units of durations once.
        return title.replace(": a whole number and its unit, ms, s, m or h", "") + &bytes;
    }
    match key["type"].as_str() {
        Some("array") => match range("minItems", "maxItems") {
            Some(size) => format!("list of {size} ({})", kind(&key["items"])),
            None => format!("list of {}", kind(&key["items"])),
        },
        Some("object") if key["additionalProperties"]["type"] == "string" => {
            "table of texts".into()
        }
        Some("object") if key["additionalProperties"].is_object() => "tables by name".into(),
        Some("object") => "table".into(),
        Some("string") if key["const"].is_string() => format!("`{}`", key["const"]),
        Some("string") => format!("text{bytes}"),
        Some(number @ ("integer" | "number")) => {
            format!("{number}, {}", range("minimum", "maximum").expect("a range"))
        }
        Some(other) => other.to_owned(),
        None if key["anyOf"].is_array() => format!("{listed} or a table"),
        None => listed,
    }
}
