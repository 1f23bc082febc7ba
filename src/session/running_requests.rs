//! A client's request that runs, so that its cancellation finds it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio_util::sync::CancellationToken;

use super::{Asked, Session};

/// A request that runs; dropping it ends the entry, and the questions that servers put on its
/// stream, unless it was answered.
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
    /// As JSON text: `1` and `"1"` are two ids.
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
        // Nobody can tell whose request an id means when the client has no name: better none is
        // cancelled than that of somebody else. Such a client closes its stream.
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

    /// Cancels the request `id`; `false` when it is not known which request is meant.
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

    /// Returns the number that tells the request from others of the session.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns what cancels the request, for whoever knows by himself which one a client means.
    pub fn canceller(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    /// The server has answered. A question of it that is still open on the stream is about something
    /// else: on a pipe, nothing tells which request it belongs to. The client may take its time.
    pub fn answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// Waits until the client cancels the request.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let unanswered: Vec<Asked> = {
            let mut memory = self.session.memory();
            memory.running.retain(|entry| entry.number != self.number);
            let is_answered = *self.is_answered.get_mut();
            memory
                .asked
                .extract_if(|_, asked| !is_answered && asked.request == Some(self.number))
                .map(|(_, asked)| asked)
                .collect()
        };
        // Outside of the lock: the servers are told.
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
        assert!(!session.cancel("1"), "it does not run any more");
    }

    #[test]
    fn an_id_that_is_used_twice_at_a_time_cancels_nothing() {
        let session = session();
        let both = (session.begin("1"), session.begin("1"));
        assert!(!session.cancel("1"));
        drop(both.0);
        assert!(session.cancel("1"));
    }
}
