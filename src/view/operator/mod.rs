//! Operators' requests to servers: lists, tool calls, resources, prompts and completions.
//!
//! [`OperatorView::call`] finds the tool, checks the arguments against its schema, and returns an
//! [`Exchange`]. [`finish`] drives it and reports progress; a background task can do so too.
//! [`OperatorView::ask`] returns the exchange of any other request.
//!
//! An operator is a client without capabilities and session, so servers cannot ask it anything. A
//! server with a connection per client gets one for this request alone.

mod finish;
mod operator_call;
mod script_run;

use std::{sync::Arc, time::Duration};

use serde_json::json;

pub use finish::{finish, to_rpc_error};
pub use operator_call::{BackgroundCall, CheckedCall, OperatorCall, OperatorList, PreparedCall};
pub use script_run::{ProgressLines, finish_script, progress_of, script_progress};

use super::task_requests::{finished_answer, offered};
use crate::{
    call::{self, CallError, Exchange},
    call_record::Caller,
    capacity_holder::Holder,
    catalog::Catalog,
    compute_pool::StopFlag,
    config::{Config, defaults},
    connection::ConnectionLimits,
    era,
    forward::{Forwarder, client_exchange, quoted},
    meta::OperatorScripts,
    pool::{ConnectionLease, ServerSlot},
    protocol::{
        Era, Message, ObjectMembers, RpcError,
        list_page::{ListItem, ListKind},
        payloads::{ServerProfile, method},
        rpc_error::INVALID_PARAMS,
        task::{self, TaskCapability},
    },
    redact,
    server_name::ServerName,
    session::{ServerScope, Session},
    similar_names::{did_you_mean, nearest},
    tool::{
        ArgumentChecker, ArgumentVerdict, RequestedTool, ResolvedTool, ToolDirectory, tool_call,
    },
};

/// The view of operators.
#[derive(Debug)]
pub struct OperatorView {
    forwarder: Arc<Forwarder>,
    catalog: Arc<Catalog>,
    directory: Arc<ToolDirectory>,
    checker: Arc<ArgumentChecker>,
    scripts: OperatorScripts,
}

impl OperatorView {
    /// Returns the view over these services.
    pub fn new(
        forwarder: Arc<Forwarder>,
        catalog: Arc<Catalog>,
        directory: Arc<ToolDirectory>,
        checker: Arc<ArgumentChecker>,
        scripts: OperatorScripts,
    ) -> Self {
        Self { forwarder, catalog, directory, checker, scripts }
    }

    /// Returns the scripts of operators.
    pub fn scripts(&self) -> &OperatorScripts {
        &self.scripts
    }

    /// Returns the effective configuration.
    pub fn config(&self) -> Arc<Config> {
        self.forwarder.config()
    }

    /// Checks that a server is declared.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if it is not.
    pub fn check_declared(&self, server: &str) -> Result<(), Box<RpcError>> {
        self.forwarder.declared_slot(server).map(drop).map_err(|error| to_rpc_error(&error))
    }

    /// Returns the directory of all tools.
    pub fn directory(&self) -> &ToolDirectory {
        &self.directory
    }

    /// Computes something for an operator; in the compute pool if there are many `bytes`.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if the work was not done.
    ///
    /// # Cancel safety
    ///
    /// The work does not begin, or its result is lost.
    pub async fn compute<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, Box<RpcError>> {
        let computed = self.forwarder.compute(Holder::SERVICE, bytes, work).await;
        computed.map_err(|source| to_rpc_error(&CallError::Overloaded(source)))
    }

    /// Returns a list of all servers, or of `server`. Connects no server whose list is known.
    /// Cancel safe: the reads continue for other callers.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if `server` is not declared or cannot be asked.
    pub async fn list(
        &self,
        list: ListKind,
        server: Option<&str>,
    ) -> Result<OperatorList, Box<RpcError>> {
        let (list_owner, limits) = (Some(self.forwarder.observer()), self.forwarder.limits());
        let Some(server) = server else {
            let (mut listings, mut unavailable) = (Vec::new(), Vec::new());
            for (server, listing) in self.catalog.each(list, list_owner, limits).await {
                match listing {
                    Ok(listing) => listings.push((server, listing)),
                    Err(reason) => {
                        let reason = redact::cut(&reason, defaults::QUOTE_BYTES_MAX);
                        unavailable.push((server, redact::sanitize(reason).into_owned()));
                    }
                }
            }
            return Ok(OperatorList { listings, unavailable });
        };
        let slot = self.slot(server)?;
        let listing = self.catalog.known_or_read(&slot, list, list_owner, limits).await;
        let listing = listing.map_err(|error| to_rpc_error(&error))?;
        Ok(OperatorList { listings: vec![(slot.name().clone(), listing)], unavailable: Vec::new() })
    }

    /// Returns all servers, or only `server`.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if `server` is not declared.
    pub fn servers(&self, server: Option<&str>) -> Result<Vec<Arc<ServerSlot>>, Box<RpcError>> {
        match server {
            Some(server) => Ok(vec![self.slot(server)?]),
            None => Ok(self.forwarder.pool().slots().values().cloned().collect()),
        }
    }

    /// Returns the tool that `tool` refers to. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if there is no such server or tool, or the server cannot be asked.
    pub async fn tool(&self, tool: &RequestedTool) -> Result<ResolvedTool, Box<RpcError>> {
        self.tool_within(tool, self.forwarder.limits()).await
    }

    async fn tool_within(
        &self,
        tool: &RequestedTool,
        limits: ConnectionLimits,
    ) -> Result<ResolvedTool, Box<RpcError>> {
        let resolved = self.directory.resolve(Some(self.forwarder.observer()), tool, limits).await;
        resolved.map_err(|error| Box::new(error.to_rpc()))
    }

    /// Checks arguments, the JSON text of an object, against the schema of a tool. Cancel safe.
    pub async fn verdict(&self, tool: &ResolvedTool, args: &str) -> ArgumentVerdict {
        self.checker.check(Holder::SERVICE, &tool.item, args).await
    }

    /// Prepares a call of a tool and checks its arguments. Cancel safe: nothing was called.
    ///
    /// # Errors
    ///
    /// As for [`OperatorView::request`].
    pub async fn call(&self, call: &OperatorCall<'_>) -> Result<PreparedCall, Box<RpcError>> {
        let limits = self.forwarder.limits_within(call.timeout);
        let CheckedCall { tool, request, warning } = self.request(call).await?;
        let exchange = self.exchange(tool.slot, request, limits, call.holder);
        Ok(PreparedCall { id: tool.id, exchange, warning })
    }

    /// Returns the request that calls a tool, with checked arguments. Cancel safe: nothing was
    /// called.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if there is no such tool, its server cannot be asked, or the arguments are
    /// invalid.
    pub async fn request(&self, call: &OperatorCall<'_>) -> Result<CheckedCall, Box<RpcError>> {
        let tool = self.tool_within(call.tool, self.forwarder.limits_within(call.timeout)).await?;
        let verdict = self.verdict(&tool, call.args).await;
        let warning = self.checker.apply(verdict, &tool.id, &tool.item);
        let warning = warning.map_err(|error| Box::new(error.to_rpc()))?;
        let mut params = ObjectMembers::default();
        if let Some(meta) = call.meta {
            params.set("_meta", meta);
        }
        let request = Message::request(method::TOOLS_CALL, Some(&params.to_string()));
        let request = tool_call(&request, &tool.item.key, call.args);
        Ok(CheckedCall { tool, request, warning })
    }

    /// Prepares a request to a server, with `params` as JSON text. It counts for `holder`.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if there is no such server.
    pub fn ask(
        &self,
        server: &str,
        method: &str,
        params: &str,
        holder: Holder,
    ) -> Result<Exchange, Box<RpcError>> {
        let slot = self.slot(server)?;
        let request = Message::request(method, Some(params));
        Ok(self.exchange(slot, request, self.forwarder.limits(), holder))
    }

    /// Prepares `prompts/get` for a server, with `params` as JSON text. It counts for `holder`.
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if there is no such server or prompt, or the server cannot be asked.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        params: &str,
        holder: Holder,
    ) -> Result<Exchange, Box<RpcError>> {
        let slot = self.slot(server)?;
        let (list_owner, limits) = (Some(self.forwarder.observer()), self.forwarder.limits());
        let known = self.catalog.listing(&slot, ListKind::Prompts, list_owner, limits).await;
        let known = known.map_err(|error| to_rpc_error(&error))?;
        if !known.iter().any(|prompt| prompt.key == name) {
            let similar = nearest(name, known.iter().map(|prompt| prompt.key.clone()));
            let text = format!("server `{server}` has no prompt `{}`", quoted(name));
            let error = RpcError::new(INVALID_PARAMS, "PROMPT_NOT_FOUND", text)
                .suggest(did_you_mean(
                    &similar,
                    &format!("Run `metamcp prompts {server}` to list them."),
                ))
                .context(json!({ "server": server, "similarPrompts": similar }));
            return Err(error.into());
        }
        let request = Message::request(method::PROMPTS_GET, Some(params));
        Ok(self.exchange(slot, request, limits, holder))
    }

    /// Prepares an operator's request, which counts for `holder`.
    fn exchange(
        &self,
        slot: Arc<ServerSlot>,
        request: Message,
        limits: ConnectionLimits,
        holder: Holder,
    ) -> Exchange {
        let session = Session::anonymous(ServerScope::Every, holder);
        let one_shot =
            slot.is_per_session().then(|| self.forwarder.sessions().one_shot_client("{}"));
        let call = self.forwarder.calls().observe(|| Caller::operator(holder), &request, None);
        let mut exchange = client_exchange(&session, one_shot, slot, request, limits);
        if let Some(call) = call {
            exchange.observe(call);
        }
        exchange
    }

    fn slot(&self, server: &str) -> Result<Arc<ServerSlot>, Box<RpcError>> {
        let slot = self.forwarder.pool().slot(server);
        slot.ok_or_else(|| Box::new(self.directory.no_server(server).to_rpc()))
    }

    /// Returns the operator's call of the tool `definition`, which runs for at most `limits.total`
    /// without its caller. If server and tool support it, it is a task of the server, kept there
    /// for `ttl`. It counts for `holder`. Cancel safe: the server got no more than a handshake.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server must be connected first, and that fails.
    pub async fn call_in_background(
        &self,
        slot: Arc<ServerSlot>,
        definition: &ListItem,
        request: Message,
        limits: ConnectionLimits,
        ttl: Duration,
        holder: Holder,
    ) -> Result<BackgroundCall, CallError> {
        let session = Session::anonymous(ServerScope::Every, holder);
        let may_be_task =
            !slot.is_per_session() && offered(&slot, &session) != TaskCapability::Nothing;
        let lease = match may_be_task {
            true => Some(call::connect(&slot, None, limits).await?),
            false => None,
        };
        let lease = lease.filter(|lease| {
            let profile = lease.connection.profile().filter(|profile| profile.has_tasks());
            // A modern server decides by itself.
            let is_task = |profile: &ServerProfile| {
                profile.era() == Era::Modern || task::tool_supports_tasks(definition.json())
            };
            profile.is_some_and(is_task)
        });
        let request = match lease {
            Some(_) => {
                let task = format!(r#"{{"ttl":{}}}"#, ttl.as_millis());
                request.with_params(|params| params.set("task", task))
            }
            None => era::without_tasks(request),
        };
        let mut exchange = self.exchange(slot, request, limits, holder);
        if lease.is_some() {
            exchange.carry_tasks();
        }
        Ok(BackgroundCall { exchange: Box::new(exchange), lease })
    }

    /// Asks a server about one of its tasks, or for all of them: `method` with `params`, JSON text,
    /// as in the legacy era. Returns the answer. The request counts for `holder`. Dropping the
    /// future cancels the request at the server.
    ///
    /// # Errors
    ///
    /// [`CallError`] if there is no such server, or it does not answer.
    pub async fn ask_about_task(
        &self,
        server: &str,
        method: &str,
        params: &str,
        holder: Holder,
    ) -> Result<Message, CallError> {
        let slot = self.forwarder.declared_slot(server)?;
        let request = Message::request(method, Some(params));
        if let Some(answer) = finished_answer(&slot, &request) {
            return Ok(Message::parse_own(answer).unwrap_or(request));
        }
        let session = Session::anonymous(ServerScope::Every, holder);
        let mut exchange = client_exchange(&session, None, slot, request, self.forwarder.limits());
        exchange.carry_tasks();
        exchange.finish().await
    }

    /// Returns whether a server is connected now, so that asking it starts nothing; `None` if it is
    /// not declared.
    pub fn is_connected(&self, server: &str) -> Option<bool> {
        Some(
            self.forwarder
                .pool()
                .slot(server)?
                .live(None)
                .is_some_and(|connection| connection.is_live()),
        )
    }

    /// Returns a lease of the shared connection to a server, if there is one now.
    pub fn lease_of(&self, server: &str) -> Option<ConnectionLease> {
        self.forwarder.pool().slot(server)?.ready(None)
    }

    /// Returns the connected servers that list their tasks.
    pub fn listing_tasks(&self) -> Vec<ServerName> {
        let slots = self.forwarder.pool().slots();
        let lists = |slot: &&Arc<ServerSlot>| {
            let live = slot.live(None).filter(|_| !slot.is_per_session());
            let profile = live.as_ref().and_then(|connection| connection.profile());
            profile.is_some_and(|profile| {
                profile.era() == Era::Legacy
                    && profile.result["capabilities"]["tasks"]["list"].is_object()
            })
        };
        slots.values().filter(lists).map(|slot| slot.name().clone()).collect()
    }
}
