//! The memory of an answer while something is made of it.

use super::{CallError, CallEvent, Exchange};
use crate::{
    budget::MemoryExhausted, config::defaults, connection::RequestFailure, name::ServerName,
    protocol::Message,
};

impl Exchange {
    /// Makes room for what the sequel does with an answer of so many bytes, and for those that it
    /// keeps. For a large one that is done when it is computed with.
    pub(super) fn make_room(&mut self, length: usize) -> Result<(), CallError> {
        let is_small = length < defaults::MEMORY_COUNTED_MIN;
        if self.sequel.is_none() || is_small || length > defaults::INLINE_BYTES_MAX {
            return Ok(());
        }
        let wanted = self.reservation_for(length);
        let grown = self.memory.grow_to(wanted);
        grown.map_err(|exhausted| no_memory(self.slot.name().clone(), exhausted))
    }

    /// Returns the memory that the sequel takes with an answer of so many bytes, which it may keep.
    pub(super) fn reservation_for(&mut self, length: usize) -> usize {
        self.memory.shrink_to(self.n_kept);
        let wanted = self.n_kept + defaults::RESULT_WORK_FACTOR * length;
        self.n_kept += length;
        wanted
    }

    /// Counts an answer of our making against the memory budget, in the place of what it was made of.
    pub(super) fn counted(&mut self, answer: Message) -> Result<CallEvent, CallError> {
        // By what is reserved for it already: others may wait for that.
        let mut memory = std::mem::take(&mut self.memory);
        let counted = answer.wrapped(|bytes| memory.count(bytes));
        let server = || self.slot.name().clone();
        counted.map(CallEvent::Answer).map_err(|exhausted| no_memory(server(), exhausted))
    }
}

pub(super) fn no_memory(server: ServerName, exhausted: MemoryExhausted) -> CallError {
    CallError::Failed { server, source: RequestFailure::NoMemory(exhausted) }
}
