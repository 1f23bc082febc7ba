//! The stream for messages that belong to no request: list notices, log messages, pings.

use std::{convert::Infallible, future::pending, sync::Arc};

use tokio::time::{self, Instant};

use super::{
    Connection, HttpLink, RequestFailure, endpoint,
    stream::{MeteredEvents, ReopenAttempts, is_transient, read_shared},
};
use crate::{
    config::defaults,
    protocol::{Message, list_page::ListKind, payloads::ServerProfile},
};

/// The outcome of an attempt to listen.
enum ListenOutcome {
    /// A stream has ended, for this reason.
    Ended(Arc<str>),
    /// A failure that may pass.
    Failed(Arc<str>),
    /// The upstream offers no stream.
    NotOffered(Arc<str>),
}

use ListenOutcome::{Ended, Failed, NotOffered};

impl HttpLink {
    /// Holds the stream for as long as the future is polled, once the handshake is done. An
    /// upstream need not have one.
    pub(super) async fn listen(&self, connection: &Arc<Connection>) -> Infallible {
        connection.warm_up.initialized.cancelled().await;
        let mut events = MeteredEvents::new(None, 0);
        let mut attempts = ReopenAttempts::new();
        let mut has_worked = false;
        loop {
            let since = Instant::now();
            let outcome = self.listen_once(connection, &mut events, has_worked).await;
            let (Ended(why) | Failed(why) | NotOffered(why)) = &outcome;
            let server = &connection.server;
            tracing::debug!(
                mcp_server = %server, reason = %why,
                "server `{server}` has no open stream of notices: {why}"
            );
            let pause = match outcome {
                Ended(_) => {
                    has_worked = true;
                    if since.elapsed() >= defaults::STREAM_STABLE_AFTER {
                        attempts = ReopenAttempts::new();
                    }
                    Some(attempts.pause(events.parser.retry()))
                }
                Failed(_) if has_worked => Some(attempts.pause(events.parser.retry())),
                Failed(_) => attempts.next(None),
                NotOffered(_) => None,
            };
            match pause {
                Some(pause) => time::sleep(pause).await,
                None => pending().await,
            }
        }
    }

    async fn listen_once(
        &self,
        connection: &Arc<Connection>,
        events: &mut MeteredEvents,
        has_worked: bool,
    ) -> ListenOutcome {
        let answer = match self.upstream.listen(events.parser.last_id(), None).await {
            Ok(answer) => answer,
            Err(failure) => return Failed(failure.to_string().into()),
        };
        let status = answer.status();
        if endpoint::is_event_stream(&answer) {
            tracing::debug!(
                mcp_server = %connection.server,
                "server `{}` has opened a stream of notices", connection.server
            );
            if has_worked && events.parser.last_id().is_empty() {
                // The notices in between are lost.
                connection.reread_lists();
            }
            events.parser.restart();
            return Ended(read_shared(connection, &mut answer.into_body(), events).await);
        }
        let why = format!("HTTP {status}").into();
        // 409 on the first attempt means that there is a stream already, of another client.
        if is_transient(status) && (has_worked || status.is_server_error()) {
            return Failed(why);
        }
        // An upstream may answer 404 simply because it has no such stream.
        if has_worked {
            let mut body = answer.into_body();
            let reading = endpoint::read_whole(&mut body, None, 0);
            let body = time::timeout(defaults::SESSION_END_TIMEOUT, reading).await;
            let body = body.ok().and_then(Result::ok).unwrap_or_default();
            if self.has_session() && endpoint::is_session_lost(status, &body) {
                connection.retire_established(RequestFailure::SessionLost(status));
            }
        }
        NotOffered(why)
    }
}

impl Connection {
    /// Makes readers read again every list with announced changes: some may have been missed.
    pub(in super::super) fn reread_lists(self: &Arc<Self>) {
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            let is_announced = |profile: &ServerProfile| {
                let capabilities = profile.result.get("capabilities");
                capabilities.is_some_and(|all| all[list.capability()]["listChanged"] == true)
            };
            if self.profile().is_some_and(is_announced) {
                self.receive(Message::notification(list.notice(), None), None);
            }
        }
    }
}
