//! The subject of a completion: a prompt, by its name, or a resource, by its URI or template.
//!
//! Pure.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::protocol::{ObjectMembers, jsonrpc};

/// `params.ref` of `completion/complete`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CompletionReference {
    /// A prompt with this name.
    Prompt(String),
    /// A resource with this URI, or a template.
    Resource(String),
}

impl CompletionReference {
    /// Reads a reference from JSON text.
    ///
    /// # Errors
    ///
    /// The parameter that is missing or unknown.
    pub(super) fn read(text: Option<&str>) -> Result<Self, &'static str> {
        #[derive(Deserialize)]
        struct Peek<'a> {
            #[serde(borrow)]
            r#type: Option<Cow<'a, str>>,
            name: Option<String>,
            uri: Option<String>,
        }
        let peek: Peek<'_> = text.and_then(|text| serde_json::from_str(text).ok()).ok_or("ref")?;
        match peek.r#type.as_deref() {
            Some("ref/prompt") => peek.name.map(Self::Prompt).ok_or("ref.name"),
            Some("ref/resource") => peek.uri.map(Self::Resource).ok_or("ref.uri"),
            _ => Err("ref.type"),
        }
    }
}

/// Returns a reference, as JSON text, with the name or URI of `new`; nothing else changes.
pub(super) fn renamed(text: &str, new: &CompletionReference) -> String {
    let (member, new) = match new {
        CompletionReference::Prompt(name) => ("name", name),
        CompletionReference::Resource(uri) => ("uri", uri),
    };
    let Some(old) = ObjectMembers::one(text, member) else { return text.to_owned() };
    let span = jsonrpc::span_in(text, old);
    let (before, after) = (&text[..span.start as usize], &text[span.end as usize..]);
    format!("{before}{}{after}", Value::from(&**new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_completion_reference_is_refused_by_the_missing_member() {
        let (prompt, resource) = (
            CompletionReference::Prompt("a".to_owned()),
            CompletionReference::Resource("a:{b}".to_owned()),
        );
        for (text, expected) in [
            (Some(r#"{"type":"ref/prompt","name":"a","title":"A"}"#), Ok(prompt)),
            (Some(r#"{"uri":"a:{b}","type":"ref/resource"}"#), Ok(resource)),
            (Some(r#"{"type":"ref/prompt","uri":"a"}"#), Err("ref.name")),
            (Some(r#"{"type":"ref/resource","name":"a"}"#), Err("ref.uri")),
            (Some(r#"{"type":"ref/tool","name":"a"}"#), Err("ref.type")),
            (Some(r#"{"name":"a"}"#), Err("ref.type")),
            (Some("7"), Err("ref")),
            (None, Err("ref")),
        ] {
            assert_eq!(CompletionReference::read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn renaming_a_completion_reference_changes_nothing_else() {
        assert_eq!(
            renamed(
                r#"{ "x":1e400, "name" : "s__a","type":"ref/prompt"}"#,
                &CompletionReference::Prompt("\"a".to_owned())
            ),
            r#"{ "x":1e400, "name" : "\"a","type":"ref/prompt"}"#
        );
        assert_eq!(
            renamed(
                r#"{"uri": "ui://s/a","type":"ref/resource"}"#,
                &CompletionReference::Resource("ui://a".to_owned())
            ),
            r#"{"uri": "ui://a","type":"ref/resource"}"#
        );
    }
}
