//! The stream for messages that belong to no request: list notices, log messages, pings.

use std::{convert::Infallible, future::pending, sync::Arc};

use tokio::time::{self, Instant};

use super::{
    Connection, HttpLink, RequestFailure, endpoint,
    stream::{MeteredEvents, ReopenAttempts, is_transient, read_shared},
};
use crate::{
    config::defaults,
    protocol::{
        Message,
        list_page::ListKind,
        payloads::{ServerProfile, method},
    },
};

/// The outcome of an attempt to listen.
enum Heard {
    /// A stream that has ended, with the reason.
    Stream(Arc<str>),
    /// A failure that may pass.
    Trouble(Arc<str>),
    /// The upstream offers no stream.
    Nothing(Arc<str>),
}

impl HttpLink {
    /// Holds the stream for as long as the future is polled, once the handshake is done. An
    /// upstream need not have one.
    pub(super) async fn listen(&self, connection: &Arc<Connection>) -> Infallible {
        connection.warm_up.initialized().await;
        let mut events = MeteredEvents::new(None, 0);
        let mut attempts = ReopenAttempts::new();
        let mut has_worked = false;
        loop {
            let since = Instant::now();
            let heard = self.listen_once(connection, &mut events, has_worked).await;
            let (Heard::Stream(why) | Heard::Trouble(why) | Heard::Nothing(why)) = &heard;
            tracing::debug!(mcp_server = %connection.server, reason = %why, "no stream of notices");
            let pause = match heard {
                Heard::Stream(_) => {
                    has_worked = true;
                    if since.elapsed() >= defaults::STREAM_STABLE_AFTER {
                        attempts = ReopenAttempts::new();
                    }
                    Some(attempts.pause(events.parser.retry()))
                }
                Heard::Trouble(_) if has_worked => Some(attempts.pause(events.parser.retry())),
                Heard::Trouble(_) => attempts.next(None),
                Heard::Nothing(_) => None,
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
    ) -> Heard {
        let answer = match self.upstream.listen(events.parser.last_id()).await {
            Ok(answer) => answer,
            Err(failure) => return Heard::Trouble(failure.to_string().into()),
        };
        let status = answer.status();
        if endpoint::is_event_stream(&answer) {
            tracing::debug!(mcp_server = %connection.server, "listening");
            if has_worked && events.parser.last_id().is_empty() {
                // The notices in between are lost.
                connection.reread_lists();
            }
            events.parser.restart();
            return Heard::Stream(read_shared(connection, &mut answer.into_body(), events).await);
        }
        let why = format!("HTTP {status}").into();
        // 409 on the first attempt means that there is a stream already, of another client.
        if is_transient(status) && (has_worked || status.is_server_error()) {
            return Heard::Trouble(why);
        }
        // An upstream may answer 404 simply because it has no such stream.
        if has_worked {
            let mut body = answer.into_body();
            let reading = endpoint::read_whole(&mut body, None, 0);
            let body = time::timeout(defaults::GOODBYE_TIMEOUT, reading).await;
            let body = body.ok().and_then(Result::ok).unwrap_or_default();
            if self.has_session() && endpoint::is_session_lost(status, &body) {
                connection.abandon(RequestFailure::SessionLost(status));
            }
        }
        Heard::Nothing(why)
    }
}

impl Connection {
    /// Makes readers read again every list with announced changes: some may have been missed.
    pub(in super::super) fn reread_lists(self: &Arc<Self>) {
        for (list, notice) in [
            (ListKind::Tools, method::TOOLS_CHANGED),
            (ListKind::Prompts, method::PROMPTS_CHANGED),
            (ListKind::Resources, method::RESOURCES_CHANGED),
        ] {
            let is_announced = |profile: &ServerProfile| {
                let capabilities = profile.result.get("capabilities");
                capabilities.is_some_and(|all| all[list.capability()]["listChanged"] == true)
            };
            if self.profile().is_some_and(is_announced) {
                self.receive(Message::notification(notice, None), None);
            }
        }
    }
}
