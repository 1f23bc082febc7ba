//! The memory for an answer while metamcp processes it.

use super::{CallError, CallEvent, Exchange};
use crate::{
    config::defaults, connection::RequestFailure, memory_budget::MemoryExhausted,
    protocol::Message, server_name::ServerName,
};

impl Exchange {
    /// Reserves memory to process an answer of `length` bytes in the continuation, and to keep it.
    /// A large answer reserves its memory when it is computed.
    pub(super) fn make_room(&mut self, length: usize) -> Result<(), CallError> {
        let is_small = length < defaults::MEMORY_COUNTED_MIN;
        if self.continuation.is_none() || is_small || length > defaults::INLINE_BYTES_MAX {
            return Ok(());
        }
        let wanted = self.reservation_for(length);
        let grown = self.memory.grow_to(wanted);
        grown.map_err(|exhausted| out_of_memory(self.slot.name().clone(), exhausted))
    }

    /// Returns the memory needed to process an answer of `length` bytes. Counts it as kept.
    pub(super) fn reservation_for(&mut self, length: usize) -> usize {
        self.memory.shrink_to(self.n_kept);
        let wanted = self.n_kept + defaults::RESULT_WORK_FACTOR * length;
        self.n_kept += length;
        wanted
    }

    /// Counts a new answer against the memory budget, in place of the answer that it was made from.
    pub(super) fn counted(&mut self, answer: Message) -> Result<CallEvent, CallError> {
        // Uses the existing reservation, because other requests may wait for memory.
        let mut memory = std::mem::take(&mut self.memory);
        let counted = answer.wrapped(|bytes| memory.count(bytes));
        let server = || self.slot.name().clone();
        counted.map(CallEvent::Answer).map_err(|exhausted| out_of_memory(server(), exhausted))
    }
}

pub(super) fn out_of_memory(server: ServerName, exhausted: MemoryExhausted) -> CallError {
    CallError::Failed { server, source: RequestFailure::NoMemory(exhausted) }
}
