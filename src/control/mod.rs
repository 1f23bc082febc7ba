//! The control socket: JSON-RPC 2.0, one message per line, for operators on this host.
//!
//! Who may open the socket's file may ask; its mode decides that.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    protocol::{
        Message, RpcError, Shape,
        error::{INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR},
        jsonrpc::Part,
    },
    status::Board,
    view::Views,
};

pub mod client;
mod server;
mod tools;

pub use server::serve;

/// Who answers operators.
#[derive(Clone, Debug)]
pub struct Desk {
    /// What the service tells about itself.
    pub board: Arc<Board>,
    /// What the servers offer.
    pub views: Arc<Views>,
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Everything: the service and its servers.
    DaemonStatus,
    /// The servers alone.
    ServersList,
    /// Tools by what they do.
    ToolsSearch,
    /// Tools by a pattern.
    ToolsGrep,
}

impl Method {
    const ALL: [Self; 4] =
        [Self::DaemonStatus, Self::ServersList, Self::ToolsSearch, Self::ToolsGrep];

    fn name(self) -> &'static str {
        match self {
            Self::DaemonStatus => "daemon/status",
            Self::ServersList => "servers/list",
            Self::ToolsSearch => "tools/search",
            Self::ToolsGrep => "tools/grep",
        }
    }

    async fn run(self, desk: &Desk, params: &str) -> Result<Value, RpcError> {
        let rendered = match self {
            Self::DaemonStatus => serde_json::to_value(desk.board.status()),
            Self::ServersList => serde_json::to_value(desk.board.status().servers),
            Self::ToolsSearch => return tools::search(&desk.views, params).await,
            Self::ToolsGrep => return tools::grep(&desk.views, params).await,
        };
        Ok(rendered.expect("our own values have string keys"))
    }
}

/// Answers one line; `None` when it wants no answer.
async fn answer(desk: &Desk, line: bytes::Bytes) -> Option<bytes::Bytes> {
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
                Some(method) => match method.run(desk, message.params().unwrap_or("{}")).await {
                    Ok(result) => Message::response(id.unwrap_or("null"), &result.to_string()),
                    Err(error) => error.render(id),
                },
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
