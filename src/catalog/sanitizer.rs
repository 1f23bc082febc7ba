//! A server's own list on its way to a client: what that would choke on is cut out.

use std::sync::Arc;

use super::{Catalog, client_view::ListPosition};
use crate::{
    connection::SessionOwner,
    pool::ServerSlot,
    protocol::{
        Message, apps,
        jsonrpc::MessagePart,
        list_page::{ListKind, ListPage},
    },
};

impl Catalog {
    /// Returns what is to be done with the answer of a server to a client's own list request: items
    /// that the client would choke on are cut out. An answer without such items stays as it is.
    /// So are tools for pages where the client `shows_pages` not. `is_first` tells whether the first page
    /// was asked for.
    pub fn sieve(
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
            // An error, or what is no list, is for the client to judge.
            let Some(result) = answer.part(MessagePart::Result) else { return answer };
            let Ok(page) = ListPage::read(list, result) else { return answer };
            let place = ListPosition { is_first, is_last: page.next.is_none() };
            let is_whole = place.is_first && place.is_last;
            findings.read(&server, list, &page.items, &page.rejected, is_whole);
            entry.note_shown_page(&page.items, place);
            let is_hidden = |item: &str| !shows_pages && apps::is_app_only(item);
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
