//! Requests about tasks in the view of one server, and background calls of operators.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{RequestOutcome, Views, client_exchange};
use crate::{
    call::{self, CallError, Exchange},
    capacity_holder::Holder,
    config::defaults,
    connection::ConnectionLimits,
    era,
    pool::{ConnectionLease, ServerSlot},
    protocol::{
        Era, Message,
        jsonrpc::MessagePart,
        list_page::{ListItem, ListKind},
        payloads::ServerProfile,
        task::{self, TaskCapability},
    },
    server_name::ServerName,
    session::{ServerScope, Session},
};

/// Returns the task support that a client of the server of `slot` sees.
pub(super) fn offered(slot: &ServerSlot, session: &Session) -> TaskCapability {
    match slot.tasks() {
        // The client has no identity, and its connection ends with its request.
        TaskCapability::All if session.is_modern() || session.id().is_none() => {
            TaskCapability::Nothing
        }
        offer => offer,
    }
}

impl Views {
    /// Reads the tools of a server before the first call of a client that supports tasks. A server
    /// up to version 2025-11-25 declares there which tools accept or require tasks.
    pub(super) async fn learn_task_tools(&self, slot: &Arc<ServerSlot>, session: &Session) {
        let takes_tasks = session
            .client_meta()
            .is_some_and(|client_meta| task::declares_tasks(&client_meta.capabilities));
        if takes_tasks && !slot.hints().is_read() {
            let listing = self.catalog.listing(
                slot,
                ListKind::Tools,
                self.list_owner(session),
                self.limits(),
            );
            // Without a list, the server itself rejects a wrong call.
            let _is_known = timeout(defaults::LIST_TIMEOUT, listing).await;
        }
    }

    /// Forwards a request about a task to its server, unless metamcp holds the finished task.
    pub(super) async fn about_task(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        if request.method() == Some(task::LIST) && offered(&slot, session) != TaskCapability::All {
            return Err(CallError::UnknownMethod {
                method: task::LIST.to_owned(),
                hint: "Clients do not see the tasks of others: keep the ids of your own tasks.",
            });
        }
        if !session.is_modern()
            && let Some(answer) = finished_answer(&slot, request)
        {
            return Ok(RequestOutcome::Answer(answer));
        }
        self.exchange(slot, session, request.clone()).await
    }
}

/// A call that runs without its caller.
pub struct BackgroundCall {
    /// The exchange with the server.
    pub exchange: Box<Exchange>,
    /// The lease of the connection that the server's task belongs to.
    pub lease: Option<ConnectionLease>,
}

impl Views {
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
        let mut exchange = self.operator_exchange(slot, request, limits, holder);
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
        let slot = self.declared_slot(server)?;
        let request = Message::request(method, Some(params));
        if let Some(answer) = finished_answer(&slot, &request) {
            return Ok(Message::parse_own(answer).unwrap_or(request));
        }
        let session = Session::anonymous(ServerScope::Every, holder);
        let mut exchange = client_exchange(&session, None, slot, request, self.limits());
        exchange.carry_tasks();
        exchange.finish().await
    }

    /// Returns whether a server is connected now, so that asking it starts nothing; `None` if it is
    /// not declared.
    pub fn is_connected(&self, server: &str) -> Option<bool> {
        Some(self.pool.slot(server)?.live(None).is_some_and(|connection| connection.is_live()))
    }

    /// Returns a lease of the shared connection to a server, if there is one now.
    pub fn lease_of(&self, server: &str) -> Option<ConnectionLease> {
        self.pool.slot(server)?.ready(None)
    }

    /// Returns the connected servers that list their tasks.
    pub fn listing_tasks(&self) -> Vec<ServerName> {
        let slots = self.pool.slots();
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

/// Answers a request about a task that ended before its client knew of it.
fn finished_answer(slot: &ServerSlot, request: &Message) -> Option<Bytes> {
    let finished = slot.finished().get(&task::id_of(request)?, Instant::now())?;
    let id = request.part(MessagePart::Id).unwrap_or("null");
    let task: Value = serde_json::from_str(&finished.task).unwrap_or_default();
    Some(match request.method()? {
        task::GET => Message::response(id, &finished.task),
        task::RESULT => {
            let task_id = task["taskId"].to_string();
            Message::response(id, &task::related(&finished.result, &task_id))
        }
        task::CANCEL => task::ended(task["status"].as_str().unwrap_or_default()).render(Some(id)),
        _ => return None,
    })
}
