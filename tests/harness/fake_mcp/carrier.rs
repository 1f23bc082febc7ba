//! The open bodies: the stream that each carries, and how the test ends them.

use std::{collections::BTreeSet, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{call::Call, fake::Fake, listen::Listen, state::State};

/// The name of the stream that belongs to no request.
pub(crate) const GET_STREAM: &str = "g";

/// An open body.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// The session; modern bodies have none.
    session: Option<String>,
    stream: String,
    kind: Kind,
    /// Ends the body correctly.
    closed: CancellationToken,
    /// Breaks the connection in the middle of the body.
    cut: CancellationToken,
}

/// The request that opened a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Post,
    /// A GET whose end is the end of the session.
    Session,
}

impl Kind {
    fn is_get(self) -> bool {
        matches!(self, Self::Get | Self::Session)
    }
}

/// An entry in the list of open bodies; it lives as long as the body.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) fake: Arc<Fake>,
    number: u64,
    /// The call that is cancelled when its client closes the body.
    call: Option<u64>,
    pub(crate) closed: CancellationToken,
    pub(crate) cut: CancellationToken,
}

impl Fake {
    /// Registers a body; `None` if the stream already has one or the session is gone.
    pub(crate) fn carry(self: &Arc<Self>, session: &str, stream: &str, kind: Kind) -> Option<Slot> {
        let slot = {
            let mut state = self.state();
            let closed = state.sessions.get(session)?.closed.child_token();
            let is_taken = state
                .carriers
                .values()
                .any(|open| open.session.as_deref() == Some(session) && open.stream == stream);
            if is_taken {
                return None;
            }
            let (session, stream) = (Some(session.to_owned()), stream.to_owned());
            let cut = CancellationToken::new();
            let (closing, cutting) = (closed.clone(), cut.clone());
            let carrier = Carrier { session, stream, kind, closed: closing, cut: cutting };
            let number = state.carry(carrier);
            Slot { fake: self.clone(), number, call: None, closed, cut }
        };
        if kind.is_get() {
            self.count("streams");
        }
        Some(slot)
    }

    /// Registers the body of a modern answer, whose call ends with it.
    pub(crate) fn carry_call(self: &Arc<Self>, call: Option<u64>) -> Slot {
        let (closed, cut) = (CancellationToken::new(), CancellationToken::new());
        let carrier = Carrier {
            session: None,
            stream: String::new(),
            kind: Kind::Post,
            closed: closed.clone(),
            cut: cut.clone(),
        };
        let number = self.state().carry(carrier);
        Slot { fake: self.clone(), number, call, closed, cut }
    }

    /// Breaks all bodies of GETs, or of POSTs, and waits for their end; returns their number.
    pub(crate) async fn cut(&self, is_get: bool) -> usize {
        let numbers: BTreeSet<u64> = {
            let state = self.state();
            let wanted = state.carriers.iter().filter(|(_, open)| open.kind.is_get() == is_get);
            wanted
                .map(|(number, carrier)| {
                    carrier.cut.cancel();
                    *number
                })
                .collect()
        };
        self.reached(|state| !numbers.iter().any(|number| state.carriers.contains_key(number)))
            .await;
        numbers.len()
    }

    /// Ends all bodies of GETs, or of POSTs, correctly; returns their number.
    pub(crate) fn close(&self, is_get: bool) -> usize {
        let state = self.state();
        let wanted = state.carriers.values().filter(|carrier| carrier.kind.is_get() == is_get);
        wanted.map(|carrier| carrier.closed.cancel()).count()
    }
}

impl State {
    fn carry(&mut self, carrier: Carrier) -> u64 {
        self.n_carriers += 1;
        self.carriers.insert(self.n_carriers, carrier);
        self.n_carriers
    }

    /// Takes the call, if it is listening.
    fn stop_listening(&mut self, call: u64) -> Vec<Call> {
        let cut = self.listens.extract_if(.., |listen| listen.number() == call);
        cut.map(Listen::into_call).collect()
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
        let of_kind = self.carriers.values().filter(|open| open.kind.is_get() == is_get);
        let is_alive = |session: &String| self.sessions.contains_key(session);
        of_kind.filter(|open| open.session.as_ref().is_none_or(is_alive)).count()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let (carrier, gone, cancelled) = {
            let mut state = self.fake.state();
            let Some(carrier) = state.carriers.remove(&self.number) else { return };
            let id = carrier.session.as_deref().unwrap_or_default();
            let gone = match (carrier.kind, state.sessions.get_mut(id)) {
                (Kind::Session, Some(_)) => state.sessions.remove(id),
                (Kind::Get, Some(session)) if carrier.stream == GET_STREAM => {
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
            (carrier, gone, cancelled)
        };
        drop((gone, cancelled)); // Outside of the lock, as everything that holds wires.
        self.fake.count(if carrier.kind.is_get() { "streams_ended" } else { "posts_ended" });
    }
}
