//! The answer to one request as a stream that its client can resume: who writes it, and who reads it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time};

use super::{
    EventId, Session,
    answer_backlog::{Backlog, BacklogRead},
};
use crate::protocol::ByteChunks;

/// What both have.
#[derive(Debug)]
pub(super) struct ResumableShared {
    backlog: Mutex<Backlog>,
    /// There is something to read, or nothing more.
    written: Notify,
    /// Something was read, or a reader came or left.
    read: Notify,
}

/// The writing end; dropping it ends the stream, and it cannot be resumed any more.
#[derive(Debug)]
pub struct ResumableStream {
    session: Arc<Session>,
    shared: Arc<ResumableShared>,
}

/// What is left to be read; dropping it leaves the rest to whoever resumes the stream.
#[derive(Debug)]
pub struct StreamRemainder {
    shared: Arc<ResumableShared>,
    reader: u64,
}

impl Session {
    /// Begins an answer that the client can resume.
    pub fn begin_resumable(self: &Arc<Self>) -> (ResumableStream, StreamRemainder) {
        let shared = Arc::new(ResumableShared {
            backlog: Mutex::new(Backlog::new()),
            written: Notify::new(),
            read: Notify::new(),
        });
        self.memory().resumable.push(Arc::clone(&shared));
        let rest = StreamRemainder::open(Arc::clone(&shared), 0);
        (ResumableStream { session: Arc::clone(self), shared }, rest)
    }

    /// Drops the events that were read of all streams: a client whose stream broke just then misses
    /// them.
    pub(super) fn drop_read(&self) {
        self.outbox.forget_read();
        for shared in &self.memory().resumable {
            shared.backlog().drop_read(0, 0);
        }
    }

    /// Returns what comes after the event `last` of an answer, if it is one of an answer.
    pub fn resume(&self, last: EventId) -> Option<StreamRemainder> {
        let shared = {
            let memory = self.memory();
            let mut all = memory.resumable.iter();
            all.find(|shared| shared.backlog().has(last)).cloned()?
        };
        Some(StreamRemainder::open(shared, last.number))
    }
}

impl ResumableShared {
    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        // Held for statements on plain data.
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the backlog is as it should be for a writer.
    async fn wait(&self, is_it: impl Fn(&Backlog) -> bool) {
        loop {
            let read = self.read.notified();
            tokio::pin!(read);
            // Before the look, so that nothing which comes after it is missed.
            read.as_mut().enable();
            if is_it(&self.backlog()) {
                return;
            }
            read.await;
        }
    }
}

impl ResumableStream {
    /// Adds a message.
    pub fn push(&self, message: ByteChunks) {
        self.shared.backlog().push(message);
        self.shared.written.notify_waiters();
    }

    /// Ends the stream that is read now. The rest is for whoever resumes it.
    pub fn end_reading(&self) {
        self.shared.backlog().end_reading();
        self.shared.written.notify_waiters();
        self.shared.read.notify_waiters();
    }

    /// Says that there is nothing more.
    pub fn finish(&self) {
        self.shared.backlog().finish();
        self.shared.written.notify_waiters();
    }

    /// Waits until there is room for another message.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait_for_room(&self) {
        self.shared.wait(Backlog::has_room).await;
    }

    /// Waits until all of it was read.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn read_out(&self) {
        self.shared.wait(Backlog::is_fully_read).await;
    }

    /// Waits until the client has shown that it got all of it.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait_until_delivered(&self) {
        self.shared.wait(Backlog::is_confirmed).await;
    }

    /// Returns how much of it is kept, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.shared.backlog().n_bytes()
    }

    /// Waits until nobody has read for as long as `patience`.
    ///
    /// # Cancel safety
    ///
    /// The time begins anew.
    pub async fn abandoned(&self, patience: Duration) {
        loop {
            self.shared.wait(|backlog| !backlog.is_read()).await;
            if time::timeout(patience, self.shared.wait(Backlog::is_read)).await.is_err() {
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
        // Whoever has read until now ends.
        shared.written.notify_waiters();
        shared.read.notify_waiters();
        Self { shared, reader }
    }

    /// Returns the id of the event that was read last.
    pub fn position(&self) -> EventId {
        self.shared.backlog().position()
    }

    /// Waits for the next event; nothing when there is none any more, or when somebody else reads.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<(EventId, ByteChunks)> {
        loop {
            let written = self.shared.written.notified();
            tokio::pin!(written);
            // Before the look, so that nothing which comes after it is missed.
            written.as_mut().enable();
            let found = self.shared.backlog().next(self.reader);
            match found {
                BacklogRead::Event(id, message) => {
                    self.shared.read.notify_waiters();
                    return Some((id, message));
                }
                BacklogRead::End => return None,
                BacklogRead::Nothing => written.await,
            }
        }
    }
}

impl Drop for StreamRemainder {
    fn drop(&mut self) {
        self.shared.backlog().leave(self.reader);
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
    async fn a_client_has_its_time_to_come_back_each_time() {
        let (writer, rest) = session().begin_resumable();
        let patience = Duration::from_secs(30);
        let abandoned = writer.abandoned(patience);
        tokio::pin!(abandoned);
        assert!(time::timeout(patience * 2, &mut abandoned).await.is_err(), "it reads");
        let id = rest.position();
        for _ in 0..3 {
            let rest = writer.session.resume(id).expect("it runs");
            assert!(time::timeout(patience * 2, &mut abandoned).await.is_err(), "it reads again");
            drop(rest);
            assert!(time::timeout(patience / 2, &mut abandoned).await.is_err(), "not yet");
        }
        drop(rest);
        let left = time::Instant::now();
        abandoned.await;
        assert!(left.elapsed() <= patience);
    }

    #[test]
    fn what_comes_while_the_client_is_away_is_there_when_it_is_back() {
        let session = session();
        let (writer, mut rest) = session.begin_resumable();
        writer.push(Bytes::from_static(b"a").into());
        let (id, _) = rest.next().now_or_never().flatten().expect("an event");
        drop(rest);
        writer.push(Bytes::from_static(b"b").into());
        writer.finish();
        assert!(writer.read_out().now_or_never().is_none());
        assert!(session.is_in_use(), "it must not make room for another one");

        let mut rest = session.resume(id).expect("it is kept");
        assert_eq!(rest.next().now_or_never().flatten().expect("an event").1.join(), "b");
        assert!(matches!(rest.next().now_or_never(), Some(None)));
        assert!(writer.read_out().now_or_never().is_some());
        drop(writer);
        assert!(session.resume(id).is_none() && session.memory().resumable.is_empty());
        drop(rest);
        assert!(!session.is_in_use());
    }
}
