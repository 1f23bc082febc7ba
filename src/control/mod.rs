//! The control socket: JSON-RPC 2.0, one message per line, for operators on this host.
//!
//! Who may open the socket's file may ask; its mode decides that.

use serde_json::Value;

use crate::{
    protocol::{
        Message, RpcError, Shape,
        error::{INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR},
        jsonrpc::Part,
    },
    status::Board,
};

pub mod client;
mod server;

pub use server::serve;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Everything: the service and its servers.
    DaemonStatus,
    /// The servers alone.
    ServersList,
}

impl Method {
    const ALL: [Self; 2] = [Self::DaemonStatus, Self::ServersList];

    fn name(self) -> &'static str {
        match self {
            Self::DaemonStatus => "daemon/status",
            Self::ServersList => "servers/list",
        }
    }

    fn run(self, board: &Board) -> Value {
        let status = board.status();
        let rendered = match self {
            Self::DaemonStatus => serde_json::to_value(status),
            Self::ServersList => serde_json::to_value(status.servers),
        };
        rendered.expect("our own values have string keys")
    }
}

/// Answers one line; `None` when it wants no answer.
fn answer(board: &Board, line: bytes::Bytes) -> Option<bytes::Bytes> {
    let message = match Message::parse(line) {
        Ok(message) => message,
        Err(error) => {
            let error = RpcError::new(PARSE_ERROR, "PARSE_ERROR", error.to_string())
                .suggest("Send one JSON-RPC 2.0 request per line.");
            return Some(error.render(None));
        }
    };
    let id = message.part(Part::Id);
    match (message.shape(), message.method().unwrap_or_default()) {
        (Shape::Notification, _) => None,
        (Shape::Response, _) => {
            let error =
                RpcError::new(INVALID_REQUEST, "INVALID_REQUEST", "a response answers nothing")
                    .suggest("Send requests.");
            Some(error.render(id))
        }
        (Shape::Request, asked) => {
            Some(match Method::ALL.into_iter().find(|method| method.name() == asked) {
                Some(method) => {
                    Message::response(id.unwrap_or("null"), &method.run(board).to_string())
                }
                None => RpcError::new(
                    METHOD_NOT_FOUND,
                    "METHOD_NOT_FOUND",
                    format!("no method `{asked}`"),
                )
                .suggest(format!("Known methods: {}.", Method::ALL.map(Method::name).join(", ")))
                .render(id),
            })
        }
    }
}
