//! The texts of a tool's definition that a search reads, each bounded.
//!
//! A definition comes from a server and may contain anything. Malformed parts are left out; the
//! rest still counts.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The maximum size of a tool's schema, in bytes: ten times the largest of real servers.
pub(super) const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// The maximum depth of parameters: those nested deeper say little about the tool.
pub(super) const SCHEMA_DEPTH_MAX: usize = 4;

/// The maximum number of parameters, including nested ones.
pub(super) const PARAMETERS_MAX: usize = 100;

/// The maximum number of values of an enumeration, and of bytes in each. A longer list has
/// countries or currencies, and does not distinguish tools.
pub(super) const VALUES_MAX: (usize, usize) = (12, 24);

/// The texts of a definition.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DefinitionText<'a> {
    /// The name; empty if it is missing.
    pub(super) name: Cow<'a, str>,
    /// The title of the tool or of its annotations.
    pub(super) title: Cow<'a, str>,
    pub(super) description: Cow<'a, str>,
    /// The names of its parameters and the short values of enumerations.
    pub(super) parameters: String,
    /// The descriptions of its parameters.
    pub(super) remarks: String,
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputSchema")]
    schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Annotations<'a> {
    #[serde(borrow)]
    title: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> DefinitionText<'a> {
    /// Reads the definition of a tool, which is JSON; anything else gives an empty one.
    pub(super) fn read(json: &'a str) -> Self {
        let Ok(members) = serde_json::from_str::<Members<'a>>(json) else {
            return Self::default();
        };
        let annotated = || {
            let annotations = members.annotations?.get();
            serde_json::from_str::<Annotations<'a>>(annotations).ok()?.title
        };
        let mut definition = Self {
            name: text(members.name),
            title: text(members.title.or_else(annotated)),
            description: text(members.description),
            ..Self::default()
        };
        let schema = members.schema.map(RawValue::get).filter(|it| it.len() <= SCHEMA_BYTES_MAX);
        if let Some(schema) = schema.and_then(|it| serde_json::from_str::<Value>(it).ok()) {
            let mut n_left = PARAMETERS_MAX;
            definition.parameters_of(&schema, 0, &mut n_left);
        }
        definition
    }

    /// Adds the parameters of an object schema, including nested ones.
    fn parameters_of(&mut self, schema: &Value, depth: usize, n_left: &mut usize) {
        if depth >= SCHEMA_DEPTH_MAX {
            return;
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let Some(fewer) = n_left.checked_sub(1) else { return };
                *n_left = fewer;
                add(&mut self.parameters, name);
                for text in ["title", "description"].iter().filter_map(|it| property.get(it)) {
                    add(&mut self.remarks, text.as_str().unwrap_or_default());
                }
                self.values_of(property);
                self.parameters_of(property, depth + 1, n_left);
            }
        }
        let inner = ["items", "additionalProperties"].iter().filter_map(|it| schema.get(it));
        let choices =
            ["anyOf", "oneOf", "allOf"].iter().filter_map(|it| schema.get(it)?.as_array());
        for schema in inner.chain(choices.flatten()) {
            self.parameters_of(schema, depth + 1, n_left);
        }
    }

    /// Adds the values of a short enumeration.
    fn values_of(&mut self, property: &Value) {
        let (n_max, bytes_max) = VALUES_MAX;
        let values = property.get("enum").and_then(Value::as_array);
        if let Some(values) = values.filter(|values| values.len() <= n_max) {
            for value in values.iter().filter_map(Value::as_str) {
                if value.len() <= bytes_max {
                    add(&mut self.parameters, value);
                }
            }
        }
    }
}

fn text(value: Option<&RawValue>) -> Cow<'_, str> {
    value
        .and_then(|value| serde_json::from_str::<Text<'_>>(value.get()).ok())
        .map(|Text(text)| text)
        .unwrap_or_default()
}

fn add(to: &mut String, text: &str) {
    to.push_str(super::tokenizer::beginning(text, super::tokenizer::TEXT_BYTES_MAX));
    to.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_parameters_and_short_values_are_read() {
        let read = DefinitionText::read(
            r#"{"name":"a","annotations":{"title":"A"},"inputSchema":{"properties":{
                "unit":{"enum":["metric","imperial"],"description":"Of what comes"},
                "stops":{"type":"array","items":{"properties":{"place":{"description":"Where"}}}},
                "when":{"anyOf":[{"properties":{"from":{}}},{"type":"null"}]}}}}"#,
        );

        assert_eq!((&*read.name, &*read.title, &*read.description), ("a", "A", ""));
        let mut parameters: Vec<&str> = read.parameters.lines().collect();
        parameters.sort_unstable();
        assert_eq!(parameters, ["from", "imperial", "metric", "place", "stops", "unit", "when"]);
        let mut remarks: Vec<&str> = read.remarks.lines().collect();
        remarks.sort_unstable();
        assert_eq!(remarks, ["Of what comes", "Where"]);
    }

    #[test]
    fn a_malformed_part_of_a_definition_is_left_out() {
        let deep = format!("{}1{}", r#"{"properties":{"a":"#.repeat(200), "}}".repeat(200));
        for (json, name) in [
            ("", ""),
            ("[]", ""),
            ("7", ""),
            (r#"{"name":7}"#, ""),
            (r#"{"name":"a","description":["b"],"inputSchema":[]}"#, "a"),
            (r#"{"name":"a","inputSchema":{"properties":[1]}}"#, "a"),
            (r#"{"name":"a","inputSchema":{"properties":{"b":null}}}"#, "a"),
            (&format!(r#"{{"name":"a","inputSchema":{deep}}}"#), "a"),
        ] {
            assert_eq!(DefinitionText::read(json).name, name, "{json}");
        }
    }

    #[test]
    fn the_number_of_parameters_read_is_bounded() {
        let many: Vec<String> = (0..1000).map(|n| format!(r#""p{n}":{{}}"#)).collect();
        let json = format!(r#"{{"inputSchema":{{"properties":{{{}}}}}}}"#, many.join(","));

        assert_eq!(DefinitionText::read(&json).parameters.lines().count(), PARAMETERS_MAX);
    }
}
