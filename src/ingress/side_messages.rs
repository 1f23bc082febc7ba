//! The messages that precede the answer to a request, in the form for its client.

use super::{IngressContext, progress_heartbeat::ProgressHeartbeat};
use crate::{
    connection::ServerRequest,
    protocol::{ByteChunks, Message, payloads::method},
    script::ScriptEvent,
    server_name::ServerName,
    session::RunningRequest,
};

/// The circumstances that decide about the messages in front of one answer.
pub(super) struct SideMessages<'a> {
    pub(super) heartbeat: &'a mut ProgressHeartbeat,
    pub(super) context: &'a IngressContext,
    pub(super) running: &'a RunningRequest,
    /// `true` if the client accepts a stream, and so can receive questions.
    pub(super) has_stream: bool,
}

impl SideMessages<'_> {
    /// Returns an event of a script in the form for the client, or `None` if it does not receive it.
    pub(super) fn event(&mut self, event: ScriptEvent) -> Option<ByteChunks> {
        match event {
            ScriptEvent::Notification(message, server, generation) => {
                let original = || message.bytes().clone().into();
                self.notification(&message, (&server, generation), original)
            }
            ScriptEvent::Progress(message) => {
                self.heartbeat.note(&message);
                Some(message.bytes().clone().into())
            }
            ScriptEvent::Question(question) => self.question(question),
            ScriptEvent::Wait(text) => self.wait(&text),
        }
    }

    /// Returns a notification that metamcp waits, with this text, if the client wants progress.
    pub(super) fn wait(&mut self, text: &str) -> Option<ByteChunks> {
        self.heartbeat.tell(text).map(ByteChunks::from)
    }

    /// Returns a notification of a server and a connection in the form for the client, or `None` if
    /// it does not receive it. `original` makes the unchanged form.
    pub(super) fn notification(
        &mut self,
        message: &Message,
        (server, generation): (&ServerName, Option<u64>),
        original: impl FnOnce() -> ByteChunks,
    ) -> Option<ByteChunks> {
        let session = self.running.session();
        match message.method().unwrap_or_default() {
            // A modern request has no other notifications.
            other
                if session.is_modern()
                    && !matches!(other, method::LOG_MESSAGE | method::PROGRESS) =>
            {
                return None;
            }
            method::LOG_MESSAGE
                if !session.wants_log(message, self.context.views.sessions().has_levels()) =>
            {
                return None;
            }
            method::CANCELLED => {
                let cancelled = session.cancel_question(server, generation?, message)?;
                return Some(ByteChunks::from(cancelled));
            }
            method::PROGRESS => self.heartbeat.note(message),
            _ => {}
        }
        Some(original())
    }

    /// Returns a question in the form for the client, or refuses it and returns `None` if the client
    /// cannot receive it.
    pub(super) fn question(&self, question: ServerRequest) -> Option<ByteChunks> {
        if self.has_stream {
            let number = Some(self.running.number());
            return self.running.session().ask(question, number).map(ByteChunks::from);
        }
        question.refuse();
        None
    }
}
