//! The value that a word of the command line stands for.

use serde_json::Value;

use super::schema::{SchemaCursor, ValueTypes};

/// Returns the value that `text` stands for where the schema is `place`: one of those that are listed,
/// else whatever it can be read as, a text last of all.
///
/// # Errors
///
/// What was expected instead, as it follows "expected".
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
        // A text is written without quotes where it must be one.
        Value::String(_) => types == ValueTypes::ANY,
    };
    match read.filter(is_possible) {
        Some(value) => Ok(value),
        None if types.string => Ok(text.into()),
        None => Err(types.names().join(" or ")),
    }
}

/// Tells whether a number has no fraction, as `5` and `5.0` have none.
fn is_whole(number: &serde_json::Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Returns a value as it is written on a command line.
pub(in crate::cli) fn spelled(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
