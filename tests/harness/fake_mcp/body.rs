//! Response bodies: a stream of messages, as server-sent events or as plain JSON.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{
    carrier::Slot,
    exit,
    wire::{Wire, Write, Writes},
};

/// The format of messages on a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    Events,
    Plain,
}

/// A body that writes its messages until they end, the session ends or the test cuts it.
#[derive(Debug)]
pub(crate) struct Messages {
    slot: Slot,
    writes: Writes,
    format: Format,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    is_flushed: bool,
    exit_code: Option<i32>,
}

impl Body for Messages {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(code) = self.exit_code {
            return self.exit_after_flush(code);
        }
        match self.writes.poll_next(context) {
            Poll::Ready(Some((id, write))) => {
                let (bytes, exit_code) = self.format.bytes(id, write);
                self.exit_code = exit_code;
                match (bytes.is_empty(), exit_code) {
                    (true, Some(code)) => self.exit_after_flush(code),
                    _ => Poll::Ready(Some(Ok(Frame::data(bytes.into())))),
                }
            }
            Poll::Ready(None) if self.slot.cut.is_cancelled() => self.break_off(context),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.closed.as_mut().poll(context).is_ready() => Poll::Ready(None),
            Poll::Pending if self.cut.as_mut().poll(context).is_ready() => self.break_off(context),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Messages {
    /// Returns a body that ends with `writes` or with its session.
    pub(crate) fn new(slot: Slot, writes: Writes, format: Format) -> Self {
        let closed = Box::pin(slot.closed.clone().cancelled_owned());
        let cut = Box::pin(slot.cut.clone().cancelled_owned());
        Self { slot, writes, format, closed, cut, is_flushed: false, exit_code: None }
    }

    /// Fails, so that hyper closes the connection in the middle of the body.
    ///
    /// It fails in the next poll: hyper flushes its buffer when a body is pending.
    fn break_off<T>(&mut self, context: &Context<'_>) -> Poll<Option<io::Result<T>>> {
        if !std::mem::replace(&mut self.is_flushed, true) {
            // The token stays cancelled, but its completed future must not be polled again.
            self.cut = Box::pin(self.slot.cut.clone().cancelled_owned());
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(io::Error::other("cut by the test"))))
    }

    /// Exits after hyper has written its buffer.
    ///
    /// hyper flushes after a pending body in the same poll. The only thread runs this task later.
    fn exit_after_flush<T>(&self, code: i32) -> Poll<T> {
        let fake = self.slot.fake.clone();
        self.slot.fake.tasks.spawn(async move { exit(&fake, code) });
        Poll::Pending
    }
}

impl Format {
    /// Returns the bytes to write, and an exit code to use after them.
    fn bytes(self, id: Option<String>, write: Write) -> (Vec<u8>, Option<i32>) {
        let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
        let framed = |message: String| match self {
            Self::Events => format!("{id}event: message\ndata: {message}\n\n").into_bytes(),
            Self::Plain => message.into_bytes(),
        };
        match write {
            Write::Answer(message) | Write::Aside(message) => (framed(message), None),
            Write::Prime { retry_ms } => {
                (format!("{id}retry: {retry_ms}\ndata: \n\n").into_bytes(), None)
            }
            Write::Endpoint(url) => {
                (format!("event: endpoint\ndata: {url}\n\n").into_bytes(), None)
            }
            Write::Noise(line) => (format!(": {line}\n").into_bytes(), None),
            Write::Partial { message, n_bytes } => {
                let mut bytes = framed(message);
                bytes.truncate(n_bytes);
                (bytes, Some(1))
            }
            Write::Exit(code) => (Vec::new(), Some(code)),
        }
    }
}

/// Waits for the answers and returns a queue that holds one body.
///
/// Plain JSON has no place for notifications and requests: they are dropped.
pub(crate) async fn one_body(
    mut writes: mpsc::Receiver<Write>,
    is_batch: bool,
) -> mpsc::Receiver<Write> {
    let mut answers = Vec::new();
    let mut last = None;
    while let Some(write) = writes.recv().await {
        match write {
            Write::Answer(message) => answers.push(message),
            Write::Aside(_) | Write::Noise(_) | Write::Prime { .. } | Write::Endpoint(_) => {
                continue;
            }
            Write::Partial { .. } | Write::Exit(_) => {
                last = Some(write);
                break;
            }
        }
        if !is_batch {
            break;
        }
    }
    let (wire, queue) = Wire::new();
    let answer = match is_batch {
        true => format!("[{}]", answers.join(",")),
        false => answers.pop().unwrap_or_default(),
    };
    wire.send(last.unwrap_or(Write::Answer(answer))).await;
    queue
}
