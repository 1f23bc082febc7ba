//! The view of one server as it is. Everything passes, except requests about the connection, and
//! list items that clients would reject.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{RequestOutcome, Views, answer, nothing_is_kept, own_profile, task_requests};
use crate::{
    call::{self, CallError, Exchange},
    config::defaults,
    connection::ConnectionLimits,
    era,
    pool::{OneShotClient, ServerSlot},
    protocol::{
        Message,
        jsonrpc::MessagePart,
        list_page::ListKind,
        payloads::{ServerProfile, method},
        task::{PREFIX, TaskCapability},
    },
    server_name::ServerName,
    session::Session,
};

impl Views {
    pub(super) async fn passthrough(
        &self,
        session: &Session,
        server: &ServerName,
        is_root: bool,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let Some(slot) = self.pool.slot(server.as_str()) else {
            return Err(self.unknown_server(server.as_str()));
        };
        let tasks = task_requests::offered(&slot, session);
        let mut request = Cow::Borrowed(request);
        if request.method() == Some(method::TOOLS_CALL) {
            match tasks {
                TaskCapability::Nothing => {
                    request = Cow::Owned(era::without_tasks(request.into_owned()));
                }
                // Boxed, since most calls do not need it.
                TaskCapability::ById | TaskCapability::All if session.is_modern() => {
                    Box::pin(self.learn_task_tools(&slot, session)).await;
                }
                TaskCapability::ById | TaskCapability::All => {}
            }
        }
        let mut outcome = self.at(slot, session, is_root, &request).await?;
        if let RequestOutcome::Exchange(exchange) = &mut outcome
            && tasks != TaskCapability::Nothing
        {
            exchange.carry_tasks();
        }
        Ok(outcome)
    }

    /// Answers a request at a server, or forwards it.
    async fn at(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        is_root: bool,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let server = slot.name().clone();
        match request.method().unwrap_or_default() {
            method::INITIALIZE => {
                // The server had one handshake, with metamcp. Its clients are answered from that.
                let patience = if is_root { Duration::ZERO } else { defaults::INITIALIZE_PATIENCE };
                let limits = ConnectionLimits { silence: patience, total: patience };
                let lease = call::connect(&slot, session.owner(), limits).await.ok();
                let profile = lease.as_ref().and_then(|lease| lease.connection.profile());
                let asked = request.string(MessagePart::ProtocolVersion);
                let told = |profile: &ServerProfile| {
                    // Without a session, there is no stream for notifications.
                    let is_standing = slot.has_fixed_connection() && session.id().is_some();
                    let tasks = task_requests::offered(&slot, session);
                    answer(request, &profile.for_client(asked.as_deref(), is_standing, tasks))
                };
                Ok(match profile {
                    Some(profile) => told(profile),
                    // A client that fails to connect may never try again, and a server that is down
                    // now may be up for the first call.
                    None => {
                        slot.note_omitted();
                        self.catalog.mark_stale(&slot, session.owner());
                        match self.catalog.profile(&server) {
                            // The profile that it last sent, also to an earlier process.
                            Some(profile) => told(&profile),
                            None => answer(request, &stand_in(session, request, &server)),
                        }
                    }
                })
            }
            asked @ (method::LOGGING_SET_LEVEL
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE) => {
                if !slot.has_fixed_connection() {
                    return Err(nothing_is_kept(asked));
                }
                let lease = call::connect(&slot, session.owner(), self.limits()).await?;
                let capability =
                    if asked == method::LOGGING_SET_LEVEL { "logging" } else { "resources" };
                match lease.connection.profile() {
                    // The server itself rejects what it does not support.
                    Some(profile) if !profile.has(capability) => {
                        self.exchange(slot, session, request.clone()).await
                    }
                    _ if asked == method::LOGGING_SET_LEVEL => {
                        self.set_level(session, request).await
                    }
                    _ => self.watch(session, &slot, request).await,
                }
            }
            asked @ (method::DISCOVER | method::SUBSCRIPTIONS_LISTEN) => {
                Err(CallError::UnknownMethod {
                    method: asked.to_owned(),
                    hint: "Use `initialize`, or say with the request that it is of version 2026-07-28.",
                })
            }
            asked if asked.starts_with(PREFIX) => self.about_task(slot, session, request).await,
            asked => {
                let Some(list) = ListKind::of_method(asked) else {
                    return self.exchange(slot, session, request.clone()).await;
                };
                let is_first = request.part(MessagePart::Cursor).is_none();
                // With a connection per client, the server knows whether its client shows pages.
                let shows_pages = slot.is_per_session() || session.client().shows_pages();
                let lister = self.lister(session);
                let sieve = self.catalog.sieve(&slot, list, lister, is_first, shows_pages);
                let guest = self.guest(&slot, session).await;
                let owner = guest.as_ref().map(OneShotClient::owner).or(session.owner());
                let client = session.client();
                let (holder, request) = (session.holder(), request.clone());
                let exchange = Exchange::new(slot, owner, client, holder, request, self.limits());
                Ok(RequestOutcome::Exchange(Box::new(exchange.with_filter(sieve).of_guest(guest))))
            }
        }
    }
}

/// Returns the likely capabilities of a server that cannot be asked.
pub(super) fn stand_in_capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true },
    })
}

/// Returns the instructions for a server that cannot be asked.
pub(super) fn stand_in_instructions(server: &ServerName) -> String {
    format!("The server `{server}` is not connected yet.")
}

/// Returns an `initialize` result for a server that cannot be asked.
fn stand_in(session: &Session, request: &Message, server: &ServerName) -> Value {
    let capabilities = stand_in_capabilities();
    own_profile(session, request, capabilities, &stand_in_instructions(server))
}
