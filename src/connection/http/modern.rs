//! The requests of the modern era: each is an HTTP exchange of its own, without a session, and
//! closing its stream cancels it.

use std::sync::Arc;

use hyper::StatusCode;
use tokio::time;

use super::{
    Connection, HttpLink, Inbox, OutgoingPost, RequestFailure, endpoint,
    stream::{self, MeteredEvents},
    wait_as_asked::RequestWaits,
};
use crate::{
    compute_pool::read_in_place,
    config::defaults,
    connection::mux,
    http_client::ResponseBody,
    protocol::{
        Era, Message, MessageKind, ParseError, RpcError,
        jsonrpc::MessagePart,
        payloads::method,
        rpc_error::{
            CAPABILITY_REQUIRED, HEADER_MISMATCH, SESSION_NOT_FOUND, SESSION_REQUIRED,
            UNSUPPORTED_VERSION,
        },
    },
};

impl HttpLink {
    /// Posts a request and passes everything that comes back to the connection.
    pub(super) async fn exchange_modern(
        &self,
        connection: &Arc<Connection>,
        post: &OutgoingPost,
        inbox: &Inbox,
    ) -> Result<(), RequestFailure> {
        let OutgoingPost { id, request, frame, forwarded, .. } = post;
        let (forwarded, mut waits) = (forwarded.as_deref(), RequestWaits::default());
        let account = connection.account_of(*id);
        let mut may_learn = request.method() == Some(method::TOOLS_CALL);
        loop {
            let repeated = connection.parameter_headers.headers(request);
            let answer = self.upstream.post_modern(frame, &repeated, forwarded).await?;
            let answer = match endpoint::unless_wait(answer) {
                Ok(answer) => answer,
                Err(asked) => {
                    if self.wait_as_asked(connection, post, inbox, &mut waits, asked).await? {
                        continue;
                    }
                    return Ok(());
                }
            };
            if connection.profile().is_none() {
                self.upstream.note_abandoned_session(&answer);
            }
            let status = answer.status();
            if endpoint::is_event_stream(&answer) {
                let mut events = MeteredEvents::new(account, frame.len());
                return read(connection, *id, answer.into_body(), inbox, &mut events).await;
            }
            let body = endpoint::read_whole(&mut answer.into_body(), account, frame.len()).await?;
            let Some(message) = answer_to(*id, status, &body)? else {
                let is_modern = connection.era() == Era::Modern;
                return Err(if is_modern && may_be_legacy(status) {
                    RequestFailure::EraLost(status)
                } else {
                    endpoint::no_message(connection, status, &body)
                });
            };
            let error = message.part(MessagePart::Error).unwrap_or_default();
            if connection.era() == Era::Modern && is_era_lost(status, error) {
                return Err(RequestFailure::EraLost(status));
            }
            // The marks of the tool differ from the known ones. Source: MCP 2026-07-28, "Client
            // Behavior".
            if may_learn
                && RpcError::code_of(error) == Some(HEADER_MISMATCH)
                && connection.learn_header_marks(&self.tasks, request, &repeated).await
            {
                may_learn = false;
                continue;
            }
            connection.receive(message, Some(*id));
            return Ok(());
        }
    }

    /// Ends a session that the upstream has created for the probe: it is not used, and may keep a
    /// set of processes.
    pub(in super::super) fn end_abandoned_session(&self) {
        if let Some(session) = self.upstream.abandoned_session.get().cloned() {
            let upstream = self.upstream.clone();
            self.tasks.spawn(async move {
                let deleting = upstream.delete_session(session);
                let _not_ended = time::timeout(defaults::SESSION_END_TIMEOUT, deleting).await;
            });
        }
    }
}

/// Reads the stream that answers request `id`. A broken stream cannot be resumed.
async fn read(
    connection: &Arc<Connection>,
    id: u64,
    mut body: ResponseBody,
    inbox: &Inbox,
    events: &mut MeteredEvents,
) -> Result<(), RequestFailure> {
    let why = stream::read_answer(connection, id, &mut body, events, inbox).await?;
    if connection.is_open(id) { Err(RequestFailure::BrokenOff(why)) } else { Ok(()) }
}

/// Returns the answer to request `id` in a body, regardless of its status. An error need not name
/// the request: there is only one.
///
/// # Errors
///
/// [`RequestFailure::AnswerTooDeep`].
fn answer_to(
    id: u64,
    status: StatusCode,
    body: &bytes::Bytes,
) -> Result<Option<Message>, RequestFailure> {
    let message = match read_in_place(body.len(), || Message::parse(body.clone())) {
        Ok(message) if message.kind() == MessageKind::Response => message,
        Err(ParseError::TooDeep { .. }) => return Err(RequestFailure::AnswerTooDeep),
        Ok(_) | Err(_) => return Ok(None),
    };
    let is_about_nothing = status.is_client_error()
        && message.part(MessagePart::Id) == Some("null")
        && message.part(MessagePart::Error).is_some();
    if is_about_nothing {
        return Ok(Some(mux::addressed_to(&message, id)));
    }
    Ok((message.integer(MessagePart::Id) == Some(id)).then_some(message))
}

/// Returns whether an upstream that does not answer with a message may be of the legacy era: it was
/// replaced, and requires a session.
fn may_be_legacy(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
    )
}

/// Returns whether an error comes from an upstream that no longer speaks metamcp's version: it
/// requires a session, or names other versions. Nothing was executed then.
fn is_era_lost(status: StatusCode, error: &str) -> bool {
    match RpcError::code_of(error) {
        Some(SESSION_REQUIRED | SESSION_NOT_FOUND) => may_be_legacy(status),
        Some(UNSUPPORTED_VERSION) => RpcError::serves_modern(error) == Some(false),
        _ => false,
    }
}

/// Returns whether an answer comes from an upstream of the modern era that replaced a legacy one,
/// where no such errors exist. Not for handshakes, which ask for the era.
pub(super) fn is_modern_refusal(status: StatusCode, answer: &Message) -> bool {
    let error = answer.part(MessagePart::Error).unwrap_or_default();
    may_be_legacy(status)
        && matches!(
            RpcError::code_of(error),
            Some(HEADER_MISMATCH | CAPABILITY_REQUIRED | UNSUPPORTED_VERSION)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_an_id_answers_the_request_of_its_exchange() {
        let body = |text: &str| bytes::Bytes::from(text.to_owned());
        let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":""}}"#;
        let read = |id, status, text: &str| answer_to(id, status, &body(text)).expect("not deep");
        let found = read(7, StatusCode::BAD_REQUEST, error).expect("an answer");
        assert_eq!(found.integer(MessagePart::Id), Some(7));
        assert!(read(7, StatusCode::OK, error).is_none());
        let other = r#"{"jsonrpc":"2.0","id":8,"result":{}}"#;
        assert!(read(7, StatusCode::OK, other).is_none());
        assert!(read(8, StatusCode::NOT_FOUND, other).is_some());
        assert!(read(7, StatusCode::OK, "<html>").is_none());
    }

    #[test]
    fn an_upstream_that_requires_a_session_has_left_the_modern_era() {
        let bad = StatusCode::BAD_REQUEST;
        for (status, error, is_lost) in [
            (bad, r#"{"code":-32000,"message":"no session"}"#, true),
            (StatusCode::NOT_FOUND, r#"{"code":-32001,"message":"unknown"}"#, true),
            (StatusCode::OK, r#"{"code":-32000,"message":"the tool's own"}"#, false),
            (bad, r#"{"code":-32022,"message":"","data":{"supported":["2025-11-25"]}}"#, true),
            (bad, r#"{"code":-32022,"message":"","data":{"supported":["2026-07-28"]}}"#, false),
            (bad, r#"{"code":-32022,"message":""}"#, false),
            (bad, r#"{"code":-32602,"message":""}"#, false),
            (bad, "", false),
        ] {
            assert_eq!(is_era_lost(status, error), is_lost, "{error}");
        }
    }
}
