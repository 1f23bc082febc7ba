//! The removal of items that clients would reject from a server's own list.

use std::sync::Arc;

use super::{Catalog, announced_version::ListPosition};
use crate::{
    connection::SessionOwner,
    pool::ServerSlot,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        list_page::{ListKind, ListPage},
        mcp_apps,
    },
};

impl Catalog {
    /// Returns the function that removes two kinds of items from a server's list: those that the
    /// client would reject, and, unless it `shows_pages`, tools for app pages only. Other answers
    /// pass unchanged. `is_first` means that the client asked for the first page.
    pub fn quarantine_filter(
        &self,
        slot: &ServerSlot,
        list: ListKind,
        owner: Option<&SessionOwner>,
        is_first: bool,
        shows_pages: bool,
    ) -> impl FnOnce(Message) -> Message + Send + Sync + use<> {
        let (entry, findings) = (self.entry(slot, list, owner), Arc::clone(&self.findings));
        let server = slot.name().clone();
        move |answer| {
            // The client handles errors and invalid results itself.
            let Some(result) = answer.part(MessagePart::Result) else { return answer };
            let Ok(page) = ListPage::read(list, result) else { return answer };
            let place = ListPosition { is_first, is_last: page.next.is_none() };
            let is_whole = place.is_first && place.is_last;
            findings.read(&server, list, &page.items, &page.rejected, is_whole);
            entry.note_shown_page(&page.items, place);
            let is_hidden = |item: &str| !shows_pages && mcp_apps::is_app_only(item);
            if page.rejected.is_empty() && !page.items.iter().any(|item| is_hidden(item.json())) {
                return answer;
            }
            match page.without_rejected(list, result, is_hidden) {
                Some(rest) => answer.with(MessagePart::Result, &rest),
                None => answer,
            }
        }
    }
}
