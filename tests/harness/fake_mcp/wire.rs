//! Where messages go: one queue or kept stream per pipe or body, with one writer at its end.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::mpsc;

use crate::stream::{Feed, Reader};

/// How many messages wait for a writer at most; then whoever answers waits too.
const QUEUE_MAX: usize = 256;

/// What a writer is told to do, in order.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// Write the answer to a request.
    Answer(String),
    /// Write a notification or a request of ours.
    Aside(String),
    /// Write an event without a message, so that the client has an id and a pause to reconnect.
    Prime { retry_ms: u64 },
    /// Write where messages are to be posted.
    Endpoint(String),
    /// Write a line that is no message.
    Noise(String),
    /// Write only the first bytes of an answer, then exit.
    Partial { message: String, n_bytes: usize },
    /// Exit.
    Exit(i32),
}

/// The sending end.
#[derive(Clone, Debug)]
pub(crate) enum Wire {
    /// For one writer: what comes after it has gone is lost.
    Queue(mpsc::Sender<Write>),
    /// Kept for writers to come.
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

    /// Queues `write`; a client that has left is none of our business.
    pub(crate) async fn send(&self, write: Write) {
        match self {
            Self::Queue(sender) => drop(sender.send(write).await),
            Self::Kept(feed) => feed.write(write),
        }
    }
}

impl Writes {
    /// Returns what is to be written next, with its event id if it has one.
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
