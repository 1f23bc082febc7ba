//! The JSON Schema of the configuration file, generated from the types that the file is read into.
//!
//! So a key cannot be in one and not in the other. The loader alone checks what the schema cannot
//! express, above all rules over several keys.

use std::{borrow::Cow, time::Duration};

use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema,
    transform::RecursiveTransform,
};
use serde_json::{Value, json};

use super::{
    defaults, duration,
    lifecycle::{LifecycleMode, LifecycleTable},
    load::ConfigFile,
    server,
};
use crate::server_name::ServerName;

/// The pattern of an HTTP URL, with TLS or without.
pub(super) const URL: &str = "^https?://.+";

/// The pattern of a namespace.
pub(super) const NAMESPACE: &str = "^@?[A-Za-z0-9_.-]+(/@?[A-Za-z0-9_.-]+)*$";

/// The pattern of a trust rule.
pub(super) const TRUST: &str = "^@?[A-Za-z0-9_.-]+(/@?[A-Za-z0-9_.-]+)*(/\\*)?$";

/// Returns the JSON Schema, draft 2020-12, of the configuration file.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(RecursiveTransform(tidied));
    settings.into_generator().into_root_schema_for::<ConfigFile>().to_value()
}

/// Removes `null`, which TOML does not have, and `format`, because ranges check numbers.
fn tidied(schema: &mut Schema) {
    let Some(found) = schema.as_object_mut() else { return };
    found.remove("format");
    if found.get("default").is_some_and(Value::is_null) {
        found.remove("default");
    }
    if let Some(Value::Array(types)) = found.get_mut("type") {
        types.retain(|found| found != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            found.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::String(text)) = found.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// A duration within bounds, in milliseconds. With `OFF`, zero means never.
pub(super) enum BoundedDuration<const LEAST_MS: u64, const MOST_MS: u64, const OFF: bool> {}

/// Any duration.
pub(super) type DurationSchema = BoundedDuration<1, { ms(duration::LONGEST) }, false>;

/// Any duration, or `"0s"` for never.
pub(super) type DurationOrOff = BoundedDuration<1, { ms(duration::LONGEST) }, true>;

/// The time that a finished task is kept.
pub(super) type TaskExpiry =
    BoundedDuration<{ ms(defaults::TASK_EXPIRY_MIN) }, { ms(duration::LONGEST) }, false>;

/// The time that notices wait for more of the same.
pub(super) type DebounceSchema =
    BoundedDuration<1, { ms(defaults::LIST_CHANGED_DEBOUNCE_MAX) }, false>;

#[expect(clippy::cast_possible_truncation, reason = "a day at most")]
const fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

impl<const LEAST_MS: u64, const MOST_MS: u64, const OFF: bool> JsonSchema
    for BoundedDuration<LEAST_MS, MOST_MS, OFF>
{
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut patterns: Vec<String> = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)]
            .into_iter()
            .filter(|(_, unit)| *unit <= MOST_MS)
            .map(|(name, unit)| {
                format!("{}{name}", numbers(LEAST_MS.div_ceil(unit), MOST_MS / unit))
            })
            .collect();
        if OFF {
            patterns.insert(0, "0(?:ms|s|m|h)".to_owned());
        }
        json_schema!({ "type": "string", "pattern": format!("^0*(?:{})$", patterns.join("|")) })
    }
}

/// Returns a pattern for the whole numbers of a range, without leading zeros.
fn numbers(least: u64, most: u64) -> String {
    let mut patterns = Vec::new();
    let mut from = least;
    // One alternative for each number of digits.
    while from <= most {
        let nines = 10_u64.pow(from.checked_ilog10().unwrap_or(0) + 1) - 1;
        let to = nines.min(most);
        patterns.push(of_one_length(&from.to_string(), &to.to_string()));
        from = to + 1;
    }
    format!("(?:{})", patterns.join("|"))
}

/// As [`numbers`], for two bounds with the same number of digits.
fn of_one_length(least: &str, most: &str) -> String {
    let (Some(first), Some(last)) = (least.chars().next(), most.chars().next()) else {
        return String::new();
    };
    let (low, high) = (&least[1..], &most[1..]);
    let any = |from: char, to: char| {
        let digits = if from == to { from.to_string() } else { format!("[{from}-{to}]") };
        match low.len() {
            0 => digits,
            1 => format!("{digits}[0-9]"),
            n => format!("{digits}[0-9]{{{n}}}"),
        }
    };
    let is_all = |low: &str, high: &str| {
        low.chars().all(|digit| digit == '0') && high.chars().all(|digit| digit == '9')
    };
    if is_all(low, high) {
        return any(first, last);
    }
    if first == last {
        return format!("{first}{}", of_one_length(low, high));
    }
    let next = |digit: char, by: i8| char::from((digit as u8).saturating_add_signed(by));
    let mut patterns = Vec::new();
    let (mut from, mut to) = (first, last);
    if low.contains(|digit| digit != '0') {
        patterns.push(format!("{first}{}", of_one_length(low, &"9".repeat(low.len()))));
        from = next(first, 1);
    }
    if high.contains(|digit| digit != '9') {
        to = next(last, -1);
    }
    if from <= to {
        patterns.push(any(from, to));
    }
    if to != last {
        patterns.push(format!("{last}{}", of_one_length(&"0".repeat(high.len()), high)));
    }
    format!("(?:{})", patterns.join("|"))
}

/// Declares types that only carry a schema, for fields that serde reads as another type.
macro_rules! shown_as {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)+) => {
        $(
            $(#[$doc])*
            pub(super) enum $name {}

            impl JsonSchema for $name {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                    let schema: fn(&mut SchemaGenerator) -> Schema = $schema;
                    schema(generator)
                }
            }
        )+
    };
}

shown_as! {
    /// A lifecycle: a word, or a table with the word as `mode`.
    LifecycleSchema = |generator| json_schema!({
        "anyOf": [LifecycleMode::json_schema(generator), LifecycleTable::json_schema(generator)],
    });
    /// A group of words that mean the same.
    Synonyms = |_| json_schema!({
        "type": "array",
        "items": { "type": "string", "minLength": 1, "maxLength": defaults::SYNONYM_BYTES_MAX },
        "minItems": 2,
        "maxItems": defaults::SYNONYMS_IN_GROUP_MAX,
    });
    /// The servers under `[servers]`.
    DeclaredServers = |generator| {
        named(generator, &["namespace", "description", "keywords"], &[], None)
    };
    /// The servers under `[provision.servers]`.
    ProvisionableServers = |generator| {
        let mut servers = named(generator, &[], &["description"], Some(defaults::PROVISIONABLE_MAX));
        // Such a server starts on request: `lazy` is the only valid value.
        if let Some(start) = servers.pointer_mut("/additionalProperties/properties/start") {
            *start = json!({
                "description": "metamcp connects such a server when it provisions it.",
                "type": "string",
                "const": "lazy",
                "default": "lazy",
            });
        }
        servers
    };
}

/// Returns the schema of a table of servers by name.
fn named(
    generator: &mut SchemaGenerator,
    left_out: &[&str],
    required: &[&str],
    most: Option<usize>,
) -> Schema {
    let mut server = server::ServerTable::json_schema(generator);
    let server_keys = server.ensure_object();
    if let Some(Value::Object(keys)) = server_keys.get_mut("properties") {
        for key in left_out {
            keys.remove(*key);
        }
    }
    if !required.is_empty() {
        server_keys.insert("required".to_owned(), json!(required));
    }
    // One transport, and the keys that only this transport has.
    server_keys.insert(
        "oneOf".to_owned(),
        json!([{ "required": ["command"] }, { "required": ["url"] }, { "required": ["socket"] }]),
    );
    server_keys.insert(
        "dependentRequired".to_owned(),
        json!({
            "args": ["command"], "env": ["command"], "cwd": ["command"],
            "headers": ["url"], "unit": ["socket"],
        }),
    );
    let mut schema = json_schema!({
        "type": "object",
        "propertyNames": {
            "pattern": "^[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?$",
            "not": { "pattern": "__" },
            "maxLength": ServerName::LENGTH_MAX,
        },
        "additionalProperties": server,
    });
    if let Some(most) = most {
        schema.insert("maxProperties".to_owned(), json!(most));
    }
    schema
}

#[cfg(test)]
mod tests;
