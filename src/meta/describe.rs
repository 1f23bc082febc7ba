//! A tool of a server, described to a model: in a sentence, with its schema, or in full.
//!
//! A definition is what its server wrote, as JSON text. Of what is short everything is shown; of what
//! is long, the beginning, and it is said that there is more.
//!
//! In what is told in our own fields, characters that would move or turn what is around them, or hide
//! in it, are spaces. Names stay, since a call takes them, and so do schemas and whole definitions: who
//! asks for those wants what the server wrote.

mod collapse;
mod examples;
mod schema_path;

use serde_json::{Map, Value, json};

pub use collapse::{collapsed, common_depth, fitted_schema};
pub use examples::{ArgumentExample, examples};
pub use schema_path::part_of;

use super::{
    arguments::DetailLevel,
    result_document,
    tool_id::ToolId,
    warnings::{ToolWarning, warnings},
};
use crate::{
    config::defaults::{
        EXAMPLE_CHARS_MAX, EXAMPLE_VALUES_MAX, NOTES_CHARS_MAX, SCHEMA_SHOWN_BYTES_MAX,
        SUMMARY_CHARS_MAX,
    },
    protocol::ObjectMembers,
    redact,
};

/// A tool's definition, and whose it is.
#[derive(Clone, Debug)]
pub struct DescribedTool<'a> {
    id: ToolId,
    definition: &'a str,
    members: ObjectMembers<'a>,
}

impl<'a> DescribedTool<'a> {
    /// Reads the definition of the tool `id`, JSON text. What it lacks is as if it were empty.
    pub fn new(id: ToolId, definition: &'a str) -> Self {
        let members = ObjectMembers::read(definition).unwrap_or_default();
        Self { id, definition, members }
    }

    /// Returns what its server says about it.
    fn description(&self) -> String {
        let said = self.members.string("description").filter(|text| !text.trim().is_empty());
        said.or_else(|| self.title()).unwrap_or_default()
    }

    fn title(&self) -> Option<String> {
        let annotated =
            self.members.get("annotations").and_then(ObjectMembers::read).unwrap_or_default();
        self.members.string("title").or_else(|| annotated.string("title"))
    }

    /// Returns what it does, in short and on one line.
    pub fn summary(&self) -> String {
        summary(&self.description())
    }

    /// Returns all that its server says about it, unless that is very long.
    pub fn notes(&self) -> String {
        cut(redact::sanitize(&self.description()).trim(), NOTES_CHARS_MAX)
    }

    /// Returns the JSON text of its input schema; where that is too large, without what is deep in it.
    pub fn schema(&self) -> String {
        let schema = self.members.get("inputSchema").filter(|schema| schema.starts_with('{'));
        fitted_schema(schema.unwrap_or(r#"{"type":"object"}"#), SCHEMA_SHOWN_BYTES_MAX).into_owned()
    }

    /// Returns its arguments in short: which are required, their defaults and their types.
    pub fn schema_info(&self) -> Value {
        let schema = self.members.get("inputSchema").unwrap_or("{}");
        let schema: Value = serde_json::from_str(schema).unwrap_or_default();
        let (mut defaults, mut types) = (Map::new(), Map::new());
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, property) in properties.take(EXAMPLE_VALUES_MAX) {
            let default = property.get("default");
            if let Some(default) =
                default.filter(|value| value.to_string().len() <= EXAMPLE_CHARS_MAX)
            {
                defaults.insert(name.clone(), default.clone());
            }
            types.insert(name.clone(), type_of(property).into());
        }
        let required: Vec<&Value> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|name| name.is_string())
            .collect();
        json!({ "required": required, "defaults": defaults, "types": types })
    }

    /// Returns words about it: what it declares of its manner.
    pub fn tags(&self) -> Vec<&'static str> {
        let hints =
            self.members.get("annotations").and_then(ObjectMembers::read).unwrap_or_default();
        let all = [
            ("readOnlyHint", "read-only"),
            ("destructiveHint", "destructive"),
            ("idempotentHint", "idempotent"),
            ("openWorldHint", "open-world"),
        ];
        let declared = all.iter().filter(|(hint, _)| hints.get(hint) == Some("true"));
        declared.map(|(_, tag)| *tag).collect()
    }

    /// Returns the entry of `mcp_discover` for it, JSON text of an object: as much as `detail` says.
    pub fn discovered(&self, detail: DetailLevel) -> String {
        let mut entry = ObjectMembers::default();
        entry.set("tool", quoted(&self.id.tool));
        entry.set("server", quoted(&self.id.server));
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

    /// Returns the entry of `search_tools` and `list_tools` for it, JSON text of an object.
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

    /// Returns the answer of `describe_tool` about it, JSON text of the structured value.
    pub fn described(&self, detail: DetailLevel, examples_max: usize) -> String {
        let mut answer = ObjectMembers::default();
        answer.set("summary", quoted(&self.summary()));
        match detail {
            DetailLevel::Summary => {}
            DetailLevel::Schema => self.add_schema(&mut answer),
            DetailLevel::Full => {
                self.add_schema(&mut answer);
                answer.set("notes", quoted(&self.notes()));
                answer.set("examples", json!(self.examples(examples_max)).to_string());
            }
        }
        answer.to_string()
    }

    /// Returns its definition as its server wrote it; of one that is too large, what a call takes.
    fn definition(&self) -> String {
        let mut tool = self.members.clone();
        if self.definition.len() <= SCHEMA_SHOWN_BYTES_MAX {
            return tool.to_string();
        }
        tool.set("inputSchema", self.schema());
        // What it answers with is seen when it answers.
        tool.take("outputSchema");
        tool.take("icons");
        tool.take("_meta");
        tool.set("description", quoted(&self.notes()));
        tool.to_string()
    }

    fn add_schema(&self, answer: &mut ObjectMembers<'_>) {
        answer.set("tool", self.definition());
        answer.set("schemaInfo", self.schema_info().to_string());
        self.add_warnings(answer);
    }

    /// Adds what its caller should know before it is run, if there is anything.
    fn add_warnings(&self, answer: &mut ObjectMembers<'_>) {
        let warnings = warnings(self.definition);
        if !warnings.is_empty() {
            let words: Vec<String> = warnings.iter().map(ToolWarning::to_string).collect();
            answer.set("warnings", json!(words).to_string());
        }
    }

    /// Returns up to `max` examples of its arguments, as far as its schema tells.
    pub fn examples(&self, max: usize) -> Vec<ArgumentExample> {
        let schema = self.members.get("inputSchema").unwrap_or("{}");
        let schema: Value = serde_json::from_str(schema).unwrap_or_default();
        examples(&schema, max)
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

/// Returns what a text says, in short and on one line.
pub fn summary(text: &str) -> String {
    let text = redact::sanitize(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    cut(&words.join(" "), SUMMARY_CHARS_MAX)
}

/// Returns the beginning of a text, with a sign that there is more.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(chars_max) else { return text.to_owned() };
    let (end_short, _) = text.char_indices().nth(chars_max.saturating_sub(1)).unwrap_or((end, ' '));
    let shown = &text[..end_short];
    // Not within a word, unless the text is one.
    let shown = match shown.rfind(char::is_whitespace) {
        Some(at) if at > end_short / 2 => shown[..at].trim_end(),
        _ => shown,
    };
    format!("{shown}…")
}

/// Returns an answer with a structured value, JSON text, and the same as text, as the protocol asks
/// for.
pub fn answer(structured: &str) -> String {
    let block = result_document::text_block(structured);
    format!(r#"{{"content":[{block}],"structuredContent":{structured},"isError":false}}"#)
}

#[cfg(test)]
mod tests;
