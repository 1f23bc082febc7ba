//! A launcher that records a server's start time, its first output lines and its exit status.

use std::{
    collections::VecDeque,
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

/// A launcher that starts servers on this host, and keeps a record of the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordingLauncher(Arc<Mutex<ProcessRecord>>);

/// The record of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessRecord {
    /// The duration of the start.
    pub(super) start: Option<Duration>,
    /// The time when it was started.
    pub(super) started: Option<Instant>,
    /// The first lines of its standard error, unchanged.
    pub(super) stderr: FirstLines,
    /// The first lines on its standard output that are not messages.
    pub(super) noise: FirstLines,
    /// The exit status.
    pub(super) exit: Option<ChildExit>,
}

/// The first lines of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstLines {
    /// The lines, each cut at [`defaults::DOCTOR_LINE_BYTES_MAX`].
    pub(super) lines: Vec<String>,
    /// The last lines after them.
    pub(super) last: VecDeque<String>,
    /// The total number of lines.
    pub(super) n_lines: usize,
    line: Vec<u8>,
}

/// The standard stream that a reader records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Output,
    Error,
}

impl RecordingLauncher {
    /// Returns the present record.
    pub(super) fn record(&self) -> ProcessRecord {
        let mut record = self.lock().clone();
        // A last line without a newline counts too.
        record.stderr.end(Stream::Error);
        record.noise.end(Stream::Output);
        record
    }

    fn lock(&self) -> MutexGuard<'_, ProcessRecord> {
        // The lock is held for single statements on plain data, so no panic leaves it inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Launcher for RecordingLauncher {
    fn launch<'a>(
        &'a self,
        site: &'a LaunchSite,
    ) -> BoxFuture<'a, Result<LaunchedServer, LaunchError>> {
        Box::pin(async move {
            let begin = Instant::now();
            let LaunchedServer { running, mut pipes } = HostLauncher.launch(site).await?;
            let now = Instant::now();
            *self.lock() = ProcessRecord {
                start: Some(now - begin),
                started: Some(now),
                ..ProcessRecord::default()
            };
            let reader =
                |stream, inner| Box::new(RecordedPipe { inner, stream, recorder: self.clone() });
            pipes.stdout = reader(Stream::Output, pipes.stdout);
            pipes.stderr = pipes.stderr.map(|stderr| reader(Stream::Error, stderr) as Box<_>);
            Ok(LaunchedServer {
                running: Box::new(RecordedServer { running, recorder: self.clone() }),
                pipes,
            })
        })
    }
}

/// A server whose exit status is recorded.
#[derive(Debug)]
struct RecordedServer {
    running: Box<dyn RunningServer>,
    recorder: RecordingLauncher,
}

impl RunningServer for RecordedServer {
    fn kind(&self) -> StdioServerKind {
        self.running.kind()
    }

    fn pid(&self) -> Option<u32> {
        self.running.pid()
    }

    fn wait(&mut self) -> BoxFuture<'_, ChildExit> {
        self.running.wait()
    }

    fn last_lines(&mut self, is_only_instance: bool) -> BoxFuture<'_, Vec<String>> {
        self.running.last_lines(is_only_instance)
    }

    fn terminate(self: Box<Self>, skip_drain: CancellationToken) -> BoxFuture<'static, ChildExit> {
        Box::pin(async move {
            let exit = self.running.terminate(skip_drain).await;
            self.recorder.lock().exit = Some(exit);
            exit
        })
    }
}

/// A pipe whose first lines are recorded.
struct RecordedPipe {
    inner: Box<dyn AsyncRead + Send + Unpin>,
    stream: Stream,
    recorder: RecordingLauncher,
}

impl AsyncRead for RecordedPipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let mut record = self.recorder.lock();
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

    /// Returns the first and the last lines, with the number of those in between.
    pub(super) fn shown(&self) -> Vec<String> {
        let n_left_out = self.n_lines.saturating_sub(self.lines.len() + self.last.len());
        let gap = (n_left_out > 0).then(|| format!("… {n_left_out} more lines …"));
        self.lines.iter().chain(&gap).chain(&self.last).cloned().collect()
    }

    /// Stores a completed line.
    fn end(&mut self, stream: Stream) {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_ascii();
        if text.is_empty() || (stream == Stream::Output && is_message(text)) {
            return;
        }
        self.n_lines += 1;
        let text = String::from_utf8_lossy(text).into_owned();
        if self.lines.len() < defaults::DOCTOR_LINES_MAX {
            self.lines.push(text);
            return;
        }
        self.last.push_back(text);
        if self.last.len() > defaults::DOCTOR_LAST_LINES_MAX {
            self.last.pop_front();
        }
    }
}

/// Returns `true` if a line is a message; a long line is judged by its first byte.
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
    fn the_first_output_lines_that_are_not_messages_are_recorded() {
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
        first.take(b"the end\n", Stream::Output);
        let shown = first.shown();
        assert_eq!(shown.last().map(String::as_str), Some("the end"));
        assert!(shown.contains(&"… 40 more lines …".to_owned()), "{shown:?}");
    }
}
