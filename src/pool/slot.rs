//! One declared server's place in the pool: its connections, however many its sharing takes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    SlotStatus, State,
    exclusive::{Checkout, Exclusive},
    keeper::{Keeper, Origin},
    owned::Owned,
    wants::Wants,
};
use crate::{
    config::{Server, Sharing},
    connection::{Connection, DialError, Dialer, Owner, Party, Traffic},
    name::ServerName,
};

/// One declared server's place in the pool.
#[derive(Debug)]
pub struct Slot {
    origin: Origin,
    connections: Connections,
}

#[derive(Debug)]
enum Connections {
    /// One for everybody.
    Shared(Arc<Keeper>),
    /// One for each request.
    Exclusive(Arc<Exclusive>),
    /// One for each client.
    Owned(Arc<Owned>),
}

/// A connection for one request; it may be another one the next time.
#[derive(Debug)]
pub struct Lease {
    /// The connection.
    pub connection: Arc<Connection>,
    /// Gives it back when the request is over, where it was for nobody else.
    _checkout: Option<Checkout>,
}

/// Why a slot has no connection to offer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SlotError {
    /// The dial failed.
    #[error(transparent)]
    Dial(Arc<DialError>),
    /// The server is being closed: stop, or a reload that removed it.
    #[error("server `{0}` is being closed")]
    Closing(ServerName),
    /// As many connections are in use as the server may have.
    #[error("all {max} connections of server `{server}` are in use")]
    Busy {
        /// The server.
        server: ServerName,
        /// Its `max_connections`.
        max: usize,
    },
    /// The server keeps state for each client, and this client cannot be told from others.
    #[error("server `{0}` keeps a connection for each client session, and the request names none")]
    SessionRequired(ServerName),
    /// The client has ended its session while its request ran.
    #[error("server `{0}` keeps a connection for each client session, and this one has ended")]
    SessionEnded(ServerName),
}

impl Slot {
    pub(super) fn new(
        dialer: Dialer,
        name: ServerName,
        declared: Arc<Server>,
        generation: u64,
        closing: CancellationToken,
    ) -> Arc<Self> {
        let sharing = declared.sharing;
        let generation = Arc::new(AtomicU64::new(generation));
        let origin = Origin { name, declared, dialer, generation, closing };
        let connections = match sharing {
            Sharing::Shared => Connections::Shared(Keeper::new(origin.clone(), Party::Shared)),
            Sharing::Exclusive { max_connections } => {
                Connections::Exclusive(Exclusive::new(origin.clone(), max_connections))
            }
            Sharing::Session { max_connections } => {
                Connections::Owned(Arc::new(Owned::new(origin.clone(), max_connections)))
            }
        };
        Arc::new(Self { origin, connections })
    }

    /// Returns the server's name.
    pub fn name(&self) -> &ServerName {
        &self.origin.name
    }

    /// Returns how many times the server was connected.
    pub(super) fn generation(&self) -> u64 {
        self.origin.generation.load(Ordering::Relaxed)
    }

    /// Returns what the configuration says about the server.
    pub fn declared(&self) -> &Server {
        &self.origin.declared
    }

    /// Tells whether a client always has the same connection, so that there is something that can
    /// notify it.
    pub fn is_standing(&self) -> bool {
        !matches!(self.connections, Connections::Exclusive(_))
    }

    /// Tells whether each client has a connection of its own.
    pub fn is_owned(&self) -> bool {
        matches!(self.connections, Connections::Owned(_))
    }

    /// Returns a connection for a request of `owner`, dialling first where there is none. However
    /// many ask at a time for one that they share, the server is dialled once. Where connections
    /// are checked out, one that is given back is waited for, for at most `patience`.
    ///
    /// # Errors
    ///
    /// [`SlotError`] when there is none; a dial fails for everybody who waited for it.
    ///
    /// # Cancel safety
    ///
    /// Safe: the dial goes on for the others.
    pub async fn lease(
        &self,
        owner: Option<&Owner>,
        patience: Duration,
    ) -> Result<Lease, SlotError> {
        let (connection, checkout) = match &self.connections {
            Connections::Shared(keeper) => (keeper.connection().await?, None),
            Connections::Owned(owned) => (owned.of(owner)?.connection().await?, None),
            Connections::Exclusive(exclusive) => {
                let (connection, checkout) = exclusive.check_out(patience).await?;
                (connection, Some(checkout))
            }
        };
        Ok(Lease { connection, _checkout: checkout })
    }

    /// Returns a connection for a request of `owner` if there is one that need not be waited for.
    pub fn ready(&self, owner: Option<&Owner>) -> Option<Lease> {
        let connection = self.standing(owner)?.live()?;
        Some(Lease { connection, _checkout: None })
    }

    /// Returns the connection that a request of `owner` would most likely get, if there is one.
    pub fn live(&self, owner: Option<&Owner>) -> Option<Arc<Connection>> {
        match &self.connections {
            Connections::Exclusive(exclusive) => {
                exclusive.keepers().iter().find_map(|keeper| keeper.live())
            }
            Connections::Shared(_) | Connections::Owned(_) => self.standing(owner)?.live(),
        }
    }

    /// Tells what is wanted of the state that the connection of `owner` has only once, and brings
    /// it about where there is a connection; the next one is told otherwise.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is brought about by the next change or connection.
    pub async fn want(&self, owner: Option<&Owner>, wants: impl FnOnce() -> Wants) {
        if let Some(keeper) = self.wanting(owner, wants) {
            keeper.settle().await;
        }
    }

    /// As [`Slot::want`], in the background.
    pub fn want_soon(&self, owner: Option<&Owner>, wants: impl FnOnce() -> Wants) {
        if let Some(keeper) = self.wanting(owner, wants) {
            self.origin.dialer.tasks().spawn(async move { keeper.settle().await });
        }
    }

    fn wanting(&self, owner: Option<&Owner>, wants: impl FnOnce() -> Wants) -> Option<Arc<Keeper>> {
        match &self.connections {
            Connections::Shared(keeper) => {
                keeper.want(wants);
                Some(Arc::clone(keeper))
            }
            Connections::Owned(owned) => owned.want(owner, wants),
            Connections::Exclusive(_) => None,
        }
    }

    /// Returns the error object, as JSON text, with which the server refused to have the resource
    /// `uri` watched.
    pub fn refusal(&self, owner: Option<&Owner>, uri: &str) -> Option<String> {
        self.standing(owner)?.refusal(uri)
    }

    /// Notes that clients were told something without the server, which was not there, so that they
    /// are told to ask again once it is.
    pub fn missed(&self) {
        if let Connections::Shared(keeper) = &self.connections {
            keeper.missed();
        }
    }

    /// Returns for how long the connection of `owner` has been in the making, if it is.
    pub fn dialled_for(&self, owner: Option<&Owner>) -> Option<Duration> {
        match &self.connections {
            Connections::Exclusive(exclusive) => {
                exclusive.keepers().iter().filter_map(|keeper| keeper.dialled_for()).max()
            }
            Connections::Shared(_) | Connections::Owned(_) => self.standing(owner)?.dialled_for(),
        }
    }

    fn standing(&self, owner: Option<&Owner>) -> Option<Arc<Keeper>> {
        match &self.connections {
            Connections::Shared(keeper) => Some(Arc::clone(keeper)),
            Connections::Owned(owned) => owned.known(owner),
            Connections::Exclusive(_) => None,
        }
    }

    /// Closes the connection of a client that has gone.
    pub(super) fn release(&self, owner: &Owner) {
        if let Connections::Owned(owned) = &self.connections
            && let Some(keeper) = owned.remove(owner)
        {
            self.origin.dialer.tasks().spawn(async move { keeper.close(Duration::ZERO).await });
        }
    }

    /// Connects a shared server.
    pub(super) async fn connect(&self) {
        if let Connections::Shared(keeper) = &self.connections {
            let _reported_by_the_dial = keeper.connection().await;
        }
    }

    /// Starts a dial unless there is a connection or a dial already.
    pub(super) fn dial_soon(&self) {
        if let Connections::Shared(keeper) = &self.connections {
            keeper.dial_soon();
        }
    }

    /// Lets running requests finish for at most `patience` and closes the slot for good.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the slot takes no requests but keeps its connections until the runtime ends.
    pub(super) async fn close(&self, patience: Duration) {
        if let Connections::Exclusive(exclusive) = &self.connections {
            exclusive.close();
        }
        let keepers = self.keepers();
        futures_util::future::join_all(keepers.iter().map(|keeper| keeper.close(patience))).await;
        self.origin.closing.cancel();
    }

    fn keepers(&self) -> Vec<Arc<Keeper>> {
        match &self.connections {
            Connections::Shared(keeper) => vec![Arc::clone(keeper)],
            Connections::Exclusive(exclusive) => exclusive.keepers(),
            Connections::Owned(owned) => owned.keepers_now(),
        }
    }

    /// Returns the state for status output.
    pub fn status(&self) -> SlotStatus {
        let keepers = self.keepers();
        let connections: Vec<_> = keepers.iter().filter_map(|keeper| keeper.last()).collect();
        let live: Vec<_> = connections.iter().filter(|connection| connection.is_live()).collect();
        let traffic: Traffic = connections.iter().map(|connection| connection.traffic()).sum();
        let troubles: Vec<_> = keepers.iter().map(|keeper| keeper.trouble()).collect();
        SlotStatus {
            name: self.origin.name.clone(),
            state: match () {
                () if self.origin.closing.is_cancelled() => State::Closed,
                () if !live.is_empty() && traffic.in_flight > 0 => State::Active,
                () if !live.is_empty() => State::Idle,
                () if keepers.iter().any(|keeper| keeper.is_dialling()) => State::Connecting,
                () if troubles.iter().any(|(has_failed, _)| *has_failed) => State::Failed,
                () => State::Idle,
            },
            transport: live.first().map_or_else(
                || self.origin.declared.transport.name(),
                |connection| connection.transport(),
            ),
            sharing: self.origin.declared.sharing.name(),
            connections: live.len(),
            generation: self.generation(),
            pid: live.first().and_then(|connection| connection.pid()),
            protocol_version: live
                .first()
                .and_then(|connection| connection.profile())
                .map(|profile| profile.protocol_version.clone()),
            last_error: troubles.into_iter().find_map(|(_, error)| error),
            traffic,
            start: self.origin.declared.start,
        }
    }
}
