//! The events of a client's GET stream, with ids. They are kept for a while, so that a client can
//! resume a broken stream.
//!
//! The outbox is bounded and never blocks its writers. A reader too far behind is cut off.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{
    Session,
    event_log::{EventId, EventLog},
};
use crate::config::defaults;

/// The events of one session.
#[derive(Debug, Default)]
pub(super) struct SessionOutbox {
    // Boxed because most sessions never open a stream.
    log: Mutex<Option<Box<EventLog>>>,
    changed: Notify,
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

/// Adds an event, and drops the oldest ones beyond the bounds.
fn push(log: &mut EventLog, message: Bytes) {
    log.push(message.into());
    while log.len() > defaults::OUTBOX_EVENTS
        || (log.n_bytes > defaults::OUTBOX_BYTES && log.len() > 1)
    {
        log.drop_oldest();
    }
}

/// Returns the position where a stream begins that resumes `after` an event.
fn first_position(log: &EventLog, after: Option<EventId>) -> u64 {
    match after {
        // A new stream begins now and ignores earlier events.
        None => log.last,
        Some(after) if log.has(after) => after.number.clamp(log.before_first(), log.last),
        // The id is from another life: all kept events are newer.
        Some(_) => log.before_first(),
    }
}

/// Reads the event after `cursor` for `reader`; `None` if there is none yet.
fn next(log: &mut EventLog, reader: u64, cursor: u64) -> Option<OutboxItem> {
    if reader != log.reader {
        return Some(OutboxItem::Closed);
    }
    if cursor < log.before_first() {
        return Some(OutboxItem::Overflow);
    }
    log.read_after(cursor).map(|(id, message)| OutboxItem::Event(id, message.join()))
}

impl SessionOutbox {
    /// Adds an event. Before the first stream is opened, no events are kept.
    pub(super) fn push(&self, message: Bytes) {
        if let Some(log) = &mut *self.log() {
            push(log, message);
            self.changed.notify_waiters();
        }
    }

    /// Drops the events that were read. A client whose stream broke just then misses them.
    pub(super) fn forget_read(&self) {
        if let Some(log) = &mut *self.log() {
            while log.before_first() < log.read {
                log.drop_oldest();
            }
        }
    }

    /// Ends the open stream.
    pub(super) fn close(&self) {
        if let Some(log) = &mut *self.log() {
            log.end_reading();
            self.changed.notify_waiters();
        }
    }

    /// Returns whether a stream is open.
    pub(super) fn is_read(&self) -> bool {
        self.log().as_ref().is_some_and(|log| log.is_read)
    }

    /// Returns whether a stream was ever opened, so that events are kept for it or the next one.
    pub(super) fn was_opened(&self) -> bool {
        self.log().is_some()
    }

    fn log(&self) -> MutexGuard<'_, Option<Box<EventLog>>> {
        // Held only for statements on plain data.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutboxReader {
    pub(super) fn new(session: Arc<Session>, last: Option<EventId>) -> Self {
        let (number, cursor) = {
            let mut log = session.outbox.log();
            let log = log.get_or_insert_default();
            (log.open(), first_position(log, last))
        };
        session.outbox.changed.notify_waiters();
        Self { session, number, cursor }
    }

    /// Returns the id of the last event that was read.
    pub fn position(&self) -> EventId {
        let epoch = self.session.outbox.log().as_ref().map_or(0, |log| log.epoch);
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
        let next = || next(outbox.log().as_mut()?, self.number, self.cursor);
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
        if let Some(log) = &mut *self.session.outbox.log() {
            log.leave(self.number);
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
        assert_eq!(session.outbox.log().as_ref().map(|log| log.n_bytes), Some(0));
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
