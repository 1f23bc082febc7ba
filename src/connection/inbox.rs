//! The inbox of one request: the queue from the reader of a connection to the caller.
//!
//! Bounded. A reader that serves several clients never waits for room: it drops the message, and a
//! caller that takes nothing for a while loses its request. A reader that serves one client waits.

use std::{
    collections::VecDeque,
    future::poll_fn,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::time::Instant;

use super::{RequestFailure, RetryAfter, SideMessage};
use crate::{config::defaults, protocol::Message};

/// An event of a request in flight.
#[derive(Debug)]
pub enum CallEvent {
    /// A message that belongs to the request; the answer is still to come.
    Message(SideMessage),
    /// The answer, a result or an error. It is the last event.
    Answer(Message),
    /// The server ended its stream before the answer, so that clients poll for it. metamcp fetches
    /// the answer.
    Deferred,
    /// The server asks for a wait, and gets the request again after it.
    RetryAfter(RetryAfter),
}

/// The answer to one request and the messages before it, until the caller takes them.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<SideMessage>,
    /// The total size of the messages, in bytes.
    n_bytes: usize,
    /// The time at which the inbox became full; nothing was taken since.
    full_since: Option<Instant>,
    /// `true` while the caller is paused, as the protocol expects.
    is_paused: bool,
    outcome: Option<Result<Message, RequestFailure>>,
    /// `true` if the answer was deferred, and the caller does not know that yet.
    is_deferred: bool,
    /// The wait that the server asks for, if the caller does not know of it yet.
    wait: Option<RetryAfter>,
    reader: Option<Waker>,
    /// `true` once the caller takes no more events.
    is_closed: bool,
    /// `true` once the upstream's answer is not to be read to its end either.
    is_cancelled: bool,
    sender: Option<Waker>,
}

/// The outcome of a push without room.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InboxFull {
    /// The caller was slow for a moment: this message is dropped.
    Dropped,
    /// The caller has taken nothing for [`defaults::OVERRUN_TIMEOUT`].
    Overrun,
}

impl State {
    fn take(&mut self) -> Option<Result<CallEvent, RequestFailure>> {
        self.full_since = None;
        if let Some(message) = self.messages.pop_front() {
            self.n_bytes -= message.message().bytes().len();
            return Some(Ok(CallEvent::Message(message)));
        }
        if let Some(asked) = self.wait.take() {
            return Some(Ok(CallEvent::RetryAfter(asked)));
        }
        let is_deferred = mem::take(&mut self.is_deferred);
        let answer = self.outcome.take().map(|outcome| outcome.map(CallEvent::Answer));
        answer.or(is_deferred.then_some(Ok(CallEvent::Deferred)))
    }
}

impl Inbox {
    /// Adds a message that comes before the answer; after a close it is dropped.
    pub(super) fn push(&self, message: SideMessage) -> Result<(), InboxFull> {
        let mut state = self.state();
        if state.is_closed || state.outcome.is_some() {
            drop(state); // Unlock first: dropping `message` may send one.
            return Ok(());
        }
        let n_bytes = state.n_bytes + message.message().bytes().len();
        // A single message may be as large as any message.
        if state.messages.len() >= defaults::NOTIFICATION_QUEUE
            || (n_bytes > defaults::NOTIFICATION_BYTES_MAX && !state.messages.is_empty())
        {
            let is_overrun = !state.is_paused && {
                let full_since = state.full_since.get_or_insert_with(Instant::now);
                full_since.elapsed() >= defaults::OVERRUN_TIMEOUT
            };
            drop(state); // Unlock first, as above.
            return Err(if is_overrun { InboxFull::Overrun } else { InboxFull::Dropped });
        }
        state.n_bytes = n_bytes;
        state.messages.push_back(message);
        wake_reader(state);
        Ok(())
    }

    /// Records whether the caller is paused: then only messages without room are lost, and not the
    /// request.
    pub(super) fn set_paused(&self, is_paused: bool) {
        let mut state = self.state();
        state.is_paused = is_paused;
        state.full_since = None;
    }

    /// Records that the answer has been deferred.
    pub(super) fn defer(&self) {
        let mut state = self.state();
        state.is_deferred = true;
        wake_reader(state);
    }

    /// Records that the server asks for a wait.
    pub(super) fn note_wait(&self, asked: RetryAfter) {
        let mut state = self.state();
        state.wait = Some(asked);
        wake_reader(state);
    }

    /// Adds the answer, or the reason why there will be none. The first one counts.
    pub(super) fn finish(&self, outcome: Result<Message, RequestFailure>) {
        let mut state = self.state();
        if state.outcome.is_none() {
            state.outcome = Some(outcome);
        }
        wake_reader(state);
    }

    /// Takes the oldest event, if any. A caller that waited is not woken any more: it makes this
    /// call.
    pub(super) fn take(&self) -> Option<Result<CallEvent, RequestFailure>> {
        let mut state = self.state();
        let _here = state.reader.take();
        state.take()
    }

    /// Takes the oldest event, or registers to be woken for the next one.
    pub(super) fn poll_next(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<CallEvent, RequestFailure>> {
        let mut state = self.state();
        match state.take() {
            Some(event) => Poll::Ready(event),
            None => {
                match &mut state.reader {
                    Some(reader) => reader.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }

    /// Waits until all messages are taken. Only for a future that the taking task polls: it is not
    /// woken. Cancel safe.
    pub(super) async fn drained(&self) {
        poll_until(|| self.state().messages.is_empty()).await;
    }

    /// Waits until the inbox is closed. Only for a future that is polled anew then, such as the one
    /// that drains the answer: it is not woken. Cancel safe.
    pub(super) async fn closed(&self) {
        poll_until(|| self.is_closed()).await;
    }

    /// Returns whether the inbox is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Closes the inbox. With `is_cancelled`, the answer is not needed either.
    pub(super) fn close(&self, is_cancelled: bool) {
        let mut state = self.state();
        state.is_closed = true;
        state.is_cancelled |= is_cancelled;
        let messages = mem::take(&mut state.messages);
        let sender = if state.is_cancelled { state.sender.take() } else { None };
        drop(state);
        drop(messages);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Waits until the answer is no longer needed. Cancel safe.
    pub(super) async fn cancelled(&self) {
        poll_fn(|context| {
            let mut state = self.state();
            if state.is_cancelled {
                return Poll::Ready(());
            }
            state.sender = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data. Wakers are woken and questions dropped after it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the caller that waits for the next event, after unlocking.
fn wake_reader(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// Waits until `is_done`, without being woken for it.
async fn poll_until(is_done: impl Fn() -> bool) {
    poll_fn(|_| if is_done() { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn notification(n_bytes: usize) -> SideMessage {
        let params = format!("\"{}\"", "x".repeat(n_bytes));
        SideMessage::Notification(Message::notification("notifications/x", Some(&params)))
    }

    fn poll(inbox: &Inbox) -> Poll<Result<CallEvent, RequestFailure>> {
        inbox.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_answer_is_taken_after_the_messages_before_it() {
        let inbox = Inbox::default();
        assert!(poll(&inbox).is_pending());
        inbox.push(notification(1)).expect("room");
        let answer = Message::parse(Message::response("1", "{}")).expect("a response");
        inbox.finish(Ok(answer));
        inbox.finish(Err(RequestFailure::Closed));
        inbox.push(notification(1)).expect("dropped");

        assert!(matches!(poll(&inbox), Poll::Ready(Ok(CallEvent::Message(_)))));
        assert!(matches!(poll(&inbox), Poll::Ready(Ok(CallEvent::Answer(_)))));
        assert!(poll(&inbox).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn an_inbox_is_bounded_by_count_and_by_size() {
        let many = Inbox::default();
        for _ in 0..defaults::NOTIFICATION_QUEUE {
            many.push(notification(1)).expect("room");
        }
        assert_eq!(many.push(notification(1)), Err(InboxFull::Dropped), "a short delay is allowed");
        tokio::time::advance(defaults::OVERRUN_TIMEOUT).await;
        assert!(poll(&many).is_ready());
        many.push(notification(1)).expect("room");
        assert_eq!(many.push(notification(1)), Err(InboxFull::Dropped), "the caller reads");
        tokio::time::advance(defaults::OVERRUN_TIMEOUT).await;
        assert_eq!(many.push(notification(1)), Err(InboxFull::Overrun));

        let large = Inbox::default();
        large.push(notification(defaults::NOTIFICATION_BYTES_MAX)).expect("alone it may");
        assert_eq!(large.push(notification(1)), Err(InboxFull::Dropped));
        assert!(poll(&large).is_ready());
        large.push(notification(1)).expect("room again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_paused_inbox_drops_messages_without_room_and_keeps_its_request() {
        let inbox = Inbox::default();
        inbox.set_paused(true);
        for _ in 0..defaults::NOTIFICATION_QUEUE {
            inbox.push(notification(1)).expect("room");
        }
        for _ in 0..3 {
            tokio::time::advance(defaults::OVERRUN_TIMEOUT).await;
            assert_eq!(inbox.push(notification(1)), Err(InboxFull::Dropped));
        }
        inbox.set_paused(false);
        assert_eq!(
            inbox.push(notification(1)),
            Err(InboxFull::Dropped),
            "the pause has just ended"
        );
        tokio::time::advance(defaults::OVERRUN_TIMEOUT).await;
        assert_eq!(inbox.push(notification(1)), Err(InboxFull::Overrun));
    }

    #[test]
    fn a_closed_inbox_drops_messages() {
        let inbox = Inbox::default();
        inbox.push(notification(1)).expect("room");
        inbox.close(false);
        inbox.push(notification(1)).expect("dropped");
        assert!(poll(&inbox).is_pending());
    }
}
