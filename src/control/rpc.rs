//! The operator's interface, as the HTTP edge asks it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{Asker, Desk, read};
use crate::{
    ingress::{Answered, Operators},
    peer::Caller,
    protocol::Shape,
};

impl Operators for Desk {
    fn answer(self: Arc<Self>, body: Bytes, caller: Caller) -> BoxFuture<'static, Answered> {
        Box::pin(async move {
            // Nothing is told before the answer.
            let asker = Asker { peer: None, caller, lines: None };
            match read(body) {
                Err(error) => Answered::Unreadable(error.complete().render(None)),
                Ok(message) if message.shape() == Shape::Request => {
                    Answered::Answer(Self::answer(&self, &message, &asker).await)
                }
                Ok(_) => Answered::Nothing,
            }
        })
    }
}
