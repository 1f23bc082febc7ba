//! All views, the table of the paths and names by which clients choose them, and the dispatch of
//! clients' requests among them.

use std::sync::Arc;

use hyper::HeaderMap;
use serde_json::json;

use super::{
    direct::{self, DirectView},
    modern_subscriptions::ModernSubscriptions,
    passthrough::PassthroughView,
    resource_locator::ResourceLocator,
    subscribe,
};
use crate::{
    call::CallError,
    call_record::{CallRecorder, ObservedCall, ParentCall, ViewSizes},
    catalog::Catalog,
    config::{Config, RootView, defaults},
    connection::ForwardedHeaders,
    era::{self, client_subscription::SubscriptionFilter},
    forward::{Forwarder, RequestOutcome, is_shared},
    meta::{MetaFailure, MetaView, NamedTool, RefusedCall},
    protocol::{
        Message, jsonrpc::MessagePart, parameter_headers::HeaderParameter, payloads::method,
    },
    server_name::ServerName,
    session::{EphemeralSession, ServerScope, Session, SessionRegistry},
};

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

/// The choice of a view by a client, by path or by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewChoice<'a> {
    /// The view that the operator declares.
    Root,
    /// All servers merged.
    Direct,
    /// All tools behind the meta-tools.
    Meta,
    /// The server of this name.
    Server(&'a str),
}

impl<'a> ViewChoice<'a> {
    /// Returns the choice that a path stands for, if any.
    pub fn at_path(path: &'a str) -> Option<Self> {
        Some(match path {
            "/" | "/mcp" => Self::Root,
            "/direct" => Self::Direct,
            "/meta" => Self::Meta,
            _ => Self::Server(path.strip_prefix("/servers/")?),
        })
    }

    /// Returns its path.
    pub fn path(self) -> String {
        match self {
            Self::Root => "/".to_owned(),
            Self::Direct => "/direct".to_owned(),
            Self::Meta => "/meta".to_owned(),
            Self::Server(name) => format!("/servers/{name}"),
        }
    }

    /// Returns the choice with this name, if any; that of a server has none.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Root, Self::Direct, Self::Meta].into_iter().find(|view| view.name() == Some(name))
    }

    /// Returns its name, unless it is that of a server.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Root => Some("root"),
            Self::Direct => Some("direct"),
            Self::Meta => Some("meta"),
            Self::Server(_) => None,
        }
    }
}

/// All views over the same pool.
#[derive(Debug)]
pub struct Views {
    forwarder: Arc<Forwarder>,
    direct: DirectView,
    meta: MetaView,
    passthrough: PassthroughView,
    subscriptions: ModernSubscriptions,
}

impl Views {
    /// Returns all views: `meta`, and the others over `forwarder` and `catalog`.
    pub fn new(forwarder: Arc<Forwarder>, catalog: Arc<Catalog>, meta: MetaView) -> Self {
        let (pool, lists) = (Arc::clone(&forwarder), Arc::clone(&catalog));
        let resources = ResourceLocator { forwarder: pool, catalog: lists };
        let (pool, lists) = (Arc::clone(&forwarder), Arc::clone(&catalog));
        let direct = DirectView { forwarder: pool, catalog: lists, resources: resources.clone() };
        let passthrough = PassthroughView { forwarder: Arc::clone(&forwarder), catalog };
        let subscriptions = ModernSubscriptions { forwarder: Arc::clone(&forwarder), resources };
        Self { forwarder, direct, meta, passthrough, subscriptions }
    }

    /// Returns the registry of client sessions.
    pub fn sessions(&self) -> &Arc<SessionRegistry> {
        self.forwarder.sessions()
    }

    /// Returns the recorder of calls.
    pub fn calls(&self) -> &Arc<CallRecorder> {
        self.forwarder.calls()
    }

    /// Returns the effective configuration.
    pub fn config(&self) -> Arc<Config> {
        self.forwarder.config()
    }

    /// Returns the chosen view.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownServer`], with similar names, if the chosen server is not declared.
    pub fn choose(&self, choice: ViewChoice<'_>) -> Result<View, CallError> {
        Ok(match choice {
            ViewChoice::Root => match &self.forwarder.peek_config().listen.root {
                RootView::Direct => View::Direct,
                RootView::Meta => View::Meta,
                RootView::Passthrough(server) => {
                    View::Passthrough { server: server.clone(), is_root: true }
                }
            },
            ViewChoice::Direct => View::Direct,
            ViewChoice::Meta => View::Meta,
            ViewChoice::Server(name) => {
                let slot = self.forwarder.declared_slot(name)?;
                View::Passthrough { server: slot.name().clone(), is_root: false }
            }
        })
    }

    /// Returns the sizes of the tool lists, as far as they are known.
    pub fn list_sizes(&self) -> ViewSizes {
        let (n_tools, n_bytes) = self.direct.catalog.tool_sizes();
        let (n_tools, direct_list) = (n_tools as u64, n_bytes as u64);
        let search_reply = direct_list / n_tools.max(1) * defaults::COST_SEARCH_TOOLS;
        ViewSizes { direct_list, meta_list: self.meta.list_bytes() as u64, search_reply }
    }

    /// Returns the headers of a client's request that some server gets; `None` without any.
    pub fn forwarded(&self, headers: &HeaderMap) -> Option<Arc<ForwardedHeaders>> {
        self.forwarder.forwarded(headers)
    }

    /// Answers a client's request, or returns the exchange that does. The servers of the exchange
    /// get the headers of the client that are `forwarded`. Cancel safe: nothing was sent to a
    /// server that could not be sent again.
    pub async fn handle(
        &self,
        view: &View,
        session: &Arc<Session>,
        request: &Message,
        forwarded: Option<Arc<ForwardedHeaders>>,
    ) -> RequestOutcome {
        let call = self.forwarder.calls().observe(|| session.caller(), request, None);
        let parent = call.as_ref().and_then(ObservedCall::as_parent);
        match self.try_handle(view, session, request, forwarded.as_ref(), parent).await {
            Ok(RequestOutcome::Exchange(mut exchange)) => {
                if let Some(forwarded) = forwarded {
                    exchange.forward_headers(forwarded);
                }
                if let Some(call) = call {
                    exchange.observe(call);
                }
                RequestOutcome::Exchange(exchange)
            }
            Ok(RequestOutcome::Answer(answer)) => {
                let calls = self.forwarder.calls();
                if request.method() == Some(method::TOOLS_LIST) && calls.is_enabled() {
                    calls.costs().listed(&session.caller(), answer.len());
                }
                if let Some(call) = call {
                    call.answered_by_metamcp(&answer);
                }
                RequestOutcome::Answer(answer)
            }
            Ok(RequestOutcome::Script(mut script)) => {
                if let Some(call) = call {
                    script.on_answer(|answer| call.answered_by_metamcp(answer));
                }
                RequestOutcome::Script(script)
            }
            Err(failure) => refused(call, failure, session, request),
        }
    }

    async fn try_handle(
        &self,
        view: &View,
        session: &Arc<Session>,
        request: &Message,
        forwarded: Option<&Arc<ForwardedHeaders>>,
        call: Option<ParentCall>,
    ) -> Result<RequestOutcome, MetaFailure> {
        let method = request.method().unwrap_or_default();
        if session.is_modern() {
            if method::LEGACY_ONLY.contains(&method) {
                return Err(MetaFailure::Error(CallError::UnknownMethod {
                    method: method.to_owned(),
                    hint: "Protocol version 2026-07-28 has no such method.",
                }));
            }
            if method == method::DISCOVER {
                return Ok(self.discover(view, request).await?);
            }
        }
        let outcome = match (view, method) {
            (_, method::PING) => RequestOutcome::answer(request, &json!({})),
            (View::Direct, _) => self.direct.handle(session, request).await?,
            (View::Meta, _) => self.meta.handle(session, request, forwarded, call).await?,
            (View::Passthrough { server, is_root }, _) => {
                self.passthrough.handle(session, server, *is_root, request).await?
            }
        };
        if let Some(level) = session.client_meta().and_then(|client_meta| client_meta.level)
            && let RequestOutcome::Exchange(exchange) = &outcome
        {
            subscribe::request_log_level(&self.forwarder, session, exchange.server(), level)
                .await?;
        }
        Ok(outcome)
    }

    /// Answers the discovery of `view` by a modern client.
    async fn discover(&self, view: &View, request: &Message) -> Result<RequestOutcome, CallError> {
        let discovery = match view {
            View::Direct => self.direct.discovery(),
            View::Meta => self.meta.discovery(),
            View::Passthrough { server, .. } => self.passthrough.discovery(server).await?,
        };
        let result = era::decorate(&discovery.to_string(), method::DISCOVER, None);
        Ok(RequestOutcome::answer_text(request, &result))
    }

    /// Forwards a notification that concerns a server and no request in flight. Cancel safe: it is
    /// sent or not.
    pub async fn notify(&self, view: &View, session: &Session, notification: &Message) {
        let is_personal =
            matches!(notification.method(), Some(method::PROGRESS | method::ROOTS_CHANGED));
        if notification.method() == Some(method::INITIALIZED) {
            return;
        }
        for slot in self.forwarder.pool().slots().values() {
            let is_addressed = match view {
                View::Direct | View::Meta => is_personal,
                View::Passthrough { server, .. } => slot.name() == server,
            };
            // The roots of one client have no meaning on a shared connection.
            if is_addressed
                && slot.has_fixed_connection()
                && (slot.is_per_session() || !is_personal)
                && let Some(connection) = slot.live(session.owner())
            {
                connection.notify(notification).await;
            }
        }
    }

    /// Returns the arguments of a tool call that its headers must repeat, if the tool's schema was
    /// read.
    pub fn header_parameters(&self, view: &View, request: &Message) -> Vec<HeaderParameter> {
        let is_call = request.method() == Some(method::TOOLS_CALL);
        let tool = is_call.then(|| request.string(MessagePart::Name)).flatten();
        let Some(tool) = tool else { return Vec::new() };
        match view {
            View::Passthrough { server, .. } => self.passthrough.header_parameters(server, &tool),
            View::Direct => self.direct.header_parameters(&tool),
            // The meta-tools have none.
            View::Meta => Vec::new(),
        }
    }

    /// Opens the listener of a client of `view`. It receives everything;
    /// [`Views::accept_subscription`] returns the part for the client.
    pub fn listen(&self, view: &View) -> EphemeralSession {
        self.sessions().open_ephemeral(view.scope(), None)
    }

    /// Returns the part of `requested` that a client with `listener` receives, and subscribes to its
    /// resources. Cancel safe: subscriptions last as long as the listener.
    pub async fn accept_subscription(
        &self,
        view: &View,
        listener: &Session,
        requested: &SubscriptionFilter,
    ) -> SubscriptionFilter {
        let (honoured, slot) = match view {
            View::Meta => return requested.supported_by(&self.meta.capabilities()),
            View::Direct => (requested.supported_by(&direct::capabilities()), None),
            View::Passthrough { server, .. } => {
                // Events on the connection of one client or one request are not for other clients.
                let slot = self.forwarder.pool().slot(server.as_str());
                let Some(slot) = slot.filter(|slot| is_shared(slot)) else {
                    return SubscriptionFilter::default();
                };
                let found = self.passthrough.discovery(server).await.unwrap_or_default();
                (requested.supported_by(&found["capabilities"]), Some(slot))
            }
        };
        self.subscriptions.accept(listener, honoured, slot, &requested.uris).await
    }
}

/// Returns the answer to a request that no server gets, and records it.
fn refused(
    call: Option<ObservedCall>,
    failure: MetaFailure,
    session: &Session,
    request: &Message,
) -> RequestOutcome {
    let RefusedCall { answer, failure, tool } = match failure {
        MetaFailure::Refused(refused) => *refused,
        MetaFailure::Error(error) => {
            let rpc = error.to_rpc().for_era(session.era());
            let answer = rpc.render(request.part(MessagePart::Id));
            RefusedCall { answer, failure: error.to_record(), tool: None }
        }
    };
    if let Some(mut call) = call {
        match &tool {
            Some(NamedTool::OfServer(server, tool)) => call.names(Some(server), tool),
            Some(NamedTool::Unknown(tool)) => call.names(None, tool),
            None => {}
        }
        call.failed(failure, answer.len());
    }
    RequestOutcome::Answer(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_view_is_chosen_by_its_path_and_by_its_name() {
        for view in [ViewChoice::Root, ViewChoice::Direct, ViewChoice::Meta] {
            assert_eq!(ViewChoice::at_path(&view.path()), Some(view));
            assert_eq!(view.name().and_then(ViewChoice::named), Some(view));
        }
        let git = ViewChoice::Server("git");
        assert_eq!((ViewChoice::at_path("/servers/git"), git.name()), (Some(git), None));
        assert_eq!(git.path(), "/servers/git");
        assert_eq!(ViewChoice::at_path("/mcp"), Some(ViewChoice::Root));
        for other in ["", "/servers", "/meta/", "/direct/git", "/sse"] {
            assert_eq!(ViewChoice::at_path(other), None, "{other}");
        }
    }
}
