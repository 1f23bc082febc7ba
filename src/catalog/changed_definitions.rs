//! The definitions that a server has changed since its list was last read. Pure.
//!
//! A tool that was reviewed and found harmless may have another description a day later, and models
//! believe descriptions. So each change is logged.

use std::collections::HashMap;

use super::Listing;
use crate::{config::defaults, protocol::ObjectMembers, redact, server_name::ServerName};

/// A definition that differs from its earlier version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangedDefinition {
    /// The name, URI or URI template.
    pub(super) key: String,
    /// The members that differ, are new or are gone; in the order of the new definition.
    pub(super) members: Vec<String>,
}

/// Returns the definitions of `new` that differ from those in `old`, at most
/// [`defaults::CHANGES_LOGGED_MAX`], and the number of further ones.
pub(super) fn changed_definitions(old: &Listing, new: &Listing) -> (Vec<ChangedDefinition>, usize) {
    let before: HashMap<&str, &str> =
        old.iter().map(|item| (item.key.as_str(), item.json())).collect();
    let mut changed = new.iter().filter_map(|item| {
        let old = before.get(item.key.as_str()).filter(|old| **old != item.json())?;
        let members = differing(old, item.json());
        // Another spelling of the same JSON is not a change.
        (!members.is_empty()).then(|| ChangedDefinition { key: item.key.clone(), members })
    });
    let first = changed.by_ref().take(defaults::CHANGES_LOGGED_MAX).collect();
    (first, changed.count())
}

/// Logs the definitions that differ from their earlier version.
pub(super) fn log_changes(server: &ServerName, list: &str, old: &Listing, new: &Listing) {
    let (changes, n_more) = changed_definitions(old, new);
    for ChangedDefinition { key, members } in changes {
        let key = redact::cut(&redact::sanitize(&key), defaults::QUOTE_BYTES_MAX).to_owned();
        let members = members.join(", ");
        let members = redact::cut(&members, defaults::QUOTE_BYTES_MAX);
        tracing::warn!(
            mcp_server = %server, mcp_list = list, key, members,
            "definition changed: {key:?} of server `{server}` has other {members}"
        );
    }
    if n_more > 0 {
        tracing::warn!(
            mcp_server = %server, mcp_list = list, n_more,
            "server `{server}` changed {n_more} more definitions in `{list}`"
        );
    }
}

fn differing(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (
        ObjectMembers::read(old).unwrap_or_default(),
        ObjectMembers::read(new).unwrap_or_default(),
    );
    let [before, after] = [&old, &new].map(|members| members.iter().collect::<HashMap<_, _>>());
    let changed = new.iter().filter(|(name, value)| before.get(name) != Some(value));
    let gone = old.iter().filter(|(name, _)| !after.contains_key(name));
    changed.chain(gone).map(|(name, _)| redact::sanitize(name).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::list_page::{ListKind, ListPage};

    fn listing(tools: &Value) -> Listing {
        let result = json!({ "tools": tools }).to_string();
        Listing::new(ListPage::read(ListKind::Tools, &result).expect("a list").items)
    }

    #[test]
    fn a_changed_definition_is_reported_with_the_members_that_differ() {
        let old = listing(&json!([
            { "name": "same", "description": "a", "inputSchema": { "type": "object" } },
            { "name": "other", "description": "reads", "inputSchema": { "type": "object" }, "title": "t" },
            { "name": "gone", "inputSchema": { "type": "object" } },
        ]));
        let new = listing(&json!([
            { "name": "new", "inputSchema": { "type": "object" } },
            { "name": "other", "description": "<IMPORTANT>", "inputSchema": { "type": "object" }, "annotations": {} },
            { "name": "same", "description": "a", "inputSchema": { "type": "object" } },
        ]));
        let members = ["annotations", "description", "title"].map(str::to_owned).to_vec();
        assert_eq!(
            changed_definitions(&old, &new),
            (vec![ChangedDefinition { key: "other".to_owned(), members }], 0)
        );
        assert_eq!(changed_definitions(&old, &old), (Vec::new(), 0));
    }

    #[test]
    fn definitions_that_differ_only_in_spelling_are_not_reported() {
        let tools = |space: &str, text: &str| {
            let tool = |number| {
                let text = if number == 99 { text } else { "a" };
                format!(
                    r#"{{"name":"t{number}",{space}"description":"{text}","inputSchema":{{"type":"object"}}}}"#
                )
            };
            let tools: Vec<String> = (0..100).map(tool).collect();
            let result = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
            Listing::new(ListPage::read(ListKind::Tools, &result).expect("a list").items)
        };
        let (changes, n_more) = changed_definitions(&tools("", "a"), &tools(" ", "b"));
        let keys: Vec<&str> = changes.iter().map(|found| found.key.as_str()).collect();
        assert_eq!((keys, n_more), (vec!["t99"], 0));
    }

    #[test]
    fn the_report_names_some_of_very_many_changed_definitions_and_counts_the_rest() {
        let tools = |text: &str| {
            let tool = |number| json!({ "name": format!("t{number}"), "description": text, "inputSchema": { "type": "object" } });
            listing(&(0..100).map(tool).collect())
        };
        let (changes, n_more) = changed_definitions(&tools("a"), &tools("b"));
        assert_eq!(
            (changes.len(), n_more),
            (defaults::CHANGES_LOGGED_MAX, 100 - defaults::CHANGES_LOGGED_MAX)
        );
    }
}
