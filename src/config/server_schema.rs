//! The schemas of tables of servers.

use schemars::{JsonSchema as _, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{defaults, server};
use crate::server_name::ServerName;

/// Returns the schema of the servers under `[servers]`.
pub(super) fn declared(generator: &mut SchemaGenerator) -> Schema {
    named(generator, &server::PROVISION_KEYS, &[], None)
}

/// Returns the schema of the servers under `[provision.servers]`.
pub(super) fn provisionable(generator: &mut SchemaGenerator) -> Schema {
    let mut servers = named(
        generator,
        &server::DECLARED_KEYS,
        &["description"],
        Some(defaults::PROVISIONABLE_MAX),
    );
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
    let transports = server::TRANSPORTS.map(|(transport, _)| json!({ "required": [transport] }));
    server_keys.insert("oneOf".to_owned(), json!(transports));
    let keys = server::TRANSPORTS.into_iter().flat_map(|(transport, keys)| {
        keys.iter().map(move |key| ((*key).to_owned(), json!([transport])))
    });
    server_keys.insert("dependentRequired".to_owned(), Value::Object(keys.collect()));
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
