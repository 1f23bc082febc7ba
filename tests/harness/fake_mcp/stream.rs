//! A resumable stream, which numbers its events and stores the last ones.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::wire::Write;

/// The number of events stored for reconnecting clients; a reader's pending events are added.
const KEPT_MAX: usize = 256;

/// The events of a stream, and the position of its reader.
#[derive(Debug)]
pub(crate) struct Stream {
    name: String,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The last events; the newest has the number `n_written`.
    events: VecDeque<Write>,
    n_written: u64,
    is_ended: bool,
    /// The number of the last event that was read.
    read: Option<u64>,
    waker: Option<Waker>,
}

impl Stream {
    /// Returns an empty stream and its writing end.
    pub(crate) fn new(name: &str) -> (Arc<Self>, Feed) {
        let stream = Arc::new(Self { name: name.to_owned(), kept: Mutex::default() });
        (stream.clone(), Feed(stream))
    }

    /// Starts to read after an event, or from now on.
    pub(crate) fn read(self: &Arc<Self>, after: Option<u64>) -> Reader {
        let mut kept = self.kept();
        kept.read = Some(after.unwrap_or(kept.n_written).min(kept.n_written));
        drop(kept);
        Reader(self.clone())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing end: the stream ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Feed(Arc<Stream>);

impl Feed {
    /// Writes an event, even without a reader.
    pub(crate) fn write(&self, write: Write) {
        let mut kept = self.0.kept();
        kept.events.push_back(write);
        kept.n_written += 1;
        while kept.events.len() > KEPT_MAX && kept.read.is_none_or(|read| kept.n_forgotten() < read)
        {
            kept.events.pop_front();
        }
        let waker = kept.waker.take();
        drop(kept);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut kept = self.0.kept();
        kept.is_ended = true;
        let waker = kept.waker.take();
        drop(kept);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The reading end; there is one at a time.
#[derive(Debug)]
pub(crate) struct Reader(Arc<Stream>);

impl Reader {
    /// Returns the next event and its id; `None` at the end of the stream.
    pub(crate) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<(String, Write)>> {
        let mut kept = self.0.kept();
        let read = kept.read.unwrap_or(kept.n_written).max(kept.n_forgotten());
        let at = usize::try_from(read - kept.n_forgotten()).unwrap_or(usize::MAX);
        match kept.events.get(at).cloned() {
            Some(write) => {
                kept.read = Some(read + 1);
                Poll::Ready(Some((format!("{}-{}", self.0.name, read + 1), write)))
            }
            None if kept.is_ended => Poll::Ready(None),
            None => {
                kept.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut kept = self.0.kept();
        kept.read = None;
        kept.waker = None;
    }
}

impl Kept {
    /// Returns the number of the last discarded event.
    fn n_forgotten(&self) -> u64 {
        self.n_written - self.events.len() as u64
    }
}

/// Splits an event id into the name of its stream and its number there.
pub(crate) fn split(id: &str) -> Option<(&str, u64)> {
    let (name, number) = id.rsplit_once('-')?;
    Some((name, number.parse().ok()?))
}
