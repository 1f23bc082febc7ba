//! The last log lines of the service, in memory, for `metamcp logs`.
//!
//! The lines are those of the log: with the same level, and with the same secrets hidden. A reader
//! asks for the lines after the last one that it has. Lines that were dropped meanwhile are counted.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{Layer, layer::Context};

use super::log_fields::LogFields;
use crate::{config::defaults, redact, time_format};

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The number of the line since the start, from 1.
    pub number: u64,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The level.
    pub level: Level,
    /// The server that the line is about.
    pub server: Option<String>,
    /// The text, on one line.
    pub text: String,
    /// The fields whose values the text does not contain: `name=value`, separated by spaces.
    pub fields: String,
}

/// The last log lines: at most [`defaults::LOG_RING_LINES`] and [`defaults::LOG_RING_BYTES`].
#[derive(Debug)]
pub struct LogRing {
    kept: Mutex<KeptLines>,
    /// The number of the newest line.
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct KeptLines {
    lines: VecDeque<Arc<LogLine>>,
    n_bytes: usize,
    n_written: u64,
}

/// The lines that a reader wants.
#[derive(Clone, Debug)]
pub struct LogQuery {
    /// Only lines about this server.
    pub server: Option<String>,
    /// Only lines of this level and more severe ones.
    pub level: Level,
    /// Only lines at or after this time, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Only lines after the one with this number.
    pub after: Option<u64>,
    /// The largest number of lines: the first ones after `after`, else the last ones.
    pub lines_max: usize,
}

/// A part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The lines, oldest first.
    pub lines: Vec<Arc<LogLine>>,
    /// The number to ask for the lines after these.
    pub next: u64,
    /// The number of lines after `after` that were dropped before they were read.
    pub n_lost: u64,
    /// Lines from before the oldest kept one may match, too.
    pub is_cut: bool,
}

/// The layer that writes events to a ring.
#[derive(Debug)]
pub struct LogRingLayer(pub Arc<LogRing>);

impl Default for LogRing {
    fn default() -> Self {
        Self { kept: Mutex::default(), newest: watch::Sender::new(0) }
    }
}

impl LogRing {
    /// Returns the lines that match `query`.
    pub fn read(&self, query: &LogQuery) -> LogPage {
        let kept = self.kept();
        let n_dropped = kept.n_written - kept.lines.len() as u64;
        if let Some(after) = query.after {
            let n_lost = n_dropped.saturating_sub(after);
            let mut page = LogPage { next: kept.n_written, n_lost, ..LogPage::default() };
            for line in kept.lines.iter().filter(|line| line.number > after && query.wants(line)) {
                if page.lines.len() == query.lines_max {
                    page.next = page.lines.last().map_or(after, |line| line.number);
                    break;
                }
                page.lines.push(Arc::clone(line));
            }
            return page;
        }
        let wanted = kept.lines.iter().rev().filter(|line| query.wants(line));
        let mut lines: Vec<_> = wanted.take(query.lines_max).cloned().collect();
        lines.reverse();
        let oldest_ms = kept.lines.front().map_or(0, |line| line.at_ms);
        let may_be_older = query.since_ms.is_none_or(|since_ms| since_ms < oldest_ms);
        let is_cut = n_dropped > 0 && may_be_older && lines.len() < query.lines_max;
        LogPage { lines, next: kept.n_written, n_lost: 0, is_cut }
    }

    /// Waits for a line after the one with the number `after`. Cancel safe.
    pub async fn wait_after(&self, after: u64) {
        let mut newest = self.newest.subscribe();
        // Cannot fail: this ring owns the sender.
        let _newest = newest.wait_for(|newest| *newest > after).await;
    }

    /// Returns whether a kept line is about this server.
    pub fn has_server(&self, server: &str) -> bool {
        self.kept().lines.iter().any(|line| line.server.as_deref() == Some(server))
    }

    fn push(&self, mut line: LogLine) {
        let number = {
            let mut kept = self.kept();
            kept.n_written += 1;
            line.number = kept.n_written;
            kept.n_bytes += line.n_bytes();
            kept.lines.push_back(Arc::new(line));
            while kept.lines.len() > defaults::LOG_RING_LINES
                || kept.n_bytes > defaults::LOG_RING_BYTES
            {
                let Some(dropped) = kept.lines.pop_front() else { break };
                kept.n_bytes -= dropped.n_bytes();
            }
            kept.n_written
        };
        // Threads may get here in another order.
        self.newest.send_if_modified(|newest| {
            let is_newer = number > *newest;
            *newest = number.max(*newest);
            is_newer
        });
    }

    fn kept(&self) -> MutexGuard<'_, KeptLines> {
        // Held only for statements on plain data.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogQuery {
    fn wants(&self, line: &LogLine) -> bool {
        line.level <= self.level
            && self.since_ms.is_none_or(|since_ms| line.at_ms >= since_ms)
            && self.server.as_ref().is_none_or(|server| line.server.as_ref() == Some(server))
    }
}

impl LogLine {
    fn n_bytes(&self) -> usize {
        size_of::<Self>()
            + self.text.len()
            + self.fields.len()
            + self.server.as_ref().map_or(0, String::len)
    }
}

impl<S: Subscriber> Layer<S> for LogRingLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut values = LogFields::default();
        event.record(&mut values);
        let cut = |text: &str| {
            redact::cut(text, defaults::LOG_RING_LINE_BYTES_MAX).replace(['\n', '\r'], " ")
        };
        let (text, fields) = (cut(&values.text), cut(&values.others_to_show()));
        let level = *event.metadata().level();
        let at_ms = time_format::now_ms();
        self.0.push(LogLine { number: 0, at_ms, level, server: values.server, text, fields });
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::{Registry, layer::SubscriberExt as _};

    use super::*;

    fn logged(events: impl FnOnce()) -> Arc<LogRing> {
        let ring = Arc::new(LogRing::default());
        let subscriber = Registry::default().with(LogRingLayer(Arc::clone(&ring)));
        tracing::subscriber::with_default(subscriber, events);
        ring
    }

    const ALL: LogQuery = LogQuery {
        server: None,
        level: Level::TRACE,
        since_ms: None,
        after: None,
        lines_max: usize::MAX,
    };

    fn texts(page: &LogPage) -> Vec<&str> {
        page.lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn a_line_shows_each_value_once() {
        let ring = logged(|| {
            let (server, n) = ("git", 7);
            tracing::warn!(mcp_server = %server, n, reason = "no such file", fault = "a b", "server `{server}`: no such file");
        });
        let page = ring.read(&ALL);
        let line = &page.lines[0];
        assert_eq!((line.server.as_deref(), line.level), (Some("git"), Level::WARN));
        assert_eq!(line.text, "server `git`: no such file");
        assert_eq!(line.fields, "n=7 fault=\"a b\"");
    }

    #[test]
    fn lines_are_filtered_by_server_level_and_number() {
        let ring = logged(|| {
            tracing::info!(mcp_server = "git", "a");
            tracing::warn!(mcp_server = "git", "b");
            tracing::error!(mcp_server = "github", "c");
            tracing::debug!("d");
        });
        let git = LogQuery { server: Some("git".to_owned()), ..ALL };
        assert_eq!(texts(&ring.read(&git)), ["a", "b"]);
        assert_eq!(texts(&ring.read(&LogQuery { level: Level::WARN, ..ALL })), ["b", "c"]);
        assert_eq!(texts(&ring.read(&LogQuery { lines_max: 2, ..ALL })), ["c", "d"]);
        let next = ring.read(&LogQuery { after: Some(1), lines_max: 2, ..ALL });
        assert_eq!((texts(&next), next.next), (vec!["b", "c"], 3));
        let rest = ring.read(&LogQuery { after: Some(next.next), lines_max: 2, ..ALL });
        assert_eq!((texts(&rest), rest.next, rest.n_lost), (vec!["d"], 4, 0));
        assert!(ring.has_server("git") && !ring.has_server("gi"));
    }

    #[test]
    fn the_ring_keeps_a_bounded_number_of_lines_and_counts_those_that_a_reader_lost() {
        let n_lines = defaults::LOG_RING_LINES as u64 + 12;
        let ring = logged(|| (0..n_lines).for_each(|number| tracing::info!("{number}")));
        let page = ring.read(&ALL);
        assert_eq!(page.lines.len(), defaults::LOG_RING_LINES);
        assert!(page.is_cut);
        let page = ring.read(&LogQuery { after: Some(0), ..ALL });
        assert_eq!(page.n_lost, 12);
        let now = ring.read(&LogQuery { since_ms: Some(u64::MAX), ..ALL });
        assert!(now.lines.is_empty() && !now.is_cut);
    }

    #[test]
    fn the_ring_keeps_a_bounded_number_of_bytes() {
        let long = "x".repeat(2 * defaults::LOG_RING_LINE_BYTES_MAX);
        let n_lines = defaults::LOG_RING_BYTES / defaults::LOG_RING_LINE_BYTES_MAX + 10;
        let ring = logged(|| (0..n_lines).for_each(|_| tracing::info!("{long}")));
        assert!(ring.kept().n_bytes <= defaults::LOG_RING_BYTES);
        assert!(ring.read(&ALL).lines.len() < n_lines);
    }

    #[tokio::test]
    async fn a_reader_waits_for_the_next_line() {
        use futures_util::FutureExt as _;
        let ring = logged(|| tracing::info!("a"));
        assert_eq!(ring.wait_after(0).now_or_never(), Some(()));
        assert_eq!(ring.wait_after(1).now_or_never(), None);
    }
}
