//! The merged list of several servers: its items, their order and its pages.
//!
//! The order is that of the servers' names, then that of each server's list. Of items with the same
//! name, the list has only the first, so that every client reaches the same server. Pure.

use std::collections::{HashMap, hash_map::Entry};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::alias;
use crate::{
    catalog::{Listing, NameCollision},
    protocol::{
        list_page::{ListItem, ListKind},
        mcp_apps,
    },
    server_name::ServerName,
};

#[derive(Debug)]
pub(super) struct MergedList<'a> {
    list: ListKind,
    items: Vec<MergedItem<'a>>,
    /// The items left out because an earlier one has the same name.
    pub(super) collisions: Vec<NameCollision>,
}

/// One item of the list.
#[derive(Clone, Debug)]
struct MergedItem<'a> {
    server: &'a ServerName,
    item: &'a ListItem,
    /// The name or URI in the merged view, if it differs from the server's own.
    name: Option<String>,
    /// The name is an alias, since clients would reject the full one.
    is_alias: bool,
}

impl MergedItem<'_> {
    fn exposed_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.item.key)
    }

    /// Returns the item's JSON text with another name, and with the URI of its page as listed.
    fn renamed(&self, name: &str) -> Bytes {
        let item = self.item.renamed(name);
        let text = str::from_utf8(&item).unwrap_or_default();
        mcp_apps::with_exposed_page(self.server.as_str(), text).map_or(item, Bytes::from)
    }

    /// Returns whether another item may have the same name. URIs may; names start with the
    /// server's, so that only an alias can equal another name.
    fn may_collide(&self) -> bool {
        self.name.is_none() || self.is_alias || alias::may_be_alias(&self.item.key)
    }
}

impl<'a> MergedList<'a> {
    /// Merges the lists of servers, which come in the order of their names. Includes tools for app
    /// pages only if the client `shows_pages`.
    pub(super) fn new(
        list: ListKind,
        listings: &'a [(ServerName, Listing)],
        shows_pages: bool,
    ) -> Self {
        let mut merged = Self { list, items: Vec::new(), collisions: Vec::new() };
        let mut taken: HashMap<String, usize> = HashMap::new();
        for (server, listing) in listings {
            for item in listing.iter() {
                if !shows_pages && mcp_apps::is_app_only(item.json()) {
                    continue;
                }
                let name = match list.is_named() {
                    true => Some(alias::exposed(server, &item.key)),
                    false => mcp_apps::exposed(server.as_str(), &item.key),
                };
                let is_alias = name.as_ref().is_some_and(|name| *name != server.qualify(&item.key));
                let item = MergedItem { server, item, name, is_alias };
                if item.may_collide() {
                    match taken.entry(item.exposed_name().to_owned()) {
                        Entry::Vacant(vacant) => drop(vacant.insert(merged.items.len())),
                        Entry::Occupied(occupied) => {
                            merged.collide(*occupied.get(), item);
                            continue;
                        }
                    }
                }
                merged.items.push(item);
            }
        }
        merged
    }

    /// Leaves one of two items out. A plain name precedes an alias, as in the routing of calls.
    fn collide(&mut self, at: usize, item: MergedItem<'a>) {
        let kept = &mut self.items[at];
        let is_better = kept.is_alias && !item.is_alias;
        let hidden = if is_better { std::mem::replace(kept, item) } else { item };
        self.collisions.push(NameCollision {
            list: self.list.member(),
            item: hidden.exposed_name().to_owned(),
            server: kept.server.clone(),
            left_out: hidden.server.clone(),
            keys: (kept.item.key.clone(), hidden.item.key.clone()),
        });
    }

    /// Returns the page at `cursor` as the result of a list request; `None` if the list has no such
    /// page, or has changed since the cursor was issued.
    pub(super) fn page(&self, cursor: Option<&str>, n_items_max: usize) -> Option<String> {
        let start = match cursor {
            None => 0,
            Some(cursor) => self.position(cursor, n_items_max)?,
        };
        let end = self.items.len().min(start + n_items_max);
        let mut result = format!("{{\"{}\":[", self.list.member()).into_bytes();
        for (number, item) in self.items[start..end].iter().enumerate() {
            if number > 0 {
                result.push(b',');
            }
            match &item.name {
                Some(name) => result.extend_from_slice(&item.renamed(name)),
                None => result.extend_from_slice(item.item.json().as_bytes()),
            }
        }
        result.push(b']');
        if end < self.items.len() {
            let next = format!(",\"nextCursor\":\"{end}-{}\"", self.mark());
            result.extend_from_slice(next.as_bytes());
        }
        result.push(b'}');
        Some(String::from_utf8(result).expect("items are JSON text, which is UTF-8"))
    }

    fn position(&self, cursor: &str, n_items_max: usize) -> Option<usize> {
        let (start, mark) = cursor.split_once('-')?;
        let start: usize = start.parse().ok()?;
        let is_border = start > 0 && start < self.items.len() && start.is_multiple_of(n_items_max);
        (is_border && mark == self.mark()).then_some(start)
    }

    /// Returns a hash of the names in their order: a client that continues in a changed list would
    /// miss items or see them twice.
    fn mark(&self) -> String {
        let mut hash = Sha256::new();
        for item in &self.items {
            hash.update(item.exposed_name());
            hash.update([0]);
        }
        hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::list_page::ListPage;

    fn listings(list: ListKind, all: &[(&str, &[&str])]) -> Vec<(ServerName, Listing)> {
        let of = |keys: &[&str]| {
            let item = |key: &&str| match list {
                ListKind::Tools => json!({ "name": key, "inputSchema": { "type": "object" } }),
                ListKind::Prompts => json!({ "name": key }),
                ListKind::Resources => json!({ "uri": key, "name": "n" }),
                ListKind::ResourceTemplates => json!({ "uriTemplate": key, "name": "n" }),
            };
            let items: Vec<Value> = keys.iter().map(item).collect();
            let result = json!({ list.member(): items }).to_string();
            Listing::new(ListPage::read(list, &result).expect("a list").items)
        };
        let name = |name: &str| ServerName::new(name).expect("a name");
        all.iter().map(|(server, keys)| (name(server), of(keys))).collect()
    }

    fn names_of(merged: &MergedList<'_>) -> Vec<String> {
        merged.items.iter().map(|item| item.exposed_name().to_owned()).collect()
    }

    fn collisions(merged: &MergedList<'_>) -> Vec<(String, String, String)> {
        let names = |found: &NameCollision| {
            (found.item.clone(), found.server.to_string(), found.left_out.to_string())
        };
        merged.collisions.iter().map(names).collect()
    }

    fn collision(item: &str, server: &str, left_out: &str) -> (String, String, String) {
        (item.to_owned(), server.to_owned(), left_out.to_owned())
    }

    #[test]
    fn names_of_two_servers_never_collide_and_shared_uris_lead_to_the_first_server() {
        let tools = listings(ListKind::Tools, &[("a", &["x"]), ("b", &["x"])]);
        let merged = MergedList::new(ListKind::Tools, &tools, true);
        assert_eq!(
            (names_of(&merged), collisions(&merged)),
            (vec!["a__x".into(), "b__x".into()], vec![])
        );

        for list in [ListKind::Resources, ListKind::ResourceTemplates] {
            let all = listings(list, &[("a", &["r:1"]), ("b", &["r:2", "r:1"]), ("c", &["r:1"])]);
            let merged = MergedList::new(list, &all, true);
            assert_eq!(names_of(&merged), ["r:1", "r:2"]);
            assert_eq!(
                collisions(&merged),
                [collision("r:1", "a", "b"), collision("r:1", "a", "c")]
            );
        }
    }

    #[test]
    fn a_plain_name_precedes_an_equal_alias() {
        let alias = alias::exposed(&ServerName::new("a").expect("a name"), "page.click");
        let plain = alias.strip_prefix("a__").expect("it is in front");
        for keys in [["page.click", plain], [plain, "page.click"]] {
            let all = listings(ListKind::Tools, &[("a", &keys)]);
            let merged = MergedList::new(ListKind::Tools, &all, true);
            assert_eq!(merged.items[0].item.key, plain);
            assert_eq!(
                (names_of(&merged), collisions(&merged)),
                (vec![alias.clone()], vec![collision(&alias, "a", "a")])
            );
            assert_eq!(merged.collisions[0].keys, (plain.to_owned(), "page.click".to_owned()));
        }
    }

    #[test]
    fn a_long_merged_list_has_pages_and_refuses_the_cursor_of_another_list() {
        let all = listings(ListKind::Prompts, &[("a", &["1", "2", "3"]), ("b", &["1", "2"])]);
        let merged = MergedList::new(ListKind::Prompts, &all, true);
        let page = |cursor: Option<&str>| -> Value {
            serde_json::from_str(&merged.page(cursor, 2).expect("a page")).expect("JSON")
        };
        let (mut names, mut cursor) = (Vec::new(), None);
        for n_items in [2, 2, 1] {
            let page = page(cursor.as_deref());
            let items = page["prompts"].as_array().expect("items");
            assert_eq!(items.len(), n_items);
            names.extend(items.iter().map(|item| item["name"].as_str().expect("it").to_owned()));
            cursor = page["nextCursor"].as_str().map(str::to_owned);
        }
        assert_eq!((names, cursor), (names_of(&merged), None));

        let next = page(None)["nextCursor"].as_str().expect("more").to_owned();
        let shorter = MergedList::new(ListKind::Prompts, &all[..1], true);
        assert_eq!(shorter.page(Some(&next), 2), None);
        let mark = merged.mark();
        for odd in
            ["", "2", "-", "x", &*format!("0-{mark}"), &format!("1-{mark}"), &format!("6-{mark}")]
        {
            assert_eq!(merged.page(Some(odd), 2), None, "{odd}");
        }
        assert_eq!(merged.page(None, 5).map(|page| page.contains("nextCursor")), Some(false));
    }
}
