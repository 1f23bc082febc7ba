//! A request of the client, until it is answered.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    fake::Fake,
    message::Fault,
    wire::{Wire, Write},
};

/// A request that waits for its answer. Dropping it means never to answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) fake: Arc<Fake>,
    pub(crate) session: Option<String>,
    pub(crate) id: String,
    pub(crate) progress_token: Option<String>,
    pub(crate) cancelled: CancellationToken,
    pub(crate) wire: Wire,
    pub(crate) number: u64,
}

impl Call {
    /// Answers with the text of a result, unless the request was cancelled.
    pub(crate) async fn result(self, result: &str) {
        if !self.cancelled.is_cancelled() {
            self.send(result).await;
        }
    }

    /// Answers with an error, unless the request was cancelled.
    pub(crate) async fn error(self, fault: &Fault) {
        if !self.cancelled.is_cancelled() {
            self.wire.send(Write::Answer(fault.answer(&self.id))).await;
        }
    }

    /// Writes an answer, whatever has happened to the request.
    pub(crate) async fn send(&self, result: &str) {
        self.wire.send(Write::Answer(self.message(result))).await;
    }

    /// Returns the whole answer.
    pub(crate) fn message(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let finished = self.fake.state().in_flight.remove(&self.number);
        // Dropped after the lock is released, like every other wire.
        drop(finished);
        self.fake.changed();
    }
}
