//! The method `mcp/attach`: it turns a connection of the control socket into an MCP pipe at a view.
//!
//! For clients that speak MCP only over standard input and output, through `metamcp stdio`.

use std::sync::Arc;

use serde_json::json;
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    sync::OwnedSemaphorePermit,
};

use super::{ControlMethod, ControlParams, ControlService};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    ingress::stdio_pipe::{self, ClientPipe},
    memory_budget::MeteredLines,
    protocol::{
        Message, MessageKind, RpcError,
        jsonrpc::MessagePart,
        rpc_error::{INVALID_REQUEST, NO_ROOM},
    },
    view::{View, ViewChoice},
};

/// The parameters of a connection to attach.
#[derive(Debug)]
pub(super) struct AttachParams {
    view: View,
    /// The permit for one attached client.
    permit: OwnedSemaphorePermit,
    /// The answer to the request.
    answer: bytes::Bytes,
}

/// A connection that an MCP client takes over from an operator.
pub(super) struct AttachedConnection {
    pub(super) params: AttachParams,
    pub(super) reader: OwnedReadHalf,
    pub(super) writer: OwnedWriteHalf,
    /// The data that was already read.
    pub(super) lines: MeteredLines,
}

/// Returns whether a message is an `mcp/attach` request.
pub(super) fn is_attach(message: &Message) -> bool {
    message.kind() == MessageKind::Request
        && message.method() == Some(ControlMethod::McpAttach.name())
}

/// Returns the error for a connection that cannot be attached.
pub(super) fn refusal() -> RpcError {
    let text = "only an idle connection of the control socket can be attached";
    RpcError::new(INVALID_REQUEST, "ATTACH_REFUSED", text)
        .suggest("Open a new connection to the control socket, and send `mcp/attach` first.")
}

/// Returns the error for a request beyond the limit of attached clients.
fn too_many() -> RpcError {
    let max = defaults::CONTROL_ATTACHED_MAX;
    let text = format!("{max} clients are attached to the control socket, the maximum");
    RpcError::new(NO_ROOM, "TOO_MANY_CLIENTS", text)
        .suggest("Disconnect one of them, or connect over HTTP.")
        .context(json!({ "max": max }))
}

impl AttachParams {
    /// Reads the request. It fails unless `is_idle`: no other request may run on the connection.
    pub(super) fn read(
        request: &Message,
        service: &ControlService,
        is_idle: bool,
    ) -> Result<Self, Box<RpcError>> {
        if !is_idle {
            return Err(refusal().into());
        }
        let permits = Arc::clone(&service.attach_permits);
        let permit = permits.try_acquire_owned().map_err(|_| too_many())?;
        let params = ControlParams::read(ControlMethod::McpAttach, request.params())?;
        let view: Option<String> = params.optional("view")?;
        let server: Option<String> = params.optional("server")?;
        let choice = match (view.as_deref(), server.as_deref()) {
            (None, Some(server)) => ViewChoice::Server(server),
            (None, None) => ViewChoice::Root,
            (Some(view), None) => ViewChoice::named(view)
                .ok_or_else(|| params.invalid("view", "`direct`, `meta` or `root`"))?,
            (Some(_), Some(_)) => return Err(params.invalid("view", "absent if `server` is given")),
        };
        let view = service.parts.views.choose(choice).map_err(|error| error.to_rpc())?;
        let result = json!({ "version": env!("CARGO_PKG_VERSION"), "path": choice.path() });
        let id = request.part(MessagePart::Id).unwrap_or("null");
        Ok(Self { view, permit, answer: Message::response(id, &result.to_string()) })
    }
}

impl AttachedConnection {
    /// Serves the client until it or the service ends. Its requests count for `holder`.
    pub(super) async fn serve(self, service: &ControlService, holder: Holder) {
        let Self { params, reader, mut writer, lines } = self;
        let AttachParams { view, permit, answer } = params;
        // The line fits into the buffer of any socket.
        let line = [&answer[..], b"\n"].concat();
        if writer.write_all(&line).await.is_err() {
            return;
        }
        let pipe = ClientPipe { reader, lines, writer, holder, reports_end: true };
        let end = stdio_pipe::serve(Arc::clone(&service.parts.ingress), view, pipe).await;
        drop(permit);
        tracing::debug!(?end, "client detached");
    }
}
