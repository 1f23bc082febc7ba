//! The reduction of a schema that is too large to its upper levels.
//!
//! A part that is left out leaves its type, its description and a mark. Choices (`anyOf` and the
//! like) are not a level of their own, and references stay. Pure.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The maximum depth at which a schema that is too large is shown.
const DEPTH_MAX: usize = 20;

/// The maximum size of a keyword that a mark keeps, in bytes: a description of a few sentences.
const KEPT_BYTES_MAX: usize = 1000;

/// The keywords whose value is a schema, or a list of such.
const CHOICES: [&str; 4] = ["anyOf", "oneOf", "allOf", "not"];

/// The keywords whose value is a schema one level deeper.
const INNER: [&str; 3] = ["items", "additionalProperties", "contains"];

/// The keywords whose values are schemas by name, one level deeper.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Returns the JSON text of a schema, unchanged if it fits into `bytes_max`, else at the largest
/// depth that fits. A level that is smaller than the marks in its place may be lost.
pub fn fitted_schema(schema: &str, bytes_max: usize) -> Cow<'_, str> {
    if schema.len() <= bytes_max {
        return Cow::Borrowed(schema);
    }
    let Ok(read) = serde_json::from_str::<Value>(schema) else {
        return Cow::Borrowed(r#"{"type":"object"}"#);
    };
    let found = collapsed(&read, common_depth(&[&read], bytes_max)).to_string();
    Cow::Owned(if found.len() <= bytes_max { found } else { mark(&read).to_string() })
}

/// Returns the largest depth, up to `DEPTH_MAX` levels, at which all `schemas` fit into `bytes_max`
/// together.
pub fn common_depth(schemas: &[&Value], bytes_max: usize) -> usize {
    let bytes = |depth: usize| -> usize {
        schemas.iter().map(|schema| collapsed(schema, depth).to_string().len()).sum()
    };
    let (mut fits, mut too_deep) = (0, DEPTH_MAX + 1);
    // A larger depth hardly ever gives a shorter text.
    while too_deep - fits > 1 {
        let depth = usize::midpoint(fits, too_deep);
        if bytes(depth) <= bytes_max { fits = depth } else { too_deep = depth }
    }
    fits
}

/// Returns a schema without the parts below `depth` levels.
pub fn collapsed(schema: &Value, depth: usize) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let is_deep = INNER.iter().chain(&NAMED).any(|keyword| {
        members.get(*keyword).is_some_and(|inner| inner.is_object() || inner.is_array())
    });
    if depth == 0 && is_deep && !members.contains_key("$ref") {
        return mark(schema);
    }
    let mut found = Map::new();
    for (keyword, value) in members {
        let value = match (keyword.as_str(), value) {
            (keyword, Value::Array(all)) if CHOICES.contains(&keyword) => {
                all.iter().map(|choice| collapsed(choice, depth)).collect()
            }
            (keyword, value) if CHOICES.contains(&keyword) => collapsed(value, depth),
            (keyword, value) if INNER.contains(&keyword) => {
                collapsed(value, depth.saturating_sub(1))
            }
            (keyword, Value::Object(named)) if NAMED.contains(&keyword) => {
                let named = named.iter();
                let inner = |schema| collapsed(schema, depth.saturating_sub(1));
                Value::Object(named.map(|(name, schema)| (name.clone(), inner(schema))).collect())
            }
            (_, other) => other.clone(),
        };
        found.insert(keyword.clone(), value);
    }
    Value::Object(found)
}

/// Returns the replacement of a part that is left out.
fn mark(schema: &Value) -> Value {
    let mut found = Map::new();
    for keyword in ["type", "description"] {
        let is_short = |value: &&Value| value.to_string().len() < KEPT_BYTES_MAX;
        if let Some(value) = schema.get(keyword).filter(is_short) {
            found.insert(keyword.to_owned(), value.clone());
        }
    }
    found.insert("_collapsed".to_owned(), json!(true));
    found.insert("_hint".to_owned(), json!("left out: the definition is too large to be shown"));
    Value::Object(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> Value {
        let leaf = json!({ "type": "string", "description": "x".repeat(50) });
        (0..depth).fold(leaf, |inner, n| {
            json!({
                "type": "object",
                "description": format!("level {n}"),
                "properties": { "inner": inner, "ref": { "$ref": "#/$defs/x" } },
            })
        })
    }

    #[test]
    fn a_schema_that_fits_is_not_collapsed() {
        let text = r#"{ "type":"object", "x":1e400 }"#;
        assert_eq!(fitted_schema(text, 100), text);
    }

    #[test]
    fn a_deep_schema_is_collapsed_with_a_mark() {
        let schema = nested(10).to_string();
        let shown = fitted_schema(&schema, 700);
        assert!(shown.len() <= 700, "{}", shown.len());
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        let first = &shown["properties"]["inner"];
        assert_eq!(first["properties"]["ref"], json!({ "$ref": "#/$defs/x" }));
        let mut at = &shown;
        while at["_collapsed"].is_null() {
            at = &at["properties"]["inner"];
            assert!(at.is_object(), "the mark is somewhere");
        }
        assert_eq!(at["type"], "object");
        assert!(at["_hint"].is_string());
    }

    #[test]
    fn a_collapsed_schema_fits_into_the_limit() {
        let wide: Map<String, Value> =
            (0..1000).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
        for schema in
            [json!({ "properties": wide }), json!({ "enum": vec!["x"; 10_000] }), nested(100)]
        {
            let schema = schema.to_string();
            assert!(fitted_schema(&schema, 2000).len() <= 2000);
        }
        assert_eq!(fitted_schema("not JSON at all", 3), r#"{"type":"object"}"#);
    }
}
