//! The records of calls: who called what, how long it took, and why it failed.
//!
//! ```text
//!  request ──▶ ObservedCall ── answer, error, or dropped ──▶ CallRecord ──▶ ring ──┬── metamcp calls
//!                                                                                  └── writer ── journal,
//!                                                                                                or a file
//! ```
//!
//! A record never has the arguments or the result of a call, unless the operator asks for them. The
//! writer reads the ring like any other reader. So a journal that is full or slow delays no call:
//! the ring drops what was not written in time, and the writer reports how many records that were.

mod call_log;
mod call_metrics;
mod call_spans;
mod call_subject;
mod call_texts;
mod call_window;
mod caller;
mod journal_entry;
mod json_line;
mod observed_call;
mod outcome;
mod peer_protocol;
mod recent_calls;
mod record;
mod recorded_failure;
mod recorder;
mod rotated_file;
mod running_calls;
mod success_summary;
mod token_costs;
mod writer;

pub use call_log::CallLog;
pub use call_metrics::CallMetrics;
pub use call_spans::{CallSpans, ParentCall};
pub use call_subject::CallSubject;
pub use call_texts::CallTexts;
pub use call_window::{CallTotals, HISTORY_SLOTS};
pub use caller::{CallView, Caller, ClientName};
pub use observed_call::ObservedCall;
pub use outcome::CallOutcome;
pub use peer_protocol::{PeerProtocol, PeerTransport};
pub use recent_calls::RecentCalls;
pub use record::CallRecord;
pub use recorded_failure::RecordedFailure;
pub use recorder::CallRecorder;
pub use running_calls::{RunningCall, RunningCalls};
pub use success_summary::{CallEntry, CallSum};
pub use token_costs::{
    CostView, SCRIPT_TOOLS, SEARCH_TOOLS, TokenCosts, ViewComparison, ViewSizes,
};
pub use writer::CallWriter;
