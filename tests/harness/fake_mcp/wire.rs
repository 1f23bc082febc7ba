//! Where messages go: one queue per pipe or event stream, with one writer at its end.

use tokio::sync::mpsc;

/// How many messages wait for a writer at most; then whoever answers waits too.
const QUEUE_MAX: usize = 256;

/// What a writer is told to do, in order.
#[derive(Debug)]
pub(crate) enum Write {
    /// Write the answer to a request.
    Answer(String),
    /// Write a notification or a request of ours.
    Aside(String),
    /// Write a line that is no message.
    Noise(String),
    /// Write only the first bytes of an answer, then exit.
    Partial { message: String, n_bytes: usize },
    /// Exit.
    Exit(i32),
}

/// The sending end of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    sender: mpsc::Sender<Write>,
}

impl Wire {
    /// Returns a queue.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Write>) {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        (Self { sender }, receiver)
    }

    /// Queues `write`; a client that has left is none of our business.
    pub(crate) async fn send(&self, write: Write) {
        self.sender.send(write).await.ok();
    }
}
