//! A launcher that listens in: when a server was started, what it wrote first, and how it ended.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::{
    io::{AsyncRead, ReadBuf},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    child::{
        ChildExit, HostLauncher, LaunchError, LaunchSite, LaunchedServer, Launcher, RunningServer,
        StdioServerKind,
    },
    config::defaults,
    protocol::Message,
};

/// Starts servers as this host does, and keeps a record of the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordingLauncher(Arc<Mutex<ProcessRecord>>);

/// What is known of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessRecord {
    /// How long it took until it was started.
    pub(super) start: Option<Duration>,
    /// When that was.
    pub(super) started: Option<Instant>,
    /// The first lines of its standard error, as they were.
    pub(super) stderr: FirstLines,
    /// The first lines of its standard output that are no messages.
    pub(super) noise: FirstLines,
    /// How it ended.
    pub(super) exit: Option<ChildExit>,
}

/// The first lines of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstLines {
    /// The lines, each with its beginning alone if it is long.
    pub(super) lines: Vec<String>,
    /// How many there were.
    pub(super) n_lines: usize,
    line: Vec<u8>,
}

/// Which stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

impl RecordingLauncher {
    /// Returns what is known by now.
    pub(super) fn record(&self) -> ProcessRecord {
        let mut record = self.lock().clone();
        // What has no line end yet was said all the same.
        record.stderr.end(Stream::Error);
        record.noise.end(Stream::Output);
        record
    }

    fn lock(&self) -> MutexGuard<'_, ProcessRecord> {
        // Held for single statements on plain data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Launcher for RecordingLauncher {
    fn launch<'a>(
        &'a self,
        home: &'a LaunchSite,
    ) -> BoxFuture<'a, Result<LaunchedServer, LaunchError>> {
        Box::pin(async move {
            let begin = Instant::now();
            let LaunchedServer { tenant, mut pipes } = HostLauncher.launch(home).await?;
            let now = Instant::now();
            *self.lock() = ProcessRecord {
                start: Some(now - begin),
                started: Some(now),
                ..ProcessRecord::default()
            };
            let reader = |stream, inner| Box::new(Reader { inner, stream, tap: self.clone() });
            pipes.stdout = reader(Stream::Output, pipes.stdout);
            pipes.stderr = pipes.stderr.map(|stderr| reader(Stream::Error, stderr) as Box<_>);
            Ok(LaunchedServer { tenant: Box::new(Watched { tenant, tap: self.clone() }), pipes })
        })
    }
}

/// A server whose end is noted.
#[derive(Debug)]
struct Watched {
    tenant: Box<dyn RunningServer>,
    tap: RecordingLauncher,
}

impl RunningServer for Watched {
    fn kind(&self) -> StdioServerKind {
        self.tenant.kind()
    }

    fn pid(&self) -> Option<u32> {
        self.tenant.pid()
    }

    fn wait(&mut self) -> BoxFuture<'_, ChildExit> {
        self.tenant.wait()
    }

    fn last_words(&mut self, is_alone: bool) -> BoxFuture<'_, Vec<String>> {
        self.tenant.last_words(is_alone)
    }

    fn see_off(self: Box<Self>, hurry: CancellationToken) -> BoxFuture<'static, ChildExit> {
        Box::pin(async move {
            let exit = self.tenant.see_off(hurry).await;
            self.tap.lock().exit = Some(exit);
            exit
        })
    }
}

/// A pipe whose first lines are noted.
struct Reader {
    inner: Box<dyn AsyncRead + Send + Unpin>,
    stream: Stream,
    tap: RecordingLauncher,
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let mut record = self.tap.lock();
        let first = match self.stream {
            Stream::Output => &mut record.noise,
            Stream::Error => &mut record.stderr,
        };
        first.take(&buffer.filled()[n_before..], self.stream);
        Poll::Ready(Ok(()))
    }
}

impl FirstLines {
    fn take(&mut self, bytes: &[u8], stream: Stream) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n").unwrap_or(piece);
            let room = defaults::DOCTOR_LINE_BYTES_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..room.min(text.len())]);
            if text.len() < piece.len() {
                self.end(stream);
            }
        }
    }

    /// Takes in a line that has ended.
    fn end(&mut self, stream: Stream) {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii();
        if text.is_empty() || (stream == Stream::Output && is_message(text)) {
            return;
        }
        self.n_lines += 1;
        if self.lines.len() < defaults::DOCTOR_LINES_MAX {
            self.lines.push(String::from_utf8_lossy(text).into_owned());
        }
    }
}

/// Tells whether a line is a message, as far as its beginning tells.
fn is_message(line: &[u8]) -> bool {
    match line.len() >= defaults::DOCTOR_LINE_BYTES_MAX {
        true => line.starts_with(b"{"),
        false => Message::parse_lossy(Bytes::copy_from_slice(line)).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_that_are_no_messages_are_noise() {
        let mut first = FirstLines::default();
        first.take(b"\n \r\nhello\n{\"jsonrpc\":\"2.0\",\"id\":1,\"res", Stream::Output);
        first.take(b"ult\":{}}\nSta", Stream::Output);
        first.take(b"rting\n{\"a\":\"", Stream::Output);
        first.take("x".repeat(9000).as_bytes(), Stream::Output);
        first.take(b"\n{}\nlast", Stream::Output);
        first.end(Stream::Output);
        assert_eq!(first.lines, ["hello", "Starting", "{}", "last"]);
        for _ in 0..50 {
            first.take(b"noise\n", Stream::Output);
        }
        assert_eq!((first.lines.len(), first.n_lines), (defaults::DOCTOR_LINES_MAX, 54));
    }
}
