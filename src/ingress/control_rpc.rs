//! The operator's interface over HTTP: one request in a body, its answer in another.
//!
//! Off unless the operator wants it: every client that reaches the port may use it, as it may call
//! every tool. A server that this service has started is refused what belongs to the operator.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::{Method, Request, StatusCode, body::Incoming};

use super::{
    IngressContext, Response, legacy,
    respond::{self, IngressError},
};
use crate::peer::ConnectedClient;

/// The path.
pub(super) const PATH: &str = "/rpc";

/// Who answers operators.
pub trait ControlDispatch: fmt::Debug + Send + Sync {
    /// Answers the message in `body`, which `caller` has sent.
    fn answer(
        self: Arc<Self>,
        body: Bytes,
        caller: ConnectedClient,
    ) -> BoxFuture<'static, RpcReply>;
}

/// What becomes of a message of an operator.
#[derive(Debug)]
pub enum RpcReply {
    /// It has this answer.
    Answer(Bytes),
    /// It wants none.
    Nothing,
    /// It is none, as this answer says.
    Unreadable(Bytes),
}

/// Answers a request at the path.
pub(super) async fn respond(
    edge: &IngressContext,
    caller: ConnectedClient,
    request: Request<Incoming>,
) -> Result<Response, IngressError> {
    let operators = edge.operators().filter(|_| edge.views.config().listen.rpc);
    let Some(operators) = operators else { return Err(IngressError::RpcOff) };
    if request.method() != Method::POST {
        return Err(IngressError::Method("POST"));
    }
    legacy::check_content_type(request.headers())?;
    let body = legacy::read(caller.holder.account, request.into_body()).await?;
    Ok(match operators.answer(body, caller).await {
        RpcReply::Answer(answer) => respond::json_bytes(StatusCode::OK, answer),
        RpcReply::Nothing => respond::empty(StatusCode::ACCEPTED),
        RpcReply::Unreadable(answer) => respond::json_bytes(StatusCode::BAD_REQUEST, answer),
    })
}
