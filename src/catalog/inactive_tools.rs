//! Cached tools of servers that are not in use: found by provisioning, shown to no client.

use std::sync::Arc;

use tokio::time;

use super::{Catalog, Listing, definition_hash::CatalogDigest};
use crate::{
    config::{ServerConfig, defaults},
    protocol::list_page::ListKind,
    server_name::ServerName,
};

impl Catalog {
    /// Returns the tools that servers had in an earlier run, from the disk: for each server in
    /// `declared` that has any, its position and its tools. Returns nothing if the disk takes
    /// longer than [`defaults::CACHE_READ_TIMEOUT`]. Cancel safe: nothing is kept.
    pub async fn remembered(
        &self,
        declared: Vec<(ServerName, Arc<ServerConfig>)>,
    ) -> Vec<(usize, Listing)> {
        if declared.is_empty() || self.cache.directory().is_none() {
            return Vec::new();
        }
        let cache = Arc::clone(&self.cache);
        let reading = self.tasks.spawn_blocking(move || {
            let read = |(at, (name, server)): (usize, (ServerName, Arc<ServerConfig>))| {
                let known = cache.read(&name, CatalogDigest::of_declaration(&server))?;
                Some((at, known.listing(ListKind::Tools)?))
            };
            declared.into_iter().enumerate().filter_map(read).collect()
        });
        match time::timeout(defaults::CACHE_READ_TIMEOUT, reading).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot read the cached tools of servers that may be added: {error}");
                Vec::new()
            }
            Err(_) => {
                tracing::warn!(
                    "reading the cached tools of servers that may be added takes too long: metamcp continues without them"
                );
                Vec::new()
            }
        }
    }
}
