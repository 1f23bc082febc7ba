//! The upkeep of the catalog, which reads lists within the time limits of requests.

use std::sync::Arc;

use tokio::{
    sync::{
        broadcast::{self, error::RecvError},
        mpsc,
    },
    time,
};
use tokio_util::sync::CancellationToken;

use crate::{
    catalog::Catalog, config::defaults, connection::Announcement, forward::Forwarder,
    server_name::ServerName,
};

#[derive(Debug)]
pub(super) struct CatalogUpkeep {
    catalog: Arc<Catalog>,
    forwarder: Arc<Forwarder>,
}

impl CatalogUpkeep {
    /// Returns the upkeep of `catalog`, with the limits of `forwarder`.
    pub(super) fn new(catalog: Arc<Catalog>, forwarder: Arc<Forwarder>) -> Arc<Self> {
        Arc::new(Self { catalog, forwarder })
    }

    /// Forwards server notifications until `stop`, as `Catalog::run_announcements` does.
    ///
    /// # Cancel safety
    ///
    /// Messages in the queue are lost.
    pub(super) async fn run_announcements(
        self: Arc<Self>,
        announced: mpsc::Receiver<Announcement>,
        stop: CancellationToken,
    ) {
        self.catalog.run_announcements(announced, || self.forwarder.limits(), stop).await;
    }

    /// Reads the cached lists of the declared servers. Cancel safe: the reads continue, and the
    /// catalog gets their lists.
    pub(super) async fn restore(&self) {
        self.catalog.restore().await;
        let era_of = |server: &ServerName| Some(self.catalog.profile(server)?.era());
        self.forwarder.pool().remember_eras(era_of);
    }

    /// Keeps the catalog and the disk cache current until `stop`. Then waits for reads in progress,
    /// at most [`defaults::LAST_READS_TIMEOUT`], and writes their results.
    ///
    /// # Cancel safety
    ///
    /// The last changes may be missing on the disk.
    pub(super) async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let following = async {
            let deadline = async {
                stop.cancelled().await;
                time::sleep(defaults::LAST_READS_TIMEOUT).await;
            };
            tokio::select! {
                () = self.catalog.follow(|| self.forwarder.limits(), stop.clone()) => {}
                () = deadline => {}
            }
        };
        tokio::join!(following, self.catalog.run_persister(stop.clone()));
        self.catalog.save().await;
    }

    /// Connects each server at which a login succeeds, until `stop`: its tools may be unknown so far.
    pub(super) async fn follow_logins(
        self: Arc<Self>,
        mut logins: broadcast::Receiver<ServerName>,
        stop: CancellationToken,
    ) {
        while let Some(logged_in) = stop.run_until_cancelled(logins.recv()).await {
            match logged_in {
                Ok(server) => self.catalog.prime_again(&server, self.forwarder.limits()).await,
                // The next request of a skipped server connects it.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Primes servers until `stop`, as `Catalog::prime` does. Cancel safe: a connection attempt in
    /// progress continues.
    pub(super) async fn prime(self: Arc<Self>, stop: CancellationToken) {
        self.catalog.prime(|| self.forwarder.limits(), stop).await;
    }
}
