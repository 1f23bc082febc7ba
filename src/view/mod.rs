//! What a client sees at a path: all servers merged, one of them as it is, or the tools of all of them
//! behind a few of ours.
//!
//! A view turns a client's request into an answer of our own or into an [`Exchange`] with a
//! server. It knows nothing of HTTP.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time};
use tokio_util::sync::CancellationToken;

use crate::{
    budget,
    call::{self, CallContinuation, CallError, Exchange},
    catalog::Catalog,
    config::{Config, RootView, defaults, diff::ServerDiff},
    connection::{Announcement, ConnectionLimits, SessionOwner},
    name::ServerName,
    pool::{OneShotClient, Pool, ServerSlot},
    protocol::{
        LoggingLevel, Message,
        jsonrpc::MessagePart,
        payloads::{self, method},
        version,
    },
    provision::Provisioner,
    redact,
    session::{ResumeOutcome, ServerScope, Session, SessionRegistry, WatchRefusal},
    similar_names::nearest,
};

pub mod alias;
mod apps;
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
    /// The tools of all servers behind a few of our own: to be searched, described and called.
    Meta,
    /// One server, as it is.
    Passthrough {
        /// The server.
        server: ServerName,
        /// It is the root view: `initialize` waits for nobody.
        is_root: bool,
    },
}

/// Which view a client asks for that has no path to say it with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// What is at `/`.
    Root,
    /// All servers.
    Direct,
    /// Their tools behind a few of our own.
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
    /// Who looks at what servers offer that have a connection for each client, where the client
    /// itself cannot be told from others.
    onlooker: SessionOwner,
    /// What the tools of the view `meta` remember.
    desk: Arc<meta::MetaState>,
}

/// What becomes of a request.
pub enum RequestOutcome {
    /// We answer it ourselves.
    Answer(Bytes),
    /// A server answers it.
    Exchange(Box<Exchange>),
}

impl View {
    /// Returns which servers a client's session at this view is about.
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
        budget::global().register_reclaimable(comfort);
        Self { pool, sessions, catalog, provisioner, config, onlooker, desk }
    }

    /// Returns the sessions of the clients.
    pub fn sessions(&self) -> &Arc<SessionRegistry> {
        &self.sessions
    }

    /// Hands on what servers say to nobody in particular, as [`Catalog::run_announcements`] does, until `stop`.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, what is in the queue is lost.
    pub async fn run_announcements(
        self: Arc<Self>,
        announced: mpsc::Receiver<Announcement>,
        stop: CancellationToken,
    ) {
        self.catalog.run_announcements(announced, || self.limits(), stop).await;
    }

    /// Takes what the disk knows of the declared servers, as [`Catalog::restore`] does.
    ///
    /// # Cancel safety
    ///
    /// Safe: what is being read is taken when it is there.
    pub async fn restore_catalog(&self) {
        self.catalog.restore().await;
        let era_of = |server: &ServerName| Some(self.catalog.profile(server)?.era());
        self.pool.remember_eras(era_of);
    }

    /// Keeps what is known of the servers in line with what they say, and the disk with that, as
    /// [`Catalog::follow`] and [`Catalog::run_persister`] do, until `stop`. What is being read then is waited for,
    /// for at most [`defaults::LAST_READS_PATIENCE`], and written.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, what has changed last is not on the disk.
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

    /// Primes servers until `stop`, as [`Catalog::prime`] does.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dial in progress continues.
    pub async fn prime_catalog(self: Arc<Self>, stop: CancellationToken) {
        self.catalog.prime(|| self.limits(), stop).await;
    }

    /// Tells clients that servers have come, gone or changed with the configuration.
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

    /// Returns the configuration that is in force.
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

    /// Returns the view of the server called `name`.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownServer`], with names that are close, when it is not declared.
    pub fn of_server(&self, name: &str) -> Result<View, CallError> {
        match self.pool.slot(name) {
            Some(slot) => Ok(View::Passthrough { server: slot.name().clone(), is_root: false }),
            None => Err(self.unknown_server(name)),
        }
    }

    /// Returns the view that is chosen, and the path that it has.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownServer`] when it is that of a server that is not declared.
    pub fn chosen(&self, choice: &Choice) -> Result<(View, String), CallError> {
        Ok(match choice {
            Choice::Root => (self.root(), "/".to_owned()),
            Choice::Direct => (View::Direct, "/direct".to_owned()),
            Choice::Meta => (View::Meta, "/meta".to_owned()),
            Choice::Server(name) => (self.of_server(name)?, format!("/servers/{name}")),
        })
    }

    /// Answers a client's request, or finds who does.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing was sent to a server yet that could not be sent again.
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

    /// Passes on a notification that concerns a server and no request of ours.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is sent or not.
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
            // The roots of one client mean nothing on a shared connection.
            if is_meant
                && slot.has_fixed_connection()
                && (slot.is_per_session() || !is_personal)
                && let Some(connection) = slot.live(session.owner())
            {
                connection.notify(notification).await;
            }
        }
    }

    /// Returns what a client's request to a server becomes.
    async fn exchange(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        request: Message,
    ) -> Result<RequestOutcome, CallError> {
        self.exchange_with(slot, session, request, self.limits(), None).await
    }

    /// Returns what a client's request to a server becomes, within these limits; `sequel` decides what
    /// becomes of its outcome.
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
            // Boxed: a request that begins need not have the room.
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

    /// Sets the log level that a client wants to see.
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

    /// Has a resource watched for a client, or not any more.
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
            // It went at this moment, or is not there yet: nobody else may ever need the next one.
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

/// Returns our answer to `request`.
fn answer(request: &Message, result: &Value) -> RequestOutcome {
    let id = request.part(MessagePart::Id).unwrap_or("null");
    RequestOutcome::Answer(Message::response(id, &result.to_string()))
}

/// Returns the `initialize` result of the gateway itself.
fn own_profile(
    session: &Session,
    request: &Message,
    mut capabilities: Value,
    instructions: &str,
) -> Value {
    // A client without a session has no stream, and nothing is remembered of it.
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

/// A request lacks what it cannot be routed without.
fn missing(request: &Message, parameter: &'static str) -> CallError {
    let method = request.method().unwrap_or_default().to_owned();
    CallError::MissingParameter { method, parameter }
}

/// A request that a server with a connection for each request cannot make sense of.
fn nothing_is_kept(method: &str) -> CallError {
    CallError::UnknownMethod {
        method: method.to_owned(),
        hint: "Each request to this server has another connection: nothing is kept between them.",
    }
}

/// Returns a client's own word as far as an error repeats it.
fn shown(word: &str) -> String {
    redact::cut(word, defaults::SUGGESTION_BYTES_MAX).to_owned()
}
