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
    is_batch: bool,
    era: Era,
    pub(super) kind: BridgedMethod,
    /// The client's message; `None` if there was no room to keep it.
    pub(super) line: Option<Bytes>,
}

/// The kind of a request, by its method.
#[derive(Debug)]
pub(super) enum BridgedMethod {
    Handshake,
    /// A request that sets the log level.
    Level,
    Watching(String),
    Unwatching(String),
    /// A request whose answer is a stream that ends with the service.
    Listening {
        /// `true` once the client has received the acknowledgement.
        is_told: bool,
    },
    /// A request that can be repeated without harm.
    Reading,
    /// Any other request.
    Acting,
}

impl BridgedRequest {
    /// Returns the entry for a request.
    pub(super) fn of(request: &Message) -> Self {
        let id = request.part(MessagePart::Id).unwrap_or("null");
        let uri = || request.string(MessagePart::Uri).unwrap_or_default();
        let kind = match request.method().unwrap_or_default() {
            method::INITIALIZE => BridgedMethod::Handshake,
            method::LOGGING_SET_LEVEL => BridgedMethod::Level,
            method::RESOURCES_SUBSCRIBE => BridgedMethod::Watching(uri()),
            method::RESOURCES_UNSUBSCRIBE => BridgedMethod::Unwatching(uri()),
            method::SUBSCRIPTIONS_LISTEN => BridgedMethod::Listening { is_told: false },
            method::DISCOVER => BridgedMethod::Reading,
            // A retry with answers belongs to a call that is held for them.
            _ if request.part(MessagePart::RequestState).is_some() => BridgedMethod::Acting,
            asked if method::READING.contains(&asked) => BridgedMethod::Reading,
            _ => BridgedMethod::Acting,
        };
        let era = if version_of(request).is_some() { Era::Modern } else { Era::Legacy };
        let line = Some(request.bytes().clone());
        Self { ids: vec![id.into()], is_batch: false, era, kind, line }
    }

    /// Returns the entry for a batch, if it contains requests.
    pub(super) fn of_batch(line: &Bytes) -> Option<Self> {
        let batch = Batch::parse(line, defaults::BATCH_MESSAGES_MAX).ok()?;
        let asked =
            batch.into_members().flatten().filter(|one| one.shape() == MessageKind::Request);
        let (mut ids, mut reads) = (Vec::new(), true);
        for request in asked {
            let request = Self::of(&request);
            reads &= matches!(request.kind, BridgedMethod::Reading);
            ids.extend(request.ids);
        }
        let kind = if reads { BridgedMethod::Reading } else { BridgedMethod::Acting };
        let (is_batch, era, line) = (true, Era::Legacy, Some(line.clone()));
        (!ids.is_empty()).then_some(Self { ids, is_batch, era, kind, line })
    }

    pub(super) fn is_batch(&self) -> bool {
        self.is_batch
    }

    /// Returns whether `id`, JSON text, is one of the ids.
    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.iter().any(|own| **own == *id)
    }

    /// Returns whether it may be executed twice.
    pub(super) fn is_harmless(&self) -> bool {
        match self.kind {
            BridgedMethod::Handshake
            | BridgedMethod::Level
            | BridgedMethod::Watching(_)
            | BridgedMethod::Unwatching(_)
            | BridgedMethod::Listening { .. }
            | BridgedMethod::Reading => true,
            BridgedMethod::Acting => false,
        }
    }

    /// Returns the size of the stored message, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        self.line.as_ref().map_or(0, Bytes::len)
    }

    /// Returns the answer to a failed request or batch.
    pub(super) fn failed(&self, error: &RpcError) -> ByteChunks {
        let error = error.clone().for_era(self.era);
        let mut answers = self.ids.iter().map(|id| ByteChunks::from(error.render(Some(id))));
        match self.is_batch {
            true => batch::merge(answers),
            false => answers.next().unwrap_or_else(|| ByteChunks::from(error.render(None))),
        }
    }
}
