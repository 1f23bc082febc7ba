//! The requests and batches of a client, with their ids and whether they may be repeated.
//!
//! Pure.

use bytes::Bytes;

use crate::{
    config::defaults,
    protocol::{
        Batch, ByteChunks, Era, Message, MessageKind, RpcError, batch, client_meta::version_of,
        jsonrpc::MessagePart, payloads::method,
    },
};

/// A request or batch without an answer.
#[derive(Debug)]
pub(super) struct BridgedRequest {
    /// The ids, JSON text; one for each request of a batch.
    ids: Vec<Box<str>>,
    pub(super) is_batch: bool,
    era: Era,
    pub(super) kind: BridgedMethod,
    /// The client's message; `None` if there was no room to keep it.
    pub(super) line: Option<Bytes>,
}

/// The kind of a request, by its method.
#[derive(Debug)]
pub(super) enum BridgedMethod {
    Initialize,
    /// A request that sets the log level.
    SetLevel,
    Subscribe(String),
    Unsubscribe(String),
    /// A request whose answer is a stream that ends with the service.
    Listen {
        /// `true` once the client has received the acknowledgement.
        is_acknowledged: bool,
    },
    /// A request that can be repeated without harm.
    ReadOnly,
    /// Any other request.
    Other,
}

impl BridgedRequest {
    /// Returns the entry for a request.
    pub(super) fn of(request: &Message) -> Self {
        let id = request.part(MessagePart::Id).unwrap_or("null");
        let uri = || request.string(MessagePart::Uri).unwrap_or_default();
        let kind = match request.method().unwrap_or_default() {
            method::INITIALIZE => BridgedMethod::Initialize,
            method::LOGGING_SET_LEVEL => BridgedMethod::SetLevel,
            method::RESOURCES_SUBSCRIBE => BridgedMethod::Subscribe(uri()),
            method::RESOURCES_UNSUBSCRIBE => BridgedMethod::Unsubscribe(uri()),
            method::SUBSCRIPTIONS_LISTEN => BridgedMethod::Listen { is_acknowledged: false },
            method::DISCOVER => BridgedMethod::ReadOnly,
            // A retry with answers belongs to a call that is held for them.
            _ if request.part(MessagePart::RequestState).is_some() => BridgedMethod::Other,
            name if method::READ_ONLY.contains(&name) => BridgedMethod::ReadOnly,
            _ => BridgedMethod::Other,
        };
        let era = if version_of(request).is_some() { Era::Modern } else { Era::Legacy };
        let line = Some(request.bytes().clone());
        Self { ids: vec![id.into()], is_batch: false, era, kind, line }
    }

    /// Returns the entry for a batch, if it contains requests.
    pub(super) fn of_batch(line: &Bytes) -> Option<Self> {
        let batch = Batch::parse(line, defaults::BATCH_MESSAGES_MAX).ok()?;
        let requests =
            batch.into_members().flatten().filter(|one| one.kind() == MessageKind::Request);
        let (mut ids, mut reads) = (Vec::new(), true);
        for request in requests {
            let request = Self::of(&request);
            reads &= matches!(request.kind, BridgedMethod::ReadOnly);
            ids.extend(request.ids);
        }
        let kind = if reads { BridgedMethod::ReadOnly } else { BridgedMethod::Other };
        let (is_batch, era, line) = (true, Era::Legacy, Some(line.clone()));
        (!ids.is_empty()).then_some(Self { ids, is_batch, era, kind, line })
    }

    /// Returns whether `id`, JSON text, is one of the ids.
    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.iter().any(|own| **own == *id)
    }

    /// Returns whether it may be executed twice.
    pub(super) fn is_repeatable(&self) -> bool {
        !matches!(self.kind, BridgedMethod::Other)
    }

    /// Returns the size of the stored message, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        self.line.as_ref().map_or(0, Bytes::len)
    }

    /// Returns the answer to a failed request or batch.
    pub(super) fn failure_answer(&self, error: &RpcError) -> ByteChunks {
        let error = error.clone().for_era(self.era);
        let mut answers = self.ids.iter().map(|id| ByteChunks::from(error.render(Some(id))));
        match self.is_batch {
            true => batch::merge(answers),
            false => answers.next().unwrap_or_else(|| ByteChunks::from(error.render(None))),
        }
    }
}
