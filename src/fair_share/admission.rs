//! Permits for a bounded resource that cannot be taken away, given out fairly.
//!
//! Free permits are never refused, with one exception: while another party has asked within
//! [`defaults::SHARE_RECENT`], the last permit is left for a party that holds none. So a client
//! with hanging requests cannot take all permits for as long as its requests may last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::{
    sync::oneshot,
    time::{self, Instant},
};

use super::{FairQueue, QueueTicket};
use crate::{
    capacity_holder::{Account, Holder},
    config::defaults,
};

/// A bounded number of permits, given out fairly.
#[derive(Debug)]
pub struct Admission {
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: FairQueue<oneshot::Sender<AdmissionPermit>>,
    n_held: usize,
    accounts: LastTwo<Account>,
    holders: LastTwo<Holder>,
    is_closed: bool,
}

/// A permit; dropping it gives it back.
#[derive(Debug)]
pub struct AdmissionPermit {
    admission: Arc<Admission>,
    holder: Holder,
}

/// A place in the queue; dropping it leaves the queue.
struct Place<'a> {
    admission: &'a Arc<Admission>,
    ticket: QueueTicket,
}

/// The last party that asked, and the last different one before it.
#[derive(Debug)]
struct LastTwo<K> {
    last: Option<(K, Instant)>,
    other: Option<(K, Instant)>,
}

impl<K> Default for LastTwo<K> {
    fn default() -> Self {
        Self { last: None, other: None }
    }
}

impl<K: Copy + PartialEq> LastTwo<K> {
    fn note(&mut self, key: K, now: Instant) {
        if let Some(last) = self.last.replace((key, now))
            && last.0 != key
        {
            self.other = Some(last);
        }
    }

    /// Returns the time until which another party than `key` counts as a recent user.
    fn other_counts_until(&self, key: K) -> Option<Instant> {
        let other = [&self.last, &self.other].into_iter().flatten().find(|(of, _)| *of != key);
        other.map(|(_, asked)| *asked + defaults::SHARE_RECENT)
    }
}

impl State {
    /// Returns whether `holder` may have a permit now.
    fn may_hold(&self, capacity: usize, holder: Holder, now: Instant) -> bool {
        self.n_held < capacity
            && self.is_left_until(capacity, holder).is_none_or(|ends| ends <= now)
    }

    /// Returns the time until which the last permit is left for parties other than `holder`.
    fn is_left_until(&self, capacity: usize, holder: Holder) -> Option<Instant> {
        if capacity < 2 || self.n_held + 1 != capacity {
            return None;
        }
        let account = (self.queue.n_of_account(holder) > 0)
            .then(|| self.accounts.other_counts_until(holder.account));
        let member =
            (self.queue.n_of_member(holder) > 0).then(|| self.holders.other_counts_until(holder));
        account.flatten().max(member.flatten())
    }
}

impl Admission {
    /// Returns an admission with `capacity` permits.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, state: Mutex::default() })
    }

    /// Waits for a permit without a time limit; `None` after a close. Cancel safe: a holder that
    /// leaves gives its place to the next.
    pub async fn admit(self: &Arc<Self>, holder: Holder) -> Option<AdmissionPermit> {
        let now = Instant::now();
        let (ticket, mut granted) = {
            let mut state = self.state();
            if state.is_closed {
                return None;
            }
            // Occasional requests of metamcp itself, to read a list, take no client's permit.
            if holder.account != Account::Service {
                state.accounts.note(holder.account, now);
                state.holders.note(holder, now);
            }
            // Waiting parties may hold as few: the newcomer waits its turn.
            if state.queue.n_waiting() == 0 && state.may_hold(self.capacity, holder, now) {
                state.queue.add(holder);
                state.n_held += 1;
                return Some(AdmissionPermit { admission: Arc::clone(self), holder });
            }
            let (grant, granted) = oneshot::channel();
            (state.queue.enqueue(holder, grant), granted)
        };
        let _place = Place { admission: self, ticket };
        self.serve();
        loop {
            tokio::select! {
                biased;
                permit = &mut granted => return permit.ok(),
                // The last permit is reserved only for a while, which passes without an event.
                () = time::sleep(defaults::SHARE_POLL) => self.serve(),
            }
        }
    }

    /// Gives out no more permits; all waiting calls return `None`.
    pub fn close(&self) {
        let waiting = {
            let mut state = self.state();
            state.is_closed = true;
            state.queue.drain()
        };
        drop(waiting);
    }

    /// Gives free permits to waiting holders.
    fn serve(self: &Arc<Self>) {
        let now = Instant::now();
        let mut served = Vec::new();
        {
            let mut state = self.state();
            while let Some(holder) = state.queue.next()
                && state.may_hold(self.capacity, holder, now)
                && let Some((_, grant)) = state.queue.dequeue()
            {
                state.n_held += 1;
                served.push((grant, AdmissionPermit { admission: Arc::clone(self), holder }));
            }
        }
        for (grant, permit) in served {
            // If the holder has left meanwhile, the permit is given back.
            drop(grant.send(permit));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Held for statements on plain data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        {
            let mut state = self.admission.state();
            state.n_held = state.n_held.saturating_sub(1);
            state.queue.release(self.holder);
            if state.queue.n_waiting() == 0 {
                return;
            }
        }
        self.admission.serve();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let left = self.admission.state().queue.remove(self.ticket);
        // The next one in the queue may have a better claim to the last permit.
        if left.is_some() {
            self.admission.serve();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::capacity_holder::AccountMember;

    fn holder(account: u32, session: u64) -> Holder {
        Holder { account: Account::User(account), member: AccountMember::Session(session) }
    }

    /// Returns a permit that is available at once.
    #[track_caller]
    fn now(admission: &Arc<Admission>, holder: Holder) -> AdmissionPermit {
        admission.admit(holder).now_or_never().expect("there is room").expect("it is open")
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_client_gets_all_permits() {
        let admission = Admission::new(4);
        let _all: Vec<_> = (0..4).map(|_| now(&admission, holder(1, 1))).collect();
        assert!(admission.admit(holder(1, 1)).now_or_never().is_none(), "never above capacity");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_permit_is_reserved_for_another_recent_client() {
        for other in [holder(2, 2), holder(1, 2)] {
            let admission = Admission::new(4);
            drop(now(&admission, other));
            let held: Vec<_> = (0..3).map(|_| now(&admission, holder(1, 1))).collect();
            let mut greedy = Box::pin(admission.admit(holder(1, 1)));
            assert!((&mut greedy).now_or_never().is_none());
            drop(now(&admission, other));

            time::advance(defaults::SHARE_RECENT / 2).await;
            drop(now(&admission, other));
            time::advance(defaults::SHARE_RECENT / 2).await;
            assert!((&mut greedy).now_or_never().is_none(), "it was there again");

            assert!(greedy.await.is_some(), "it has gone");
            drop(held);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_client_gets_the_last_permit_after_the_reservation() {
        let admission = Admission::new(2);
        let held = [now(&admission, holder(1, 1)), now(&admission, holder(2, 2))];
        let mut waiting = Box::pin(admission.admit(holder(1, 1)));
        assert!((&mut waiting).now_or_never().is_none(), "all are held");
        let [_own, other] = held;
        drop(other);
        assert!((&mut waiting).now_or_never().is_none(), "it is left for the other one");

        assert!(waiting.await.is_some(), "the other one does not come again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_returned_permit_goes_to_the_client_with_the_fewest() {
        let admission = Admission::new(2);
        let mut held = vec![now(&admission, holder(1, 1)), now(&admission, holder(1, 1))];
        let mut again = Box::pin(admission.admit(holder(1, 1)));
        assert!((&mut again).now_or_never().is_none());
        let mut other = Box::pin(admission.admit(holder(2, 1)));
        assert!((&mut other).now_or_never().is_none());

        held.pop();

        assert!(other.now_or_never().is_some());
        assert!((&mut again).now_or_never().is_none());
        held.pop();
        assert!(again.now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_wait_takes_no_permit_and_a_close_ends_all_waits() {
        let admission = Admission::new(1);
        let held = now(&admission, holder(1, 1));
        let mut left = Box::pin(admission.admit(holder(1, 2)));
        assert!((&mut left).now_or_never().is_none());
        drop(held);
        drop(left);
        let held = now(&admission, holder(1, 3));
        let mut waiting = Box::pin(admission.admit(holder(1, 4)));
        assert!((&mut waiting).now_or_never().is_none());

        admission.close();

        assert!(waiting.await.is_none());
        drop(held);
        assert!(admission.admit(holder(1, 4)).await.is_none());
    }
}
