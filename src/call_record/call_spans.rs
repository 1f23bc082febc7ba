//! The spans of one call in its trace, and the call that it is a part of.

use crate::telemetry::trace_context::TraceParent;

/// The call that causes others, as their records need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentCall {
    /// Its number.
    pub(super) number: u64,
    /// The trace and the span of its client, if it named them.
    pub(super) trace: Option<TraceParent>,
    /// Its spans, if spans are exported.
    pub(super) spans: Option<CallSpans>,
}

/// The spans of one call: that of the client's request, and below it that of the request to the
/// server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSpans {
    /// The id of the trace.
    pub trace_id: u128,
    /// The span that caused the call, if the client named it.
    pub parent: Option<u64>,
    /// The span of the client's request.
    pub server: u64,
    /// The span of the request to the server.
    pub client: u64,
    /// The spans are exported. A client that does not record its own trace wants none.
    pub is_sampled: bool,
}

impl CallSpans {
    /// Returns the spans of a call that the span `parent` has caused, or the first ones of a trace.
    pub(super) fn below(parent: Option<TraceParent>) -> Self {
        Self {
            trace_id: parent.map_or_else(|| nonzero(|| fastrand::u128(..)), |it| it.trace_id),
            parent: parent.map(|parent| parent.span_id),
            server: nonzero(|| fastrand::u64(..)),
            client: nonzero(|| fastrand::u64(..)),
            is_sampled: parent.is_none_or(TraceParent::is_sampled),
        }
    }

    /// Returns the spans of a request that a call with these spans causes.
    pub(super) fn of_part(self) -> Self {
        Self { client: nonzero(|| fastrand::u64(..)), ..self }
    }

    /// Returns what the server learns about the trace.
    pub(super) fn to_server(self) -> TraceParent {
        TraceParent::new(self.trace_id, self.client, self.is_sampled)
    }
}

/// Returns a number that is not 0, which is no id.
fn nonzero<T: Default + PartialEq>(random: impl Fn() -> T) -> T {
    loop {
        let found = random();
        if found != T::default() {
            return found;
        }
    }
}
