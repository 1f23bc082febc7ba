//! The views, one for each path: all servers merged, one server alone, or all tools behind a few
//! meta-tools.
//!
//! A view turns a client's request into an answer or into an [`Exchange`] with a server. It does
//! not depend on HTTP.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    call::{CallContinuation, CallError, Exchange},
    catalog::Catalog,
    config::{Config, RootView, defaults},
    connection::{ConnectionLimits, SessionOwner},
    memory_budget,
    pool::{OneShotClient, Pool, ServerSlot},
    protocol::{
        Message,
        jsonrpc::MessagePart,
        payloads::{self, method},
        version,
    },
    provision::Provisioner,
    reconfigure::{ConfigChange, Reconfigure},
    redact,
    server_name::ServerName,
    session::{ResumeOutcome, ServerScope, Session, SessionRegistry},
    similar_names::nearest,
};

pub mod alias;
mod app_pages;
mod catalog_upkeep;
mod checked_call;
mod completion_reference;
mod direct;
mod find_tools;
mod merge;
mod meta;
mod modern_era;
mod notifications;
pub mod operator;
mod passthrough;
mod resolve_tool;
mod task_requests;

pub use find_tools::{FindQuery, FindResult, FoundTool, KnownTools};
use meta::MetaState;
pub use resolve_tool::ResolvedTool;
pub use task_requests::BackgroundCall;

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// All servers; tools and prompts are called `server__item`.
    Direct,
    /// All tools behind a few meta-tools that search, describe and call them.
    Meta,
    /// One server, with its own names.
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
    /// All tools behind the meta-tools.
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
    observer: SessionOwner,
    /// The state of the meta-tools.
    meta_state: Arc<MetaState>,
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

impl Reconfigure for Views {
    /// Applies another configuration to requests from now on.
    fn reconfigure(&self, change: &ConfigChange) {
        self.config.store(Arc::clone(&change.new));
        let (old, new) = (&change.old.tools, &change.new.tools);
        if (&old.sets, old.always_load) != (&new.sets, new.always_load) {
            self.sessions.own_tools_changed();
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
        let (config, observer) = (ArcSwap::new(config), SessionOwner::observer());
        let meta_state = Arc::<MetaState>::default();
        let reclaimable: Weak<MetaState> = Arc::downgrade(&meta_state);
        memory_budget::global().register_reclaimable(reclaimable);
        Self { pool, sessions, catalog, provisioner, config, observer, meta_state }
    }

    /// Returns the registry of client sessions.
    pub fn sessions(&self) -> &Arc<SessionRegistry> {
        &self.sessions
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
    pub fn server_view(&self, name: &str) -> Result<View, CallError> {
        let slot = self.declared_slot(name)?;
        Ok(View::Passthrough { server: slot.name().clone(), is_root: false })
    }

    /// Returns the chosen view and its path.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownServer`] if the chosen server is not declared.
    pub fn choose(&self, choice: &Choice) -> Result<(View, String), CallError> {
        Ok(match choice {
            Choice::Root => (self.root(), "/".to_owned()),
            Choice::Direct => (View::Direct, "/direct".to_owned()),
            Choice::Meta => (View::Meta, "/meta".to_owned()),
            Choice::Server(name) => (self.server_view(name)?, format!("/servers/{name}")),
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
            let error = error.to_rpc().for_era(session.era());
            RequestOutcome::Answer(error.render(request.part(MessagePart::Id)))
        })
    }

    async fn try_handle(
        &self,
        view: &View,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        if session.is_modern()
            && let Some(outcome) = self.modern(view, request).await
        {
            return outcome;
        }
        let outcome = match (view, request.method().unwrap_or_default()) {
            (_, method::PING) => answer(request, &json!({})),
            (View::Direct, _) => self.direct(session, request).await?,
            (View::Meta, _) => self.meta(session, request).await?,
            (View::Passthrough { server, is_root }, _) => {
                self.passthrough(session, server, *is_root, request).await?
            }
        };
        if let Some(level) = session.client_meta().and_then(|client_meta| client_meta.level)
            && let RequestOutcome::Exchange(exchange) = &outcome
        {
            self.request_log_level(session, exchange.server(), level).await?;
        }
        Ok(outcome)
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

    /// Like [`Views::exchange`], within these limits. `continuation` handles the outcome.
    async fn exchange_with(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        request: Message,
        limits: ConnectionLimits,
        continuation: Option<Box<dyn CallContinuation>>,
    ) -> Result<RequestOutcome, CallError> {
        if request.part(MessagePart::RequestState).is_some() {
            // Boxed, to keep the future of a new request small.
            match Box::pin(self.sessions.resume(slot.name(), &request)).await? {
                ResumeOutcome::Foreign => {}
                ResumeOutcome::Exchange(exchange) => return Ok(RequestOutcome::Exchange(exchange)),
                ResumeOutcome::Asked(result) => return Ok(answer_text(&request, &result)),
            }
        }
        let one_shot = self.one_shot_client(&slot, session).await;
        let mut exchange = client_exchange(session, one_shot, slot, request, limits);
        if let Some(continuation) = continuation {
            exchange = exchange.with_continuation(continuation, self.meta_state.computer.clone());
        }
        Ok(RequestOutcome::Exchange(Box::new(exchange)))
    }

    fn limits(&self) -> ConnectionLimits {
        let config = self.config.load();
        ConnectionLimits {
            silence: config.service.request_timeout,
            total: config.service.max_total_timeout,
        }
    }

    /// Returns the slot of a server, or the error that it is not declared.
    fn declared_slot(&self, name: &str) -> Result<Arc<ServerSlot>, CallError> {
        self.pool.slot(name).ok_or_else(|| {
            let slots = self.pool.slots();
            let similar = nearest(name, slots.keys().map(ServerName::to_string));
            CallError::UnknownServer { server: quoted(name), similar }
        })
    }
}

/// Returns the exchange of a client's request with a server. A one-shot client has its own
/// connection, which ends with the request.
fn client_exchange(
    session: &Session,
    one_shot: Option<OneShotClient>,
    slot: Arc<ServerSlot>,
    request: Message,
    limits: ConnectionLimits,
) -> Exchange {
    let owner = one_shot.as_ref().map(OneShotClient::owner).or(session.owner());
    Exchange::new(slot, owner, session.client(), session.holder(), request, limits)
        .with_one_shot(one_shot)
}

/// Returns limits that end a request after `total`.
fn total_limit(total: Duration) -> ConnectionLimits {
    ConnectionLimits { silence: total, total }
}

/// Returns whether all clients share one connection to the server.
fn is_shared(slot: &ServerSlot) -> bool {
    slot.has_fixed_connection() && !slot.is_per_session()
}

/// Returns the answer to `request` with this result.
fn answer(request: &Message, result: &Value) -> RequestOutcome {
    answer_text(request, &result.to_string())
}

/// Returns the answer to `request` with this result, JSON text.
fn answer_text(request: &Message, result: &str) -> RequestOutcome {
    let id = request.part(MessagePart::Id).unwrap_or("null");
    RequestOutcome::Answer(Message::response(id, result))
}

/// Returns metamcp's own `initialize` result.
fn initialize_result(
    session: &Session,
    request: &Message,
    mut capabilities: Value,
    instructions: &str,
) -> Value {
    // A client without a session has no stream and no state.
    if session.id().is_none() {
        payloads::leave_out_notices(&mut capabilities);
    }
    let requested = request.string(MessagePart::ProtocolVersion);
    let version = version::negotiate(requested.as_deref());
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
fn needs_fixed_connection(method: &str) -> CallError {
    CallError::UnknownMethod {
        method: method.to_owned(),
        hint: "This server keeps no state: each request to it uses another connection.",
    }
}

/// Returns the part of a client's own text that an error quotes.
fn quoted(text: &str) -> String {
    redact::cut(text, defaults::SUGGESTION_BYTES_MAX).to_owned()
}
