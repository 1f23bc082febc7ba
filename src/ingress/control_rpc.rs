//! The control interface over HTTP: one request per body, answered by one body.
//!
//! It is off by default: every client that reaches the port may use it, just as it may call every
//! tool. Servers that this service started cannot use the operator's methods.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::{Method, Request, StatusCode, body::Incoming};

use super::{IngressContext, Response, error::IngressError, http_response, request_parts};
use crate::peer_process::ConnectedClient;

/// The path of the control interface.
pub(super) const PATH: &str = "/rpc";

/// The handler of operators' requests.
pub trait ControlDispatch: fmt::Debug + Send + Sync {
    /// Answers the message in `body` from `caller`.
    fn answer(
        self: Arc<Self>,
        body: Bytes,
        caller: ConnectedClient,
    ) -> BoxFuture<'static, RpcReply>;
}

/// The outcome of an operator's message.
#[derive(Debug)]
pub enum RpcReply {
    /// The answer to a request.
    Answer(Bytes),
    /// No answer, as for a notification.
    Nothing,
    /// The error for an unreadable message.
    Unreadable(Bytes),
}

/// Answers a request at [`PATH`].
pub(super) async fn respond(
    context: &IngressContext,
    caller: ConnectedClient,
    request: Request<Incoming>,
) -> Result<Response, IngressError> {
    let control = context.control().filter(|_| context.views.config().listen.rpc);
    let Some(control) = control else { return Err(IngressError::ControlRpcOff) };
    if request.method() != Method::POST {
        return Err(IngressError::MethodNotAllowed("POST"));
    }
    request_parts::check_content_type(request.headers())?;
    let body = request_parts::read_body(caller.holder.account, request.into_body()).await?;
    Ok(match control.answer(body, caller).await {
        RpcReply::Answer(answer) => http_response::json_bytes(StatusCode::OK, answer),
        RpcReply::Nothing => http_response::empty(StatusCode::ACCEPTED),
        RpcReply::Unreadable(answer) => http_response::json_bytes(StatusCode::BAD_REQUEST, answer),
    })
}
