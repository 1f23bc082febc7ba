//! The read of one list from its server: the choice of the connection, and all pages.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    call::{self, CallError, Exchange},
    capacity_holder::Holder,
    config::defaults,
    connection::{Connection, ConnectionLimits, RequestFailure, SessionOwner},
    era::ClientEra,
    pool::{ConnectionLease, ServerSlot, SlotError},
    protocol::{
        Message, RpcError,
        jsonrpc::MessagePart,
        list_page::{LISTED_TWICE, ListItem, ListKind, ListPage},
        malformed_items::RejectedItem,
        rpc_error::METHOD_NOT_FOUND,
    },
    server_name::ServerName,
};

/// The reason for reading a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchReason {
    /// A caller waits for it: it connects, retries, and counts for the breaker, as any request.
    Requested,
    /// The server is connected. metamcp neither connects nor retries for it, and the outcome does
    /// not count for the breaker.
    Connected,
}

/// The target, the client and the reason of one read.
#[derive(Clone, Copy)]
pub(super) struct ListFetch<'a> {
    pub(super) slot: &'a Arc<ServerSlot>,
    pub(super) owner: Option<&'a SessionOwner>,
    pub(super) limits: ConnectionLimits,
    pub(super) reason: FetchReason,
}

/// All pages of a list.
#[derive(Default)]
pub(super) struct FetchedPages {
    pub(super) items: Vec<ListItem>,
    /// The items that clients are not shown.
    pub(super) rejected: Vec<RejectedItem>,
    pub(super) ttl: Option<Duration>,
}

impl ListFetch<'_> {
    /// Returns the connection to read on.
    pub(super) async fn connection(
        self,
        attempts: &ConnectAttempts,
    ) -> Result<ConnectionLease, CallError> {
        match self.reason {
            FetchReason::Requested => self.leased(attempts).await,
            FetchReason::Connected => self.existing().await,
        }
    }

    /// Returns a connection, connecting the server if needed.
    async fn leased(self, attempts: &ConnectAttempts) -> Result<ConnectionLease, CallError> {
        let Self { slot, owner, limits, .. } = self;
        let leased = call::connection(slot, owner, limits.silence).await;
        match &leased {
            Ok(_) => attempts.note(slot, false),
            Err(CallError::Tripped(..) | CallError::NotConnected(_, SlotError::Dial { .. })) => {
                attempts.note(slot, true);
            }
            // Other errors say nothing about the server.
            Err(_) => {}
        }
        leased
    }

    /// Returns the existing connection. Where each request has its own, waits for one.
    async fn existing(self) -> Result<ConnectionLease, CallError> {
        let Self { slot, owner, limits, .. } = self;
        let server = || slot.name().clone();
        if slot.has_fixed_connection() {
            let gone = || CallError::Failed(server(), RequestFailure::Closed);
            return slot.ready(owner).ok_or_else(gone);
        }
        let leased = slot.lease(owner, Instant::now() + limits.silence).await;
        leased.map_err(|error| CallError::NotConnected(server(), error))
    }

    /// Reads all pages; `prefetched` is the first page, if it was read already.
    pub(super) async fn pages(
        self,
        list: ListKind,
        connection: &Arc<Connection>,
        mut prefetched: Option<Message>,
    ) -> Result<FetchedPages, CallError> {
        let no_list = |answer: String| {
            let (server, method) = (self.slot.name().clone(), list.method());
            CallError::NoList { server, method, answer }
        };
        let FetchedPages { mut items, mut rejected, mut ttl } = FetchedPages::default();
        let (mut seen, mut cursor) = (HashSet::new(), None::<String>);
        for _ in 0..defaults::LIST_PAGES_MAX {
            let params =
                cursor.as_ref().map(|cursor| serde_json::json!({ "cursor": cursor }).to_string());
            let request = Message::request(list.method(), params.as_deref());
            let answer = match prefetched.take() {
                Some(answer) => answer,
                None => self.ask(connection, request).await?,
            };
            let Some(result) = answer.part(MessagePart::Result) else {
                let error = answer.part(MessagePart::Error).unwrap_or_default();
                // Some servers declare `resources` and know no templates. Any other error may be
                // temporary, so the items read so far must not be kept.
                if RpcError::code_of(error) == Some(METHOD_NOT_FOUND) {
                    break;
                }
                return Err(no_list(connection.quote(error)));
            };
            let page = ListPage::read(list, result).map_err(|error| no_list(error.to_string()))?;
            rejected.extend(page.rejected);
            // The list is valid as long as each of its pages.
            ttl = ttl.into_iter().chain(page.ttl).min();
            for item in page.items {
                if seen.insert(item.key.clone()) {
                    items.push(item);
                } else {
                    let (position, item, reason) = (seen.len(), item.key, LISTED_TWICE);
                    rejected.push(RejectedItem { position, item, reason });
                }
            }
            match page.next {
                // A server that repeats the cursor would never end.
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => break,
            }
        }
        Ok(FetchedPages { items, rejected, ttl })
    }

    async fn ask(
        self,
        connection: &Arc<Connection>,
        request: Message,
    ) -> Result<Message, CallError> {
        let Self { slot, owner, limits, reason } = self;
        match reason {
            FetchReason::Requested => {
                let (slot, client, holder) =
                    (Arc::clone(slot), ClientEra::Metamcp, Holder::SERVICE);
                let exchange = Exchange::new(slot, owner, client, holder, request, limits);
                // The server was connected a moment ago, perhaps for this list.
                exchange.after_start().finish().await
            }
            FetchReason::Connected => {
                let failed = |source| CallError::Failed(slot.name().clone(), source);
                connection.ask(&request, limits).await.map_err(failed)
            }
        }
    }
}

/// The servers that could not be connected when a client asked for their lists.
#[derive(Debug, Default)]
pub(super) struct ConnectAttempts {
    /// A slot that a reload replaced says nothing about its successor.
    failed: Mutex<HashMap<ServerName, Weak<ServerSlot>>>,
}

impl ConnectAttempts {
    /// Records the outcome of an attempt to connect `slot`.
    pub(super) fn note(&self, slot: &Arc<ServerSlot>, has_failed: bool) {
        let mut failed = self.failed();
        match has_failed {
            true => drop(failed.insert(slot.name().clone(), Arc::downgrade(slot))),
            false => drop(failed.remove(slot.name())),
        }
    }

    /// Returns whether the last attempt to connect `slot` failed.
    pub(super) fn has_failed(&self, slot: &Arc<ServerSlot>) -> bool {
        let failed = self.failed();
        failed.get(slot.name()).is_some_and(|known| known.ptr_eq(&Arc::downgrade(slot)))
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<ServerName, Weak<ServerSlot>>> {
        // Held for single statements on plain data.
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
