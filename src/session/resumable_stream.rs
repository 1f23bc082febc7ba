//! The answer to one request as a stream that its client can resume: its writer and its reader.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time};

use super::{
    EventId, Session,
    answer_backlog::{Backlog, BacklogRead},
    outbox::wait_for,
};
use crate::protocol::ByteChunks;

/// The state that the writer and the readers share.
#[derive(Debug)]
pub(super) struct ResumableShared {
    backlog: Mutex<Backlog>,
    /// Notified when there is an event to read, or the stream has ended.
    written: Notify,
    /// Notified when an event was read, or a reader came or left.
    read: Notify,
}

/// The writing end. Dropping it ends the stream, which then cannot be resumed.
#[derive(Debug)]
pub struct ResumableStream {
    session: Arc<Session>,
    shared: Arc<ResumableShared>,
}

/// The unread part of a stream. Dropping it keeps the rest for a reader that resumes the stream.
#[derive(Debug)]
pub struct StreamRemainder {
    shared: Arc<ResumableShared>,
    reader: u64,
}

impl Session {
    /// Begins an answer that the client can resume.
    pub fn begin_resumable(self: &Arc<Self>) -> (ResumableStream, StreamRemainder) {
        let shared = Arc::new(ResumableShared {
            backlog: Mutex::default(),
            written: Notify::new(),
            read: Notify::new(),
        });
        self.memory().resumable.push(Arc::clone(&shared));
        let rest = StreamRemainder::open(Arc::clone(&shared), 0);
        (ResumableStream { session: Arc::clone(self), shared }, rest)
    }

    /// Drops the events that were read from all streams. A client whose stream broke just then
    /// misses them.
    pub(super) fn drop_read(&self) {
        self.outbox.forget_read();
        for shared in &self.memory().resumable {
            shared.backlog().drop_read(0, 0);
        }
    }

    /// Returns the rest of an answer after the event `last`, if that belongs to an answer.
    pub fn resume(&self, last: EventId) -> Option<StreamRemainder> {
        let shared = {
            let memory = self.memory();
            let mut all = memory.resumable.iter();
            all.find(|shared| shared.backlog().log.has(last)).cloned()?
        };
        Some(StreamRemainder::open(shared, last.number))
    }
}

impl ResumableShared {
    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        // Held only for statements on plain data.
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `predicate` returns `true` for the backlog.
    async fn wait(&self, predicate: impl Fn(&Backlog) -> bool) {
        wait_for(&self.read, || predicate(&self.backlog()).then_some(())).await;
    }
}

impl ResumableStream {
    /// Adds a message.
    pub fn push(&self, message: ByteChunks) {
        self.shared.backlog().push(message);
        self.shared.written.notify_waiters();
    }

    /// Ends the current reader. The rest is kept for a reader that resumes the stream.
    pub fn end_reading(&self) {
        self.shared.backlog().log.end_reading();
        self.shared.written.notify_waiters();
        self.shared.read.notify_waiters();
    }

    /// Marks the answer as complete.
    pub fn finish(&self) {
        self.shared.backlog().finish();
        self.shared.written.notify_waiters();
    }

    /// Waits until there is room for another message. Cancel safe.
    pub async fn wait_for_room(&self) {
        self.shared.wait(Backlog::has_room).await;
    }

    /// Waits until the answer is complete and was read. Cancel safe.
    pub async fn wait_until_read(&self) {
        self.shared.wait(Backlog::is_fully_read).await;
    }

    /// Waits until the client has confirmed that it received everything. Cancel safe.
    pub async fn wait_until_delivered(&self) {
        self.shared.wait(Backlog::is_confirmed).await;
    }

    /// Returns the size of the kept events, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.shared.backlog().log.n_bytes
    }

    /// Waits until the stream has had no reader for `timeout`.
    ///
    /// # Cancel safety
    ///
    /// The time starts over.
    pub async fn wait_until_abandoned(&self, timeout: Duration) {
        loop {
            self.shared.wait(|backlog| !backlog.log.is_read).await;
            if time::timeout(timeout, self.shared.wait(|backlog| backlog.log.is_read))
                .await
                .is_err()
            {
                return;
            }
        }
    }
}

impl Drop for ResumableStream {
    fn drop(&mut self) {
        self.session.memory().resumable.retain(|shared| !Arc::ptr_eq(shared, &self.shared));
        self.finish();
    }
}

impl StreamRemainder {
    fn open(shared: Arc<ResumableShared>, number: u64) -> Self {
        let reader = shared.backlog().open(number);
        // Ends the previous reader.
        shared.written.notify_waiters();
        shared.read.notify_waiters();
        Self { shared, reader }
    }

    /// Returns the id of the last event that was read.
    pub fn position(&self) -> EventId {
        self.shared.backlog().log.position()
    }

    /// Waits for the next event. Returns `None` at the end, or when another reader has taken over.
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<(EventId, ByteChunks)> {
        let shared = &self.shared;
        let read = || match shared.backlog().next(self.reader) {
            BacklogRead::Event(id, message) => Some(Some((id, message))),
            BacklogRead::End => Some(None),
            BacklogRead::Nothing => None,
        };
        let event = wait_for(&shared.written, read).await?;
        shared.read.notify_waiters();
        Some(event)
    }
}

impl Drop for StreamRemainder {
    fn drop(&mut self) {
        self.shared.backlog().log.leave(self.reader);
        self.shared.read.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt as _;

    use super::*;

    fn session() -> Arc<Session> {
        Session::of_test()
    }

    #[tokio::test(start_paused = true)]
    async fn each_absence_of_a_client_has_the_full_timeout() {
        let (writer, rest) = session().begin_resumable();
        let timeout = Duration::from_secs(30);
        let abandoned = writer.wait_until_abandoned(timeout);
        tokio::pin!(abandoned);
        assert!(time::timeout(timeout * 2, &mut abandoned).await.is_err(), "it reads");
        let id = rest.position();
        for _ in 0..3 {
            let rest = writer.session.resume(id).expect("it runs");
            assert!(time::timeout(timeout * 2, &mut abandoned).await.is_err(), "it reads again");
            drop(rest);
            assert!(time::timeout(timeout / 2, &mut abandoned).await.is_err(), "not yet");
        }
        drop(rest);
        let left = time::Instant::now();
        abandoned.await;
        assert!(left.elapsed() <= timeout);
    }

    #[test]
    fn a_message_sent_while_the_client_is_away_is_read_when_the_stream_resumes() {
        let session = session();
        let (writer, mut rest) = session.begin_resumable();
        writer.push(Bytes::from_static(b"a").into());
        let (id, _) = rest.next().now_or_never().flatten().expect("an event");
        drop(rest);
        writer.push(Bytes::from_static(b"b").into());
        writer.finish();
        assert!(writer.wait_until_read().now_or_never().is_none());
        assert!(session.is_in_use(), "it must not make room for another one");

        let mut rest = session.resume(id).expect("it is kept");
        assert_eq!(rest.next().now_or_never().flatten().expect("an event").1.join(), "b");
        assert!(matches!(rest.next().now_or_never(), Some(None)));
        assert!(writer.wait_until_read().now_or_never().is_some());
        drop(writer);
        assert!(session.resume(id).is_none() && session.memory().resumable.is_empty());
        drop(rest);
        assert!(!session.is_in_use());
    }
}
