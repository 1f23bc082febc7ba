//! The events of a client's GET stream, with ids. They are kept for a while, so that a client can
//! resume a broken stream.
//!
//! The outbox is bounded and never blocks its writers. A reader too far behind is cut off.

use std::{
    collections::VecDeque,
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::Notify;

use super::Session;
use crate::config::defaults;

/// The id of an event of one session. `epoch` distinguishes the ids of earlier processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    pub(super) epoch: u32,
    pub(super) number: u64,
}

impl EventId {
    /// Returns a random number for a stream of events.
    pub(super) fn new_epoch() -> u32 {
        uuid::Uuid::new_v4().as_fields().0
    }
}

/// The events of one session.
#[derive(Debug, Default)]
pub(super) struct SessionOutbox {
    // Boxed because most sessions never open a stream.
    state: Mutex<Option<Box<State>>>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    epoch: u32,
    /// The number of the last event.
    last: u64,
    /// The number of the last event that was read.
    read: u64,
    kept: VecDeque<Bytes>,
    n_bytes: usize,
    /// The number of the newest reader. Older readers end.
    reader: u64,
    is_read: bool,
}

/// The open GET stream of a session. Dropping it closes the stream but keeps events for the next.
#[derive(Debug)]
pub struct OutboxReader {
    session: Arc<Session>,
    number: u64,
    cursor: u64,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum OutboxItem {
    /// An event.
    Event(EventId, Bytes),
    /// Another stream of the session was opened, or the session has ended.
    Closed,
    /// Events that the client had not read were dropped.
    Overflow,
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

impl State {
    fn new() -> Self {
        Self {
            epoch: EventId::new_epoch(),
            last: 0,
            read: 0,
            kept: VecDeque::new(),
            n_bytes: 0,
            reader: 0,
            is_read: false,
        }
    }

    /// Returns the number of the event before the first kept one.
    fn before_first(&self) -> u64 {
        self.last - self.kept.len() as u64
    }

    fn push(&mut self, message: Bytes) {
        self.last += 1;
        self.n_bytes += message.len();
        self.kept.push_back(message);
        while self.kept.len() > defaults::OUTBOX_EVENTS
            || (self.n_bytes > defaults::OUTBOX_BYTES && self.kept.len() > 1)
        {
            let dropped = self.kept.pop_front().map(|message| message.len());
            self.n_bytes -= dropped.unwrap_or_default();
        }
    }

    /// Opens another stream. Returns its number and the position where it begins.
    fn open(&mut self, after: Option<EventId>) -> (u64, u64) {
        self.reader += 1;
        self.is_read = true;
        let cursor = match after {
            // A new stream begins now and ignores earlier events.
            None => self.last,
            Some(after) if after.epoch == self.epoch => {
                after.number.clamp(self.before_first(), self.last)
            }
            // The id is from another life: all kept events are newer.
            Some(_) => self.before_first(),
        };
        (self.reader, cursor)
    }

    /// Drops the events that were read.
    fn drop_read(&mut self) {
        while self.before_first() < self.read
            && let Some(message) = self.kept.pop_front()
        {
            self.n_bytes -= message.len();
        }
    }

    fn next(&mut self, reader: u64, cursor: u64) -> Option<OutboxItem> {
        if reader != self.reader {
            return Some(OutboxItem::Closed);
        }
        let Some(at) = cursor.checked_sub(self.before_first()) else {
            return Some(OutboxItem::Overflow);
        };
        let message = self.kept.get(usize::try_from(at).ok()?)?.clone();
        self.read = cursor + 1;
        Some(OutboxItem::Event(EventId { epoch: self.epoch, number: cursor + 1 }, message))
    }
}

impl SessionOutbox {
    /// Adds an event. Before the first stream is opened, no events are kept.
    pub(super) fn push(&self, message: Bytes) {
        if let Some(state) = &mut *self.state() {
            state.push(message);
            self.changed.notify_waiters();
        }
    }

    /// Drops the events that were read. A client whose stream broke just then misses them.
    pub(super) fn forget_read(&self) {
        if let Some(state) = &mut *self.state() {
            state.drop_read();
        }
    }

    /// Ends the open stream.
    pub(super) fn close(&self) {
        if let Some(state) = &mut *self.state() {
            state.reader += 1;
            state.is_read = false;
            self.changed.notify_waiters();
        }
    }

    /// Returns whether a stream is open.
    pub(super) fn is_read(&self) -> bool {
        self.state().as_ref().is_some_and(|state| state.is_read)
    }

    /// Returns whether a stream was ever opened, so that events are kept for it or the next one.
    pub(super) fn was_opened(&self) -> bool {
        self.state().is_some()
    }

    fn state(&self) -> MutexGuard<'_, Option<Box<State>>> {
        // Held only for statements on plain data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutboxReader {
    pub(super) fn new(session: Arc<Session>, last: Option<EventId>) -> Self {
        let (number, cursor) =
            session.outbox.state().get_or_insert_with(|| Box::new(State::new())).open(last);
        session.outbox.changed.notify_waiters();
        Self { session, number, cursor }
    }

    /// Returns the id of the last event that was read.
    pub fn position(&self) -> EventId {
        let epoch = self.session.outbox.state().as_ref().map_or(0, |state| state.epoch);
        EventId { epoch, number: self.cursor }
    }

    /// Waits for the next item. Waits forever if the client has not completed its handshake and
    /// therefore has no reader. Cancel safe.
    pub async fn next_of(reader: &mut Option<Self>) -> OutboxItem {
        match reader {
            Some(reader) => reader.next().await,
            None => std::future::pending().await,
        }
    }

    /// Waits for the next item. Cancel safe.
    pub async fn next(&mut self) -> OutboxItem {
        let outbox = &self.session.outbox;
        let next = || outbox.state().as_mut()?.next(self.number, self.cursor);
        let item = wait_for(&outbox.changed, next).await;
        if let OutboxItem::Event(..) = item {
            self.cursor += 1;
        }
        item
    }
}

/// Waits until `check` returns a value; checks again after each notification. Cancel safe.
pub(super) async fn wait_for<T>(changed: &Notify, mut check: impl FnMut() -> Option<T>) -> T {
    loop {
        let notified = changed.notified();
        tokio::pin!(notified);
        // Registered before the check, so that no later change is missed.
        notified.as_mut().enable();
        if let Some(found) = check() {
            return found;
        }
        notified.await;
    }
}

impl Drop for OutboxReader {
    fn drop(&mut self) {
        if let Some(state) = &mut *self.session.outbox.state()
            && state.reader == self.number
        {
            state.is_read = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn session() -> Arc<Session> {
        Session::of_test()
    }

    fn push(session: &Session, text: &'static str) {
        session.outbox.push(Bytes::from_static(text.as_bytes()));
    }

    /// Reads all available events.
    fn all(reader: &mut OutboxReader) -> Vec<String> {
        let mut read = Vec::new();
        while let Some(OutboxItem::Event(_, message)) = reader.next().now_or_never() {
            read.push(String::from_utf8_lossy(&message).into_owned());
        }
        read
    }

    #[test]
    fn a_broken_stream_resumes_at_its_position() {
        let session = session();
        push(&session, "before any stream");
        let mut reader = session.read(None);
        push(&session, "a");
        push(&session, "b");
        assert_eq!(all(&mut reader), ["a", "b"]);
        let position = reader.position();
        drop(reader);
        push(&session, "c");

        let parsed = position.to_string().parse().expect("its own form");
        assert_eq!(all(&mut session.read(Some(parsed))), ["c"]);
        assert!(all(&mut session.read(None)).is_empty(), "a new stream begins now");
    }

    #[test]
    fn an_event_id_of_another_process_returns_all_kept_events() {
        let session = session();
        drop(session.read(None));
        push(&session, "a");
        let foreign = EventId { epoch: 1, number: 77 };
        assert_eq!(all(&mut session.read(Some(foreign))), ["a"]);
        assert!("7".parse::<EventId>().is_err() && "x-1".parse::<EventId>().is_err());
    }

    #[test]
    fn a_second_stream_ends_the_first() {
        let session = session();
        let mut first = session.read(None);
        let mut second = session.read(None);
        push(&session, "a");
        assert_eq!(first.next().now_or_never(), Some(OutboxItem::Closed));
        drop(first);
        assert!(session.outbox.is_read(), "the second one is");
        assert_eq!(all(&mut second), ["a"]);
        session.outbox.close();
        assert_eq!(second.next().now_or_never(), Some(OutboxItem::Closed));
        assert!(!session.outbox.is_read());
    }

    #[test]
    fn a_client_that_does_not_read_is_cut_off_and_can_return() {
        let session = session();
        let mut reader = session.read(None);
        let position = reader.position();
        for _ in 0..=defaults::OUTBOX_EVENTS {
            push(&session, "x");
        }
        assert_eq!(reader.next().now_or_never(), Some(OutboxItem::Overflow));
        assert_eq!(all(&mut session.read(Some(position))).len(), defaults::OUTBOX_EVENTS);
    }

    #[test]
    fn the_outbox_forgets_read_messages_and_keeps_unread_ones() {
        let session = session();
        let mut reader = session.read(None);
        push(&session, "a");
        push(&session, "b");
        assert!(matches!(reader.next().now_or_never(), Some(OutboxItem::Event(..))));
        session.outbox.forget_read();
        assert_eq!(all(&mut reader), ["b"]);
        session.outbox.forget_read();
        assert_eq!(session.outbox.state().as_ref().map(|state| state.n_bytes), Some(0));
        push(&session, "c");
        assert_eq!(all(&mut reader), ["c"]);
    }

    #[test]
    fn the_outbox_is_bounded_by_size() {
        let session = session();
        drop(session.read(None));
        let large = Bytes::from(vec![b'x'; defaults::OUTBOX_BYTES / 2 + 1]);
        session.outbox.push(large.clone());
        session.outbox.push(large);
        assert_eq!(all(&mut session.read(Some(EventId { epoch: 0, number: 0 }))).len(), 1);
    }
}
