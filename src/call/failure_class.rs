//! The class of a request's failure, which decides whether the request is sent again.

use std::sync::Arc;

use super::{CallError, Connected, Exchange, Stage, retry::FailureClass};
use crate::{
    pool::ServerSlot,
    protocol::{jsonrpc::MessagePart, payloads::method},
};

impl Exchange {
    /// Returns the class of the failure.
    pub(super) fn classify(&self, error: &CallError) -> FailureClass {
        // The part of an answer that the client has seen cannot be withdrawn.
        if self.has_begun || self.time_left().is_zero() {
            return FailureClass::Final;
        }
        match error.failure() {
            None if error.may_reconnect() => FailureClass::Dial,
            None => FailureClass::Final,
            Some(failure) if failure.is_replayable() => FailureClass::Unexecuted,
            Some(failure) if failure.is_interruption() && self.is_repeatable() => {
                FailureClass::Repeatable
            }
            Some(failure) if failure.fault().counts() => FailureClass::Unknown,
            Some(_) => FailureClass::Final,
        }
    }

    /// Returns the slot that has replaced this one, if the request was not executed here.
    pub(super) fn successor(
        &self,
        error: &CallError,
        class: FailureClass,
    ) -> Option<Arc<ServerSlot>> {
        let is_unexecuted =
            matches!(error, CallError::NotConnected { .. }) || class == FailureClass::Unexecuted;
        self.slot.successor().filter(|_| is_unexecuted).cloned()
    }

    /// Returns whether a request that may have been executed can be sent again: it only reads, or
    /// its tool declares that a second call has no further effect.
    fn is_repeatable(&self) -> bool {
        match self.request.method().unwrap_or_default() {
            method::TOOLS_CALL => self.request.string(MessagePart::Name).is_some_and(|tool| {
                // The list that clients got last, or else the one that was read on connecting.
                self.slot.hints().is_repeatable(&tool).unwrap_or_else(|| match &self.stage {
                    Stage::Connected(Connected { lease, .. }) => {
                        lease.connection.is_repeatable(&tool)
                    }
                    Stage::Tripped(_)
                    | Stage::Connecting(_)
                    | Stage::AwaitingInput(..)
                    | Stage::Computing(_)
                    | Stage::Concluded(_)
                    | Stage::Over => false,
                })
            }),
            asked => method::READ_ONLY.contains(&asked),
        }
    }
}
