use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::*;

impl MemoryBudget {
    /// Reserves bytes without an account, at once.
    pub(crate) fn try_reserve(
        &'static self,
        wanted: usize,
    ) -> Result<MemoryReservation, MemoryExhausted> {
        let mut reservation = MemoryReservation { budget: self, account: None, n_bytes: 0 };
        reservation.grow_to(wanted)?;
        Ok(reservation)
    }
}

/// Returns a separate budget for a test.
fn budget(max: usize) -> &'static MemoryBudget {
    Box::leak(Box::new(MemoryBudget::new(max)))
}

#[test]
fn bytes_count_until_the_last_slice_of_them_is_gone() {
    let budget = budget(100);
    let bytes = budget.try_reserve(50).expect("room").attach(Bytes::from(vec![1; 40]));
    assert_eq!(budget.usage().used_bytes, 40, "not more than the bytes");
    let slice = bytes.slice(3..5);
    drop(bytes);
    assert_eq!((budget.usage().used_bytes, &slice[..]), (40, &[1, 1][..]));
    drop(slice);
    assert_eq!(
        budget.usage(),
        MemoryUsage { used_bytes: 0, peak_bytes: 50, max_bytes: 100, refused: 0 }
    );
}

#[test]
fn a_refusal_states_the_usage_and_a_remedy() {
    let budget = budget(100);
    let _held = budget.try_reserve(90).expect("room");
    let error = budget.try_reserve(11).expect_err("no room");
    assert_eq!(error, MemoryExhausted { wanted: 11, used: 90, max: 100, own: None });
    insta::assert_snapshot!(
        String::from_utf8_lossy(&error.to_rpc().render(Some("7"))),
        @r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the memory for messages is used up: 90 of 100 bytes are in use, and 11 more are needed","data":{"code":"MEMORY_EXHAUSTED","suggestion":"Try again later, or request less at a time. The operator can raise `service.memory_max`.","context":{"max":100,"used":90,"wanted":11}}}}"#
    );
    assert_eq!(budget.usage().refused, 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gives_up_after_a_while_and_leaves_nothing_reserved() {
    let budget = budget(100);
    let held = budget.try_reserve(90).expect("room");
    assert!(budget.reserve(None, 20, 0).await.is_err(), "no bytes were given back");
    let waiting = budget.reserve(None, 20, 0);
    tokio::pin!(waiting);
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(held);
    assert_eq!(waiting.await.expect("it is its turn").n_bytes(), 20);
    {
        let _held = budget.try_reserve(90).expect("room");
        let mut left = Box::pin(budget.reserve(None, 20, 0));
        assert!(left.as_mut().now_or_never().is_none());
        drop(left);
    }
    assert_eq!(budget.usage().used_bytes, 0, "an abandoned wait gets nothing");
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_too_late_is_given_back() {
    let budget = budget(100);
    let held = budget.try_reserve(100).expect("room");
    let mut waiting = Box::pin(budget.reserve(None, 20, 0));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(held);
    assert_eq!(budget.usage().used_bytes, 20, "it is granted");
    drop(waiting);
    assert_eq!(budget.usage().used_bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_does_not_delay_the_waiters_behind_it() {
    let budget = budget(100);
    let _held = budget.try_reserve(60).expect("room");
    let mut large = Box::pin(budget.reserve(None, 50, 0));
    assert!(large.as_mut().now_or_never().is_none());
    let mut small = Box::pin(budget.reserve(None, 40, 0));
    assert!(small.as_mut().now_or_never().is_none(), "it does not overtake");
    drop(large);
    let granted = small.as_mut().now_or_never().expect("it has its turn");
    assert_eq!(granted.expect("there is room").n_bytes(), 40);
}

#[test]
fn bytes_count_for_their_account_while_they_live_and_a_refusal_states_them() {
    let budget = budget(64 << 10);
    let (account, length) = (Account::User(1), 40 << 10);
    let bytes = budget.try_reserve(length).expect("room").attach(vec![1; length].into());
    let bytes = budget.attributed(account, bytes).expect("no other account has any");
    let more = budget.try_reserve(20 << 10).expect("room").attach(vec![1; 20 << 10].into());
    let error = budget.attributed(account, more).expect_err("the rest is for others");
    insta::assert_snapshot!(error, @"the memory for messages is used up: 61440 of 65536 bytes are in use (40960 of them by this account), and 20480 more are needed");
    assert_eq!(budget.usage().used_bytes, length, "the refused bytes are released");
    let slice = bytes.slice(1..2);
    drop(bytes);
    assert_eq!(budget.ledger().share(account), length);
    drop(slice);
    assert_eq!((budget.usage().used_bytes, budget.ledger().share(account)), (0, 0));
}

#[derive(Debug)]
struct TestCache {
    held: Mutex<Option<MemoryReservation>>,
    n_asked: AtomicUsize,
}

impl ReclaimableMemory for TestCache {
    fn reclaim(&self) {
        self.n_asked.fetch_add(1, Ordering::Relaxed);
        let held = self.held.lock().expect("unpoisoned").take();
        drop(held);
    }
}

#[test]
fn the_budget_reclaims_optional_memory_before_it_refuses_a_reservation() {
    let budget = budget(100);
    let held = Mutex::new(Some(budget.try_reserve(80).expect("room")));
    let cache = Arc::new(TestCache { held, n_asked: AtomicUsize::new(0) });
    let known: Arc<dyn ReclaimableMemory> = Arc::<TestCache>::clone(&cache);
    budget.register_reclaimable(Arc::downgrade(&known));
    let mut taken = budget.try_reserve(10).expect("room");
    assert_eq!(cache.n_asked.load(Ordering::Relaxed), 0);
    taken.grow_to(100).expect("room was made");
    assert!(taken.grow_to(101).is_err());
    assert_eq!(taken.n_bytes(), 100);
}

#[test]
fn the_budget_reclaims_optional_memory_for_an_answer_of_an_account_with_a_large_share() {
    const KIB: usize = 1 << 10;
    let budget = budget(100 * KIB);
    let held = Mutex::new(Some(budget.try_reserve(20 * KIB).expect("room")));
    let cache = Arc::new(TestCache { held, n_asked: AtomicUsize::new(0) });
    let known: Arc<dyn ReclaimableMemory> = Arc::<TestCache>::clone(&cache);
    budget.register_reclaimable(Arc::downgrade(&known));
    let answer = |account, length: usize| {
        let bytes = budget.try_reserve(length).expect("room").attach(vec![1; length].into());
        budget.attributed(account, bytes)
    };
    let _read_later = answer(Account::User(1), 40 * KIB).expect("room");
    let _too = answer(Account::User(1), 20 * KIB).expect("room is made");
    assert_eq!(cache.n_asked.load(Ordering::Relaxed), 1);

    let _ours = answer(Account::Service, 30 * KIB).expect("it belongs to no account");
    assert_eq!(budget.ledger().share(Account::Service), 0);
}

#[tokio::test(start_paused = true)]
async fn a_larger_budget_serves_waiters_at_once() {
    let budget = budget(100);
    let _held = budget.try_reserve(90).expect("room");
    let waiting = budget.reserve(None, 20, 0);
    tokio::pin!(waiting);
    assert!(time::timeout(Duration::from_secs(1), waiting.as_mut()).await.is_err());
    budget.resize(200);
    assert!(waiting.now_or_never().expect("at once").is_ok());
}

proptest! {
    #[test]
    fn the_used_bytes_match_the_sum_of_the_reservations(
        steps in prop::collection::vec((0..5_usize, 0..200_usize), 0..60)
    ) {
        let budget = budget(1000);
        let mut live: Vec<MemoryReservation> = Vec::new();
        let mut bytes: Vec<Bytes> = Vec::new();
        for (step, size) in steps {
            match (step, live.pop()) {
                (0, last) => {
                    live.extend(last);
                    live.extend(budget.try_reserve(size));
                }
                (1, Some(mut last)) => {
                    let _full = last.grow_to(last.n_bytes() + size);
                    live.push(last);
                }
                (2, Some(mut last)) => {
                    live.push(last.split(size));
                    live.push(last);
                }
                (3, Some(mut last)) => {
                    last.shrink_to(size);
                    live.push(last);
                }
                (4, Some(last)) => bytes.push(last.attach(vec![0; size].into())),
                (_, last) => drop(last),
            }
            let reserved: usize = live.iter().map(MemoryReservation::n_bytes).sum();
            let used = budget.usage().used_bytes;
            prop_assert!(used >= reserved && used <= 1000);
            prop_assert!(used <= reserved + bytes.iter().map(Bytes::len).sum::<usize>());
        }
        drop((live, bytes));
        prop_assert_eq!(budget.usage().used_bytes, 0);
    }
}
