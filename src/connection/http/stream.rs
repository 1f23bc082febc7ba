//! The event streams: their events, and the resumption of a stream that broke off.

use std::{sync::Arc, time::Duration};

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use tokio::{task, time};

use super::{Connection, HttpLink, Inbox, RequestFailure, endpoint, http_pool::ResponseBody};
use crate::{
    backoff::Backoff,
    capacity_holder::Account,
    config::defaults,
    error_report::chain,
    memory_budget::{MemoryExhausted, MemoryReservation},
    protocol::{
        ndjson::OversizedLine,
        sse::{SseDecoder, SseItem},
    },
};

impl HttpLink {
    /// Reads the stream that answers request `id` to its end. A stream that breaks off before the
    /// answer is resumed after its last event, if the upstream numbers its events. The request is
    /// never sent again.
    pub(super) async fn follow(
        &self,
        connection: &Arc<Connection>,
        id: u64,
        mut body: ResponseBody,
        inbox: &Inbox,
        mut events: MeteredEvents,
    ) -> Result<(), RequestFailure> {
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
            tracing::debug!(mcp_server = %connection.server, id, reason = %why, "answer broke off");
            body = self.resume(&events.parser, &mut attempts, why).await?;
            events.parser.restart();
            events.give_back();
        }
    }

    /// Opens a stream that continues after the last event.
    ///
    /// # Errors
    ///
    /// [`RequestFailure::BrokenOff`] for any obstacle, as the request may have been executed.
    async fn resume(
        &self,
        events: &SseDecoder,
        attempts: &mut ReopenAttempts,
        why: Arc<str>,
    ) -> Result<ResponseBody, RequestFailure> {
        if events.last_id().is_empty() {
            return Err(RequestFailure::BrokenOff(why));
        }
        while let Some(pause) = attempts.next(events.retry()) {
            time::sleep(pause).await;
            match self.upstream.listen(events.last_id()).await {
                Ok(answer) if endpoint::is_event_stream(&answer) => return Ok(answer.into_body()),
                Ok(answer) if is_transient(answer.status()) => {}
                Ok(answer) => {
                    let status = answer.status();
                    let why = format!("{why}, and it cannot be had again (HTTP {status})");
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
    let mut turn = Turn::default();
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
        turn.spend(chunk.len()).await;
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
            return Err(RequestFailure::Oversized { length });
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
    let mut turn = Turn::default();
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
                    turn.spend(chunk.len()).await;
                    events.parser.push(chunk);
                }
            }
        }
    }
}

/// The number of bytes of a stream that are read before other tasks get a turn: an upstream that
/// never stops sending must not keep a thread to itself.
const TURN_BYTES: usize = 64 << 10;

/// The bytes that were read in the current turn.
#[derive(Default)]
struct Turn {
    n_bytes: usize,
}

impl Turn {
    /// Counts bytes that were read, and yields to other tasks when there are enough.
    async fn spend(&mut self, n_bytes: usize) {
        self.n_bytes += n_bytes;
        if self.n_bytes >= TURN_BYTES {
            self.n_bytes = 0;
            task::yield_now().await;
        }
    }
}

/// The events of a stream, which count against the memory budget while they are read.
pub(super) struct MeteredEvents {
    pub(super) parser: SseDecoder,
    held: MemoryReservation,
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
        Self { parser, held: MemoryReservation::of(account), holds, refused: None }
    }

    /// Returns the size of the reservation that the event in progress needs.
    fn wanted(&self) -> usize {
        let n_kept = self.parser.n_kept();
        match n_kept > defaults::BUFFER_KEPT_BYTES && n_kept > self.held.n_bytes() {
            true => (2 * n_kept).min(defaults::MESSAGE_BYTES_MAX).max(n_kept),
            false => 0,
        }
    }

    /// Waits for room for the event in progress: the upstream waits meanwhile, too.
    async fn wait_for_room(&mut self) -> Result<(), MemoryExhausted> {
        self.give_back();
        self.held.wait_for(self.wanted(), self.holds).await
    }

    /// Discards the event in progress if there is no room for it: other receivers wait for the
    /// events after it.
    fn discard_without_room(&mut self) {
        if let Err(exhausted) = self.held.grow_to(self.wanted()) {
            self.discard(RequestFailure::NoMemory(exhausted));
        }
    }

    /// Discards the event in progress, if it is large.
    fn discard(&mut self, why: RequestFailure) {
        if self.parser.n_kept() > defaults::BUFFER_KEPT_BYTES {
            self.parser.discard();
            self.held.shrink_to(0);
            self.refused.get_or_insert(why);
        }
    }

    /// Passes one event to the connection, and releases memory that no event needs any more.
    fn take(&mut self, connection: &Arc<Connection>, item: SseItem, via: Option<u64>) {
        self.hand_over(connection, item, via);
        self.give_back();
    }

    /// Releases the reservation, if no large event is in progress.
    fn give_back(&mut self) {
        if self.parser.n_kept() <= defaults::BUFFER_KEPT_BYTES {
            self.held.shrink_to(0);
        }
    }

    /// Passes one event to the connection. An event without data only sets the last event id.
    fn hand_over(&mut self, connection: &Arc<Connection>, item: SseItem, via: Option<u64>) {
        let mut via = via;
        let (thrown, failure) = match item {
            SseItem::Event(event) if event.data.is_empty() || !event.is_message() => return,
            SseItem::Event(event) => match self.held.count(event.data.clone()) {
                Ok(data) => return connection.receive_message(data, via),
                Err(exhausted) => {
                    (OversizedLine::of(&event.data), RequestFailure::NoMemory(exhausted))
                }
            },
            SseItem::Oversized(thrown) => match self.refused.take() {
                Some(why) => {
                    if matches!(why, RequestFailure::Closed) {
                        // The event has no receiver, and the answer may still come.
                        via = None;
                    }
                    (thrown, why)
                }
                None => {
                    connection.note_non_message("longer than a message may be", thrown.length);
                    let length = thrown.length;
                    (thrown, RequestFailure::Oversized { length })
                }
            },
        };
        if let Some(id) = via.or_else(|| thrown.response_id()) {
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
    fn a_pause_is_as_long_as_the_server_asks_within_bounds() {
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
    fn attempts_without_progress_have_an_end() {
        let mut attempts = ReopenAttempts::new();
        let n_attempts = std::iter::from_fn(|| attempts.next(None)).take(1000).count();
        assert_eq!(n_attempts, usize::try_from(defaults::STREAM_ATTEMPTS_MAX).expect("small"));
    }
}
