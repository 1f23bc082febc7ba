//! The conversion of a command-line word to a JSON value.

use serde_json::Value;

use super::schema::{SchemaCursor, ValueTypes};

/// Returns the value that `text` stands for under the schema `place`: one of the listed values,
/// else the JSON value that it spells, else a string.
///
/// # Errors
///
/// The expected form, as it follows the word "expected".
pub(super) fn convert(place: SchemaCursor<'_>, text: &str) -> Result<Value, String> {
    let listed = place.values();
    if let Some(found) = listed.iter().find(|value| spelled(value) == text) {
        return Ok((*found).clone());
    }
    if place.is_listed() {
        let listed: Vec<String> = listed.into_iter().map(spelled).collect();
        return Err(format!("one of {}", listed.join(", ")));
    }
    let types = place.types();
    let read: Option<Value> = serde_json::from_str(text.trim()).ok();
    let is_possible = |value: &Value| match value {
        Value::Null => types.null,
        Value::Bool(_) => types.boolean,
        Value::Number(number) => types.number || (types.integer && is_whole(number)),
        Value::Array(_) => types.array,
        Value::Object(_) => types.object,
        // A string that the schema asks for is written without quotes.
        Value::String(_) => types == ValueTypes::ANY,
    };
    match read.filter(is_possible) {
        Some(value) => Ok(value),
        None if types.string => Ok(text.into()),
        None => Err(types.names().join(" or ")),
    }
}

/// Returns `true` if a number has no fraction, such as `5` and `5.0`.
fn is_whole(number: &serde_json::Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Returns a value as written on the command line.
pub(in crate::cli) fn spelled(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
