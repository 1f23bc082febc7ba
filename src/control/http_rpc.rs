//! The control interface over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{ControlService, Requester, read};
use crate::{
    ingress::{ControlDispatch, RpcReply},
    peer_process::ConnectedClient,
    protocol::MessageKind,
};

impl ControlDispatch for ControlService {
    fn answer(
        self: Arc<Self>,
        body: Bytes,
        caller: ConnectedClient,
    ) -> BoxFuture<'static, RpcReply> {
        Box::pin(async move {
            // No notification precedes the answer.
            let requester = Requester { peer: None, caller, lines: None };
            match read(body) {
                Err(error) => RpcReply::Unreadable(error.complete().render(None)),
                Ok(message) if message.kind() == MessageKind::Request => {
                    RpcReply::Answer(Self::answer(&self, &message, &requester).await)
                }
                Ok(_) => RpcReply::Nothing,
            }
        })
    }
}
