//! The keys of the configuration, read from its JSON Schema.

use serde_json::Value;

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationKey {
    /// Its path, as in `servers.NAME.url`.
    pub path: String,
    /// Its type and the range of its values, in Markdown.
    pub kind: String,
    /// Its default as JSON, or `required`; empty without one.
    pub default: String,
    /// Its meaning and that of its words, in Markdown.
    pub meaning: String,
    /// The time at which a reload applies it.
    pub applied: String,
}

/// Returns the sections of the configuration, by name.
pub fn sections(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    entries(&schema["properties"])
}

/// Returns the keys of the section `name`, and those of the tables in it.
pub fn configuration_keys(schema: &Value, name: &str) -> Vec<ConfigurationKey> {
    let mut keys = Vec::new();
    add_keys(schema, name, &schema["properties"][name], "at once", &mut keys);
    keys
}

/// Returns the members of a JSON object.
fn entries(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// Adds the keys of the table at `path`, and of the tables in it. `applied` is when a reload
/// applies them.
fn add_keys(
    schema: &Value,
    path: &str,
    table: &Value,
    applied: &str,
    keys: &mut Vec<ConfigurationKey>,
) {
    let applied = table["x-reload"].as_str().unwrap_or(applied);
    let named = &table["additionalProperties"];
    if named["properties"].is_object() {
        return add_keys(schema, &format!("{path}.NAME"), named, applied, keys);
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
        keys.push(ConfigurationKey {
            path: path.clone(),
            kind: kind(key),
            default,
            meaning: meaning(key),
            applied: applied.to_owned(),
        });
        // The table `health` of a server has the keys of the section `health`.
        if key["properties"].is_null()
            || key["properties"] != schema["properties"][name]["properties"]
        {
            for form in std::iter::once(key).chain(key["anyOf"].as_array().into_iter().flatten()) {
                add_keys(schema, &path, form, applied, keys);
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
    let mut meaning = key["description"].as_str().unwrap_or_default().to_owned();
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
        // The manual describes the units of durations once.
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
        Some(number @ ("integer" | "number")) => match range("minimum", "maximum") {
            Some(range) => format!("{number}, {range}"),
            None => number.to_owned(),
        },
        Some(other) => other.to_owned(),
        None if key["anyOf"].is_array() => format!("{listed} or a table"),
        None => listed,
    }
}
