//! Response bodies: a stream of messages, as server-sent events or as plain JSON.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::{
    exit,
    fake::Fake,
    wire::{Wire, Write},
};

/// How messages are put on a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Format {
    Events,
    Plain,
}

/// A body that writes what is queued, until the queue or the session ends.
#[derive(Debug)]
pub(crate) struct Messages {
    fake: Arc<Fake>,
    writes: mpsc::Receiver<Write>,
    format: Format,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    exit_code: Option<i32>,
    _slot: Option<StreamSlot>,
}

impl Body for Messages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(code) = self.exit_code {
            return self.exit_after_flush(code);
        }
        match self.writes.poll_recv(context) {
            Poll::Ready(Some(write)) => {
                let (bytes, exit_code) = self.format.bytes(write);
                self.exit_code = exit_code;
                match (bytes.is_empty(), exit_code) {
                    (true, Some(code)) => self.exit_after_flush(code),
                    _ => Poll::Ready(Some(Ok(Frame::data(bytes.into())))),
                }
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.closed.as_mut().poll(context).map(|()| None),
        }
    }
}

impl Messages {
    /// Returns a body that ends with `writes` or with `closed`.
    pub(crate) fn new(
        fake: Arc<Fake>,
        writes: mpsc::Receiver<Write>,
        format: Format,
        closed: CancellationToken,
        slot: Option<StreamSlot>,
    ) -> Self {
        let closed = Box::pin(closed.cancelled_owned());
        Self { fake, writes, format, closed, exit_code: None, _slot: slot }
    }

    /// Exits once hyper has written what it was given.
    ///
    /// hyper flushes after a pending body within the same poll, and there is one thread: the
    /// task runs after that.
    fn exit_after_flush<T>(&self, code: i32) -> Poll<T> {
        let fake = self.fake.clone();
        self.fake.tasks.spawn(async move { exit(&fake, code) });
        Poll::Pending
    }
}

impl Format {
    /// Returns the bytes to write, and the code to exit with after them.
    fn bytes(self, write: Write) -> (Vec<u8>, Option<i32>) {
        let framed = |message: String| match self {
            Self::Events => format!("event: message\ndata: {message}\n\n").into_bytes(),
            Self::Plain => message.into_bytes(),
        };
        match write {
            Write::Answer(message) | Write::Aside(message) => (framed(message), None),
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

/// The one GET stream of a session, free again when its body is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    pub(crate) fake: Arc<Fake>,
    pub(crate) session: String,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        if let Some(session) = self.fake.state().sessions.get_mut(&self.session) {
            session.listener = None;
        }
        self.fake.count("streams_ended");
    }
}

/// Waits for the answers and returns a queue that holds one body.
///
/// Plain JSON has no place for notifications and requests: they are lost.
pub(crate) async fn one_body(
    mut writes: mpsc::Receiver<Write>,
    is_batch: bool,
) -> mpsc::Receiver<Write> {
    let mut answers = Vec::new();
    let mut last = None;
    while let Some(write) = writes.recv().await {
        match write {
            Write::Answer(message) => answers.push(message),
            Write::Aside(_) | Write::Noise(_) => continue,
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
