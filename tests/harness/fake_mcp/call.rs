//! A request of the client until its answer.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{
    era,
    fake::Fake,
    message::{Members, RpcError},
    modern_client::ModernClient,
    output::{Output, OutputSender},
};

/// A request without an answer so far. Dropping it leaves it unanswered.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) fake: Arc<Fake>,
    pub(crate) session: Option<String>,
    /// The client, known only for modern requests.
    pub(crate) client: Option<Arc<ModernClient>>,
    pub(crate) id: String,
    pub(crate) progress_token: Option<String>,
    pub(crate) cancelled: CancellationToken,
    pub(crate) output: OutputSender,
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
    pub(crate) async fn error(self, error: &RpcError) {
        if !self.cancelled.is_cancelled() {
            self.output.send(Output::Response(error.answer(&self.id))).await;
        }
    }

    /// Writes an answer, even if the request was cancelled.
    pub(crate) async fn send(&self, result: &str) {
        self.output.send(Output::Response(self.message(result))).await;
    }

    /// Answers with an unchanged result, unless the request was cancelled.
    pub(crate) async fn verbatim(self, result: &str) {
        if !self.cancelled.is_cancelled() {
            let message = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id);
            self.output.send(Output::Response(message)).await;
        }
    }

    /// Returns the whole answer.
    pub(crate) fn message(&self, result: &str) -> String {
        let result = self.completed(result);
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id)
    }

    /// Adds kind and server to a modern result, unless it has them.
    fn completed(&self, result: &str) -> String {
        let members = Members::read(Some(result));
        let mut more = Vec::new();
        if members.raw("resultType").is_none() {
            more.push(r#""resultType":"complete""#.to_owned());
        }
        if members.raw("_meta").is_none() {
            more.push(format!(r#""_meta":{}"#, era::server_info()));
        }
        match result.strip_prefix('{') {
            Some(rest) if self.client.is_some() && !more.is_empty() => {
                let comma = if members.names().is_empty() { "" } else { "," };
                format!("{{{}{comma}{rest}", more.join(","))
            }
            _ => result.to_owned(),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let finished = self.fake.state().in_flight.remove(&self.number);
        // Dropped after the lock is released, as everything that holds an output.
        drop(finished);
        self.fake.changed();
    }
}
