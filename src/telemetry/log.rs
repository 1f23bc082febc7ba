//! Log events to the journal with their fields, or as lines to standard error; and to memory.

use std::{io, os::fd::AsFd, sync::Arc};

use tracing::{Dispatch, Level, Subscriber, level_filters::LevelFilter};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::{
    Layer, Registry, filter::Targets, layer::SubscriberExt, registry::LookupSpan, reload,
};

use super::{
    journal_queue::{JournalQueue, JournalWriter},
    log_fields::LineFormat,
    log_ring::{LogRing, LogRingLayer},
};
use crate::config::{LogLevel, defaults};

/// A handle to change the log level at run time; dropping it writes the buffered lines.
#[derive(Debug)]
pub struct LogControl {
    filter: reload::Handle<Targets, Registry>,
    ring: Arc<LogRing>,
    _writer: LogWriter,
}

/// The thread that writes the log. Dropping it writes what waits.
#[derive(Debug)]
enum LogWriter {
    Journal { _writer: JournalWriter },
    Lines { _writer: WorkerGuard },
}

impl LogControl {
    /// Returns the last log lines.
    pub fn ring(&self) -> &Arc<LogRing> {
        &self.ring
    }

    /// Logs events of `level` and more severe ones.
    pub fn set(&self, level: LogLevel) {
        // Fails only if the subscriber is gone; then nothing is logged anyway.
        let _gone = self.filter.reload(targets(level));
    }
}

/// Starts logging, once per process.
///
/// Events go natively to the journal if systemd connected standard error to it (`JOURNAL_STREAM`
/// names that stream); otherwise to standard error as lines, coloured on a terminal. Fields keep
/// their names in the journal: `MCP_SERVER=`, `MCP_STREAM=` and so on.
pub fn start(level: LogLevel) -> LogControl {
    let (filter, handle) = reload::Layer::new(targets(level));
    let ring = Arc::new(LogRing::of_service());
    let subscriber = Registry::default().with(filter).with(LogRingLayer(Arc::clone(&ring)));
    let journal = is_journal(io::stderr()).then(journal).flatten();
    // Written by a separate thread: the journal or the reader of standard error may stall.
    let (installed, writer) = match journal {
        Some(journal) => {
            let (queue, writer) = JournalQueue::start(journal, defaults::LOG_LINES_MAX);
            let installed = tracing::subscriber::set_global_default(subscriber.with(queue));
            (installed, LogWriter::Journal { _writer: writer })
        }
        None => {
            let (lossy, writer) = NonBlockingBuilder::default()
                .buffered_lines_limit(defaults::LOG_LINES_MAX)
                .lossy(true)
                .finish(io::stderr());
            let lines = lines(lossy);
            let installed = tracing::subscriber::set_global_default(subscriber.with(lines));
            (installed, LogWriter::Lines { _writer: writer })
        }
    };
    debug_assert!(installed.is_ok(), "logging is started once");
    LogControl { filter: handle, ring, _writer: writer }
}

/// Returns the filter. rmcp logs whole messages at INFO, which would leak secrets.
fn targets(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    Targets::new().with_default(Level::WARN).with_target("metamcp", level)
}

/// Returns what sends events to the journal, if it runs.
fn journal() -> Option<Dispatch> {
    let layer = tracing_journald::layer().ok()?;
    let layer = layer
        .with_field_prefix(None)
        .with_syslog_identifier("metamcp".to_owned())
        .with_priority_mappings(
            // One step below the defaults: INFO becomes "informational", not "notice".
            PriorityMappings {
                info: Priority::Informational,
                debug: Priority::Debug,
                ..PriorityMappings::new()
            },
        );
    Some(Dispatch::new(Registry::default().with(layer)))
}

fn lines<S>(writer: NonBlocking) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    use std::io::IsTerminal as _;
    tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .fmt_fields(LineFormat)
}

/// Returns whether `stream` is the one that systemd connected to the journal.
pub fn is_journal(stream: impl AsFd) -> bool {
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    let Some((device, inode)) = named.split_once(':') else { return false };
    let (Ok(device), Ok(inode)) = (device.parse::<u64>(), inode.parse::<u64>()) else {
        return false;
    };
    rustix::fs::fstat(stream).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (device, inode))
}
