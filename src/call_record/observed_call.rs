//! A call under way, from its request to its record.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    CallOutcome, CallRecord, CallRecorder, CallTexts, ParentCall, PeerProtocol, RecordedFailure,
    running_calls::{AskedTool, CallTarget},
};
use crate::{
    config::RecordedText,
    protocol::{Message, jsonrpc::MessagePart},
    redact::Redactor,
    server_name::ServerName,
    telemetry::trace_context::TraceParent,
};

/// A call under way. Its end makes the record; a call that is dropped was cancelled.
///
/// As small as it gets, for the futures that have a place for it: glibc's `malloc` keeps only blocks
/// of at most 1 KiB at hand.
#[derive(Debug)]
pub struct ObservedCall {
    recorder: Arc<CallRecorder>,
    /// `None` once the call has ended.
    observation: Option<Box<Observation>>,
}

/// The record of a call, as far as it is known, and what is needed for the rest.
#[derive(Debug)]
struct Observation {
    record: CallRecord,
    started: Instant,
    /// The time of the last request to the server.
    sent: Option<Instant>,
    /// The failure of the request, while metamcp makes the answer of it.
    failure: Option<RecordedFailure>,
    /// The redactors of the secrets that the server was given, if the record has texts.
    secrets: Vec<Redactor>,
    /// The key among the running calls.
    running: usize,
}

impl ObservedCall {
    // Inlined, because the record is copied otherwise.
    #[inline]
    pub(super) fn new(recorder: Arc<CallRecorder>, record: CallRecord, asked: AskedTool) -> Self {
        let started = Instant::now();
        let running = recorder.running().begin(asked, started);
        let (sent, failure, secrets) = (None, None, Vec::new());
        let observation = Observation { record, started, sent, failure, secrets, running };
        Self { recorder, observation: Some(Box::new(observation)) }
    }

    /// Returns the call as the cause of others, before its end.
    pub fn as_parent(&self) -> Option<ParentCall> {
        let record = self.record()?;
        let spans = record.spans.as_deref().copied();
        Some(ParentCall { number: record.number, trace: record.trace, spans })
    }

    /// Returns the observation of a call that this one causes, before its end.
    pub fn child(&self, request: &Message) -> Option<Self> {
        let record = self.record()?;
        let caller = || record.caller.clone();
        self.recorder.observe(caller, request, self.as_parent())
    }

    /// Returns the record, as far as it is known.
    fn record(&self) -> Option<&CallRecord> {
        self.observation.as_ref().map(|observation| &observation.record)
    }

    /// Records the name of the tool, in place of the one in the request, and its server.
    pub fn names(&mut self, server: Option<&ServerName>, tool: &str) {
        self.set_subject(server, Some(tool));
    }

    /// Records that the call goes to `server`, which knows the tool or the prompt by the name in
    /// `request`.
    pub fn routed(&mut self, server: &ServerName, request: &Message) {
        self.set_subject(Some(server), request.unescaped(MessagePart::Name).as_deref());
    }

    fn set_subject(&mut self, server: Option<&ServerName>, item: Option<&str>) {
        let Some(Observation { record, running, .. }) = self.observation.as_deref_mut() else {
            return;
        };
        record.subject = self.recorder.recent().subject(server, item, &record.caller.name);
        self.recorder.running().name(*running, Arc::clone(&record.subject));
    }

    /// Records that the call was sent on the connection of this generation, whose server speaks
    /// `protocol`. The second time, it was sent again.
    pub fn sent(&mut self, generation: u64, protocol: impl FnOnce() -> PeerProtocol) {
        if let Some(Observation { record, sent, .. }) = self.observation.as_deref_mut() {
            *sent = Some(Instant::now());
            record.n_retries += u32::from(record.generation.is_some());
            record.generation = Some(generation);
            if record.spans.is_some() {
                record.server_protocol = protocol();
            }
        }
    }

    /// Records the arguments in `request`, and later the result, in this form and without `secrets`.
    pub fn records_texts(&mut self, form: RecordedText, request: &Message, secrets: Vec<Redactor>) {
        if let Some(observation) = &mut self.observation {
            observation.record.texts = CallTexts::of_request(form, request, &secrets).map(Arc::new);
            observation.secrets = secrets;
        }
    }

    /// Returns what the server learns about the trace, if spans are exported.
    pub fn traceparent(&self) -> Option<TraceParent> {
        Some(self.record()?.spans.as_deref()?.to_server())
    }

    /// Ends the call with an answer of the server, or of metamcp in its place. If the request has
    /// failed, the answer tells that.
    pub fn answered(&mut self, answer: &Message) {
        let Some(Observation { record, failure, secrets, .. }) = self.observation.as_deref_mut()
        else {
            return;
        };
        let outcome = match failure.take() {
            Some(failure) => failure.into(),
            None => {
                if let Some(texts) = record.texts.as_mut().and_then(Arc::get_mut) {
                    texts.add_answer(answer, secrets);
                }
                CallOutcome::of_answer(answer)
            }
        };
        self.end(outcome, answer.bytes().len());
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
        if let Some(observation) = &mut self.observation {
            observation.failure = Some(failure);
        }
    }

    /// Ends the call with an error of metamcp, in an answer of `answer_bytes`.
    pub fn failed(&mut self, failure: RecordedFailure, answer_bytes: usize) {
        self.end(failure.into(), answer_bytes);
    }

    /// Ends the observation without a record.
    pub fn discard(mut self) {
        if let Some(observation) = self.observation.take() {
            self.recorder.running().end(observation.running);
        }
    }

    fn end(&mut self, outcome: CallOutcome, answer_bytes: usize) {
        let Some(mut observation) = self.observation.take() else { return };
        let now = Instant::now();
        // Changed in its place: a copy takes as many instructions as the changes.
        let Observation { record, started, sent, running, .. } = &mut *observation;
        record.outcome = outcome;
        record.answer_bytes = answer_bytes as u64;
        record.duration = now - *started;
        record.at_server = sent.map(|sent| now - sent);
        if let Some(CallTarget::Asked(asked)) = self.recorder.running().end(*running) {
            let item = asked.item();
            record.subject = self.recorder.recent().subject(None, item.as_deref(), &asked.client);
        }
        self.recorder.record(observation.record, now);
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        let failure = self.observation.as_mut().and_then(|observation| observation.failure.take());
        let outcome = failure.map_or(CallOutcome::Cancelled, Into::into);
        self.end(outcome, 0);
    }
}
