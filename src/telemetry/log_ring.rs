//! The last log lines of the service, in memory, for `metamcp logs`.
//!
//! The lines are those of the log: with the same level, and with the same secrets hidden.

use std::sync::Arc;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{Layer, layer::Context};

use super::{
    log_fields::LogFields,
    ring::{Ring, RingEntry},
};
use crate::{config::defaults, redact, time_format};

/// The last log lines.
pub type LogRing = Ring<Arc<LogLine>>;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
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

/// The layer that writes events to a ring.
#[derive(Debug)]
pub struct LogRingLayer(pub Arc<LogRing>);

impl LogRing {
    /// Returns a ring for at most [`defaults::LOG_RING_LINES`] and [`defaults::LOG_RING_BYTES`].
    pub fn of_service() -> Self {
        Self::new(defaults::LOG_RING_LINES, defaults::LOG_RING_BYTES)
    }
}

impl RingEntry for LogLine {
    fn n_bytes(&self) -> usize {
        size_of::<Self>()
            + self.text.len()
            + self.fields.len()
            + self.server.as_ref().map_or(0, String::len)
    }

    fn at_ms(&self) -> u64 {
        self.at_ms
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
        self.0.push(Arc::new(LogLine { at_ms, level, server: values.server, text, fields }));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::{Registry, layer::SubscriberExt as _};

    use super::*;
    use crate::telemetry::ring::RingQuery;

    fn logged(events: impl FnOnce()) -> Vec<Arc<LogLine>> {
        let ring = Arc::new(LogRing::of_service());
        let subscriber = Registry::default().with(LogRingLayer(Arc::clone(&ring)));
        tracing::subscriber::with_default(subscriber, events);
        let all = RingQuery { since_ms: None, after: None, entries_max: usize::MAX };
        ring.read(all, |_| true).entries
    }

    #[test]
    fn a_line_shows_each_value_once() {
        let lines = logged(|| {
            let (server, n) = ("git", 7);
            tracing::warn!(mcp_server = %server, n, reason = "no such file", fault = "a b", "server `{server}`: no such file");
        });
        let line = &lines[0];
        assert_eq!((line.server.as_deref(), line.level), (Some("git"), Level::WARN));
        assert_eq!(line.text, "server `git`: no such file");
        assert_eq!(line.fields, "n=7 fault=\"a b\"");
    }

    #[test]
    fn the_ring_keeps_a_bounded_number_of_bytes() {
        let long = "x".repeat(2 * defaults::LOG_RING_LINE_BYTES_MAX);
        let n_lines = defaults::LOG_RING_BYTES / defaults::LOG_RING_LINE_BYTES_MAX + 10;
        let lines = logged(|| (0..n_lines).for_each(|_| tracing::info!("{long}")));
        assert!(lines.iter().map(|line| line.n_bytes()).sum::<usize>() <= defaults::LOG_RING_BYTES);
        assert!(lines.len() < n_lines);
    }
}
