//! One request that was sent to a server, until its answer.

use std::sync::Arc;

use bytes::Bytes;
use tokio::{
    sync::{mpsc, oneshot},
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{Connection, Failure, Limits, Link};
use crate::protocol::{Message, mcp::method};

/// A request in flight. Dropping it cancels the request at the server.
#[derive(Debug)]
pub struct Call {
    connection: Arc<Connection>,
    id: u64,
    notifications: Option<mpsc::Receiver<Message>>,
    answer: oneshot::Receiver<Result<Message, Failure>>,
    /// The answer, while notifications that came before it are handed out.
    early: Option<Message>,
    limits: Limits,
    silent_until: Instant,
    ends: Instant,
    /// It was handed to the link, and the protocol lets it be cancelled.
    is_cancellable: bool,
}

/// What comes back for a request.
#[derive(Debug)]
pub enum Event {
    /// A notification that belongs to the request; the answer is still to come.
    Notification(Message),
    /// The answer, a result or an error. Nothing comes after it.
    Answer(Message),
}

impl Call {
    pub(super) fn new(
        connection: Arc<Connection>,
        id: u64,
        notifications: Option<mpsc::Receiver<Message>>,
        answer: oneshot::Receiver<Result<Message, Failure>>,
        limits: Limits,
    ) -> Self {
        let now = Instant::now();
        Self {
            connection,
            id,
            notifications,
            answer,
            early: None,
            limits,
            silent_until: now + limits.silence,
            ends: now + limits.total,
            is_cancellable: false,
        }
    }

    pub(super) async fn send(
        &mut self,
        frame: Bytes,
        abandoned: CancellationToken,
        is_cancellable: bool,
    ) -> Result<(), Failure> {
        match &self.connection.link {
            Link::Stdio(link) => {
                // A child that does not read fills its queue: the wait for it is bounded too.
                time::timeout_at(self.silent_until, link.send(frame, Some(self.id)))
                    .await
                    .map_err(|_| Failure::Timeout { after: self.limits.silence })??;
            }
            Link::Http(link) => {
                link.post(Arc::clone(&self.connection), self.id, frame, abandoned, self.limits);
            }
        }
        self.is_cancellable = is_cancellable;
        Ok(())
    }

    /// Returns what comes next.
    ///
    /// # Errors
    ///
    /// [`Failure`] when no answer will come; nothing comes after it either.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost, and the next call goes on.
    pub async fn next(&mut self) -> Result<Event, Failure> {
        if let Some(answer) = self.early.take() {
            return Ok(self.answered(answer));
        }
        let deadline = self.silent_until.min(self.ends);
        tokio::select! {
            // Notifications go first, as the server sent them before the answer.
            biased;
            Some(notification) = notified(&mut self.notifications) => {
                self.silent_until = Instant::now() + self.limits.silence;
                Ok(Event::Notification(notification))
            }
            answer = &mut self.answer => {
                // The sender is dropped unsent only together with the connection.
                let answer = answer.unwrap_or(Err(Failure::Closed))?;
                Ok(self.answered(answer))
            }
            () = time::sleep_until(deadline) => {
                let after =
                    if deadline == self.ends { self.limits.total } else { self.limits.silence };
                Err(Failure::Timeout { after })
            }
        }
    }

    /// Hands out the answer, or what came just before it.
    fn answered(&mut self, answer: Message) -> Event {
        match self.notifications.as_mut().and_then(|queue| queue.try_recv().ok()) {
            Some(notification) => {
                self.early = Some(answer);
                Event::Notification(notification)
            }
            None => Event::Answer(answer),
        }
    }

    /// Waits for the answer and lets notifications go by.
    ///
    /// # Errors
    ///
    /// As [`Call::next`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it cancels the request at the server.
    pub async fn finish(mut self) -> Result<Message, Failure> {
        loop {
            if let Event::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }
}

/// Returns the next notification, if any can come.
async fn notified(queue: &mut Option<mpsc::Receiver<Message>>) -> Option<Message> {
    queue.as_mut()?.recv().await
}

impl Drop for Call {
    fn drop(&mut self) {
        // A settled request is forgotten already.
        if !self.connection.forget(self.id) || !self.is_cancellable {
            return;
        }
        let params = format!(r#"{{"requestId":{}}}"#, self.id);
        let cancelled = Message::notification(method::CANCELLED, Some(&params));
        match &self.connection.link {
            Link::Stdio(link) => link.try_send(cancelled.bytes().clone()),
            Link::Http(link) => link.try_notify(cancelled.bytes().clone()),
        }
    }
}
