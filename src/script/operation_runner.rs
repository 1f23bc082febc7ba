//! The services that do the operations of a script, and the events of a script for its client.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::{
    connection::ServerRequest,
    protocol::Message,
    sandbox::message::{OperationOutcome, ScriptOperation},
    server_name::ServerName,
};

/// The services that do the operations of a script.
pub trait OperationRunner: Send + Sync + 'static {
    /// Does an operation. Dropping the future cancels it.
    fn run(
        self: Arc<Self>,
        operation: ScriptOperation,
        attempt: OperationAttempt,
        events: OperationEvents,
    ) -> BoxFuture<'static, OperationEnd>;
}

/// The circumstances of an operation's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationAttempt {
    /// It never ran before.
    First,
    /// The client has answered the question of the server.
    Answered {
        /// The server's result that asked, JSON text.
        question: String,
        /// The `inputResponses` of the client, JSON text of an object.
        answers: String,
    },
    /// It ran when its process ended, and its outcome is unknown.
    OutcomeUnknown,
}

/// The end of an operation.
#[derive(Debug)]
pub enum OperationEnd {
    /// It has an outcome.
    Settled(OperationOutcome),
    /// Another request of the client can answer its question: the server's result, JSON text.
    Asked(String),
}

/// An event of a script for its client.
#[derive(Debug)]
pub enum ScriptEvent {
    /// A notification of a server, with the server and the generation of its connection.
    Notification(Message, ServerName, Option<u64>),
    /// A notification of the progress of the script itself.
    Progress(Message),
    /// A question to the client.
    Question(ServerRequest),
    /// A text about a wait, for the client's progress.
    Wait(String),
}

/// The channel for the events of one operation.
#[derive(Clone, Debug)]
pub struct OperationEvents {
    pub(super) operation: u32,
    pub(super) events: mpsc::Sender<(u32, OperationNote)>,
}

/// An event of an operation.
#[derive(Debug)]
pub(super) enum OperationNote {
    /// An event for the client.
    Event(Box<ScriptEvent>),
    /// The client has answered a question, as far as the operation shows.
    Continued,
}

impl OperationEvents {
    /// Sends an event to the client. Cancel safe: it is sent or not.
    pub async fn send(&self, event: ScriptEvent) {
        self.note(OperationNote::Event(Box::new(event))).await;
    }

    /// Reports that the server works again, after a question.
    pub async fn note_continued(&self) {
        self.note(OperationNote::Continued).await;
    }

    async fn note(&self, note: OperationNote) {
        // The script is over.
        let _gone = self.events.send((self.operation, note)).await;
    }
}
