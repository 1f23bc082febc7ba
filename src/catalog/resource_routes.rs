//! The route from a resource URI to the server that has the resource.

use std::{cmp::Reverse, sync::Arc};

use super::{Catalog, Listing};
use crate::{
    connection::{ConnectionLimits, SessionOwner},
    pool::ServerSlot,
    protocol::list_page::ListKind,
    server_name::ServerName,
};

impl Catalog {
    /// Returns the server that has the resource `uri`: one that lists it, else the one whose
    /// template has the longest literal beginning in common with it.
    ///
    /// Lists that are already known come first, so that a slow server does not delay the resources
    /// of others. Cancel safe.
    pub async fn server_of_resource(
        &self,
        uri: &str,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Option<ServerName> {
        let known = |list| self.known_now(list, owner);
        let found = listed(&known(ListKind::Resources), uri)
            .or_else(|| templated(&known(ListKind::ResourceTemplates), uri));
        // A server that had the resource before may still have it, and takes precedence.
        if let Some(found) = found
            && !self.had_before(ListKind::Resources, owner, uri, &found)
        {
            return Some(found);
        }
        if let Some(server) = listed(&self.all(ListKind::Resources, owner, limits).await, uri) {
            return Some(server);
        }
        templated(&self.all(ListKind::ResourceTemplates, owner, limits).await, uri)
    }

    /// Returns the server for a completion of the resource or template `uri`: one that has exactly
    /// this template, else the server of the resource. Cancel safe.
    pub async fn server_of_template(
        &self,
        uri: &str,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> Option<ServerName> {
        let list = ListKind::ResourceTemplates;
        if let Some(found) = listed(&self.known_now(list, owner), uri)
            && !self.had_before(list, owner, uri, &found)
        {
            return Some(found);
        }
        if let Some(found) = listed(&self.all(list, owner, limits).await, uri) {
            return Some(found);
        }
        self.server_of_resource(uri, owner, limits).await
    }

    /// Returns whether the server of `slot` lists `uri` or has a template for it. Reads its lists
    /// if they are not known. Cancel safe.
    pub async fn has_resource(
        &self,
        slot: &Arc<ServerSlot>,
        uri: &str,
        owner: Option<&SessionOwner>,
        limits: ConnectionLimits,
    ) -> bool {
        for list in [ListKind::Resources, ListKind::ResourceTemplates] {
            let Ok(listing) = self.known_or_read(slot, list, owner, limits).await else { continue };
            let single = [(slot.name().clone(), listing)];
            let is_template = list == ListKind::ResourceTemplates;
            if listed(&single, uri).is_some() || is_template && templated(&single, uri).is_some() {
                return true;
            }
        }
        false
    }

    /// Returns the lists that are current, and the known lists of servers without a connection.
    fn known_now(
        &self,
        list: ListKind,
        owner: Option<&SessionOwner>,
    ) -> Vec<(ServerName, Listing)> {
        let slots = self.pool.slots();
        let kept = slots.values().filter_map(|slot| {
            let current = self.entry(slot, list, owner).current(slot, owner);
            let before = || self.store.listing(slot.name(), list);
            let before = || slot.live(owner).is_none().then(before).flatten();
            let listing = current.or_else(before)?;
            Some((slot.name().clone(), listing))
        });
        kept.collect()
    }

    /// Returns whether a server that precedes `found` by name listed `uri` at its last read, and
    /// has a list that is no longer current.
    fn had_before(
        &self,
        list: ListKind,
        owner: Option<&SessionOwner>,
        uri: &str,
        found: &ServerName,
    ) -> bool {
        let slots = self.pool.slots();
        slots.range(..found.clone()).any(|(_, slot)| {
            let entry = self.entry(slot, list, owner);
            let had = || entry.last().is_some_and(|last| last.iter().any(|item| item.key == uri));
            let is_known =
                slot.live(owner).is_none() && self.store.listing(slot.name(), list).is_some();
            !is_known && entry.current(slot, owner).is_none() && had()
        })
    }
}

/// Returns the server that lists the resource `uri`.
fn listed(listings: &[(ServerName, Listing)], uri: &str) -> Option<ServerName> {
    let lists_it = |listing: &Listing| listing.iter().any(|item| item.key == uri);
    listings.iter().find(|(_, listing)| lists_it(listing)).map(|(server, _)| server.clone())
}

/// Returns the server whose template has the longest literal beginning in common with `uri`.
fn templated(listings: &[(ServerName, Listing)], uri: &str) -> Option<ServerName> {
    let matches = listings.iter().flat_map(|(server, listing)| {
        listing.iter().filter_map(move |item| {
            let literal = item.key.split('{').next().unwrap_or_default();
            // A template without a literal beginning would match everything.
            let is_like = !literal.is_empty() && uri.starts_with(literal);
            is_like.then_some((literal.len(), server))
        })
    });
    // Of equally long ones, the first.
    matches.min_by_key(|(length, _)| Reverse(*length)).map(|(_, server)| server.clone())
}
