//! The queue between the threads that log and the journal.
//!
//! tracing-journald sends an entry from the thread that logs, and waits for the journal: a journal
//! that hangs would stop the event loop. So events wait in a bounded queue, and a thread of its own
//! hands them to tracing-journald.

use std::{
    fmt,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    field::{Field, Value, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

use crate::config::defaults;

/// The largest number of fields of an event. Source: the macros of tracing.
const FIELDS_MAX: usize = 32;

/// The layer that queues events for the journal. A full queue drops them.
#[derive(Debug)]
pub(super) struct JournalQueue {
    queue: SyncSender<Option<QueuedEvent>>,
    n_dropped: AtomicU64,
}

/// The thread that writes to the journal. Dropping this writes what waits, within
/// [`defaults::JOURNAL_END_TIMEOUT`].
#[derive(Debug)]
pub(super) struct JournalWriter {
    queue: SyncSender<Option<QueuedEvent>>,
    ended: Receiver<()>,
}

/// An event with its values as text, as the journal has them.
#[derive(Debug)]
struct QueuedEvent {
    metadata: &'static Metadata<'static>,
    values: Vec<(Field, String)>,
    /// The number of events dropped before it.
    n_dropped: u64,
}

impl JournalQueue {
    /// Returns the queue in front of `journal`, and its thread. At most `events_max` events wait.
    pub(super) fn start(journal: Dispatch, events_max: usize) -> (Self, JournalWriter) {
        let (queue, events) = mpsc::sync_channel::<Option<QueuedEvent>>(events_max);
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            while let Ok(Some(event)) = events.recv() {
                event.write(&journal);
            }
            // The service may have stopped waiting.
            let _unread = end.send(());
        });
        let writer = JournalWriter { queue: queue.clone(), ended };
        (Self { queue, n_dropped: AtomicU64::new(0) }, writer)
    }
}

impl<S: Subscriber> Layer<S> for JournalQueue {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut values = TextValues(Vec::new());
        event.record(&mut values);
        let n_dropped = self.n_dropped.swap(0, Ordering::Relaxed);
        let queued = QueuedEvent { metadata: event.metadata(), values: values.0, n_dropped };
        if self.queue.try_send(Some(queued)).is_err() {
            self.n_dropped.fetch_add(n_dropped + 1, Ordering::Relaxed);
        }
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        // A journal that hangs behind a full queue is not waited for.
        if self.queue.try_send(None).is_ok() {
            let _ended = self.ended.recv_timeout(defaults::JOURNAL_END_TIMEOUT);
        }
    }
}

impl QueuedEvent {
    fn write(&self, journal: &Dispatch) {
        tracing::dispatcher::with_default(journal, || {
            let n_dropped = self.n_dropped;
            if n_dropped > 0 {
                tracing::warn!(
                    n_dropped,
                    "{n_dropped} log lines were dropped: the journal is slower than the log"
                );
            }
            let Some((first, _)) = self.values.first() else { return };
            let mut values: [(&Field, Option<&dyn Value>); FIELDS_MAX] =
                [(first, None); FIELDS_MAX];
            for (place, (field, text)) in values.iter_mut().zip(&self.values) {
                *place = (field, Some(text));
            }
            journal.event(&Event::new(self.metadata, &self.metadata.fields().value_set(&values)));
        });
    }
}

/// The values of an event as text.
struct TextValues(Vec<(Field, String)>);

impl Visit for TextValues {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.clone(), format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.clone(), value.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex};

    use tracing_subscriber::{Registry, layer::SubscriberExt as _};

    use super::*;

    /// A journal that takes nothing until it is opened.
    #[derive(Clone, Default)]
    struct ClosedJournal(Arc<(Mutex<JournalState>, Condvar)>);

    /// The flag of an open journal, and its entries.
    type JournalState = (bool, Vec<String>);

    impl ClosedJournal {
        fn open(&self) {
            let (state, changed) = &*self.0;
            state.lock().unwrap().0 = true;
            changed.notify_all();
        }

        fn wait_for(&self, n_entries: usize) -> Vec<String> {
            let (state, changed) = &*self.0;
            let state = state.lock().unwrap();
            changed.wait_while(state, |(_, entries)| entries.len() < n_entries).unwrap().1.clone()
        }
    }

    impl<S: Subscriber> Layer<S> for ClosedJournal {
        fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
            let mut values = TextValues(Vec::new());
            event.record(&mut values);
            let texts = values.0.iter().map(|(field, text)| format!("{field}={text}"));
            let entry = texts.collect::<Vec<_>>().join(" ");
            let (state, changed) = &*self.0;
            let state = state.lock().unwrap();
            let mut state = changed.wait_while(state, |(is_open, _)| !*is_open).unwrap();
            state.1.push(entry);
            changed.notify_all();
        }
    }

    #[test]
    fn a_journal_that_hangs_stops_no_thread_and_learns_what_it_has_missed() {
        let journal = ClosedJournal::default();
        let dispatch = Dispatch::new(Registry::default().with(journal.clone()));
        let (queue, writer) = JournalQueue::start(dispatch, 4);
        tracing::subscriber::with_default(Registry::default().with(queue), || {
            for number in 0..50 {
                tracing::warn!(mcp_server = "git", number, is_late = false, "line {number}");
            }
            journal.open();
            journal.wait_for(4);
            tracing::info!("after");
        });
        drop(writer);
        let written = journal.wait_for(6);
        assert_eq!(written[0], "message=line 0 mcp_server=git number=0 is_late=false");
        assert!(
            written.iter().any(|entry| entry.contains(" log lines were dropped")),
            "{written:?}"
        );
        assert_eq!(written.last().unwrap(), "message=after");
    }
}
