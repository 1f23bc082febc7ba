//! The layer that writes log events to the journal, with their fields.
//!
//! The crate tracing-journald does so too, but it waits for the journal: a journal that hangs would
//! stop the event loop.

use std::{
    fmt,
    io::Write as _,
    sync::atomic::{AtomicUsize, Ordering},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{Layer, layer::Context};

use super::journal_socket::{JournalEntry, JournalSocket};
use crate::config::defaults;

/// The layer that writes events to the journal. A separate thread sends them.
#[derive(Debug)]
pub(super) struct JournalLayer {
    queue: NonBlocking,
    /// The number of dropped lines that the journal knows of.
    n_told: AtomicUsize,
}

impl JournalLayer {
    /// Returns the layer, and the guard whose end sends what waits.
    pub(super) fn start(socket: JournalSocket) -> (Self, WorkerGuard) {
        let (queue, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(defaults::LOG_LINES_MAX)
            .lossy(true)
            .finish(socket);
        (Self { queue, n_told: AtomicUsize::new(0) }, guard)
    }

    fn send(&self, entry: &JournalEntry) {
        // A full queue drops the entry and counts it.
        let _dropped = self.queue.clone().write(entry.bytes());
    }

    fn n_dropped(&self) -> usize {
        self.queue.error_counter().dropped_lines()
    }

    /// Says how many lines were dropped since the last time.
    fn tell_dropped(&self) {
        let n_dropped = self.n_dropped();
        let n_told = self.n_told.load(Ordering::Relaxed);
        if n_dropped == n_told {
            return;
        }
        let n_new = n_dropped.wrapping_sub(n_told);
        let mut entry = JournalEntry::new(priority(Level::WARN));
        entry.add(
            "MESSAGE",
            format_args!("{n_new} log lines were dropped: the journal is slower than the log"),
        );
        self.send(&entry);
        // Else the line about dropped lines was dropped itself.
        if self.n_dropped() == n_dropped {
            self.n_told.store(n_dropped, Ordering::Relaxed);
        }
    }
}

impl<S: Subscriber> Layer<S> for JournalLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        self.tell_dropped();
        let about = event.metadata();
        let mut entry = JournalEntry::new(priority(*about.level()));
        entry.add("TARGET", about.target());
        entry.add_some("CODE_FILE", about.file());
        entry.add_some("CODE_LINE", about.line());
        event.record(&mut EventFields(&mut entry));
        self.send(&entry);
    }
}

/// Returns the priority of a level. Source: syslog(3).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

/// The fields of an event as those of an entry. The text is its field `message`.
struct EventFields<'a>(&'a mut JournalEntry);

impl EventFields<'_> {
    fn add(&mut self, field: &Field, value: impl fmt::Display) {
        let is_allowed = |found: char| found.is_ascii_alphanumeric();
        let name: String = field
            .name()
            .chars()
            .map(|found| if is_allowed(found) { found.to_ascii_uppercase() } else { '_' })
            .collect();
        self.0.add(name.trim_start_matches('_'), value);
    }
}

impl Visit for EventFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex};

    use tracing_subscriber::{Registry, layer::SubscriberExt as _};

    use super::*;

    /// A journal that takes nothing until it is opened.
    #[derive(Clone, Default)]
    struct ClosedJournal(Arc<(Mutex<(bool, String)>, Condvar)>);

    impl std::io::Write for ClosedJournal {
        fn write(&mut self, entry: &[u8]) -> std::io::Result<usize> {
            let (state, changed) = &*self.0;
            let state = state.lock().expect("not poisoned");
            let mut state = changed.wait_while(state, |(is_open, _)| !*is_open).expect("well");
            state.1.push_str(&String::from_utf8_lossy(entry));
            Ok(entry.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_journal_that_hangs_stops_no_thread_and_learns_what_it_has_missed() {
        let journal = ClosedJournal::default();
        let (queue, guard) = NonBlockingBuilder::default()
            .buffered_lines_limit(4)
            .lossy(true)
            .finish(journal.clone());
        let layer = JournalLayer { queue, n_told: AtomicUsize::new(0) };
        tracing::subscriber::with_default(Registry::default().with(layer), || {
            for number in 0..50 {
                tracing::warn!(mcp_server = "git", number, "line {number}");
            }
            let (state, changed) = &*journal.0;
            state.lock().expect("not poisoned").0 = true;
            changed.notify_all();
            while state.lock().expect("not poisoned").1.matches("MESSAGE=line").count() < 4 {
                std::thread::yield_now();
            }
            tracing::info!("after");
        });
        drop(guard);
        let written = journal.0.0.lock().expect("not poisoned").1.clone();
        assert!(written.contains("\nMESSAGE=line 0\nMCP_SERVER=git\nNUMBER=0\n"), "{written}");
        assert!(written.contains(" log lines were dropped: the journal is slower"), "{written}");
        assert!(written.ends_with("MESSAGE=after\n"), "{written}");
    }
}
