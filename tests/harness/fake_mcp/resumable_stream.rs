//! A resumable stream, which numbers its events and stores the last ones.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::output::Output;

/// The number of events stored for reconnecting clients, in addition to a reader's pending events.
const STORED_MAX: usize = 256;

/// The events of a stream, and the position of its reader.
#[derive(Debug)]
pub(crate) struct ResumableStream {
    name: String,
    stored: Mutex<StoredEvents>,
}

#[derive(Debug, Default)]
struct StoredEvents {
    /// The last events; the newest has the number `n_written`.
    events: VecDeque<Output>,
    n_written: u64,
    is_ended: bool,
    /// The number of the last event that was read.
    read: Option<u64>,
    waker: Option<Waker>,
}

impl ResumableStream {
    /// Returns an empty stream and its writing end.
    pub(crate) fn new(name: &str) -> (Arc<Self>, StreamWriter) {
        let stream = Arc::new(Self { name: name.to_owned(), stored: Mutex::default() });
        (stream.clone(), StreamWriter(stream))
    }

    /// Starts to read after an event, or from now on.
    pub(crate) fn read(self: &Arc<Self>, after: Option<u64>) -> StreamReader {
        let mut stored = self.stored();
        stored.read = Some(after.unwrap_or(stored.n_written).min(stored.n_written));
        drop(stored);
        StreamReader(self.clone())
    }

    fn stored(&self) -> MutexGuard<'_, StoredEvents> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing end: the stream ends when it is dropped.
#[derive(Debug)]
pub(crate) struct StreamWriter(Arc<ResumableStream>);

impl StreamWriter {
    /// Writes an event, even without a reader.
    pub(crate) fn write(&self, item: Output) {
        let mut stored = self.0.stored();
        stored.events.push_back(item);
        stored.n_written += 1;
        while stored.events.len() > STORED_MAX
            && stored.read.is_none_or(|read| stored.n_discarded() < read)
        {
            stored.events.pop_front();
        }
        let waker = stored.waker.take();
        drop(stored);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        let mut stored = self.0.stored();
        stored.is_ended = true;
        let waker = stored.waker.take();
        drop(stored);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The reading end; there is one at a time.
#[derive(Debug)]
pub(crate) struct StreamReader(Arc<ResumableStream>);

impl StreamReader {
    /// Returns the next event and its id; `None` at the end of the stream.
    pub(crate) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<(String, Output)>> {
        let mut stored = self.0.stored();
        let read = stored.read.unwrap_or(stored.n_written).max(stored.n_discarded());
        let at = usize::try_from(read - stored.n_discarded()).unwrap_or(usize::MAX);
        match stored.events.get(at).cloned() {
            Some(item) => {
                stored.read = Some(read + 1);
                Poll::Ready(Some((format!("{}-{}", self.0.name, read + 1), item)))
            }
            None if stored.is_ended => Poll::Ready(None),
            None => {
                stored.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let mut stored = self.0.stored();
        stored.read = None;
        stored.waker = None;
    }
}

impl StoredEvents {
    /// Returns the number of the last discarded event.
    fn n_discarded(&self) -> u64 {
        self.n_written - self.events.len() as u64
    }
}

/// Splits an event id into the name of its stream and its number there.
pub(crate) fn split(id: &str) -> Option<(&str, u64)> {
    let (name, number) = id.rsplit_once('-')?;
    Some((name, number.parse().ok()?))
}
