//! What became of a request that failed, as far as that decides whether it is sent again.

use std::sync::Arc;

use super::{CallError, Connected, Exchange, Stage, retry::FailureClass};
use crate::{
    pool::ServerSlot,
    protocol::{jsonrpc::MessagePart, payloads::method},
};

impl Exchange {
    /// Returns what became of the request.
    pub(super) fn classify(&self, error: &CallError) -> FailureClass {
        // What the client has seen of an answer cannot be taken back.
        if self.has_begun || self.time_left().is_zero() {
            return FailureClass::Final;
        }
        match error.failure() {
            None if error.may_be_dialled_again() => FailureClass::Dial,
            None => FailureClass::Final,
            Some(failure) if failure.is_replayable() => FailureClass::Unexecuted,
            Some(failure) if failure.is_interruption() && self.is_repeatable() => {
                FailureClass::Repeatable
            }
            Some(failure) if failure.fault().counts() => FailureClass::Unknown,
            Some(_) => FailureClass::Final,
        }
    }

    /// Returns the slot that has taken the place of ours, if the request was not executed here.
    pub(super) fn successor(
        &self,
        error: &CallError,
        loss: FailureClass,
    ) -> Option<Arc<ServerSlot>> {
        let is_unexecuted =
            matches!(error, CallError::NotConnected { .. }) || loss == FailureClass::Unexecuted;
        self.slot.successor().filter(|_| is_unexecuted).cloned()
    }

    /// Tells whether a request that may have been executed can be sent again: it only reads, or its
    /// tool says that calling it twice does no more than calling it once. Source: design ruling 9.
    fn is_repeatable(&self) -> bool {
        match self.request.method().unwrap_or_default() {
            method::TOOLS_CALL => self.request.string(MessagePart::Name).is_some_and(|tool| {
                // What clients were told last, else what was read when the connection was made.
                self.slot.hints().is_repeatable(&tool).unwrap_or_else(|| match &self.stage {
                    Stage::Connected(Connected { lease, .. }) => {
                        lease.connection.is_repeatable(&tool)
                    }
                    Stage::Tripped(_)
                    | Stage::Connecting(_)
                    | Stage::Asking(..)
                    | Stage::Computing(_)
                    | Stage::Concluded(_)
                    | Stage::Over => false,
                })
            }),
            asked => method::READING.contains(&asked),
        }
    }
}
