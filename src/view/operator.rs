//! Operators' requests to servers: lists, tool calls, resources, prompts and completions.
//!
//! [`Views::operator_call`] finds the tool, checks the arguments against its schema, and returns an
//! [`Exchange`]. [`finish`] drives it and reports progress; a background task can do so too.
//! [`Views::operator_ask`] returns the exchange of any other request.
//!
//! An operator is a client without capabilities and session, so servers cannot ask it anything. A
//! server with a connection per client gets one for this request alone.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Views, checked_call::inner_call, client_exchange, quoted, resolve_tool::ResolvedTool};
use crate::{
    call::{CallError, Exchange},
    capacity_holder::Holder,
    catalog::Listing,
    compute_pool::StopFlag,
    config::defaults,
    connection::{CallEvent, ConnectionLimits, SideMessage},
    pool::ServerSlot,
    protocol::{
        Message, ObjectMembers, RpcError,
        jsonrpc::MessagePart,
        list_page::ListKind,
        payloads::method,
        rpc_error::{INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND},
    },
    redact,
    server_name::ServerName,
    session::{ServerScope, Session},
    similar_names::{did_you_mean, nearest},
    tool::{ArgumentVerdict, RequestedTool, ToolId},
};

/// An operator's tool call.
#[derive(Clone, Debug)]
pub struct OperatorCall<'a> {
    /// The tool.
    pub tool: &'a RequestedTool,
    /// The arguments, as the JSON text of an object.
    pub args: &'a str,
    /// The time limit, including the time to connect; at most that of any request.
    pub timeout: Option<Duration>,
    /// The `_meta` parameter, as the JSON text of an object: the progress token, if there is one.
    pub meta: Option<&'a str>,
    /// The party that the call counts for.
    pub holder: Holder,
}

/// A tool call that is ready to be sent.
pub struct PreparedCall {
    /// The id of the tool.
    pub id: ToolId,
    /// The exchange; the first [`Exchange::next`] sends the call.
    pub exchange: Exchange,
    /// The reason why the arguments were not checked, if so.
    pub warning: Option<String>,
}

/// A tool call with checked arguments.
#[derive(Debug)]
pub struct CheckedCall {
    /// The tool.
    pub tool: ResolvedTool,
    /// The request for the tool.
    pub request: Message,
    /// The reason why the arguments were not checked, if so.
    pub warning: Option<String>,
}

/// A list of several servers, or of one.
#[derive(Debug)]
pub struct OperatorList {
    /// The lists, in the order of the servers' names.
    pub listings: Vec<(ServerName, Listing)>,
    /// The servers whose list is unknown, with the reasons.
    pub unavailable: Vec<(ServerName, String)>,
}

impl Views {
    /// Computes something for an operator; in the compute pool if there are many `bytes`.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if the work was not done.
    ///
    /// # Cancel safety
    ///
    /// The work does not begin, or its result is lost.
    pub async fn operator_compute<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&StopFlag) -> T + Send + 'static,
    ) -> Result<T, Box<RpcError>> {
        let computed = self.meta_state.compute(Holder::SERVICE, bytes, work).await;
        computed.map_err(|source| to_rpc_error(&CallError::Overloaded { source }))
    }

    /// Returns a list of all servers, or of `server`. Connects no server whose list is known.
    /// Cancel safe: the reads continue for other callers.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if `server` is not declared or cannot be asked.
    pub async fn operator_list(
        &self,
        list: ListKind,
        server: Option<&str>,
    ) -> Result<OperatorList, Box<RpcError>> {
        let (list_owner, limits) = (Some(&self.observer), self.limits());
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
        let slot = self.operator_slot(server)?;
        let listing = self.catalog.known_or_read(&slot, list, list_owner, limits).await;
        let listing = listing.map_err(|error| to_rpc_error(&error))?;
        Ok(OperatorList { listings: vec![(slot.name().clone(), listing)], unavailable: Vec::new() })
    }

    /// Returns all servers, or only `server`.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if `server` is not declared.
    pub fn operator_servers(
        &self,
        server: Option<&str>,
    ) -> Result<Vec<Arc<ServerSlot>>, Box<RpcError>> {
        match server {
            Some(server) => Ok(vec![self.operator_slot(server)?]),
            None => Ok(self.pool.slots().values().cloned().collect()),
        }
    }

    /// Returns the tool that `tool` refers to. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if there is no such server or tool, or the server cannot be asked.
    pub async fn operator_tool(&self, tool: &RequestedTool) -> Result<ResolvedTool, Box<RpcError>> {
        self.operator_tool_within(tool, self.limits()).await
    }

    async fn operator_tool_within(
        &self,
        tool: &RequestedTool,
        limits: ConnectionLimits,
    ) -> Result<ResolvedTool, Box<RpcError>> {
        let resolved = self.resolve(Some(&self.observer), tool, limits).await;
        resolved.map_err(|error| Box::new(error.to_rpc()))
    }

    /// Checks arguments, the JSON text of an object, against the schema of a tool. Cancel safe.
    pub async fn operator_verdict(&self, tool: &ResolvedTool, args: &str) -> ArgumentVerdict {
        self.meta_state.verdict(Holder::SERVICE, &tool.item, args).await
    }

    /// Prepares a call of a tool and checks its arguments. Cancel safe: nothing was called.
    ///
    /// # Errors
    ///
    /// As for [`Views::operator_request`].
    pub async fn operator_call(
        &self,
        call: &OperatorCall<'_>,
    ) -> Result<PreparedCall, Box<RpcError>> {
        let limits = self.limits_within(call.timeout);
        let CheckedCall { tool, request, warning } = self.operator_request(call).await?;
        let exchange = self.operator_exchange(tool.slot, request, limits, call.holder);
        Ok(PreparedCall { id: tool.id, exchange, warning })
    }

    /// Returns the request that calls a tool, with checked arguments. Cancel safe: nothing was
    /// called.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if there is no such tool, its server cannot be asked, or the arguments are
    /// invalid.
    pub async fn operator_request(
        &self,
        call: &OperatorCall<'_>,
    ) -> Result<CheckedCall, Box<RpcError>> {
        let tool = self.operator_tool_within(call.tool, self.limits_within(call.timeout)).await?;
        let verdict = self.operator_verdict(&tool, call.args).await;
        let warning = self.meta_state.apply_verdict(verdict, &tool.id, &tool.item);
        let warning = warning.map_err(|error| Box::new(error.to_rpc()))?;
        let mut params = ObjectMembers::default();
        if let Some(meta) = call.meta {
            params.set("_meta", meta);
        }
        let request = Message::request(method::TOOLS_CALL, Some(&params.to_string()));
        let request = inner_call(&request, &tool.item.key, call.args);
        Ok(CheckedCall { tool, request, warning })
    }

    /// Prepares a request to a server, with `params` as JSON text. It counts for `holder`.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if there is no such server.
    pub fn operator_ask(
        &self,
        server: &str,
        method: &str,
        params: &str,
        holder: Holder,
    ) -> Result<Exchange, Box<RpcError>> {
        let slot = self.operator_slot(server)?;
        let request = Message::request(method, Some(params));
        Ok(self.operator_exchange(slot, request, self.limits(), holder))
    }

    /// Prepares `prompts/get` for a server, with `params` as JSON text. It counts for `holder`.
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if there is no such server or prompt, or the server cannot be asked.
    pub async fn operator_prompt(
        &self,
        server: &str,
        name: &str,
        params: &str,
        holder: Holder,
    ) -> Result<Exchange, Box<RpcError>> {
        let slot = self.operator_slot(server)?;
        let (list_owner, limits) = (Some(&self.observer), self.limits());
        let known = self.catalog.listing(&slot, ListKind::Prompts, list_owner, limits).await;
        let known = known.map_err(|error| to_rpc_error(&error))?;
        if !known.iter().any(|prompt| prompt.key == name) {
            let similar = nearest(name, known.iter().map(|prompt| prompt.key.clone()));
            let text = format!("server `{server}` has no prompt `{}`", quoted(name));
            let error = RpcError::new(INVALID_PARAMS, "PROMPT_NOT_FOUND", text)
                .suggest(did_you_mean(&similar, "See `prompts/list`."))
                .context(json!({ "server": server, "similarPrompts": similar }));
            return Err(error.into());
        }
        let request = Message::request(method::PROMPTS_GET, Some(params));
        Ok(self.operator_exchange(slot, request, limits, holder))
    }

    /// Prepares an operator's request, which counts for `holder`.
    pub(super) fn operator_exchange(
        &self,
        slot: Arc<ServerSlot>,
        request: Message,
        limits: ConnectionLimits,
        holder: Holder,
    ) -> Exchange {
        let session = Session::anonymous(ServerScope::Every, holder);
        let one_shot = slot.is_per_session().then(|| self.sessions.one_shot_client("{}"));
        client_exchange(&session, one_shot, slot, request, limits)
    }

    fn operator_slot(&self, server: &str) -> Result<Arc<ServerSlot>, Box<RpcError>> {
        let slot = self.pool.slot(server);
        slot.ok_or_else(|| Box::new(self.no_server(server).to_rpc()))
    }
}

/// Waits for the result of a request, the JSON text of an object. Sends progress notifications with
/// the caller's token to `lines`. Refuses questions of the server. Dropping the future cancels the
/// request at the server.
///
/// # Errors
///
/// [`RpcError`] if there is no result, also if the server answers with an error.
pub async fn finish(
    mut exchange: Exchange,
    lines: Option<&mpsc::Sender<Bytes>>,
) -> Result<String, Box<RpcError>> {
    loop {
        match exchange.next().await {
            Ok(CallEvent::Answer(answer)) => {
                if let Some(result) = answer.part(MessagePart::Result) {
                    return Ok(result.to_owned());
                }
                let error = answer.part(MessagePart::Error).unwrap_or("null");
                return Err(of_server(exchange.server(), error).into());
            }
            Ok(CallEvent::Message(SideMessage::Notification(notice))) => {
                if notice.method() == Some(method::PROGRESS)
                    && let Some(lines) = lines
                {
                    let _reader_gone = lines.send(exchange.restore(&notice).join()).await;
                }
            }
            Ok(CallEvent::Message(SideMessage::Question(question))) => question.refuse(),
            Ok(CallEvent::Deferred) => {}
            Err(error) => return Err(to_rpc_error(&error)),
        }
    }
}

/// Returns the error in the form for operators.
pub fn to_rpc_error(error: &CallError) -> Box<RpcError> {
    Box::new(error.to_operator())
}

/// Returns the error of a server, an error object as JSON text, with its own code, message and
/// data.
fn of_server(server: &ServerName, error: &str) -> RpcError {
    let error: Value = match error.len() <= defaults::ERROR_DETAIL_BYTES_MAX {
        true => serde_json::from_str(error).unwrap_or_default(),
        false => Value::Null,
    };
    let code = error["code"].as_i64().unwrap_or(INTERNAL_ERROR);
    let message = error["message"].as_str().unwrap_or("the server refused it without a reason");
    let (name, suggestion) = match code {
        RESOURCE_NOT_FOUND => ("RESOURCE_NOT_FOUND", "See `resources/list`.".to_owned()),
        INVALID_PARAMS => (
            "SERVER_REFUSED",
            "Fix the arguments that the server rejects, and try again.".to_owned(),
        ),
        _ => (
            "SERVER_ERROR",
            format!("See the log of the server: `metamcp logs --server {server}`."),
        ),
    };
    let mut context = json!({ "server": server });
    if !error["data"].is_null() {
        context["data"] = error["data"].clone();
    }
    RpcError::new(code, name, redact::sanitize(message)).suggest(suggestion).context(context)
}
