//! Examples of a tool's arguments, derived from its schema.
//!
//! The examples in the schema come first. Then one example has only the required fields, and
//! another one all fields with a value in the schema. A required field without a value gets a word
//! in angle brackets that describes it.

use std::cell::Cell;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::cut;
use crate::config::defaults::{
    EXAMPLE_CHARS_MAX, EXAMPLE_DEPTH_MAX, EXAMPLE_KEYS_MAX, EXAMPLE_VALUES_MAX, EXAMPLES_MAX,
    HINT_CHARS_MAX, SUGGESTION_BYTES_MAX,
};
use crate::redact;

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
    let reader = || Reader { root: schema, n_left: Cell::new(EXAMPLE_VALUES_MAX) };
    let given =
        schema["examples"].as_array().into_iter().flatten().filter(|given| given.is_object());
    let mut found: Vec<ArgumentExample> = given
        .map(|given| ArgumentExample {
            id: String::new(),
            title: "As the tool gives it",
            description: "An example from the tool's own schema.",
            args: reader().bounded(given, 0),
            result_hint: None,
        })
        .collect();
    let hint =
        schema["description"].as_str().map(|text| cut(&redact::sanitize(text), HINT_CHARS_MAX));
    for which in [Which::Required, Which::Valued] {
        let args = reader().object(schema, which, 0);
        let is_new = found.iter().all(|known| known.args != args);
        let is_empty = args.as_object().is_some_and(Map::is_empty);
        if is_new && !(is_empty && which == Which::Valued) {
            let (title, description) = which.words();
            let result_hint = hint.clone();
            found.push(ArgumentExample {
                id: String::new(),
                title,
                description,
                args,
                result_hint,
            });
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
enum Which {
    /// Only the required fields.
    Required,
    /// The required fields, and those with a value.
    Valued,
}

impl Which {
    /// Returns the title and the description of such an example.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Required => {
                ("The least it takes", "Only what is required. Replace what is in angle brackets.")
            }
            Self::Valued => ("With everything", "Every argument that the schema has a value for."),
        }
    }
}

struct Reader<'a> {
    root: &'a Value,
    /// The number of values that the example may still have. A schema that refers to itself has no
    /// end, and grows at each level.
    n_left: Cell<usize>,
}

impl<'a> Reader<'a> {
    /// Counts one more value, and returns whether it is allowed.
    fn take(&self) -> bool {
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
                .take_while(|_| self.take())
                .map(|(name, value)| (name.clone(), self.bounded(value, depth + 1)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items
                .iter()
                .take(EXAMPLE_KEYS_MAX)
                .take_while(|_| self.take())
                .map(|item| self.bounded(item, depth + 1))
                .collect(),
            Value::String(text) => json!(cut(text, EXAMPLE_CHARS_MAX)),
            other => other.clone(),
        }
    }

    /// Returns the schema that a reference within the document leads to, or `schema` itself.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..EXAMPLE_DEPTH_MAX {
            let target = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
            match target.and_then(|path| self.root.pointer(path)) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }

    fn object(&self, schema: &'a Value, which: Which, depth: usize) -> Value {
        let schema = self.resolved(schema);
        let required = schema["required"].as_array();
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|found| found == name));
        let mut found = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if found.len() >= EXAMPLE_KEYS_MAX || !self.take() {
                break;
            }
            if name.len() > SUGGESTION_BYTES_MAX {
                continue;
            }
            let property = self.resolved(property);
            let value = match given(property) {
                Some(value) if which == Which::Valued || is_required(name) => {
                    Some(self.bounded(value, depth + 1))
                }
                None if is_required(name) => Some(self.made(name, property, which, depth + 1)),
                Some(_) | None => None,
            };
            if let Some(value) = value {
                found.insert(name.clone(), value);
            }
        }
        Value::Object(found)
    }

    /// Returns a value for a field without one in the schema.
    fn made(&self, name: &str, schema: &'a Value, which: Which, depth: usize) -> Value {
        let choice = ["anyOf", "oneOf", "allOf"].iter().find_map(|keyword| schema[*keyword].get(0));
        if let Some(choice) = choice
            && depth < EXAMPLE_DEPTH_MAX
            && schema["type"].is_null()
        {
            let choice = self.resolved(choice);
            return given(choice).map_or_else(
                || self.made(name, choice, which, depth + 1),
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
                json!([item.unwrap_or_else(|| self.made(name, items, which, depth + 1))])
            }
            Some("array") => json!([]),
            Some("object") if depth < EXAMPLE_DEPTH_MAX => self.object(schema, which, depth),
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
