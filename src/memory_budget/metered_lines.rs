//! Lines that count against the memory budget while they are read.

use bytes::{Bytes, BytesMut};

use super::{MemoryExhausted, MemoryReservation};
use crate::{
    capacity_holder::Account,
    config::defaults,
    protocol::ndjson::{LineDecoder, NdjsonLine, OversizedLine},
};

/// A framer that cuts a stream of bytes into lines. A line without memory is read to its end and
/// discarded.
#[derive(Debug)]
pub struct MeteredLines {
    lines: LineDecoder,
    /// The reservation for the buffer beyond the part that every connection has.
    held: MemoryReservation,
    /// The reason why the current line is discarded.
    refused: Option<MemoryExhausted>,
    length_max: usize,
}

/// A line, or the reason why it is missing.
#[derive(Debug)]
pub enum MeteredLine {
    /// A line without its newline; never empty. Its bytes count while they live.
    Whole(Bytes),
    /// A line longer than the limit.
    Oversized(OversizedLine),
    /// A line for which there was no memory.
    Refused(OversizedLine, MemoryExhausted),
}

impl MeteredLines {
    /// Returns a framer that refuses lines over `length_max` bytes.
    pub fn new(length_max: usize) -> Self {
        let (lines, held) = (LineDecoder::new(length_max), MemoryReservation::default());
        Self { lines, held, refused: None, length_max }
    }

    /// Returns a framer for the lines of a client, which count for its account.
    pub fn of(account: Account, length_max: usize) -> Self {
        Self { held: MemoryReservation::of(Some(account)), ..Self::new(length_max) }
    }

    /// Returns the buffer to read more bytes into, with room for about `n_bytes`.
    pub fn buffer(&mut self, n_bytes: usize) -> &mut BytesMut {
        let buffer = self.lines.buffer();
        let (length, capacity) = (buffer.len(), buffer.capacity());
        if capacity - length < n_bytes / 4 {
            // The buffer doubles each time, up to the longest line.
            let doubled = (2 * length).min(self.length_max);
            let wanted = doubled.max(length) + n_bytes;
            let charge = if wanted > defaults::BUFFER_KEPT_BYTES + n_bytes { wanted } else { 0 };
            if let Err(exhausted) = self.held.grow_to(charge) {
                self.refused.get_or_insert(exhausted);
                self.lines.discard();
                self.held.shrink_to(0);
            } else {
                self.lines.buffer().reserve(wanted - length);
            }
        }
        let buffer = self.lines.buffer();
        buffer.reserve(n_bytes / 4);
        buffer
    }

    /// Returns the next complete line, or `None` if more bytes are needed.
    pub fn next_line(&mut self) -> Option<MeteredLine> {
        let line = self.lines.next_line();
        self.metered(line)
    }

    /// Returns the rest of a stream that has ended: a last line without its newline.
    pub fn last_line(&mut self) -> Option<MeteredLine> {
        let line = self.lines.last_line();
        self.metered(line)
    }

    fn metered(&mut self, line: Option<NdjsonLine>) -> Option<MeteredLine> {
        let Some(line) = line else {
            // A line beyond the limit is not kept, and a small remainder is not counted.
            if self.held.n_bytes() > 0
                && self.lines.buffer().capacity() <= defaults::BUFFER_KEPT_BYTES
            {
                self.held.shrink_to(0);
            }
            return None;
        };
        Some(match line {
            NdjsonLine::Oversized(line) => match self.refused.take() {
                Some(exhausted) => MeteredLine::Refused(line, exhausted),
                None => MeteredLine::Oversized(line),
            },
            NdjsonLine::Whole(line) if line.len() < defaults::MEMORY_COUNTED_MIN => {
                MeteredLine::Whole(line)
            }
            // A large line leaves the buffer to the bytes that follow it.
            NdjsonLine::Whole(line) => match self.held.count(line.clone()) {
                Ok(line) => MeteredLine::Whole(line),
                Err(exhausted) => MeteredLine::Refused(OversizedLine::of(&line), exhausted),
            },
        })
    }
}
