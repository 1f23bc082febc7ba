//! The event streams: their events, and the resumption of a stream that broke off.

use std::{sync::Arc, time::Duration};

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use tokio::{task, time};

use super::{
    Connection, ForwardedHeaders, HttpLink, Inbox, OutgoingPost, RequestFailure, endpoint,
};
use crate::{
    backoff::Backoff,
    capacity_holder::Account,
    config::defaults,
    error_report::chain,
    http_client::ResponseBody,
    memory_budget::{MemoryExhausted, MemoryReservation},
    protocol::{
        ndjson::OversizedLine,
        sse::{SseDecoder, SseItem},
    },
};

impl HttpLink {
    /// Reads the stream that answers a request to its end. A stream that breaks off before the
    /// answer is resumed after its last event, if the upstream numbers its events. The request is
    /// never sent again.
    pub(super) async fn follow(
        &self,
        connection: &Arc<Connection>,
        post: &OutgoingPost,
        mut body: ResponseBody,
        inbox: &Inbox,
        mut events: MeteredEvents,
    ) -> Result<(), RequestFailure> {
        let (id, forwarded) = (post.id, post.forwarded.as_deref());
        let mut attempts = ReopenAttempts::new();
        loop {
            let reached = events.parser.last_id().to_vec();
            let why = read_answer(connection, id, &mut body, &mut events, inbox).await?;
            if !connection.is_open(id) {
                return Ok(());
            }
            if events.parser.last_id() != reached {
                attempts = ReopenAttempts::new();
            }
            let server = &connection.server;
            tracing::debug!(
                mcp_server = %server, id, reason = %why,
                "the answer of server `{server}` to request {id} broke off: {why}"
            );
            body = self.resume(forwarded, &events.parser, &mut attempts, why).await?;
            events.parser.restart();
            events.release_unused();
        }
    }

    /// Opens a stream that continues after the last event.
    ///
    /// # Errors
    ///
    /// [`RequestFailure::BrokenOff`] for any obstacle, as the request may have been executed.
    async fn resume(
        &self,
        forwarded: Option<&ForwardedHeaders>,
        events: &SseDecoder,
        attempts: &mut ReopenAttempts,
        why: Arc<str>,
    ) -> Result<ResponseBody, RequestFailure> {
        if events.last_id().is_empty() {
            return Err(RequestFailure::BrokenOff(why));
        }
        while let Some(pause) = attempts.next(events.retry()) {
            time::sleep(pause).await;
            match self.upstream.listen(events.last_id(), forwarded).await {
                Ok(answer) if endpoint::is_event_stream(&answer) => return Ok(answer.into_body()),
                Ok(answer) if is_transient(answer.status()) => {}
                Ok(answer) => {
                    let status = answer.status();
                    let why = format!("{why}, and the upstream does not resume it (HTTP {status})");
                    return Err(RequestFailure::BrokenOff(why.into()));
                }
                Err(_) => {}
            }
        }
        Err(RequestFailure::BrokenOff(why))
    }
}

/// Reads the stream of request `id` until it ends, and returns why it ended.
pub(super) async fn read_answer(
    connection: &Arc<Connection>,
    id: u64,
    body: &mut ResponseBody,
    events: &mut MeteredEvents,
    inbox: &Inbox,
) -> Result<Arc<str>, RequestFailure> {
    let mut n_in_turn = 0;
    loop {
        let is_wanted = !inbox.is_closed();
        if !is_wanted {
            // Unwanted events take no memory.
            events.discard(RequestFailure::Closed);
        }
        // Nothing that matters follows the answer. The end is awaited, so that the TCP connection
        // can be reused, but some upstreams never end a stream.
        let frame = if connection.is_open(id) {
            tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = inbox.closed(), if is_wanted => continue,
            }
        } else {
            time::timeout(defaults::STREAM_END, body.frame()).await.unwrap_or_default()
        };
        let frame = match frame {
            None => {
                // Source: MCP 2025-11-25, "Sending messages to the server": a server may end a
                // stream that has an event id and a retry time, so that its client polls.
                if events.parser.retry().is_some() && !events.parser.last_id().is_empty() {
                    inbox.defer();
                }
                return Ok("the stream ended without an answer".into());
            }
            Some(Err(error)) => return Ok(chain(&error).into()),
            Some(Ok(frame)) => frame,
        };
        let Ok(chunk) = frame.into_data() else { continue };
        count_turn(&mut n_in_turn, chunk.len()).await;
        events.parser.push(chunk);
        while let Some(item) = events.parser.next_item() {
            events.take(connection, item, Some(id));
            // The stream belongs to this client alone: it is read as fast as the client reads.
            inbox.drained().await;
        }
        if !is_wanted {
            continue;
        }
        // Known before the event has ended, which may never happen.
        if let Some(length) = events.parser.skipped() {
            return Err(RequestFailure::Oversized(length));
        }
        tokio::select! {
            biased;
            room = events.wait_for_room() => room.map_err(RequestFailure::NoMemory)?,
            () = inbox.closed() => {}
        }
    }
}

/// Reads a stream that belongs to no request until it ends, and returns why it ended.
pub(super) async fn read_shared(
    connection: &Arc<Connection>,
    body: &mut ResponseBody,
    events: &mut MeteredEvents,
) -> Arc<str> {
    let mut n_in_turn = 0;
    loop {
        while let Some(item) = events.parser.next_item() {
            events.take(connection, item, None);
        }
        events.discard_without_room();
        match body.frame().await {
            None => return "the stream ended".into(),
            Some(Err(error)) => return chain(&error).into(),
            Some(Ok(frame)) => {
                if let Ok(chunk) = frame.into_data() {
                    count_turn(&mut n_in_turn, chunk.len()).await;
                    events.parser.push(chunk);
                }
            }
        }
    }
}

/// The number of bytes of a stream that are read before other tasks get a turn: an upstream that
/// never stops sending must not keep a thread to itself.
const TURN_BYTES: usize = 64 << 10;

/// Adds `n_bytes` to those that were read in this turn, and yields to other tasks after enough.
async fn count_turn(n_in_turn: &mut usize, n_bytes: usize) {
    *n_in_turn += n_bytes;
    if *n_in_turn >= TURN_BYTES {
        *n_in_turn = 0;
        task::yield_now().await;
    }
}

/// The events of a stream, which count against the memory budget while they are read.
pub(super) struct MeteredEvents {
    pub(super) parser: SseDecoder,
    reservation: MemoryReservation,
    /// The bytes that the reader holds besides the stream.
    holds: usize,
    /// The reason why the event in progress is not kept.
    refused: Option<RequestFailure>,
}

impl MeteredEvents {
    /// Returns the events of a stream that count for `account`. Its reader holds `holds` bytes
    /// besides it.
    pub(super) fn new(account: Option<Account>, holds: usize) -> Self {
        let parser = SseDecoder::new(defaults::MESSAGE_BYTES_MAX);
        Self { parser, reservation: MemoryReservation::of(account), holds, refused: None }
    }

    /// Returns the size of the reservation that the event in progress needs.
    fn required_bytes(&self) -> usize {
        let n_kept = self.parser.n_kept();
        match n_kept > defaults::BUFFER_KEPT_BYTES && n_kept > self.reservation.n_bytes() {
            true => (2 * n_kept).min(defaults::MESSAGE_BYTES_MAX).max(n_kept),
            false => 0,
        }
    }

    /// Waits for room for the event in progress: the upstream waits meanwhile, too.
    async fn wait_for_room(&mut self) -> Result<(), MemoryExhausted> {
        self.release_unused();
        self.reservation.wait_for(self.required_bytes(), self.holds).await
    }

    /// Discards the event in progress if there is no room for it: other receivers wait for the
    /// events after it.
    fn discard_without_room(&mut self) {
        if let Err(exhausted) = self.reservation.grow_to(self.required_bytes()) {
            self.discard(RequestFailure::NoMemory(exhausted));
        }
    }

    /// Discards the event in progress, if it is large.
    fn discard(&mut self, why: RequestFailure) {
        if self.parser.n_kept() > defaults::BUFFER_KEPT_BYTES {
            self.parser.discard();
            self.reservation.shrink_to(0);
            self.refused.get_or_insert(why);
        }
    }

    /// Passes one event to the connection, and releases the memory of processed events.
    fn take(&mut self, connection: &Arc<Connection>, item: SseItem, via: Option<u64>) {
        self.dispatch(connection, item, via);
        self.release_unused();
    }

    /// Releases the reservation, if no large event is in progress.
    fn release_unused(&mut self) {
        if self.parser.n_kept() <= defaults::BUFFER_KEPT_BYTES {
            self.reservation.shrink_to(0);
        }
    }

    /// Passes one event to the connection. An event without data only sets the last event id.
    fn dispatch(&mut self, connection: &Arc<Connection>, item: SseItem, via: Option<u64>) {
        let (dropped, failure) = match item {
            SseItem::Event(event) if event.data.is_empty() || !event.is_message() => return,
            SseItem::Event(event) => match self.reservation.count(event.data.clone()) {
                Ok(data) => return connection.receive_message(data, via),
                Err(exhausted) => {
                    (OversizedLine::of(&event.data), RequestFailure::NoMemory(exhausted))
                }
            },
            SseItem::Oversized(dropped) => match self.refused.take() {
                Some(failure) => (dropped, failure),
                None => {
                    let failure = connection.note_oversized(&dropped);
                    (dropped, failure)
                }
            },
        };
        // A dropped event without a receiver says nothing about the answer, which may still come.
        let via = via.filter(|_| !matches!(failure, RequestFailure::Closed));
        if let Some(id) = via.or_else(|| dropped.response_id()) {
            connection.fail(id, failure);
        }
    }
}

/// Returns whether a refused stream may be available a little later.
pub(super) fn is_transient(status: StatusCode) -> bool {
    // 409: the upstream has not noticed yet that the previous stream has ended.
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS
    ) || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
}

/// The attempts to open a stream again, with the pauses before them.
pub(in super::super) struct ReopenAttempts {
    backoff: Backoff,
    n_left: u32,
}

impl ReopenAttempts {
    /// Returns as many attempts as are made without progress.
    pub(in super::super) fn new() -> Self {
        Self {
            backoff: Backoff::new(defaults::STREAM_PAUSE),
            n_left: defaults::STREAM_ATTEMPTS_MAX,
        }
    }

    /// Returns the pause before the next attempt, if there is one left. `asked` is the server's
    /// wish for a longer one.
    pub(in super::super) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        self.n_left = self.n_left.checked_sub(1)?;
        Some(self.pause(asked))
    }

    /// Returns the pause before an attempt that is not counted.
    pub(in super::super) fn pause(&mut self, asked: Option<Duration>) -> Duration {
        let pause = self.backoff.pause(fastrand::f64());
        pause.max(asked.unwrap_or_default().min(defaults::STREAM_PAUSE.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_has_the_length_that_the_server_asks_for_within_bounds() {
        let (first, longest) = defaults::STREAM_PAUSE;
        let mut attempts = ReopenAttempts::new();
        let pause = attempts.next(None).expect("the first one");
        assert!(pause >= first / 2 && pause <= first, "{pause:?}");
        let pause = attempts.next(Some(Duration::ZERO)).expect("the second one");
        assert!(pause >= first && pause <= first * 2, "{pause:?}: never at once for ever");
        assert_eq!(attempts.next(Some(Duration::from_secs(3))), Some(Duration::from_secs(3)));
        assert_eq!(attempts.next(Some(Duration::MAX)), Some(longest));
    }

    #[test]
    fn the_number_of_attempts_without_progress_is_bounded() {
        let mut attempts = ReopenAttempts::new();
        let n_attempts = std::iter::from_fn(|| attempts.next(None)).take(1000).count();
        assert_eq!(n_attempts, usize::try_from(defaults::STREAM_ATTEMPTS_MAX).expect("small"));
    }
}
