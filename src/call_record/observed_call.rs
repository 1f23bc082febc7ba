//! A call under way, from its request to its record.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    CallOutcome, CallRecord, CallRecorder, CallTexts, ParentCall, PeerProtocol, RecordedFailure,
};
use crate::{
    config::{RecordedText, defaults},
    protocol::Message,
    redact::{self, Redactor},
    server_name::ServerName,
    telemetry::trace_context::TraceParent,
};

/// A call under way. Its end makes the record; a call that is dropped was cancelled.
#[derive(Debug)]
pub struct ObservedCall {
    recorder: Arc<CallRecorder>,
    started: Instant,
    /// The time of the last request to the server.
    sent: Option<Instant>,
    /// The failure of the request, while metamcp makes the answer of it.
    failure: Option<RecordedFailure>,
    /// The redactors of the secrets that the server was given, if the record has texts.
    secrets: Vec<Redactor>,
    /// The record, until the call has ended.
    record: Option<Arc<CallRecord>>,
}

impl ObservedCall {
    pub(super) fn new(recorder: Arc<CallRecorder>, record: CallRecord) -> Self {
        let started = Instant::now();
        recorder.running().begin(&record, started);
        let (sent, failure, secrets) = (None, None, Vec::new());
        Self { recorder, started, sent, failure, secrets, record: Some(Arc::new(record)) }
    }

    /// Returns the call as the cause of others, before its end.
    pub fn as_parent(&self) -> Option<ParentCall> {
        let record = self.record.as_ref()?;
        Some(ParentCall { number: record.number, trace: record.trace, spans: record.spans })
    }

    /// Returns the observation of a call that this one causes, before its end.
    pub fn child(&self, request: &Message) -> Option<Self> {
        let record = self.record.as_ref()?;
        let caller = || record.caller.clone();
        self.recorder.observe(caller, request, self.as_parent())
    }

    /// Returns the record, which the ring does not share before the end.
    fn record_mut(&mut self) -> Option<&mut CallRecord> {
        Arc::get_mut(self.record.as_mut()?)
    }

    /// Records the name of the tool, in place of the one in the request, and its server.
    pub fn names(&mut self, server: Option<&ServerName>, tool: &str) {
        if let Some(record) = self.record_mut() {
            record.server = server.cloned();
            record.item = Some(redact::cut(tool, defaults::CALL_RECORD_ITEM_BYTES_MAX).into());
        }
    }

    /// Records that the call goes to `server`, which knows the tool or the prompt by the name in
    /// `request`.
    pub fn routed(&mut self, server: &ServerName, request: &Message) {
        if let Some(record) = self.record.as_mut().and_then(Arc::get_mut) {
            record.server = Some(server.clone());
            record.name_item(request);
            self.recorder.running().routed(record.number, server, record.item.as_ref());
        }
    }

    /// Records that the call was sent on the connection of this generation, whose server speaks
    /// `protocol`. The second time, it was sent again.
    pub fn sent(&mut self, generation: u64, protocol: PeerProtocol) {
        self.sent = Some(Instant::now());
        if let Some(record) = self.record_mut() {
            record.n_retries += u32::from(record.generation.is_some());
            record.generation = Some(generation);
            record.server_protocol = protocol;
        }
    }

    /// Records the arguments in `request`, and later the result, in this form and without `secrets`.
    pub fn records_texts(&mut self, form: RecordedText, request: &Message, secrets: Vec<Redactor>) {
        if let Some(record) = self.record_mut() {
            record.texts = CallTexts::of_request(form, request, &secrets);
            self.secrets = secrets;
        }
    }

    /// Returns what the server learns about the trace, if spans are exported.
    pub fn traceparent(&self) -> Option<TraceParent> {
        Some(self.record.as_ref()?.spans?.to_server())
    }

    /// Ends the call with an answer of the server, or of metamcp in its place. If the request has
    /// failed, the answer tells that.
    pub fn answered(&mut self, answer: &Message) {
        if let Some(failure) = self.failure.take() {
            return self.end(failure.into(), answer.bytes().len());
        }
        let record = self.record.as_mut().and_then(Arc::get_mut);
        if let Some(texts) = record.and_then(|record| record.texts.as_mut()) {
            texts.add_answer(answer, &self.secrets);
        }
        self.end(CallOutcome::of_answer(answer), answer.bytes().len());
    }

    /// Ends the call with an answer that metamcp made itself.
    pub fn answered_by_metamcp(mut self, answer: &Bytes) {
        match Message::parse_own(answer.clone()) {
            Ok(answer) => self.answered(&answer),
            Err(_) => self.end(CallOutcome::Ok, answer.len()),
        }
    }

    /// Records that the request has failed. The call ends with its answer.
    pub fn fails(&mut self, failure: RecordedFailure) {
        self.failure = Some(failure);
    }

    /// Ends the call with an error of metamcp, in an answer of `answer_bytes`.
    pub fn failed(&mut self, failure: RecordedFailure, answer_bytes: usize) {
        self.end(failure.into(), answer_bytes);
    }

    /// Ends the observation without a record.
    pub fn discard(mut self) {
        if let Some(record) = self.record.take() {
            self.recorder.running().end(record.number);
        }
    }

    fn end(&mut self, outcome: CallOutcome, answer_bytes: usize) {
        let now = Instant::now();
        let (started, sent) = (self.started, self.sent);
        let Some(record) = self.record_mut() else { return };
        record.outcome = outcome;
        record.answer_bytes = answer_bytes as u64;
        record.duration = now - started;
        record.at_server = sent.map(|sent| now - sent);
        if let Some(record) = self.record.take() {
            self.recorder.record(record, now);
        }
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        let outcome = self.failure.take().map_or(CallOutcome::Cancelled, Into::into);
        self.end(outcome, 0);
    }
}
