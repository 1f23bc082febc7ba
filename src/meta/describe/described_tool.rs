//! The description of a tool for a model: in a sentence, with its schema, or in full.
//!
//! A definition is JSON text from a server. A short part is shown in full, and a long part is cut,
//! with a mark at its end.
//!
//! In metamcp's own fields, characters that move, turn or hide text become spaces. Names stay,
//! since a call needs them. Schemas and whole definitions stay, too: they are requested as the
//! server wrote them. Pure.

use serde_json::{Map, Value, json};

use super::{
    super::arguments::DetailLevel,
    examples::{ArgumentExample, examples},
};
use crate::{
    config::defaults::{
        EXAMPLE_CHARS_MAX, EXAMPLE_VALUES_MAX, NOTES_CHARS_MAX, SCHEMA_SHOWN_BYTES_MAX,
    },
    protocol::ObjectMembers,
    redact,
    tool::{
        ToolId, ToolWarning,
        schema_collapse::fitted_schema,
        summary::{cut, description, summary},
        warnings,
    },
    typegen,
};

/// A tool's definition and its id.
#[derive(Clone, Debug)]
pub struct DescribedTool<'a> {
    id: ToolId,
    definition: &'a str,
    members: ObjectMembers<'a>,
}

impl<'a> DescribedTool<'a> {
    /// Reads the definition of the tool `id`, JSON text. Missing parts count as empty.
    pub fn new(id: ToolId, definition: &'a str) -> Self {
        let members = ObjectMembers::read(definition).unwrap_or_default();
        Self { id, definition, members }
    }

    fn annotations(&self) -> ObjectMembers<'_> {
        self.members.get("annotations").and_then(ObjectMembers::read).unwrap_or_default()
    }

    fn input_schema(&self) -> Value {
        let schema = self.members.get("inputSchema").unwrap_or("{}");
        serde_json::from_str(schema).unwrap_or_default()
    }

    /// Returns its description, shortened to one line.
    pub fn summary(&self) -> String {
        summary(&description(&self.members))
    }

    /// Returns its description, cut if it is very long.
    pub fn notes(&self) -> String {
        cut(redact::sanitize(&description(&self.members)).trim(), NOTES_CHARS_MAX)
    }

    /// Returns the JSON text of its input schema, without the deep levels if it is too large.
    pub fn schema(&self) -> String {
        let schema = self.members.get("inputSchema").filter(|schema| schema.starts_with('{'));
        fitted_schema(schema.unwrap_or(r#"{"type":"object"}"#), SCHEMA_SHOWN_BYTES_MAX).into_owned()
    }

    /// Returns a summary of its arguments: the required ones, their defaults and their types.
    pub fn schema_info(&self) -> Value {
        let schema = self.input_schema();
        let (mut defaults, mut types) = (Map::new(), Map::new());
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, property) in properties.take(EXAMPLE_VALUES_MAX) {
            let is_short = |value: &&Value| value.to_string().len() <= EXAMPLE_CHARS_MAX;
            if let Some(default) = property.get("default").filter(is_short) {
                defaults.insert(name.clone(), default.clone());
            }
            types.insert(name.clone(), type_of(property).into());
        }
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<&Value> = required.filter(|name| name.is_string()).collect();
        json!({ "required": required, "defaults": defaults, "types": types })
    }

    /// Returns the hints of its annotations, in words.
    pub fn tags(&self) -> Vec<&'static str> {
        let hints = self.annotations();
        let all = [
            ("readOnlyHint", "read-only"),
            ("destructiveHint", "destructive"),
            ("idempotentHint", "idempotent"),
            ("openWorldHint", "open-world"),
        ];
        let declared = all.iter().filter(|(hint, _)| hints.get(hint) == Some("true"));
        declared.map(|(_, tag)| *tag).collect()
    }

    /// Returns its entry for `mcp_discover`, JSON text of an object, with this much `detail`.
    pub fn discovered(&self, detail: DetailLevel) -> String {
        let mut entry = self.named();
        match detail {
            DetailLevel::Summary => entry.set("description", quoted(&self.summary())),
            DetailLevel::Schema => {
                entry.set("description", quoted(&self.notes()));
                entry.set("inputSchema", self.schema());
                self.add_warnings(&mut entry);
            }
            DetailLevel::Full => {
                entry.set("definition", self.definition());
                self.add_warnings(&mut entry);
            }
        }
        entry.to_string()
    }

    /// Returns its entry for `mcp_discover` beside its types, which have the description.
    pub fn discovered_beside_types(&self) -> String {
        let mut entry = self.named();
        self.add_warnings(&mut entry);
        entry.to_string()
    }

    fn named(&self) -> ObjectMembers<'_> {
        let mut entry = ObjectMembers::default();
        entry.set("tool", quoted(&self.id.tool));
        entry.set("server", quoted(&self.id.server));
        entry
    }

    /// Returns the tool with its schemas, for the declaration of its types. Schemas that are no JSON
    /// of this program's range count as missing.
    pub fn typed(&self) -> typegen::Tool {
        let schema = |name: &str| {
            self.members.get(name).and_then(|schema| serde_json::from_str(schema).ok())
        };
        typegen::Tool {
            server: self.id.server.clone(),
            name: self.id.tool.clone(),
            description: Some(self.summary()),
            input: schema("inputSchema"),
            output: schema("outputSchema"),
        }
    }

    /// Returns its entry for `search_tools` and `list_tools`, JSON text of an object.
    pub fn listed(&self) -> String {
        json!({
            "id": self.id.to_string(),
            "name": self.id.tool,
            "namespace": self.id.server,
            "shortDescription": self.summary(),
            "tags": self.tags(),
        })
        .to_string()
    }

    /// Returns the answer of `describe_tool`, JSON text of the structured value.
    pub fn described(&self, detail: DetailLevel, examples_max: usize) -> String {
        let mut answer = ObjectMembers::default();
        answer.set("summary", quoted(&self.summary()));
        if detail != DetailLevel::Summary {
            answer.set("tool", self.definition());
            answer.set("schemaInfo", self.schema_info().to_string());
            self.add_warnings(&mut answer);
        }
        if detail == DetailLevel::Full {
            answer.set("notes", quoted(&self.notes()));
            answer.set("examples", json!(self.examples(examples_max)).to_string());
        }
        answer.to_string()
    }

    /// Returns its definition as the server wrote it, or only what a call needs if it is too large.
    fn definition(&self) -> String {
        let mut tool = self.members.clone();
        if self.definition.len() <= SCHEMA_SHOWN_BYTES_MAX {
            return tool.to_string();
        }
        tool.set("inputSchema", self.schema());
        // The shape of an answer is visible in the answer.
        for name in ["outputSchema", "icons", "_meta"] {
            tool.take(name);
        }
        tool.set("description", quoted(&self.notes()));
        tool.to_string()
    }

    /// Adds the warnings for its caller, if there are any.
    fn add_warnings(&self, answer: &mut ObjectMembers<'_>) {
        let warnings = warnings(self.definition);
        if !warnings.is_empty() {
            let words: Vec<String> = warnings.iter().map(ToolWarning::to_string).collect();
            answer.set("warnings", json!(words).to_string());
        }
    }

    /// Returns up to `max` examples of its arguments, derived from its schema.
    pub fn examples(&self, max: usize) -> Vec<ArgumentExample> {
        examples(&self.input_schema(), max)
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns the type of a field in a word.
fn type_of(schema: &Value) -> String {
    match &schema["type"] {
        Value::String(kind) if kind == "array" => match schema["items"]["type"].as_str() {
            Some(items) => format!("array of {items}"),
            None => kind.clone(),
        },
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ if schema["enum"].is_array() => "enum".to_owned(),
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests;
