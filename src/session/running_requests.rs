//! A client's running request, registered so that its cancellation finds it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio_util::sync::CancellationToken;

use super::{PendingServerRequest, Session};

/// A running request. Dropping it removes the entry, and refuses the questions on its stream unless
/// the request was answered.
#[derive(Debug)]
pub struct RunningRequest {
    session: Arc<Session>,
    number: u64,
    cancelled: CancellationToken,
    is_answered: AtomicBool,
}

#[derive(Debug)]
pub(super) struct RunningEntry {
    number: u64,
    /// The id as JSON text: `1` and `"1"` are two ids.
    id: Box<str>,
    cancelled: CancellationToken,
}

impl Session {
    /// Registers the request `id`, JSON text.
    pub fn begin(self: &Arc<Self>, id: &str) -> RunningRequest {
        let cancelled = CancellationToken::new();
        let mut memory = self.memory();
        memory.n_numbers += 1;
        let number = memory.n_numbers;
        // Without a session, an id may belong to another client's request. Such a client cancels by
        // closing its stream.
        if self.id().is_some() {
            memory.running.push(RunningEntry {
                number,
                id: id.into(),
                cancelled: cancelled.clone(),
            });
        }
        let is_answered = AtomicBool::new(false);
        RunningRequest { session: Arc::clone(self), number, cancelled, is_answered }
    }

    /// Cancels the request `id`. Returns `false` if no request or several requests have that id.
    pub fn cancel(&self, id: &str) -> bool {
        let memory = self.memory();
        let mut meant = memory.running.iter().filter(|entry| *entry.id == *id);
        match (meant.next(), meant.next()) {
            (Some(entry), None) => {
                entry.cancelled.cancel();
                true
            }
            _ => false,
        }
    }
}

impl RunningRequest {
    /// Returns the client's session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Returns the number that identifies the request within the session.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the token that cancels the request, for a caller that identifies the request itself.
    pub fn canceller(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    /// Records that the server has answered. On a pipe, a question that is still open may belong to
    /// another request, so the client may still answer it.
    pub fn note_answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// Waits until the client cancels the request. Cancel safe.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let unanswered: Vec<PendingServerRequest> = {
            let mut memory = self.session.memory();
            memory.running.retain(|entry| entry.number != self.number);
            let is_answered = *self.is_answered.get_mut();
            memory
                .questions
                .extract_if(|_, pending| !is_answered && pending.request == Some(self.number))
                .map(|(_, pending)| pending)
                .collect()
        };
        // Without the lock, because the drop notifies the servers.
        drop(unanswered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    fn session() -> Arc<Session> {
        Session::of_test()
    }

    #[test]
    fn a_cancellation_finds_the_request_by_its_id_and_type() {
        let session = session();
        let (number, string) = (session.begin("1"), session.begin("\"1\""));
        assert!(session.cancel("\"1\""));
        assert!(string.cancelled.is_cancelled() && !number.cancelled.is_cancelled());
        drop(number);
        assert!(!session.cancel("1"), "it is no longer running");
    }

    #[test]
    fn a_cancellation_of_an_ambiguous_request_id_has_no_effect() {
        let session = session();
        let both = (session.begin("1"), session.begin("1"));
        assert!(!session.cancel("1"));
        drop(both.0);
        assert!(session.cancel("1"));
    }
}
