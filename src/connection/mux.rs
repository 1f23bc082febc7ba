//! The requests in flight on a shared connection, and the callers that they belong to.
//!
//! Pure: a map, a counter, and the age of the connection as an argument. An id is never used twice
//! on one connection, so a late answer cannot reach another client.
//!
//! ```text
//!            admit                 settle
//!  request ────────▶ waiting ─────────────────▶ forgotten
//!     │                 ▲ │ abandon                ▲
//!     │ enqueue         │ ▼        settle, expire  │
//!     └────▶ queued ────┘ draining ────────────────┘
//! ```
//!
//! At the bound, requests are queued ([`Waitlist`]), and admitted in a fair order. The ids in
//! messages are rewritten here, too.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use foldhash::quality::RandomState;

use crate::{
    capacity_holder::Holder,
    fair_share::QueueTicket,
    protocol::{ByteChunks, Message, jsonrpc::MessagePart, payloads::method},
};

mod waitlist;

pub(super) use waitlist::Queueable;
use waitlist::Waitlist;

/// The requests that a server works on, by the id that it knows.
#[derive(Debug)]
pub(super) struct Mux<W> {
    next: u64,
    /// No caller waits for a request before this one. Only [`Mux::has_older`] advances it.
    oldest: u64,
    entries: HashMap<u64, Entry<W>, RandomState>,
    /// Entries that drain, in the order in which they were abandoned; some may be settled by now.
    draining: VecDeque<(Duration, u64)>,
    /// The number of abandoned requests that the server works on.
    pub(super) n_draining: usize,
    in_flight_max: usize,
    draining_max: usize,
    /// Questions of metamcp itself about the server: they are not work, take no room and do not
    /// drain.
    probes: HashMap<u64, W, RandomState>,
    /// Present while requests wait for room, and until there is ample room.
    waitlist: Option<Box<Waitlist<W>>>,
}

#[derive(Debug)]
struct Entry<W> {
    waiter: W,
    holder: Holder,
    is_draining: bool,
}

/// The request that an answer belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SettledRequest<W> {
    /// A caller waits for it.
    Wanted(W),
    /// The caller has gone.
    Drained(W),
    /// No such request: it was answered before, or forgotten long ago.
    Unknown,
}

/// The number of ids that are tried before a scan of all requests looks for the oldest one.
const OLDEST_STEPS: usize = 64;

impl<W: Queueable> Mux<W> {
    /// Returns an empty map. `in_flight_max` bounds all requests, abandoned ones included;
    /// `draining_max` bounds the abandoned ones.
    pub(super) fn new(in_flight_max: usize, draining_max: usize) -> Self {
        Self {
            next: 1,
            oldest: 1,
            entries: HashMap::default(),
            draining: VecDeque::new(),
            n_draining: 0,
            in_flight_max,
            draining_max,
            probes: HashMap::default(),
            waitlist: None,
        }
    }

    /// Assigns an id to a request, if there is room and no other waits; see [`Mux::expire`].
    pub(super) fn admit(&mut self, holder: Holder, waiter: W) -> Result<u64, W> {
        if self.entries.len() >= self.in_flight_max {
            return Err(waiter);
        }
        if let Some(waitlist) = &mut self.waitlist
            && !waitlist.admit(holder)
        {
            return Err(waiter);
        }
        let id = self.next_id();
        self.entries.insert(id, Entry { waiter, holder, is_draining: false });
        Ok(id)
    }

    /// Queues a request of `holder` that found no room. Returns its ticket, and the request that
    /// loses its place if too many wait: the newest one of the holder that has the most.
    pub(super) fn enqueue(&mut self, holder: Holder, waiter: W) -> (QueueTicket, Option<W>) {
        let entries = &self.entries;
        let waitlist = self.waitlist.get_or_insert_with(|| {
            let in_flight = entries.values().filter(|entry| !entry.is_draining);
            Waitlist::new(in_flight.map(|entry| entry.holder))
        });
        let queued = waitlist.enqueue(holder, waiter);
        self.admit_queued();
        queued
    }

    /// Removes a request from the queue; `None` when it was admitted or lost its place before.
    pub(super) fn leave_queue(&mut self, ticket: QueueTicket) -> Option<W> {
        self.waitlist.as_mut()?.queue.remove(ticket)
    }

    /// Counts one request fewer in flight, and admits those that have room now.
    fn release(&mut self, holder: Holder) {
        if let Some(waitlist) = &mut self.waitlist {
            waitlist.queue.release(holder);
            self.admit_queued();
        }
    }

    fn admit_queued(&mut self) {
        let Some(mut waitlist) = self.waitlist.take() else { return };
        while let Some((holder, mut waiter)) =
            waitlist.next(self.entries.len() - self.n_draining, self.in_flight_max)
        {
            let id = self.next_id();
            waiter.admitted(id);
            self.entries.insert(id, Entry { waiter, holder, is_draining: false });
        }
        // Kept until there is ample room, so that it is not rebuilt again and again at the bound.
        if waitlist.queue.n_waiting() > 0 || self.in_flight() * 4 > self.in_flight_max * 3 {
            self.waitlist = Some(waitlist);
        }
    }

    /// Assigns an id to a probe.
    pub(super) fn probe(&mut self, waiter: W) -> u64 {
        let id = self.next_id();
        self.probes.insert(id, waiter);
        id
    }

    fn next_id(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }

    /// Returns the waiter for `id`, which is also the progress token.
    pub(super) fn waiter(&self, id: u64) -> Option<&W> {
        let entry = self.entries.get(&id).filter(|entry| !entry.is_draining);
        entry.map(|entry| &entry.waiter).or_else(|| self.probes.get(&id))
    }

    /// Returns the only request that the server works on and for which `may_be` holds, unless it
    /// was abandoned. Abandoned requests count, as the server may still send messages for them.
    pub(super) fn sole_request(&self, may_be: impl Fn(&W) -> bool) -> Option<u64> {
        let mut found = self.entries.iter().filter(|(_, entry)| may_be(&entry.waiter));
        match (found.next(), found.next()) {
            (Some((id, entry)), None) if !entry.is_draining => Some(*id),
            _ => None,
        }
    }

    /// Returns a request that a caller waits for and for which `may_be` holds.
    pub(super) fn any(&self, may_be: impl Fn(&W) -> bool) -> Option<u64> {
        let mut waiting = self.entries.iter().filter(|(_, entry)| !entry.is_draining);
        waiting.find(|(_, entry)| may_be(&entry.waiter)).map(|(id, _)| *id)
    }

    /// Returns whether a caller waits for a request that was sent before `id`.
    pub(super) fn has_older(&mut self, id: u64) -> bool {
        let entries = &self.entries;
        let is_wanted = |id: &u64| entries.get(id).is_some_and(|entry| !entry.is_draining);
        // Clients often give up requests that they sent together, so the next oldest one is near.
        let near = (self.oldest..).take(OLDEST_STEPS).find(is_wanted);
        let oldest = near.or_else(|| entries.keys().copied().filter(is_wanted).min());
        self.oldest = oldest.unwrap_or(self.next);
        self.oldest < id
    }

    /// Returns whether the answer to `id` is still to come, wanted or not.
    pub(super) fn is_open(&self, id: u64) -> bool {
        self.entries.contains_key(&id) || self.probes.contains_key(&id)
    }

    /// Returns whether `id` is a probe.
    pub(super) fn is_probe(&self, id: u64) -> bool {
        self.probes.contains_key(&id)
    }

    /// Ends the wait for `id`, because its answer has come or never will.
    pub(super) fn settle(&mut self, id: u64) -> SettledRequest<W> {
        match self.entries.remove(&id) {
            Some(Entry { waiter, holder, is_draining: false }) => {
                self.release(holder);
                SettledRequest::Wanted(waiter)
            }
            Some(Entry { waiter, is_draining: true, .. }) => {
                self.n_draining -= 1;
                SettledRequest::Drained(waiter)
            }
            None => self.probes.remove(&id).map_or(SettledRequest::Unknown, SettledRequest::Wanted),
        }
    }

    /// Records that the caller of `id` no longer waits; the server works on it until `ends` at
    /// most. Returns the waiter. A probe is forgotten.
    pub(super) fn abandon(&mut self, id: u64, ends: Duration) -> Option<&W> {
        self.probes.remove(&id);
        let entry = self.entries.get_mut(&id).filter(|entry| !entry.is_draining)?;
        entry.is_draining = true;
        let holder = entry.holder;
        self.n_draining += 1;
        // Answers come in any order: settled ids are removed from time to time.
        if self.draining.len() > 2 * self.n_draining + 16 {
            let entries = &self.entries;
            self.draining.retain(|(_, id)| entries.contains_key(id));
        }
        self.draining.push_back((ends, id));
        self.release(holder);
        self.entries.get(&id).map(|entry| &entry.waiter)
    }

    /// Removes requests that have drained for too long. Without room, or if too many drain, it also
    /// removes the oldest ones. Returns their waiters, so that their answers are no longer read.
    pub(super) fn expire(&mut self, now: Duration) -> Vec<W> {
        let mut expired = Vec::new();
        while let Some((ends, id)) = self.draining.front().copied() {
            // Limits differ: an entry behind one that ends later is removed together with it.
            if ends > now && self.entries.contains_key(&id) {
                break;
            }
            self.draining.pop_front();
            if let SettledRequest::Drained(waiter) = self.settle(id) {
                expired.push(waiter);
            }
        }
        while (self.entries.len() >= self.in_flight_max || self.n_draining > self.draining_max)
            && let Some(oldest) = self.forget_oldest()
        {
            expired.push(oldest);
        }
        expired
    }

    fn forget_oldest(&mut self) -> Option<W> {
        while let Some((_, id)) = self.draining.pop_front() {
            if let SettledRequest::Drained(waiter) = self.settle(id) {
                return Some(waiter);
            }
        }
        None
    }

    /// Removes all requests and returns their waiters.
    pub(super) fn drain(&mut self) -> Vec<W> {
        self.draining.clear();
        self.n_draining = 0;
        let queued =
            self.waitlist.take().map(|mut waitlist| waitlist.queue.drain()).unwrap_or_default();
        let entries = self.entries.drain().map(|(_, entry)| entry.waiter);
        entries.chain(self.probes.drain().map(|(_, waiter)| waiter)).chain(queued).collect()
    }

    /// Returns how many requests a caller waits for.
    pub(super) fn in_flight(&self) -> usize {
        self.entries.len() - self.n_draining
    }

    /// Returns whether the server has no work, wanted or not.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns how many requests were given an id so far, probes included.
    pub(super) fn admitted(&self) -> u64 {
        self.next - 1
    }
}

/// Returns `request` with the mux's `id`, which is also its progress token if it has one.
pub(super) fn with_connection_id(request: &Message, id: u64) -> ByteChunks {
    let id = id.to_string();
    request.edit_in_pieces([(MessagePart::Id, &id), (MessagePart::ProgressToken, &id)])
}

/// Returns a message of the server with the client's own `id` and progress `token`, JSON texts.
pub fn with_client_ids(message: &Message, id: &str, token: &str) -> ByteChunks {
    message.edit_in_pieces([(MessagePart::Id, id), (MessagePart::ProgressToken, token)])
}

/// Returns an error that names no request as the answer to request `id`.
pub(super) fn addressed_to(error: &Message, id: u64) -> Message {
    error.with(MessagePart::Id, &id.to_string())
}

/// Returns the cancellation of request `id` for the server.
pub(super) fn cancellation(id: u64) -> Message {
    let params = format!(r#"{{"requestId":{id}}}"#);
    Message::notification(method::CANCELLED, Some(&params))
}

#[cfg(test)]
mod tests;
