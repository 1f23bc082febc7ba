//! The sending of messages: a queue or stored stream per pipe or body, with one writer.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::mpsc;

use crate::stream::{Feed, Reader};

/// The capacity of a queue; senders wait while it is full.
const QUEUE_MAX: usize = 256;

/// An instruction for the writer.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// Write the answer to a request.
    Answer(String),
    /// Write a notification or a request of the server.
    Aside(String),
    /// Write an event without a message, which gives the client an id and a reconnect delay.
    Prime { retry_ms: u64 },
    /// Write the URL for POSTs.
    Endpoint(String),
    /// Write a line that is not a message.
    Noise(String),
    /// Write only the first bytes of an answer, then exit.
    Partial { message: String, n_bytes: usize },
    /// Exit.
    Exit(i32),
}

/// The sending end.
#[derive(Clone, Debug)]
pub(crate) enum Wire {
    /// A queue for one writer; later messages are lost once it is gone.
    Queue(mpsc::Sender<Write>),
    /// A stream stored for future writers.
    Kept(Arc<Feed>),
}

/// The writer's end.
#[derive(Debug)]
pub(crate) enum Writes {
    Queue(mpsc::Receiver<Write>),
    Kept(Reader),
}

impl Wire {
    /// Returns a queue.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Write>) {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        (Self::Queue(sender), receiver)
    }

    /// Queues `write`; ignores that a client has left.
    pub(crate) async fn send(&self, write: Write) {
        match self {
            Self::Queue(sender) => drop(sender.send(write).await),
            Self::Kept(feed) => feed.write(write),
        }
    }
}

impl Writes {
    /// Returns the next write, with its event id if it has one.
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<(Option<String>, Write)>> {
        match self {
            Self::Queue(queue) => {
                queue.poll_recv(context).map(|write| write.map(|write| (None, write)))
            }
            Self::Kept(reader) => {
                reader.poll_next(context).map(|next| next.map(|(id, write)| (Some(id), write)))
            }
        }
    }
}
