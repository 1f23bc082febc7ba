//! The recorder of calls.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::time::Instant;

use super::{
    CallMetrics, CallOutcome, CallRecord, CallSpans, CallSubject, Caller, ObservedCall, ParentCall,
    PeerProtocol, RecentCalls, RunningCalls, TokenCosts, running_calls::AskedTool,
};
use crate::{
    config::{RecordedCalls, TelemetryConfig, defaults},
    protocol::{Message, ObjectMembers, jsonrpc::MessagePart, payloads::method},
    redact,
    telemetry::{
        ring::Ring,
        trace_context::{TRACEPARENT, TraceParent},
    },
    time_format,
};

/// The recorder of calls, with the records of the last ones.
#[derive(Debug)]
pub struct CallRecorder {
    ring: Ring<CallRecord>,
    n_calls: AtomicU64,
    is_enabled: AtomicBool,
    metrics: Arc<CallMetrics>,
    exports_spans: AtomicBool,
    running: RunningCalls,
    /// The subject of a record before it is named.
    unnamed: Arc<CallSubject>,
    recent: RecentCalls,
    costs: TokenCosts,
    /// The number of records that were not written in time.
    n_dropped: AtomicU64,
    /// The calls whose records are written.
    recorded: ArcSwap<RecordedCalls>,
    /// The file with the records, if they are in one.
    file: OnceLock<PathBuf>,
}

impl Default for CallRecorder {
    fn default() -> Self {
        let ring = Ring::new(defaults::CALL_RING_RECORDS, defaults::CALL_RING_BYTES);
        let recorded = ArcSwap::from_pointee(RecordedCalls::All);
        Self {
            ring,
            n_calls: AtomicU64::new(0),
            is_enabled: AtomicBool::new(true),
            metrics: Arc::default(),
            exports_spans: AtomicBool::default(),
            running: RunningCalls::default(),
            unnamed: Arc::new(CallSubject::new(None, None, &Arc::default(), None)),
            recent: RecentCalls::default(),
            costs: TokenCosts::default(),
            n_dropped: AtomicU64::new(0),
            recorded,
            file: OnceLock::new(),
        }
    }
}

impl CallRecorder {
    /// Begins to observe a request of the client that `caller` returns, if it calls a tool, gets a
    /// prompt or reads a resource, and calls are observed. The call `parent` caused it, and has it in
    /// its trace.
    pub fn observe(
        self: &Arc<Self>,
        caller: impl FnOnce() -> Caller,
        request: &Message,
        parent: Option<ParentCall>,
    ) -> Option<ObservedCall> {
        if !self.is_enabled() {
            return None;
        }
        let asked = request.method()?;
        let method = method::MAY_NEED_INPUT.into_iter().find(|method| *method == asked)?;
        let exports_spans = self.exports_spans.load(Ordering::Relaxed);
        let (trace, spans) = match parent {
            Some(parent) => (parent.trace, parent.spans.map(CallSpans::of_part)),
            None => {
                let trace = trace_of(request);
                (trace, exports_spans.then(|| CallSpans::below(trace)))
            }
        };
        let caller = caller();
        let asked = AskedTool::of(&caller.name, request);
        let record = CallRecord {
            number: self.n_calls.fetch_add(1, Ordering::Relaxed) + 1,
            started_us: time_format::now_us(),
            caller,
            method,
            subject: Arc::clone(&self.unnamed),
            outcome: CallOutcome::Cancelled,
            duration: Duration::ZERO,
            at_server: None,
            request_bytes: request.bytes().len() as u64,
            answer_bytes: 0,
            generation: None,
            n_retries: 0,
            parent: parent.map(|parent| parent.number),
            trace,
            texts: None,
            spans: spans.map(Arc::new),
            request_id: exports_spans.then(|| request_id(request)).flatten(),
            server_protocol: PeerProtocol::default(),
        };
        Some(ObservedCall::new(Arc::clone(self), record, asked))
    }

    /// Returns the records of the last calls.
    pub fn ring(&self) -> &Ring<CallRecord> {
        &self.ring
    }

    /// Applies the configuration.
    pub fn configure(&self, config: &TelemetryConfig) {
        self.is_enabled.store(config.enabled, Ordering::Relaxed);
        self.recorded.store(Arc::new(config.calls));
    }

    /// Gives each call from now on spans, which the caller exports.
    pub fn export_spans(&self) {
        self.exports_spans.store(true, Ordering::Relaxed);
    }

    /// Returns whether calls are observed.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
    }

    /// Notes the file to which the records are written from now on. The first one counts.
    pub fn is_written_to(&self, file: PathBuf) {
        let _is_first = self.file.set(file);
    }

    /// Returns the file with the records, if they are in one.
    pub fn file(&self) -> Option<&Path> {
        self.file.get().map(PathBuf::as_path)
    }

    /// Returns the calls whose records are written.
    pub(super) fn recorded(&self) -> RecordedCalls {
        **self.recorded.load()
    }

    /// Returns the calls that have not ended.
    pub fn running(&self) -> &RunningCalls {
        &self.running
    }

    /// Returns the calls of the last minutes.
    pub fn recent(&self) -> &RecentCalls {
        &self.recent
    }

    /// Returns what tool lists and searches cost the clients.
    pub fn costs(&self) -> &TokenCosts {
        &self.costs
    }

    /// Returns the metrics of calls.
    pub fn metrics(&self) -> &Arc<CallMetrics> {
        &self.metrics
    }

    /// Counts records that the writer has lost.
    pub(super) fn note_dropped(&self, n_records: u64) {
        self.n_dropped.fetch_add(n_records, Ordering::Relaxed);
    }

    /// Returns the number of records that were not written in time.
    pub fn n_dropped(&self) -> u64 {
        self.n_dropped.load(Ordering::Relaxed)
    }

    /// Keeps and counts the record of a call that ends `now`.
    pub(super) fn record(&self, record: CallRecord, now: Instant) {
        self.metrics.count(&record);
        self.recent.add(&record, now);
        self.costs.add(&record);
        self.ring.push(record);
    }
}

/// Returns the id of a request as text: a string without its quotes, a number as it is written.
fn request_id(request: &Message) -> Option<Arc<str>> {
    let id = request.part(MessagePart::Id)?;
    let text = request.string(MessagePart::Id).unwrap_or_else(|| id.to_owned());
    Some(redact::cut(&text, defaults::SPAN_REQUEST_ID_BYTES_MAX).into())
}

/// Returns the trace that a request names.
fn trace_of(request: &Message) -> Option<TraceParent> {
    let meta = request.part(MessagePart::Meta)?;
    // Most requests have a `_meta` without it, which is not parsed.
    memchr::memmem::find(meta.as_bytes(), TRACEPARENT.as_bytes())?;
    TraceParent::parse(&ObjectMembers::read(meta)?.string(TRACEPARENT)?)
}
