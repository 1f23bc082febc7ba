//! The numbered events of one stream, kept so that a client can resume after the last one it has.
//!
//! Pure: no clock, no I/O, no lock.

use std::{collections::VecDeque, fmt, str::FromStr};

use crate::protocol::ByteChunks;

/// The id of an event of one session. `epoch` distinguishes the ids of earlier processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    pub(super) epoch: u32,
    pub(super) number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.epoch, self.number)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (epoch, number) = text.split_once('-').ok_or(())?;
        let epoch = u32::from_str_radix(epoch, 16).map_err(drop)?;
        Ok(Self { epoch, number: number.parse().map_err(drop)? })
    }
}

/// The events of one stream, and its readers: only the newest one reads.
#[derive(Debug)]
pub(super) struct EventLog {
    pub(super) epoch: u32,
    /// The number of the last event.
    pub(super) last: u64,
    /// The number of the last event that was read.
    pub(super) read: u64,
    kept: VecDeque<ByteChunks>,
    /// The size of the kept events.
    pub(super) n_bytes: usize,
    /// The number of the newest reader. Older readers end.
    pub(super) reader: u64,
    /// `true` while a reader is active.
    pub(super) is_read: bool,
}

impl Default for EventLog {
    /// Returns an empty log with a random epoch.
    fn default() -> Self {
        Self {
            epoch: uuid::Uuid::new_v4().as_fields().0,
            last: 0,
            read: 0,
            kept: VecDeque::new(),
            n_bytes: 0,
            reader: 0,
            is_read: false,
        }
    }
}

impl EventLog {
    /// Adds an event.
    pub(super) fn push(&mut self, message: ByteChunks) {
        self.last += 1;
        self.n_bytes += message.len();
        self.kept.push_back(message);
    }

    /// Drops the oldest kept event.
    pub(super) fn drop_oldest(&mut self) {
        self.n_bytes -= self.kept.pop_front().map_or(0, |message| message.len());
    }

    /// Makes a new reader the newest one, and returns its number.
    pub(super) fn open(&mut self) -> u64 {
        self.reader += 1;
        self.is_read = true;
        self.reader
    }

    /// Ends the active reader.
    pub(super) fn end_reading(&mut self) {
        self.reader += 1;
        self.is_read = false;
    }

    /// Ends the reader `reader`, unless another one has taken over.
    pub(super) fn leave(&mut self, reader: u64) {
        self.is_read &= reader != self.reader;
    }

    /// Returns the event after the event `number`, if there is one, and counts it as read.
    pub(super) fn read_after(&mut self, number: u64) -> Option<(EventId, ByteChunks)> {
        let at = usize::try_from(number.checked_sub(self.before_first())?).ok()?;
        let message = self.kept.get(at)?.clone();
        self.read = number + 1;
        Some((self.position(), message))
    }

    /// Returns the kept events that were not read.
    pub(super) fn unread(&self) -> impl Iterator<Item = &ByteChunks> {
        let n_read = usize::try_from(self.read - self.before_first()).unwrap_or(usize::MAX);
        self.kept.iter().skip(n_read)
    }

    /// Returns whether an event belongs to this stream.
    pub(super) fn has(&self, id: EventId) -> bool {
        id.epoch == self.epoch
    }

    /// Returns the id of the last event that was read.
    pub(super) fn position(&self) -> EventId {
        EventId { epoch: self.epoch, number: self.read }
    }

    /// Returns the number of the event before the first kept one.
    pub(super) fn before_first(&self) -> u64 {
        self.last - self.kept.len() as u64
    }

    /// Returns the number of kept events.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}
