//! The memory of an answer while something is made of it.

use super::{CallError, Event, Exchange};
use crate::{budget::MemoryExhausted, config::defaults, connection::Failure, protocol::Message};

impl Exchange {
    /// Makes room for what the sequel does with an answer of so many bytes, and for those that it
    /// keeps.
    pub(super) fn make_room(&mut self, length: usize) -> Result<(), CallError> {
        if self.sequel.is_none() || length < defaults::MEMORY_COUNTED_MIN {
            return Ok(());
        }
        self.memory.shrink_to(self.n_kept);
        let grown = self.memory.grow_to(self.n_kept + defaults::RESULT_WORK_FACTOR * length);
        grown.map_err(|exhausted| self.no_memory(exhausted))?;
        self.n_kept += length;
        Ok(())
    }

    /// Counts an answer of our making against the memory budget, in the place of what it was made of.
    pub(super) fn counted(&mut self, answer: Message) -> Result<Event, CallError> {
        // By what is reserved for it already: others may wait for that.
        let mut memory = std::mem::take(&mut self.memory);
        let counted = answer.wrapped(|bytes| memory.count(bytes));
        counted.map(Event::Answer).map_err(|exhausted| self.no_memory(exhausted))
    }

    fn no_memory(&self, exhausted: MemoryExhausted) -> CallError {
        let source = Failure::NoMemory(exhausted);
        CallError::Failed { server: self.slot.name().clone(), source }
    }
}
