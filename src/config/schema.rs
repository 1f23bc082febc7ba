//! The JSON Schema of the configuration file, generated from the types that the file is read into.
//!
//! So a key cannot be in one and not in the other. The loader alone checks what the schema cannot
//! express, above all rules over several keys.

use schemars::{Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::Value;

use super::load::ConfigFile;

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

#[cfg(test)]
mod tests;
