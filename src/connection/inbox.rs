//! What comes back for one request: from the reader of a connection to whoever asked.
//!
//! Bounded, and never waited for by a reader that others share: what finds no room is dropped, and
//! whoever takes nothing for a while loses its request. A reader that is one client's own waits.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::time::Instant;

use super::{CallEvent, RequestFailure, SideMessage};
use crate::{config::defaults, protocol::Message};

/// The place where one request's answer, and what comes before it, is put down and picked up.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    asides: VecDeque<SideMessage>,
    /// The size of all of them.
    n_bytes: usize,
    /// Since when nothing has been picked up although there was no room any more.
    full_since: Option<Instant>,
    /// Whoever picks it up is away, as the protocol wants it.
    is_held: bool,
    outcome: Option<Result<Message, RequestFailure>>,
    /// The answer was deferred, and nobody has picked that up yet.
    is_deferred: bool,
    reader: Option<Waker>,
    /// Nobody picks anything up any more.
    is_closed: bool,
    /// The upstream's answer is not to be read on either.
    is_cancelled: bool,
    sender: Option<Waker>,
}

/// There is no room for what has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InboxFull {
    /// Whoever picks it up was slow for a moment: this one is dropped.
    Dropped,
    /// Nobody has picked anything up for [`defaults::OVERRUN_PATIENCE`].
    Overrun,
}

impl State {
    fn take(&mut self) -> Option<Result<CallEvent, RequestFailure>> {
        self.full_since = None;
        if let Some(aside) = self.asides.pop_front() {
            self.n_bytes -= aside.message().bytes().len();
            return Some(Ok(aside.into()));
        }
        let is_deferred = mem::take(&mut self.is_deferred);
        let answer = self.outcome.take().map(|outcome| outcome.map(CallEvent::Answer));
        answer.or(is_deferred.then_some(Ok(CallEvent::Deferred)))
    }
}

impl Inbox {
    /// Puts down something that comes before the answer; after a close it is dropped.
    pub(super) fn push(&self, aside: SideMessage) -> Result<(), InboxFull> {
        let mut state = self.state();
        if state.is_closed || state.outcome.is_some() {
            drop(state); // Before the aside, whose end may be told to the server.
            return Ok(());
        }
        let n_bytes = state.n_bytes + aside.message().bytes().len();
        // One that is alone may be as large as any message.
        if state.asides.len() >= defaults::NOTIFICATION_QUEUE
            || (n_bytes > defaults::NOTIFICATION_BYTES_MAX && !state.asides.is_empty())
        {
            if state.is_held {
                drop(state); // Before the aside, as above.
                return Err(InboxFull::Dropped);
            }
            let full_since = *state.full_since.get_or_insert_with(Instant::now);
            drop(state); // Before the aside, as above.
            let is_overrun = full_since.elapsed() >= defaults::OVERRUN_PATIENCE;
            return Err(if is_overrun { InboxFull::Overrun } else { InboxFull::Dropped });
        }
        state.n_bytes = n_bytes;
        state.asides.push_back(aside);
        let reader = state.reader.take();
        drop(state);
        wake(reader);
        Ok(())
    }

    /// Says whether whoever picks things up is away for good reason: then nothing is lost but what
    /// finds no room.
    pub(super) fn set_paused(&self, is_held: bool) {
        let mut state = self.state();
        state.is_held = is_held;
        state.full_since = None;
    }

    /// Says that the answer has been deferred.
    pub(super) fn defer(&self) {
        let mut state = self.state();
        state.is_deferred = true;
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    /// Puts down the answer, or why there will be none. The first one counts.
    pub(super) fn settle(&self, outcome: Result<Message, RequestFailure>) {
        let mut state = self.state();
        if state.outcome.is_none() {
            state.outcome = Some(outcome);
        }
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    /// Picks up what came first, if there is anything. Whoever waited is not woken any more: it is
    /// here.
    pub(super) fn take(&self) -> Option<Result<CallEvent, RequestFailure>> {
        let mut state = self.state();
        let _here = state.reader.take();
        state.take()
    }

    /// Picks up what came first, and is woken when there is something.
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

    /// Waits until what was put down is picked up. Only for who is polled by the one who picks up:
    /// nobody else is woken.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn drained(&self) {
        std::future::poll_fn(|_| match self.state().asides.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Waits until nobody picks anything up any more. Only for who is polled anew then, as what drains
    /// the answer is: nobody else is woken.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn closed(&self) {
        std::future::poll_fn(|_| match self.is_closed() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Tells whether nobody picks anything up any more.
    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Nobody picks anything up any more. With `is_cancelled`, the answer is of no use either.
    pub(super) fn close(&self, is_cancelled: bool) {
        let mut state = self.state();
        state.is_closed = true;
        state.is_cancelled |= is_cancelled;
        let asides = mem::take(&mut state.asides);
        let sender = if state.is_cancelled { state.sender.take() } else { None };
        drop(state);
        drop(asides);
        wake(sender);
    }

    /// Waits until the answer is of no use to anybody.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn cancelled(&self) {
        std::future::poll_fn(|context| {
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
        // Held for statements on plain data. Wakers and questions are dropped or woken outside.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
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
    fn the_answer_comes_after_what_was_sent_before_it() {
        let inbox = Inbox::default();
        assert!(poll(&inbox).is_pending());
        inbox.push(notification(1)).expect("room");
        let answer = Message::parse(Message::response("1", "{}")).expect("a response");
        inbox.settle(Ok(answer));
        inbox.settle(Err(RequestFailure::Closed));
        inbox.push(notification(1)).expect("dropped");

        assert!(matches!(poll(&inbox), Poll::Ready(Ok(CallEvent::Aside(_)))));
        assert!(matches!(poll(&inbox), Poll::Ready(Ok(CallEvent::Answer(_)))));
        assert!(poll(&inbox).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded_by_number_and_by_size() {
        let many = Inbox::default();
        for _ in 0..defaults::NOTIFICATION_QUEUE {
            many.push(notification(1)).expect("room");
        }
        assert_eq!(many.push(notification(1)), Err(InboxFull::Dropped), "a moment is forgiven");
        tokio::time::advance(defaults::OVERRUN_PATIENCE).await;
        assert!(poll(&many).is_ready());
        many.push(notification(1)).expect("room");
        assert_eq!(many.push(notification(1)), Err(InboxFull::Dropped), "it does read");
        tokio::time::advance(defaults::OVERRUN_PATIENCE).await;
        assert_eq!(many.push(notification(1)), Err(InboxFull::Overrun));

        let large = Inbox::default();
        large.push(notification(defaults::NOTIFICATION_BYTES_MAX)).expect("alone it may");
        assert_eq!(large.push(notification(1)), Err(InboxFull::Dropped));
        assert!(poll(&large).is_ready());
        large.push(notification(1)).expect("room again");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_away_for_good_reason_loses_nothing_but_what_finds_no_room() {
        let inbox = Inbox::default();
        inbox.set_paused(true);
        for _ in 0..defaults::NOTIFICATION_QUEUE {
            inbox.push(notification(1)).expect("room");
        }
        for _ in 0..3 {
            tokio::time::advance(defaults::OVERRUN_PATIENCE).await;
            assert_eq!(inbox.push(notification(1)), Err(InboxFull::Dropped));
        }
        inbox.set_paused(false);
        assert_eq!(inbox.push(notification(1)), Err(InboxFull::Dropped), "it is just back");
        tokio::time::advance(defaults::OVERRUN_PATIENCE).await;
        assert_eq!(inbox.push(notification(1)), Err(InboxFull::Overrun));
    }

    #[test]
    fn a_closed_inbox_takes_nothing_in() {
        let inbox = Inbox::default();
        inbox.push(notification(1)).expect("room");
        inbox.close(false);
        inbox.push(notification(1)).expect("dropped");
        assert!(poll(&inbox).is_pending());
    }
}
