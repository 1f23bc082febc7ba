//! The open response bodies: their streams, and the routes that end them.

use std::{collections::BTreeSet, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{call::Call, fake::Fake, listen_requests::ListenRequest, state::State};

/// The name of the stream that belongs to no request.
pub(crate) const GET_STREAM: &str = "g";

/// An open response body.
#[derive(Debug)]
pub(crate) struct OpenBody {
    /// The session; modern bodies have none.
    session: Option<String>,
    stream: String,
    kind: BodyKind,
    /// Ends the body correctly.
    closed: CancellationToken,
    /// Breaks the connection in the middle of the body.
    cut: CancellationToken,
}

/// The request that opened a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Get,
    Post,
    /// A GET whose end is the end of the session.
    Session,
}

impl BodyKind {
    fn is_get(self) -> bool {
        matches!(self, Self::Get | Self::Session)
    }
}

/// The registration of an open body; dropping it removes the body from the list.
#[derive(Debug)]
pub(crate) struct BodyGuard {
    pub(crate) fake: Arc<Fake>,
    number: u64,
    /// The call that is cancelled when its client closes the body.
    call: Option<u64>,
    pub(crate) closed: CancellationToken,
    pub(crate) cut: CancellationToken,
}

impl Fake {
    /// Registers a body; `None` if the stream already has one or the session is gone.
    pub(crate) fn register_body(
        self: &Arc<Self>,
        session: &str,
        stream: &str,
        kind: BodyKind,
    ) -> Option<BodyGuard> {
        let guard = {
            let mut state = self.state();
            let closed = state.sessions.get(session)?.closed.child_token();
            let is_taken = state
                .bodies
                .values()
                .any(|open| open.session.as_deref() == Some(session) && open.stream == stream);
            if is_taken {
                return None;
            }
            let (session, stream) = (Some(session.to_owned()), stream.to_owned());
            let cut = CancellationToken::new();
            let (closing, cutting) = (closed.clone(), cut.clone());
            let body = OpenBody { session, stream, kind, closed: closing, cut: cutting };
            let number = state.add_body(body);
            BodyGuard { fake: self.clone(), number, call: None, closed, cut }
        };
        if kind.is_get() {
            self.count("streams");
        }
        Some(guard)
    }

    /// Registers the body of a modern answer, whose call ends with it.
    pub(crate) fn register_call_body(self: &Arc<Self>, call: Option<u64>) -> BodyGuard {
        let (closed, cut) = (CancellationToken::new(), CancellationToken::new());
        let body = OpenBody {
            session: None,
            stream: String::new(),
            kind: BodyKind::Post,
            closed: closed.clone(),
            cut: cut.clone(),
        };
        let number = self.state().add_body(body);
        BodyGuard { fake: self.clone(), number, call, closed, cut }
    }

    /// Breaks all bodies of GETs, or of POSTs, and waits for their end; returns their number.
    pub(crate) async fn cut(&self, is_get: bool) -> usize {
        let numbers: BTreeSet<u64> = {
            let state = self.state();
            let wanted = state.bodies.iter().filter(|(_, open)| open.kind.is_get() == is_get);
            wanted
                .map(|(number, body)| {
                    body.cut.cancel();
                    *number
                })
                .collect()
        };
        self.wait_until(|state| !numbers.iter().any(|number| state.bodies.contains_key(number)))
            .await;
        numbers.len()
    }

    /// Ends all bodies of GETs, or of POSTs, correctly; returns their number.
    pub(crate) fn close(&self, is_get: bool) -> usize {
        let state = self.state();
        let wanted = state.bodies.values().filter(|body| body.kind.is_get() == is_get);
        wanted.map(|body| body.closed.cancel()).count()
    }
}

impl State {
    fn add_body(&mut self, body: OpenBody) -> u64 {
        self.n_bodies += 1;
        self.bodies.insert(self.n_bodies, body);
        self.n_bodies
    }

    /// Takes the call, if it is listening.
    fn stop_listening(&mut self, call: u64) -> Vec<Call> {
        let cut = self.listen_requests.extract_if(.., |listen| listen.number() == call);
        cut.map(ListenRequest::into_call).collect()
    }

    /// Cancels an unanswered call whose client has closed the stream of its answer.
    fn close(&mut self, call: u64) -> Vec<Call> {
        let Some(call) = self.in_flight.get(&call) else { return Vec::new() };
        call.cancelled.cancel();
        self.seen.closed.push(call.id.clone());
        self.take_cancelled()
    }

    /// Returns the number of open bodies of GETs, or of POSTs, in live sessions.
    pub(crate) fn n_open(&self, is_get: bool) -> usize {
        let of_kind = self.bodies.values().filter(|open| open.kind.is_get() == is_get);
        let is_alive = |session: &String| self.sessions.contains_key(session);
        of_kind.filter(|open| open.session.as_ref().is_none_or(is_alive)).count()
    }
}

impl Drop for BodyGuard {
    fn drop(&mut self) {
        let (body, gone, cancelled) = {
            let mut state = self.fake.state();
            let Some(body) = state.bodies.remove(&self.number) else { return };
            let id = body.session.as_deref().unwrap_or_default();
            let gone = match (body.kind, state.sessions.get_mut(id)) {
                (BodyKind::Session, Some(_)) => state.sessions.remove(id),
                (BodyKind::Get, Some(session)) if body.stream == GET_STREAM => {
                    session.stop_listening();
                    None
                }
                _ => None,
            };
            // A call that the test cut continues, but no longer listens.
            let cancelled = self.call.map(|call| match self.cut.is_cancelled() {
                true => state.stop_listening(call),
                false => state.close(call),
            });
            (body, gone, cancelled)
        };
        drop((gone, cancelled)); // Outside the lock, as everything that holds an output.
        self.fake.count(if body.kind.is_get() { "streams_ended" } else { "posts_ended" });
    }
}
