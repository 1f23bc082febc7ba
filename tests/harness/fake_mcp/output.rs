//! The output of a pipe or body: a queue or a stored stream, with one writer.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::mpsc;

use crate::resumable_stream::{StreamReader, StreamWriter};

/// The capacity of a queue; senders wait while it is full.
const QUEUE_MAX: usize = 256;

/// An item of the output: a message, or an instruction for the writer.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// The answer to a request.
    Response(String),
    /// A notification or a request of the server.
    ServerMessage(String),
    /// An event without a message, which gives the client an id and a reconnect delay.
    Prime { retry_ms: u64 },
    /// The URL for POSTs.
    Endpoint(String),
    /// A line that is not a message.
    Noise(String),
    /// The first bytes of an answer, followed by an exit.
    Partial { message: String, n_bytes: usize },
    /// An exit.
    Exit(i32),
}

/// The sending end of the output.
#[derive(Clone, Debug)]
pub(crate) enum OutputSender {
    /// A queue for one writer; messages are lost once the writer is gone.
    Queue(mpsc::Sender<Output>),
    /// A stream that is stored for future writers.
    Stored(Arc<StreamWriter>),
}

/// The receiving end of the output, which the writer holds.
#[derive(Debug)]
pub(crate) enum OutputReceiver {
    Queue(mpsc::Receiver<Output>),
    Stored(StreamReader),
}

impl OutputSender {
    /// Returns a queue.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Output>) {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        (Self::Queue(sender), receiver)
    }

    /// Queues `item`; ignores that a client has left.
    pub(crate) async fn send(&self, item: Output) {
        match self {
            Self::Queue(sender) => drop(sender.send(item).await),
            Self::Stored(writer) => writer.write(item),
        }
    }
}

impl OutputReceiver {
    /// Returns the next item, with its event id if it has one.
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<(Option<String>, Output)>> {
        match self {
            Self::Queue(queue) => {
                queue.poll_recv(context).map(|next| next.map(|item| (None, item)))
            }
            Self::Stored(reader) => {
                reader.poll_next(context).map(|next| next.map(|(id, item)| (Some(id), item)))
            }
        }
    }
}
