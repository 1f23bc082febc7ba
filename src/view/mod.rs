//! The views, one for each path: all servers merged, one server as it is, or all tools behind a few
//! meta tools.
//!
//! A view turns a client's request into an answer or into an [`Exchange`] with a server. It does
//! not depend on HTTP.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time};
use tokio_util::sync::CancellationToken;

use crate::{
    call::{self, CallContinuation, CallError, Exchange},
    catalog::Catalog,
    config::{Config, RootView, defaults, diff::ServerDiff},
    connection::{Announcement, ConnectionLimits, SessionOwner},
    memory_budget,
    pool::{OneShotClient, Pool, ServerSlot},
    protocol::{
        LoggingLevel, Message,
        jsonrpc::MessagePart,
        payloads::{self, method},
        version,
    },
    provision::Provisioner,
    redact,
    server_name::ServerName,
    session::{ResumeOutcome, ServerScope, Session, SessionRegistry, WatchRefusal},
    similar_names::nearest,
};

pub mod alias;
mod app_pages;
mod checked_call;
mod completion_reference;
mod direct;
mod find_tools;
mod merge;
mod meta;
mod modern_era;
pub mod operator;
mod passthrough;
mod resolve_tool;
mod task_requests;

pub use find_tools::{FindQuery, FindResult, FoundTool, KnownTools};
pub use resolve_tool::ResolvedTool;
pub use task_requests::BackgroundCall;

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// All servers; tools and prompts are called `server__item`.
    Direct,
    /// All tools behind a few meta tools that search, describe and call them.
    Meta,
    /// One server, as it is.
    Passthrough {
        /// The server.
        server: ServerName,
        /// It is the root view, whose `initialize` does not wait for the server.
        is_root: bool,
    },
}

/// The choice of a view by a client that has no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The view at `/`.
    Root,
    /// All servers merged.
    Direct,
    /// All tools behind the meta tools.
    Meta,
    /// The server of this name.
    Server(String),
}

/// All views over the same pool.
#[derive(Debug)]
pub struct Views {
    pool: Arc<Pool>,
    sessions: Arc<SessionRegistry>,
    catalog: Arc<Catalog>,
    provisioner: Arc<Provisioner>,
    config: ArcSwap<Config>,
    /// The owner that lists are read for where each client has its own connection and this client
    /// has no identity.
    onlooker: SessionOwner,
    /// The state of the meta tools.
    desk: Arc<meta::MetaState>,
}

/// The outcome of routing a request.
pub enum RequestOutcome {
    /// The answer of metamcp itself.
    Answer(Bytes),
    /// The exchange with a server that answers it.
    Exchange(Box<Exchange>),
}

impl View {
    /// Returns the servers that a client's session at this view covers.
    pub fn scope(&self) -> ServerScope {
        match self {
            Self::Direct => ServerScope::Every,
            Self::Meta => ServerScope::Tools,
            Self::Passthrough { server, .. } => ServerScope::One(server.clone()),
        }
    }
}

impl Views {
    /// Returns the views over `pool`.
    pub fn new(
        pool: Arc<Pool>,
        sessions: Arc<SessionRegistry>,
        catalog: Arc<Catalog>,
        provisioner: Arc<Provisioner>,
        config: Arc<Config>,
    ) -> Self {
        let (config, onlooker) = (ArcSwap::new(config), SessionOwner::observer());
        let desk = Arc::<meta::MetaState>::default();
        let comfort: Weak<meta::MetaState> = Arc::downgrade(&desk);
        memory_budget::global().register_reclaimable(comfort);
        Self { pool, sessions, catalog, provisioner, config, onlooker, desk }
    }

    /// Returns the registry of client sessions.
    pub fn sessions(&self) -> &Arc<SessionRegistry> {
        &self.sessions
    }

    /// Forwards server notifications until `stop`, as [`Catalog::run_announcements`] does.
    ///
    /// # Cancel safety
    ///
    /// Messages in the queue are lost.
    pub async fn run_announcements(
        self: Arc<Self>,
        announced: mpsc::Receiver<Announcement>,
        stop: CancellationToken,
    ) {
        self.catalog.run_announcements(announced, || self.limits(), stop).await;
    }

    /// Reads the cached lists of the declared servers, as [`Catalog::restore`] does. Cancel safe:
    /// lists that are being read are still taken over.
    pub async fn restore_catalog(&self) {
        self.catalog.restore().await;
        let era_of = |server: &ServerName| Some(self.catalog.profile(server)?.era());
        self.pool.remember_eras(era_of);
    }

    /// Keeps the catalog and the disk cache current until `stop`, as [`Catalog::follow`] and
    /// [`Catalog::run_persister`] do. Then waits for reads in progress, at most
    /// [`defaults::LAST_READS_PATIENCE`], and writes their results.
    ///
    /// # Cancel safety
    ///
    /// The last changes may be missing on the disk.
    pub async fn keep_catalog(self: Arc<Self>, stop: CancellationToken) {
        let following = async {
            let last = async {
                stop.cancelled().await;
                time::sleep(defaults::LAST_READS_PATIENCE).await;
            };
            tokio::select! {
                () = self.catalog.follow(|| self.limits(), stop.clone()) => {}
                () = last => {}
            }
        };
        tokio::join!(following, self.catalog.run_persister(stop.clone()));
        self.catalog.save().await;
    }

    /// Primes servers until `stop`, as [`Catalog::prime`] does. Cancel safe: a connection attempt
    /// in progress continues.
    pub async fn prime_catalog(self: Arc<Self>, stop: CancellationToken) {
        self.catalog.prime(|| self.limits(), stop).await;
    }

    /// Notifies clients of the servers that a reload added, removed or changed.
    pub fn replaced(&self, diff: &ServerDiff) {
        self.catalog.replaced(diff);
    }

    /// Applies another configuration to requests from now on.
    pub fn apply(&self, config: Arc<Config>) {
        self.catalog.search_with(&config.search);
        self.catalog.prime_as(&config.catalog);
        let listed = |config: &Config| (config.tools.sets.clone(), config.tools.always_load);
        let new = listed(&config);
        let old = self.config.swap(config);
        if listed(&old) != new {
            self.sessions.own_tools_changed();
        }
    }

    /// Returns the effective configuration.
    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Returns the view at `/` and `/mcp`.
    pub fn root(&self) -> View {
        match &self.config.load().listen.root {
            RootView::Direct => View::Direct,
            RootView::Meta => View::Meta,
            RootView::Passthrough(server) => {
                View::Passthrough { server: server.clone(), is_root: true }
            }
        }
    }

    /// Returns the view of the server with this name.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownServer`], with similar names, if the server is not declared.
    pub fn of_server(&self, name: &str) -> Result<View, CallError> {
        match self.pool.slot(name) {
            Some(slot) => Ok(View::Passthrough { server: slot.name().clone(), is_root: false }),
            None => Err(self.unknown_server(name)),
        }
    }

    /// Returns the chosen view and its path.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownServer`] if the chosen server is not declared.
    pub fn chosen(&self, choice: &Choice) -> Result<(View, String), CallError> {
        Ok(match choice {
            Choice::Root => (self.root(), "/".to_owned()),
            Choice::Direct => (View::Direct, "/direct".to_owned()),
            Choice::Meta => (View::Meta, "/meta".to_owned()),
            Choice::Server(name) => (self.of_server(name)?, format!("/servers/{name}")),
        })
    }

    /// Answers a client's request, or returns the exchange that does. Cancel safe: nothing was sent
    /// to a server that could not be sent again.
    pub async fn handle(
        &self,
        view: &View,
        session: &Session,
        request: &Message,
    ) -> RequestOutcome {
        self.try_handle(view, session, request).await.unwrap_or_else(|error| {
            RequestOutcome::Answer(
                error.to_rpc().for_era(session.era()).render(request.part(MessagePart::Id)),
            )
        })
    }

    async fn try_handle(
        &self,
        view: &View,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        if session.is_modern()
            && let Some(handled) = self.modern(view, request).await
        {
            return handled;
        }
        let outcome = match (view, request.method().unwrap_or_default()) {
            (_, method::PING) => answer(request, &json!({})),
            (View::Direct, _) => self.direct(session, request).await?,
            (View::Meta, _) => self.meta(session, request).await?,
            (View::Passthrough { server, is_root }, _) => {
                self.passthrough(session, server, *is_root, request).await?
            }
        };
        if let Some(level) = session.introduction().and_then(|introduction| introduction.level)
            && let RequestOutcome::Exchange(exchange) = &outcome
        {
            self.request_log_level(session, exchange.server(), level).await?;
        }
        Ok(outcome)
    }

    /// Forwards a notification that concerns a server and no request in flight. Cancel safe: it is
    /// sent or not.
    pub async fn notify(&self, view: &View, session: &Session, notification: &Message) {
        let is_personal =
            matches!(notification.method(), Some(method::PROGRESS | method::ROOTS_CHANGED));
        if notification.method() == Some(method::INITIALIZED) {
            return;
        }
        for slot in self.pool.slots().values() {
            let is_meant = match view {
                View::Direct | View::Meta => is_personal,
                View::Passthrough { server, .. } => slot.name() == server,
            };
            // The roots of one client have no meaning on a shared connection.
            if is_meant
                && slot.has_fixed_connection()
                && (slot.is_per_session() || !is_personal)
                && let Some(connection) = slot.live(session.owner())
            {
                connection.notify(notification).await;
            }
        }
    }

    /// Returns the outcome of routing a client's request to a server.
    async fn exchange(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        request: Message,
    ) -> Result<RequestOutcome, CallError> {
        self.exchange_with(slot, session, request, self.limits(), None).await
    }

    /// Like [`Views::exchange`], within these limits; `sequel` handles the outcome of the exchange.
    async fn exchange_with(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        request: Message,
        limits: ConnectionLimits,
        sequel: Option<Box<dyn CallContinuation>>,
    ) -> Result<RequestOutcome, CallError> {
        if request.part(MessagePart::RequestState).is_some() {
            let id = request.part(MessagePart::Id).unwrap_or("null");
            // Boxed, to keep the future of a new request small.
            match Box::pin(self.sessions.resume(slot.name(), &request)).await? {
                ResumeOutcome::Foreign => {}
                ResumeOutcome::Exchange(exchange) => return Ok(RequestOutcome::Exchange(exchange)),
                ResumeOutcome::Asked(result) => {
                    return Ok(RequestOutcome::Answer(Message::response(id, &result)));
                }
            }
        }
        let guest = self.guest(&slot, session).await;
        let owner = guest.as_ref().map(OneShotClient::owner).or(session.owner());
        let mut exchange =
            Exchange::new(slot, owner, session.client(), session.holder(), request, limits);
        if let Some(sequel) = sequel {
            exchange = exchange.with_continuation(sequel, self.desk.computer.clone());
        }
        Ok(RequestOutcome::Exchange(Box::new(exchange.of_guest(guest))))
    }

    /// Sets the lowest level of log messages that a client receives.
    async fn set_level(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let name = request.string(MessagePart::Level).ok_or_else(|| missing(request, "level"))?;
        let level = LoggingLevel::named(&name)
            .ok_or_else(|| CallError::UnknownLevel { level: shown(&name) })?;
        self.sessions.set_level(session, level).await;
        Ok(answer(request, &json!({})))
    }

    /// Subscribes a client to a resource, or ends its subscription.
    async fn watch(
        &self,
        session: &Session,
        slot: &Arc<ServerSlot>,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let asked = request.method().unwrap_or_default();
        if !slot.has_fixed_connection() {
            return Err(nothing_is_kept(asked));
        }
        if session.id().is_none() {
            return Err(CallError::NoSession { method: asked.to_owned() });
        }
        let uri = request.string(MessagePart::Uri).ok_or_else(|| missing(request, "uri"))?;
        if asked == method::RESOURCES_UNSUBSCRIBE {
            self.sessions.unwatch(session, slot, &uri).await;
            return Ok(answer(request, &json!({})));
        }
        let mut watched = self.sessions.watch(session, slot, &uri).await;
        if watched.is_ok() && slot.live(session.owner()).is_none() {
            // The connection was lost or never made, and no other request may ever make one.
            drop(call::connect(slot, session.owner(), self.limits()).await?);
            watched = self.sessions.watch(session, slot, &uri).await;
        }
        match watched {
            Ok(()) => Ok(answer(request, &json!({}))),
            Err(WatchRefusal::ByServer(error)) => {
                let id = request.part(MessagePart::Id).unwrap_or("null");
                Ok(RequestOutcome::Answer(Message::error(id, &error)))
            }
            Err(WatchRefusal::Full) => {
                Err(CallError::TooManyWatched { max: defaults::WATCHED_MAX })
            }
        }
    }

    fn limits(&self) -> ConnectionLimits {
        let config = self.config.load();
        ConnectionLimits {
            silence: config.service.request_timeout,
            total: config.service.max_total_timeout,
        }
    }

    fn unknown_server(&self, name: &str) -> CallError {
        let slots = self.pool.slots();
        let similar = nearest(name, slots.keys().map(ServerName::to_string));
        CallError::UnknownServer { server: shown(name), similar }
    }
}

/// Returns the answer to `request` with this result.
fn answer(request: &Message, result: &Value) -> RequestOutcome {
    let id = request.part(MessagePart::Id).unwrap_or("null");
    RequestOutcome::Answer(Message::response(id, &result.to_string()))
}

/// Returns metamcp's own `initialize` result.
fn own_profile(
    session: &Session,
    request: &Message,
    mut capabilities: Value,
    instructions: &str,
) -> Value {
    // A client without a session has no stream and no state.
    if session.id().is_none() {
        payloads::leave_out_notices(&mut capabilities);
    }
    let asked = request.string(MessagePart::ProtocolVersion);
    let version = version::negotiate(asked.as_deref());
    let mut server = payloads::implementation();
    if !version::has_titles(version)
        && let Some(server) = server.as_object_mut()
    {
        server.remove("title");
    }
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": server,
        "instructions": instructions,
    })
}

/// Returns the error for a request without a parameter that routing needs.
fn missing(request: &Message, parameter: &'static str) -> CallError {
    let method = request.method().unwrap_or_default().to_owned();
    CallError::MissingParameter { method, parameter }
}

/// Returns the error for a request that needs a lasting connection to its server.
fn nothing_is_kept(method: &str) -> CallError {
    CallError::UnknownMethod {
        method: method.to_owned(),
        hint: "Each request to this server has another connection: nothing is kept between them.",
    }
}

/// Returns the part of a client's own text that an error quotes.
fn shown(word: &str) -> String {
    redact::cut(word, defaults::SUGGESTION_BYTES_MAX).to_owned()
}
