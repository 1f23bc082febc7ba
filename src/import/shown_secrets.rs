//! The secrets in a client's file, so that they can be hidden where its lines are shown.
//!
//! Pure.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value;

use super::{
    file_syntax,
    known_client::KnownClient,
    secret_detection::{is_secret, is_secret_name, looks_secret},
    shell_arguments::line_has_secret,
};

/// Returns the texts in a file that are secrets by their names or their look, longest first.
pub fn secrets(client: KnownClient, text: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    if let Ok((_, document)) = file_syntax::read(Path::new(""), text, Some(client)) {
        collect(None, &document, &mut found);
    }
    let mut found: Vec<String> = found.into_iter().collect();
    found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    found
}

fn collect(key: Option<&str>, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let is_named = key.is_some_and(|key| is_secret(key, text));
            if !text.is_empty() && (is_named || looks_secret(text) || line_has_secret(text)) {
                found.insert(text.clone());
            }
        }
        Value::Array(items) => {
            let mut before = None;
            for item in items {
                let flag =
                    before.filter(|flag: &&str| is_secret_name(flag.trim_start_matches('-')));
                collect(flag.or(key), item, found);
                before = item.as_str().filter(|text| text.starts_with('-'));
            }
        }
        Value::Object(members) => {
            for (key, value) in members {
                collect(Some(key), value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_by_name_by_look_and_behind_a_flag() {
        let text = r#"{"oauthToken": "abc123xyz", "theme": "dark", "mcpServers": {"a": {
            "args": ["--api-key", "hunter22", "--port", "80"],
            "env": {"X": "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "MODE": "fast"}
        }}}"#;
        let found = secrets(KnownClient::Cursor, text);
        assert_eq!(found, ["ghp_abcdefghijklmnopqrstuvwxyz0123456789", "abc123xyz", "hunter22"]);
    }
}
