//! The events of one answer, kept so that its client can resume a broken stream.
//!
//! Pure: no clock, no I/O, no lock. Unread events are never dropped; a writer first checks for
//! room.

use super::event_log::{EventId, EventLog};
use crate::{config::defaults, protocol::ByteChunks};

/// The events of one answer, and the position of the reader.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) log: EventLog,
    is_finished: bool,
    /// A client came back after the last event, and so has received it.
    is_confirmed: bool,
}

/// The result of a read.
#[derive(Debug)]
pub(super) enum BacklogRead {
    Event(EventId, ByteChunks),
    /// There is no event yet.
    Nothing,
    /// There are no more events, or another reader has taken over.
    End,
}

impl Backlog {
    /// Adds an event. Of the events that were read, only the last ones are kept.
    pub(super) fn push(&mut self, message: ByteChunks) {
        self.log.push(message);
        self.drop_read(defaults::OUTBOX_EVENTS, defaults::OUTBOX_BYTES);
    }

    /// Drops events that were read, until at most `n_events` and `n_bytes` are left.
    pub(super) fn drop_read(&mut self, n_events: usize, n_bytes: usize) {
        let log = &mut self.log;
        while log.before_first() < log.read && (log.len() > n_events || log.n_bytes > n_bytes) {
            log.drop_oldest();
        }
    }

    /// Marks the answer as complete.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns whether another event may be added.
    pub(super) fn has_room(&self) -> bool {
        let n_bytes: usize = self.log.unread().map(ByteChunks::len).sum();
        self.log.unread().count() < defaults::UNREAD_EVENTS && n_bytes < defaults::UNREAD_BYTES
    }

    /// Returns whether the answer is complete and was read. The client may still miss events that
    /// were written to a broken socket.
    pub(super) fn is_fully_read(&self) -> bool {
        self.is_finished && self.log.read == self.log.last
    }

    /// Returns whether the client has confirmed that it received everything.
    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Begins to read after the event `number`, or at the first kept event. Returns the number of
    /// the reader.
    pub(super) fn open(&mut self, number: u64) -> u64 {
        let log = &mut self.log;
        log.read = number.clamp(log.before_first(), log.last);
        self.is_confirmed |= self.is_finished && number == log.last;
        log.open()
    }

    /// Reads the next event.
    pub(super) fn next(&mut self, reader: u64) -> BacklogRead {
        if reader != self.log.reader {
            return BacklogRead::End;
        }
        match self.log.read_after(self.log.read) {
            Some((id, message)) => BacklogRead::Event(id, message),
            None if self.is_finished => BacklogRead::End,
            None => BacklogRead::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn pieces(text: &'static str) -> ByteChunks {
        Bytes::from_static(text.as_bytes()).into()
    }

    fn text(found: BacklogRead) -> String {
        match found {
            BacklogRead::Event(_, message) => String::from_utf8_lossy(&message.join()).into_owned(),
            BacklogRead::Nothing => "nothing".into(),
            BacklogRead::End => "end".into(),
        }
    }

    #[test]
    fn a_broken_stream_resumes_after_any_kept_event() {
        let mut backlog = Backlog::default();
        let first = backlog.open(0);
        let beginning = backlog.log.position();
        for message in ["a", "b", "c"] {
            backlog.push(pieces(message));
        }
        assert_eq!(
            (text(backlog.next(first)), text(backlog.next(first))),
            ("a".into(), "b".into())
        );
        backlog.log.leave(first);
        assert!(!backlog.log.is_read);

        let second = backlog.open(1);
        assert_eq!(text(backlog.next(second)), "b");
        assert_eq!(text(backlog.next(first)), "end", "another one reads now");
        let third = backlog.open(beginning.number);
        backlog.log.leave(second);
        assert!(backlog.log.is_read, "the third one does");
        assert_eq!(text(backlog.next(third)), "a");
        assert!(backlog.log.has(beginning) && !backlog.log.has(Backlog::default().log.position()));
    }

    #[test]
    fn a_disconnected_client_reads_the_rest_when_it_returns() {
        let mut backlog = Backlog::default();
        let first = backlog.open(0);
        backlog.push(pieces("a"));
        backlog.log.end_reading();
        assert_eq!((text(backlog.next(first)), backlog.log.is_read), ("end".into(), false));
        let second = backlog.open(0);
        assert_eq!(text(backlog.next(second)), "a");
    }

    #[test]
    fn an_answer_ends_when_it_is_complete_and_read() {
        let mut backlog = Backlog::default();
        let reader = backlog.open(0);
        assert_eq!(text(backlog.next(reader)), "nothing");
        backlog.push(pieces("a"));
        backlog.finish();
        assert!(!backlog.is_fully_read());
        assert_eq!(
            (text(backlog.next(reader)), text(backlog.next(reader))),
            ("a".into(), "end".into())
        );
        assert!(backlog.is_fully_read());
    }

    #[test]
    fn only_a_client_that_resumes_after_the_last_event_has_received_it() {
        let mut backlog = Backlog::default();
        let reader = backlog.open(0);
        backlog.open(0);
        backlog.push(pieces("a"));
        backlog.open(1);
        backlog.finish();
        backlog.next(reader);
        assert!(!backlog.is_confirmed());
        let again = backlog.open(0);
        assert_eq!(text(backlog.next(again)), "a");
        assert!(backlog.is_fully_read() && !backlog.is_confirmed());
        let last = backlog.open(1);
        assert_eq!(text(backlog.next(last)), "end");
        assert!(backlog.is_confirmed());
    }

    #[test]
    fn a_backlog_is_bounded_by_events_and_by_bytes() {
        let mut many = Backlog::default();
        while many.has_room() {
            many.push(pieces("x"));
        }
        assert_eq!(many.log.last, defaults::UNREAD_EVENTS as u64);
        let mut large = Backlog::default();
        large.push(Bytes::from(vec![b'x'; defaults::UNREAD_BYTES]).into());
        assert!(!large.has_room());
        let reader = large.open(0);
        large.next(reader);
        assert!(large.has_room(), "it was read");
    }

    proptest! {
        #[test]
        fn a_backlog_never_loses_an_unread_event(
            steps in prop::collection::vec((0..6u8, 8..defaults::UNREAD_BYTES), 1..60),
        ) {
            let mut backlog = Backlog::default();
            let mut reader = backlog.open(0);
            let (mut n_pushed, mut n_seen) = (0u64, 0u64);
            for (step, size) in steps {
                match step {
                    0..=2 if backlog.has_room() => {
                        n_pushed += 1;
                        let mut message = vec![0; size];
                        message[..8].copy_from_slice(&n_pushed.to_be_bytes());
                        backlog.push(Bytes::from(message).into());
                    }
                    3 => {
                        backlog.log.leave(reader);
                        reader = backlog.open(n_seen);
                    }
                    _ => if let BacklogRead::Event(id, message) = backlog.next(reader) {
                        n_seen += 1;
                        prop_assert_eq!(id.number, n_seen);
                        prop_assert_eq!(&message.join()[..8], n_seen.to_be_bytes());
                    }
                }
                let most = defaults::OUTBOX_BYTES + defaults::UNREAD_BYTES;
                prop_assert!(backlog.log.n_bytes <= most && n_seen <= n_pushed);
            }
        }
    }
}
