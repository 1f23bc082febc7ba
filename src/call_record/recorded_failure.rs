//! A failure as the record of its call tells it.

use super::CallOutcome;
use crate::{config::defaults, fault_class::Fault, redact};

/// A failure as the record of its call tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFailure {
    /// The stable name of the error.
    pub code: &'static str,
    /// The kind of failure.
    pub fault: Fault,
    /// The error and its causes. It has no text of a client or a server: such a text may repeat
    /// arguments or results.
    pub cause: String,
}

impl RecordedFailure {
    /// Returns a failure that the caller or metamcp itself has caused.
    pub fn own(code: &'static str, cause: impl Into<String>) -> Self {
        Self { code, fault: Fault::Cancelled, cause: cause.into() }
    }
}

impl From<RecordedFailure> for CallOutcome {
    fn from(failure: RecordedFailure) -> Self {
        let RecordedFailure { code, fault, cause } = failure;
        let cause = redact::sanitize(redact::cut(&cause, defaults::CALL_RECORD_CAUSE_BYTES_MAX));
        Self::Failed { code, fault, cause: cause.into() }
    }
}
