//! The ids of requests: the client's own, and those that are unique on a connection.

use crate::protocol::{ByteChunks, Message, jsonrpc::MessagePart, payloads::method};

/// Returns `request` with the mux's `id`, which is also its progress token if it has one.
pub(in super::super) fn with_connection_id(request: &Message, id: u64) -> ByteChunks {
    let id = id.to_string();
    request.edit_in_pieces([(MessagePart::Id, &id), (MessagePart::ProgressToken, &id)])
}

/// Returns a message of the server with the client's own `id` and progress `token`, JSON texts.
pub fn with_client_ids(message: &Message, id: &str, token: &str) -> ByteChunks {
    message.edit_in_pieces([(MessagePart::Id, id), (MessagePart::ProgressToken, token)])
}

/// Returns an error that names no request as the answer to request `id`.
pub(in super::super) fn addressed_to(error: &Message, id: u64) -> Message {
    error.with(MessagePart::Id, &id.to_string())
}

/// Returns the cancellation of request `id` for the server.
pub(in super::super) fn cancellation(id: u64) -> Message {
    let params = format!(r#"{{"requestId":{id}}}"#);
    Message::notification(method::CANCELLED, Some(&params))
}
