//! Examples of a tool's arguments, derived from its schema.
//!
//! The examples in the schema come first. Then one example has only the required fields, and
//! another one all fields with a value in the schema. A required field without a value gets a word
//! in angle brackets that describes it. Pure.

use std::cell::Cell;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::config::defaults::{
    EXAMPLE_CHARS_MAX, EXAMPLE_DEPTH_MAX, EXAMPLE_KEYS_MAX, EXAMPLE_VALUES_MAX, EXAMPLES_MAX,
    HINT_CHARS_MAX, SUGGESTION_BYTES_MAX,
};
use crate::{redact, tool::summary::cut};

/// An example of arguments.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentExample {
    /// The id.
    pub id: String,
    /// A short title.
    pub title: &'static str,
    /// A description.
    pub description: &'static str,
    /// The arguments.
    pub args: Value,
    /// A hint at the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_hint: Option<String>,
}

/// Returns up to `max` examples of arguments for `schema`, and at most [`EXAMPLES_MAX`].
pub fn examples(schema: &Value, max: usize) -> Vec<ArgumentExample> {
    let builder = || ExampleBuilder { root: schema, n_left: Cell::new(EXAMPLE_VALUES_MAX) };
    let example = |(title, description), args, result_hint| {
        let id = String::new();
        ArgumentExample { id, title, description, args, result_hint }
    };
    let declared = ("An example of the server", "An example from the tool's own schema.");
    let given = schema["examples"].as_array().into_iter().flatten();
    let given = given.filter(|given| given.is_object());
    let mut found: Vec<ArgumentExample> =
        given.map(|given| example(declared, builder().bounded(given, 0), None)).collect();
    let hint =
        schema["description"].as_str().map(|text| cut(&redact::sanitize(text), HINT_CHARS_MAX));
    for fields in [ExampleFields::Required, ExampleFields::Valued] {
        let args = builder().object(schema, fields, 0);
        let is_new = found.iter().all(|known| known.args != args);
        let is_empty = args.as_object().is_some_and(Map::is_empty);
        if is_new && !(is_empty && fields == ExampleFields::Valued) {
            found.push(example(fields.title_and_description(), args, hint.clone()));
        }
    }
    found.truncate(max.min(EXAMPLES_MAX));
    for (number, example) in found.iter_mut().enumerate() {
        example.id = format!("example-{}", number + 1);
    }
    found
}

/// The fields that an example has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExampleFields {
    /// Only the required fields.
    Required,
    /// The required fields, and those with a value.
    Valued,
}

impl ExampleFields {
    /// Returns the title and the description of such an example.
    fn title_and_description(self) -> (&'static str, &'static str) {
        match self {
            Self::Required => (
                "Required arguments",
                "Only these are required. Replace the words in angle brackets.",
            ),
            Self::Valued => ("All arguments", "Each argument that has a value in the schema."),
        }
    }
}

struct ExampleBuilder<'a> {
    root: &'a Value,
    /// The number of values that the example may still have. A schema that refers to itself has no
    /// end, and grows at each level.
    n_left: Cell<usize>,
}

impl<'a> ExampleBuilder<'a> {
    /// Counts one more value, and returns whether it is allowed.
    fn has_room(&self) -> bool {
        let n_left = self.n_left.get();
        self.n_left.set(n_left.saturating_sub(1));
        n_left > 0
    }

    /// Returns a value within the bounds of an example on depth, width and length.
    fn bounded(&self, value: &Value, depth: usize) -> Value {
        match value {
            Value::Object(_) | Value::Array(_) if depth >= EXAMPLE_DEPTH_MAX => json!("…"),
            Value::Object(members) => members
                .iter()
                .filter(|(name, _)| name.len() <= SUGGESTION_BYTES_MAX)
                .take(EXAMPLE_KEYS_MAX)
                .take_while(|_| self.has_room())
                .map(|(name, value)| (name.clone(), self.bounded(value, depth + 1)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items
                .iter()
                .take(EXAMPLE_KEYS_MAX)
                .take_while(|_| self.has_room())
                .map(|item| self.bounded(item, depth + 1))
                .collect(),
            Value::String(text) => json!(cut(text, EXAMPLE_CHARS_MAX)),
            other => other.clone(),
        }
    }

    /// Returns the schema that a reference within the document leads to, or `schema` itself.
    fn resolved(&self, mut schema: &'a Value) -> &'a Value {
        for _ in 0..EXAMPLE_DEPTH_MAX {
            let target = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
            match target.and_then(|path| self.root.pointer(path)) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }

    fn object(&self, schema: &'a Value, fields: ExampleFields, depth: usize) -> Value {
        let schema = self.resolved(schema);
        let required = schema["required"].as_array();
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|found| found == name));
        let mut found = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if found.len() >= EXAMPLE_KEYS_MAX || !self.has_room() {
                break;
            }
            if name.len() > SUGGESTION_BYTES_MAX {
                continue;
            }
            let property = self.resolved(property);
            let value = match given(property) {
                Some(value) if fields == ExampleFields::Valued || is_required(name) => {
                    Some(self.bounded(value, depth + 1))
                }
                None if is_required(name) => Some(self.invented(name, property, fields, depth + 1)),
                Some(_) | None => None,
            };
            if let Some(value) = value {
                found.insert(name.clone(), value);
            }
        }
        Value::Object(found)
    }

    /// Returns a value for a field without one in the schema.
    fn invented(
        &self,
        name: &str,
        schema: &'a Value,
        fields: ExampleFields,
        depth: usize,
    ) -> Value {
        let choice = ["anyOf", "oneOf", "allOf"].iter().find_map(|keyword| schema[*keyword].get(0));
        if let Some(choice) = choice
            && depth < EXAMPLE_DEPTH_MAX
            && schema["type"].is_null()
        {
            let choice = self.resolved(choice);
            return given(choice).map_or_else(
                || self.invented(name, choice, fields, depth + 1),
                |value| self.bounded(value, depth),
            );
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first().and_then(Value::as_str),
            other => other.as_str(),
        };
        let smallest = || schema.get("minimum").filter(|min| min.is_number()).cloned();
        match kind {
            Some("integer" | "number") => smallest().unwrap_or_else(|| json!(1)),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            Some("array") if depth < EXAMPLE_DEPTH_MAX && schema["items"].is_object() => {
                let items = self.resolved(&schema["items"]);
                let item = given(items).map(|value| self.bounded(value, depth + 1));
                json!([item.unwrap_or_else(|| self.invented(name, items, fields, depth + 1))])
            }
            Some("array") => json!([]),
            Some("object") if depth < EXAMPLE_DEPTH_MAX => self.object(schema, fields, depth),
            Some("object") => json!({}),
            _ => json!(format!("<{}>", cut(name, HINT_CHARS_MAX))),
        }
    }
}

/// Returns the value that a schema itself gives.
fn given(schema: &Value) -> Option<&Value> {
    let from = |keyword: &str| schema[keyword].get(0);
    from("examples")
        .or_else(|| schema.get("default").filter(|value| !value.is_null()))
        .or_else(|| schema.get("const"))
        .or_else(|| from("enum"))
}
