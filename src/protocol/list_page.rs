//! The lists that servers offer, and the pages in which they come.

use std::{collections::HashSet, ops::Range, time::Duration};

use bytes::Bytes;
use serde_json::Value;

use super::{
    ObjectMembers, byte_chunks,
    json_array::{LIST_ITEMS_MAX, first_items},
    jsonrpc,
    malformed_items::{ItemScan, RejectedItem},
    payloads::method,
};

/// A list that servers offer and the `direct` view merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
}

impl ListKind {
    /// Returns the method that requests the list.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST,
            Self::Prompts => method::PROMPTS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::ResourceTemplates => method::RESOURCE_TEMPLATES_LIST,
        }
    }

    /// Returns the list that `method` requests.
    pub fn of_method(method: &str) -> Option<Self> {
        [Self::Tools, Self::Prompts, Self::Resources, Self::ResourceTemplates]
            .into_iter()
            .find(|list| list.method() == method)
    }

    /// Returns the capability that a server with this list declares.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::ResourceTemplates => "resources",
        }
    }

    /// Returns the member of the result that holds the items.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
        }
    }

    /// Returns the notification of a change of the list.
    pub fn notice(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_CHANGED,
            Self::Prompts => method::PROMPTS_CHANGED,
            Self::Resources | Self::ResourceTemplates => method::RESOURCES_CHANGED,
        }
    }

    /// Returns the lists whose change the notification `method` announces, the main one first.
    /// Returns none for any other notification.
    pub fn of_notice(method: &str) -> &'static [Self] {
        match method {
            method::TOOLS_CHANGED => &[Self::Tools],
            method::PROMPTS_CHANGED => &[Self::Prompts],
            method::RESOURCES_CHANGED => &[Self::Resources, Self::ResourceTemplates],
            _ => &[],
        }
    }

    /// Returns whether items are identified by a name that must be unique over all servers.
    ///
    /// Resources are identified by URI, which metamcp never changes, except as in [`super::mcp_apps`].
    pub fn is_named(self) -> bool {
        matches!(self, Self::Tools | Self::Prompts)
    }
}

/// An item of a list: its JSON text and the name or URI that identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// The name, URI or URI template.
    pub key: String,
    json: Box<str>,
    key_span: Range<usize>,
}

/// One page of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The valid items in the server's order.
    pub items: Vec<ListItem>,
    /// The invalid items, which are withheld from clients.
    pub rejected: Vec<RejectedItem>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// The time for which the page is fresh, as its server states in the modern era.
    pub ttl: Option<Duration>,
}

/// The error for a list result that contains no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its `{}` result has no array `{}`", .0.method(), .0.member())]
pub struct ListResultError(pub ListKind);

impl ListPage {
    /// Reads the result of a list request, given as JSON text.
    ///
    /// Only the invalid items are rejected: one tool without an input schema makes some clients
    /// drop every tool of a server.
    ///
    /// # Errors
    ///
    /// [`ListResultError`] if the result has no such array.
    pub fn read(list: ListKind, result: &str) -> Result<Self, ListResultError> {
        let result = ObjectMembers::read(result).ok_or(ListResultError(list))?;
        let items = result.get(list.member()).ok_or(ListResultError(list))?;
        Ok(Self {
            next: result.get("nextCursor").and_then(|next| serde_json::from_str(next).ok()),
            ttl: result.get("ttlMs").and_then(|ttl| ttl.parse().ok().map(Duration::from_millis)),
            ..Self::of_items(list, items)?
        })
    }

    /// Reads an array of items, given as JSON text, as the only page of the list.
    ///
    /// # Errors
    ///
    /// [`ListResultError`] if `items` is not an array.
    pub fn of_items(list: ListKind, items: &str) -> Result<Self, ListResultError> {
        let (items, _) = first_items(items, LIST_ITEMS_MAX).map_err(|_| ListResultError(list))?;
        let mut page = Self::default();
        let mut keys = HashSet::new();
        for (position, json) in items.iter().enumerate() {
            let item = ListItem::read(list, json.get(), position).and_then(|item| {
                match keys.insert(item.key.clone()) {
                    true => Ok(item),
                    false => Err(RejectedItem { position, item: item.key, reason: LISTED_TWICE }),
                }
            });
            match item {
                Ok(item) => page.items.push(item),
                Err(rejected) => page.rejected.push(rejected),
            }
        }
        Ok(page)
    }

    /// Returns the text of `result`, from which this page was read, without rejected items and
    /// those that `is_hidden` selects. Everything else is unchanged.
    pub fn without_rejected(
        &self,
        list: ListKind,
        result: &str,
        is_hidden: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let array = ObjectMembers::one(result, list.member())?;
        let (items, _) = first_items(array, LIST_ITEMS_MAX).ok()?;
        let is_kept =
            |position: usize| self.rejected.iter().all(|found| found.position != position);
        let kept: Vec<&str> = (items.iter().enumerate())
            .filter(|(position, _)| is_kept(*position))
            .map(|(_, item)| item.get())
            .filter(|item| !is_hidden(item))
            .collect();
        let span = jsonrpc::span_in(result, array);
        let (before, after) = (&result[..span.start as usize], &result[span.end as usize..]);
        Some(format!("{before}[{}]{after}", kept.join(",")))
    }
}

/// Returns whether a block of a result, given as JSON text, is a text block.
pub fn is_text_block(block: &str) -> bool {
    ObjectMembers::read(block).and_then(|block| block.string("type")).as_deref() == Some("text")
}

/// The defect of an item with the same key as an earlier one.
pub const LISTED_TWICE: &str = "it is listed twice";

impl ListItem {
    fn read(list: ListKind, json: &str, position: usize) -> Result<Self, RejectedItem> {
        let numbered = || format!("#{}", position + 1);
        let rejected = |item: String, reason| RejectedItem { position, item, reason };
        let scan = ItemScan::read(json).map_err(|reason| rejected(numbered(), reason))?;
        let raw = scan.key(list);
        let key = raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let (Some(raw), Some(key)) = (raw, key) else {
            let reason = match list {
                ListKind::Tools | ListKind::Prompts => "it has no `name`",
                ListKind::Resources => "it has no `uri`",
                ListKind::ResourceTemplates => "it has no `uriTemplate`",
            };
            return Err(rejected(numbered(), reason));
        };
        if let Some(reason) = scan.defect(list, &key) {
            return Err(rejected(if key.is_empty() { numbered() } else { key }, reason));
        }
        let span = jsonrpc::span_in(json, raw.get());
        Ok(Self { key, key_span: span.start as usize..span.end as usize, json: json.into() })
    }

    /// Returns the item's JSON text as the server wrote it.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns the item's JSON text with its key replaced; nothing else changes.
    pub fn renamed(&self, key: &str) -> Bytes {
        let key = Value::from(key).to_string();
        let edit = (self.key_span.clone(), key.as_str());
        byte_chunks::splice(self.json.as_bytes(), std::iter::once(edit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_valid_tools_and_rejects_the_others_by_name() {
        let page = ListPage::read(
            ListKind::Tools,
            r#"{"tools":[{"x":1e400,"name":"a","inputSchema":{"type":"object"}},{"name":"b"},{"name":"c","inputSchema":{"type":"array"}},{"description":"d"},7],"nextCursor":"2"}"#,
        )
        .expect("a list");

        assert_eq!(page.items.len(), 1);
        assert_eq!(
            page.items[0].renamed("s__a"),
            r#"{"x":1e400,"name":"s__a","inputSchema":{"type":"object"}}"#
        );
        assert_eq!(page.next.as_deref(), Some("2"));
        let rejected: Vec<_> =
            page.rejected.iter().map(|found| (found.position, &*found.item)).collect();
        assert_eq!(rejected, [(1, "b"), (2, "c"), (3, "#4"), (4, "#5")]);
    }

    #[test]
    fn rejected_items_are_removed_and_everything_else_is_unchanged() {
        let good = r#"{ "name":"a", "x":1e400, "inputSchema":{"type":"object"}}"#;
        let page = |items: &str| {
            format!(r#"{{"_meta":{{ "tools":[7]}},"tools": {items} ,"nextCursor":"2"}}"#)
        };
        for (items, expected) in [
            (format!("[7, {good}]"), format!("[{good}]")),
            (format!("[ {good} ,{good}]"), format!("[{good}]")),
            (r#"[{"name":""}]"#.to_owned(), "[]".to_owned()),
        ] {
            let result = page(&items);
            let read = ListPage::read(ListKind::Tools, &result).expect("a list");
            assert_eq!(
                read.without_rejected(ListKind::Tools, &result, |_| false),
                Some(page(&expected))
            );
            assert_eq!(read.next.as_deref(), Some("2"));
        }
    }

    #[test]
    fn resources_are_identified_by_their_uri() {
        let page =
            ListPage::read(ListKind::Resources, r#"{"resources":[{"name":"n","uri":"a:b"}]}"#)
                .expect("a list");
        assert_eq!(page.items[0].key, "a:b");
        assert_eq!(
            ListPage::read(ListKind::Resources, "{}").expect_err("no list").to_string(),
            "its `resources/list` result has no array `resources`"
        );
    }
}
