//! What all servers offer, as one list: tools, prompts, resources.
//!
//! Each server's list is read once per connection and kept until the server announces a change.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::task::TaskTracker;

use crate::{
    call::{self, CallError, Exchange},
    config::defaults,
    connection::{Connection, Limits, Owner},
    name::ServerName,
    pool::{Pool, Slot, SlotError},
    protocol::{
        Message, RpcError,
        error::METHOD_NOT_FOUND,
        jsonrpc::Part,
        mcp::{Item, List, Page},
    },
    report::chain,
    single_flight::SingleFlight,
};

/// One server's list.
pub type Listing = Arc<Vec<Item>>;

type Outcome = Result<Listing, Arc<CallError>>;

/// The lists of all servers.
#[derive(Debug)]
pub struct Catalog {
    pool: Arc<Pool>,
    tasks: TaskTracker,
    entries: Mutex<HashMap<Key, Arc<Entry>>>,
}

/// Which list: of a client's own connection, where the server has one for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    server: ServerName,
    list: List,
    owner: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    reads: Arc<SingleFlight<Outcome>>,
    is_late: AtomicBool,
    kept: Mutex<Option<Kept>>,
}

/// A list and the state of the connection that it was read in.
#[derive(Clone, Debug)]
struct Kept {
    connection: Weak<Connection>,
    /// How many changes the server had announced.
    revision: u64,
    listing: Listing,
}

impl Catalog {
    /// Returns an empty catalog of the servers in `pool`; its reads are owned by `tasks`.
    pub fn new(pool: Arc<Pool>, tasks: TaskTracker) -> Self {
        Self { pool, tasks, entries: Mutex::default() }
    }

    /// Returns the list of every server that has it, in the order of the servers' names.
    ///
    /// A server that fails, or takes longer than [`defaults::LIST_PATIENCE`] or a request may stay
    /// silent, is left out and logged: the tools of the others are worth more than an error.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn all(
        &self,
        list: List,
        owner: Option<&Owner>,
        limits: Limits,
    ) -> Vec<(ServerName, Listing)> {
        let slots = self.pool.slots();
        let reads = slots.values().map(|slot| async move {
            let read = self.listing(slot, list, owner, limits);
            let entry = self.entry(slot, list, owner);
            // Who has missed the patience once is not waited for again until the read ends.
            let is_late = entry.is_late.load(Ordering::Relaxed) && entry.reads.is_flying();
            let patience = match is_late {
                true => Duration::ZERO,
                false => defaults::LIST_PATIENCE.min(limits.silence),
            };
            let listed = tokio::time::timeout(patience, read).await;
            let is_tripped = matches!(
                &listed,
                Ok(Err(error)) if matches!(**error, CallError::Tripped { .. })
            );
            entry.is_late.store(listed.is_err() || is_tripped, Ordering::Relaxed);
            if !matches!(listed, Ok(Ok(_))) && slot.live(owner).is_none() {
                slot.missed();
            }
            match listed {
                Ok(Ok(listing)) => Some((slot.name().clone(), listing)),
                Ok(Err(error)) => {
                    let (server, error) = (slot.name(), chain(&*error));
                    tracing::warn!(mcp_server = %server, mcp_method = list.method(), error, "list left out");
                    None
                }
                Err(_) => {
                    let server = slot.name();
                    tracing::warn!(mcp_server = %server, mcp_method = list.method(), "list left out: too slow");
                    None
                }
            }
        });
        futures_util::future::join_all(reads).await.into_iter().flatten().collect()
    }

    /// Returns one server's list. However many ask at a time, it is read once.
    ///
    /// # Errors
    ///
    /// [`CallError`] when the server cannot be connected or does not answer with a list.
    ///
    /// # Cancel safety
    ///
    /// Safe: the read goes on for the others.
    pub async fn listing(
        &self,
        slot: &Arc<Slot>,
        list: List,
        owner: Option<&Owner>,
        limits: Limits,
    ) -> Result<Listing, Arc<CallError>> {
        let entry = self.entry(slot, list, owner);
        let ready = || entry.current(slot, list, owner).map(Ok);
        if let Some(ready) = ready() {
            return ready;
        }
        let (slot, reader) = (Arc::clone(slot), Arc::clone(&entry));
        let (name, reading) = (slot.name().clone(), owner.cloned());
        let flight = entry.reads.join(&self.tasks, ready, || async move {
            reader.read(slot, list, reading, limits).await.map_err(Arc::new)
        });
        flight.outcome().await.unwrap_or_else(|| {
            let source = SlotError::Closing(name.clone());
            Err(Arc::new(CallError::NotConnected { server: name, source }))
        })
    }

    /// Returns the server that has the resource `uri`: one that lists it, else the one whose
    /// template begins most like it.
    ///
    /// Lists that were read before are looked at first, so that a slow server does not hold up
    /// the resources of others.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn server_of_resource(
        &self,
        uri: &str,
        owner: Option<&Owner>,
        limits: Limits,
    ) -> Option<ServerName> {
        let known = |list| {
            let slots = self.pool.slots();
            let kept = slots.values().filter_map(|slot| {
                let listing = self.entry(slot, list, owner).current(slot, list, owner)?;
                Some((slot.name().clone(), listing))
            });
            kept.collect::<Vec<_>>()
        };
        let found = listed(&known(List::Resources), uri)
            .or_else(|| templated(&known(List::ResourceTemplates), uri));
        if found.is_some() {
            return found;
        }
        if let Some(server) = listed(&self.all(List::Resources, owner, limits).await, uri) {
            return Some(server);
        }
        templated(&self.all(List::ResourceTemplates, owner, limits).await, uri)
    }

    /// Returns the qualified names of the tools and prompts that were read so far.
    pub fn known_names(&self) -> Vec<String> {
        let entries = self.entries();
        let named = entries.iter().filter(|(key, _)| {
            key.list.is_named() && self.pool.slot(key.server.as_str()).is_some()
        });
        named
            .flat_map(|(Key { server, .. }, entry)| {
                let kept = entry.kept().clone();
                let items = kept.map(|kept| kept.listing).unwrap_or_default();
                items.iter().map(|item| server.qualify(&item.key)).collect::<Vec<_>>()
            })
            .collect()
    }

    fn entry(&self, slot: &Slot, list: List, owner: Option<&Owner>) -> Arc<Entry> {
        let owner = owner.filter(|_| slot.is_owned()).map(|owner| owner.key);
        let key = Key { server: slot.name().clone(), list, owner };
        let mut entries = self.entries();
        if let Some(entry) = entries.get(&key) {
            return Arc::clone(entry);
        }
        // Clients that have gone have left theirs behind.
        entries.retain(|key, entry| key.owner.is_none() || entry.is_of_use());
        let entry = Arc::new(Entry {
            reads: SingleFlight::new(),
            is_late: AtomicBool::new(false),
            kept: Mutex::default(),
        });
        entries.insert(key, Arc::clone(&entry));
        entry
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Arc<Entry>>> {
        // Held for single statements on plain data.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Returns the list that was kept, if it came from this very connection and no change was
    /// announced since.
    fn current(&self, slot: &Slot, list: List, owner: Option<&Owner>) -> Option<Listing> {
        let connection = slot.live(owner)?;
        let kept = self.kept();
        let kept = kept.as_ref()?;
        let is_current = kept.connection.ptr_eq(&Arc::downgrade(&connection))
            && kept.revision == connection.revision(list);
        is_current.then(|| Arc::clone(&kept.listing))
    }

    async fn read(
        &self,
        slot: Arc<Slot>,
        list: List,
        owner: Option<Owner>,
        limits: Limits,
    ) -> Result<Listing, CallError> {
        let leased = call::connection(&slot, owner.as_ref(), limits.silence).await;
        // Given back before the list is read, which takes one of its own.
        let connection = leased.map(|lease| Arc::clone(&lease.connection))?;
        // Noted before the list is read: a change announced meanwhile has it read again.
        let revision = connection.revision(list);
        let has_list = connection.profile().is_some_and(|profile| profile.has(list.capability()));
        let items = if has_list {
            pages(&slot, list, owner.as_ref(), &connection, limits).await?
        } else {
            Vec::new()
        };
        let listing: Listing = Arc::new(items);
        *self.kept() = Some(Kept {
            connection: Arc::downgrade(&connection),
            revision,
            listing: Arc::clone(&listing),
        });
        // Who did not wait for it has another list.
        if self.is_late.swap(false, Ordering::Relaxed) {
            connection.tell_changed();
        }
        Ok(listing)
    }

    /// Tells whether the connection is there that the list was read from, or one is being made.
    fn is_of_use(&self) -> bool {
        self.reads.is_flying()
            || self.kept().as_ref().is_some_and(|kept| kept.connection.strong_count() > 0)
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the server that lists the resource `uri`.
fn listed(listings: &[(ServerName, Listing)], uri: &str) -> Option<ServerName> {
    let lists_it = |listing: &Listing| listing.iter().any(|item| item.key == uri);
    listings.iter().find(|(_, listing)| lists_it(listing)).map(|(server, _)| server.clone())
}

/// Returns the server with the template that begins most like `uri`.
fn templated(listings: &[(ServerName, Listing)], uri: &str) -> Option<ServerName> {
    let matches = listings.iter().flat_map(|(server, listing)| {
        listing.iter().filter_map(move |item| {
            let literal = item.key.split('{').next().unwrap_or_default();
            // A template without a literal beginning would match everything.
            let is_like = !literal.is_empty() && uri.starts_with(literal);
            is_like.then_some((literal.len(), server))
        })
    });
    matches.max_by_key(|(length, _)| *length).map(|(_, server)| server.clone())
}

/// Reads all pages of a list.
async fn pages(
    slot: &Arc<Slot>,
    list: List,
    owner: Option<&Owner>,
    connection: &Connection,
    limits: Limits,
) -> Result<Vec<Item>, CallError> {
    let mut items = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..defaults::LIST_PAGES_MAX {
        let params =
            cursor.as_ref().map(|cursor| serde_json::json!({ "cursor": cursor }).to_string());
        let request = Message::request(list.method(), params.as_deref());
        let answer = Exchange::new(Arc::clone(slot), owner, request, limits).finish().await?;
        let Some(result) = answer.part(Part::Result) else {
            let error = answer.part(Part::Error).unwrap_or_default();
            // Some servers declare `resources` and know no templates. Any other error may be gone
            // at the next question, so that what was read so far must not be kept.
            if RpcError::code_of(error) == Some(METHOD_NOT_FOUND) {
                break;
            }
            let (server, method) = (slot.name().clone(), list.method());
            let answer = connection.quote(error);
            return Err(CallError::NoList { server, method, answer });
        };
        let page = Page::read(list, result).map_err(|error| CallError::NoList {
            server: slot.name().clone(),
            method: list.method(),
            answer: error.to_string(),
        })?;
        for reason in &page.rejected {
            tracing::warn!(mcp_server = %slot.name(), reason, "item left out of the merged list");
        }
        items.extend(page.items);
        match page.next {
            // A server that echoes the cursor would never end.
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => break,
        }
    }
    Ok(items)
}
