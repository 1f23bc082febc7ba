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
    exit,
    open_bodies::BodyGuard,
    output::{Output, OutputReceiver, OutputSender},
};

/// The format of messages on a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyFormat {
    Events,
    Plain,
}

/// A body that writes its messages until they end, the session ends or the test cuts it.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    guard: BodyGuard,
    receiver: OutputReceiver,
    format: BodyFormat,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    is_flushed: bool,
    exit_code: Option<i32>,
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(code) = self.exit_code {
            return self.exit_after_flush(code);
        }
        match self.receiver.poll_next(context) {
            Poll::Ready(Some((id, write))) => {
                let (bytes, exit_code) = self.format.bytes(id, write);
                self.exit_code = exit_code;
                match (bytes.is_empty(), exit_code) {
                    (true, Some(code)) => self.exit_after_flush(code),
                    _ => Poll::Ready(Some(Ok(Frame::data(bytes.into())))),
                }
            }
            Poll::Ready(None) if self.guard.cut.is_cancelled() => self.break_off(context),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending if self.closed.as_mut().poll(context).is_ready() => Poll::Ready(None),
            Poll::Pending if self.cut.as_mut().poll(context).is_ready() => self.break_off(context),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl ResponseBody {
    /// Returns a body that ends with `receiver` or with its session.
    pub(crate) fn new(guard: BodyGuard, receiver: OutputReceiver, format: BodyFormat) -> Self {
        let closed = Box::pin(guard.closed.clone().cancelled_owned());
        let cut = Box::pin(guard.cut.clone().cancelled_owned());
        Self { guard, receiver, format, closed, cut, is_flushed: false, exit_code: None }
    }

    /// Fails, so that hyper closes the connection in the middle of the body.
    ///
    /// It fails in the next poll: hyper flushes its buffer when a body is pending.
    fn break_off<T>(&mut self, context: &Context<'_>) -> Poll<Option<io::Result<T>>> {
        if !std::mem::replace(&mut self.is_flushed, true) {
            // The token stays cancelled, but its completed future must not be polled again.
            self.cut = Box::pin(self.guard.cut.clone().cancelled_owned());
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(io::Error::other("cut by the test"))))
    }

    /// Exits after hyper has written its buffer.
    ///
    /// hyper flushes after a pending body in the same poll. The only thread runs this task later.
    fn exit_after_flush<T>(&self, code: i32) -> Poll<T> {
        let fake = self.guard.fake.clone();
        self.guard.fake.tasks.spawn(async move { exit(&fake, code) });
        Poll::Pending
    }
}

impl BodyFormat {
    /// Returns the bytes to write, and an exit code to use after them.
    fn bytes(self, id: Option<String>, write: Output) -> (Vec<u8>, Option<i32>) {
        let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
        let framed = |message: String| match self {
            Self::Events => format!("{id}event: message\ndata: {message}\n\n").into_bytes(),
            Self::Plain => message.into_bytes(),
        };
        match write {
            Output::Response(message) | Output::ServerMessage(message) => (framed(message), None),
            Output::Prime { retry_ms } => {
                (format!("{id}retry: {retry_ms}\ndata: \n\n").into_bytes(), None)
            }
            Output::Endpoint(url) => {
                (format!("event: endpoint\ndata: {url}\n\n").into_bytes(), None)
            }
            Output::Noise(line) => (format!(": {line}\n").into_bytes(), None),
            Output::Partial { message, n_bytes } => {
                let mut bytes = framed(message);
                bytes.truncate(n_bytes);
                (bytes, Some(1))
            }
            Output::Exit(code) => (Vec::new(), Some(code)),
        }
    }
}

/// Waits for the answers and returns a queue that holds one body.
///
/// Plain JSON has no place for notifications and requests: they are dropped.
pub(crate) async fn single_body(
    mut receiver: mpsc::Receiver<Output>,
    is_batch: bool,
) -> mpsc::Receiver<Output> {
    let mut answers = Vec::new();
    let mut last = None;
    while let Some(write) = receiver.recv().await {
        match write {
            Output::Response(message) => answers.push(message),
            Output::ServerMessage(_)
            | Output::Noise(_)
            | Output::Prime { .. }
            | Output::Endpoint(_) => {
                continue;
            }
            Output::Partial { .. } | Output::Exit(_) => {
                last = Some(write);
                break;
            }
        }
        if !is_batch {
            break;
        }
    }
    let (output, queue) = OutputSender::new();
    let answer = match is_batch {
        true => format!("[{}]", answers.join(",")),
        false => answers.pop().unwrap_or_default(),
    };
    output.send(last.unwrap_or(Output::Response(answer))).await;
    queue
}
