//! The records of one exchange: of its request to a server, and of the client's call around it.
//!
//! Most calls of clients are one request to one server, and have one record. A chain of calls has a
//! record, and each of its requests has one, too.

use super::CallError;
use crate::{
    call_record::{ObservedCall, PeerProtocol, RecordedFailure},
    config::RecordedText,
    connection::Connection,
    pool::ServerSlot,
    protocol::{Message, RpcError},
    telemetry::trace_context::TRACEPARENT,
};

/// The records of one exchange, as far as it is observed.
#[derive(Debug, Default)]
pub(super) struct ObservedAttempts {
    /// The request to a server.
    request: Option<ObservedCall>,
    /// The client's call, if it may lead to several requests.
    chain: Option<ObservedCall>,
}

impl ObservedAttempts {
    /// Observes `call` of a client, whose first or only request goes to the server of `slot`.
    pub(super) fn of(
        call: ObservedCall,
        is_chain: bool,
        slot: &ServerSlot,
        request: &Message,
    ) -> Self {
        let mut observed = match is_chain {
            true => Self { request: None, chain: Some(call) },
            false => Self { request: Some(call), chain: None },
        };
        match &mut observed.request {
            Some(call) => call.routed(slot.name(), request),
            None => observed.begin(slot, request),
        }
        observed
    }

    /// Returns whether a call is observed.
    pub(super) fn is_begun(&self) -> bool {
        self.request.is_some() || self.chain.is_some()
    }

    /// Begins the next request of a chain.
    pub(super) fn begin(&mut self, slot: &ServerSlot, request: &Message) {
        self.request = self.chain.as_ref().and_then(|chain| chain.child(request));
        if let Some(call) = &mut self.request {
            call.routed(slot.name(), request);
        }
    }

    /// Records that `request` was sent on `connection` to the server of `slot`. Its texts are known
    /// only now: the connection knows which secrets they must not have.
    pub(super) fn sent(&mut self, slot: &ServerSlot, connection: &Connection, request: &Message) {
        if let Some(call) = &mut self.request {
            call.sent(connection.generation(), || {
                let version = connection.profile().map(|profile| profile.protocol_version.as_str());
                PeerProtocol::of_server(&slot.declared().transport, version)
            });
            let form = slot.declared().record_texts;
            if form != RecordedText::None {
                call.records_texts(form, request, connection.redactors());
            }
        }
    }

    /// Returns `request` with what the server learns about the trace, if spans are exported.
    pub(super) fn traced(&self, request: &Message) -> Option<Message> {
        let trace = self.request.as_ref()?.traceparent()?;
        Some(request.with_params(|params| {
            let value = format!("\"{trace}\"");
            params.set_in_object("_meta", TRACEPARENT, &value);
        }))
    }

    /// Records the outcome of the request. A client's own call ends with the answer of its failure.
    pub(super) fn request_ended(&mut self, outcome: Result<&Message, &CallError>) {
        let Some(call) = &mut self.request else { return };
        match (outcome, &self.chain) {
            (Ok(answer), _) => call.answered(answer),
            (Err(error), Some(_)) => call.failed(error.to_record(), 0),
            (Err(error), None) => return call.fails(error.to_record()),
        }
        self.request = None;
    }

    /// Records that metamcp gives up and answers with this error of its own.
    pub(super) fn ended_by(&mut self, error: &RpcError, answer_bytes: usize) {
        let failure = RecordedFailure::own(error.name, &*error.message);
        for mut call in [self.chain.take(), self.request.take()].into_iter().flatten() {
            call.failed(failure.clone(), answer_bytes);
        }
    }

    /// Records the outcome for the client, which gets an error in `error_bytes`.
    pub(super) fn ended(
        &mut self,
        outcome: Result<&Message, &CallError>,
        error_bytes: impl FnOnce(&CallError) -> usize,
    ) {
        let request = self.request.take();
        let Some(mut call) = self.chain.take().or(request) else { return };
        match outcome {
            Ok(answer) => call.answered(answer),
            Err(error) => call.failed(error.to_record(), error_bytes(error)),
        }
    }
}
