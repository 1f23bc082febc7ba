//! What comes back for one request: from the reader of a connection to whoever asked.
//!
//! Bounded, and never waited for by the reader: whoever does not take what was sent loses its
//! request, so that the others on the connection are not held up.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use super::{Aside, Event, Failure};
use crate::{config::defaults, protocol::Message};

/// The place where one request's answer, and what comes before it, is put down and picked up.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    asides: VecDeque<Aside>,
    /// The size of all of them.
    n_bytes: usize,
    outcome: Option<Result<Message, Failure>>,
    reader: Option<Waker>,
    /// Nobody picks anything up any more.
    is_closed: bool,
    /// The upstream's answer is not to be read on either.
    is_cancelled: bool,
    sender: Option<Waker>,
}

/// More has come than may wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overrun;

impl Inbox {
    /// Puts down something that comes before the answer; after a close it is dropped.
    pub(super) fn push(&self, aside: Aside) -> Result<(), Overrun> {
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
            return Err(Overrun);
        }
        state.n_bytes = n_bytes;
        state.asides.push_back(aside);
        let reader = state.reader.take();
        drop(state);
        wake(reader);
        Ok(())
    }

    /// Puts down the answer, or why there will be none. The first one counts.
    pub(super) fn settle(&self, outcome: Result<Message, Failure>) {
        let mut state = self.state();
        if state.outcome.is_none() {
            state.outcome = Some(outcome);
        }
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    /// Picks up what came first.
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Result<Event, Failure>> {
        let mut state = self.state();
        if let Some(aside) = state.asides.pop_front() {
            state.n_bytes -= aside.message().bytes().len();
            return Poll::Ready(Ok(aside.into()));
        }
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome.map(Event::Answer)),
            None => {
                match &mut state.reader {
                    Some(reader) => reader.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
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

    fn notification(n_bytes: usize) -> Aside {
        let params = format!("\"{}\"", "x".repeat(n_bytes));
        Aside::Notification(Message::notification("notifications/x", Some(&params)))
    }

    fn poll(inbox: &Inbox) -> Poll<Result<Event, Failure>> {
        inbox.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_answer_comes_after_what_was_sent_before_it() {
        let inbox = Inbox::default();
        assert!(poll(&inbox).is_pending());
        inbox.push(notification(1)).expect("room");
        let answer = Message::parse(Message::response("1", "{}")).expect("a response");
        inbox.settle(Ok(answer));
        inbox.settle(Err(Failure::Closed));
        inbox.push(notification(1)).expect("dropped");

        assert!(matches!(poll(&inbox), Poll::Ready(Ok(Event::Aside(_)))));
        assert!(matches!(poll(&inbox), Poll::Ready(Ok(Event::Answer(_)))));
        assert!(poll(&inbox).is_pending());
    }

    #[test]
    fn what_waits_is_bounded_by_number_and_by_size() {
        let many = Inbox::default();
        for _ in 0..defaults::NOTIFICATION_QUEUE {
            many.push(notification(1)).expect("room");
        }
        assert_eq!(many.push(notification(1)), Err(Overrun));

        let large = Inbox::default();
        large.push(notification(defaults::NOTIFICATION_BYTES_MAX)).expect("alone it may");
        assert_eq!(large.push(notification(1)), Err(Overrun));
        assert!(poll(&large).is_ready());
        large.push(notification(1)).expect("room again");
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
