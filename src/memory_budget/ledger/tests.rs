use proptest::prelude::*;

use super::*;

impl AccountLedger<u32> {
    /// Queues an waiter and returns the decisions.
    fn ask(
        &mut self,
        waiter: u32,
        account: Option<Account>,
        wanted: usize,
        holds: usize,
    ) -> Vec<LedgerDecision<u32>> {
        self.wait(waiter, account, wanted, holds).1
    }
}

#[test]
fn bytes_are_granted_in_the_order_of_requests() {
    let mut ledger = AccountLedger::new(10);
    assert!(ledger.take(None, 8) && !ledger.take(None, 3));
    assert_eq!(ledger.ask(1, None, 5, 0), []);
    assert_eq!(ledger.ask(2, None, 2, 0), [], "it does not overtake the first one");
    assert_eq!(ledger.free(None, 3), [LedgerDecision::Granted(1, None, 5)]);
    assert_eq!(ledger.free(None, 5), [LedgerDecision::Granted(2, None, 2)]);
    let usage = MemoryUsage { used_bytes: 7, peak_bytes: 10, max_bytes: 10, refused: 0 };
    assert_eq!(ledger.usage(), usage);
}

#[test]
fn more_than_the_whole_budget_is_refused_at_once() {
    let mut ledger = AccountLedger::new(10);
    assert!(ledger.take(None, 1));
    assert_eq!(ledger.ask(1, None, 11, 0), [LedgerDecision::Refused(1, None, 11)]);
    assert!(!ledger.take(None, usize::MAX));
}

#[test]
fn the_newest_waiter_is_refused_if_waiters_hold_all_bytes() {
    let mut ledger = AccountLedger::new(10);
    assert!(ledger.take(None, 10));
    assert_eq!(ledger.ask(1, None, 5, 4), []);
    assert_eq!(ledger.ask(2, None, 5, 6), [LedgerDecision::Refused(2, None, 5)]);
    assert_eq!(ledger.free(None, 6), [LedgerDecision::Granted(1, None, 5)], "it gave its own back");
}

#[test]
fn a_smaller_budget_refuses_what_does_not_fit_any_more() {
    let mut ledger = AccountLedger::new(10);
    assert!(ledger.take(None, 9));
    assert_eq!(ledger.ask(1, None, 8, 0), []);
    assert_eq!(ledger.resize(7), [LedgerDecision::Refused(1, None, 8)]);
    assert_eq!(ledger.ask(2, None, 5, 0), []);
    assert_eq!(ledger.free(None, 9), [LedgerDecision::Granted(2, None, 5)]);
}

#[test]
fn a_withdrawn_waiter_does_not_block_the_queue() {
    let mut ledger = AccountLedger::new(10);
    assert!(ledger.take(None, 10));
    let (first, _) = ledger.wait(1, None, 10, 0);
    let (second, _) = ledger.wait(2, None, 1, 0);
    assert_eq!(ledger.free(None, 1), [], "the first one wants more");
    assert_eq!(ledger.withdraw(first), [LedgerDecision::Granted(2, None, 1)]);
    assert_eq!(ledger.withdraw(first), []);
    assert_eq!(ledger.withdraw(second), [], "its wait is over");
    assert!(!ledger.has_waiters());
}

const GREEDY: Option<Account> = Some(Account::User(1));
const MODEST: Option<Account> = Some(Account::User(2));

#[test]
fn a_large_account_leaves_a_part_of_the_budget_to_small_ones() {
    let mut ledger = AccountLedger::<u32>::new(100);
    assert!(ledger.take(GREEDY, 75) && !ledger.take(GREEDY, 1), "a quarter is kept");
    assert!(ledger.take(MODEST, 10) && ledger.take(None, 5) && ledger.take(MODEST, 10));
    assert!(!ledger.take(MODEST, 1), "all is used up");
    drop(ledger.free(GREEDY, 60));
    assert!(ledger.take(MODEST, 35), "free bytes are for all accounts");
    drop(ledger.free(MODEST, 55));
    assert_eq!((ledger.share(Account::User(1)), ledger.shares.len()), (15, 1));
}

#[test]
fn a_waiter_of_an_account_with_a_large_share_does_not_delay_other_accounts() {
    let mut ledger = AccountLedger::new(100);
    assert!(ledger.take(GREEDY, 70));
    assert_eq!(ledger.ask(5, GREEDY, 40, 0), [], "there would be no room without others either");
    assert_eq!(ledger.ask(6, MODEST, 20, 0), [LedgerDecision::Granted(6, MODEST, 20)]);
    assert_eq!(ledger.ask(7, GREEDY, 1, 0), [], "it does not overtake a waiter of its account");
    assert_eq!(ledger.ask(8, None, 5, 0), [LedgerDecision::Granted(8, None, 5)]);
    drop(ledger.free(None, 5));
    drop(ledger.free(MODEST, 20));
    assert_eq!(
        ledger.free(GREEDY, 45),
        [LedgerDecision::Granted(5, GREEDY, 40), LedgerDecision::Granted(7, GREEDY, 1)]
    );
    assert!(ledger.take(GREEDY, 4), "as much as before");
    assert_eq!(ledger.ask(1, GREEDY, 10, 0), []);
    assert_eq!(ledger.ask(2, MODEST, 20, 0), [LedgerDecision::Granted(2, MODEST, 20)]);
    assert_eq!(ledger.ask(3, MODEST, 20, 0), [], "there is no room for it");
    assert_eq!(ledger.ask(4, MODEST, 5, 0), [], "it does not overtake a waiter that needs room");
    assert_eq!(
        ledger.free(MODEST, 20),
        [LedgerDecision::Granted(3, MODEST, 20), LedgerDecision::Granted(4, MODEST, 5)]
    );
    assert_eq!(ledger.free(GREEDY, 50), [LedgerDecision::Granted(1, GREEDY, 10)]);
}

#[test]
fn bytes_that_are_in_use_are_counted_for_an_account_unless_it_has_too_many() {
    let mut ledger = AccountLedger::<u32>::new(100);
    assert!(ledger.take(GREEDY, 60) && ledger.take(None, 30));
    assert!(!ledger.attribute(Account::User(1), 20) && ledger.attribute(Account::User(2), 20));
    assert_eq!((ledger.share(Account::User(1)), ledger.share(Account::User(2))), (60, 20));
    drop(ledger.release(Account::User(2), 20));
    assert_eq!((ledger.used, ledger.shares.len()), (90, 1));
}

/// A step of a party: it takes bytes, waits for some, or gives all back.
#[derive(Clone, Copy, Debug)]
enum Step {
    Take(usize),
    Wait(usize),
    GiveBack,
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..60_usize).prop_map(Step::Take),
        (0..60_usize).prop_map(Step::Wait),
        Just(Step::GiveBack),
        (40..120_usize).prop_map(Step::Resize),
    ]
}

proptest! {
    /// Parties that hold bytes and wait for more never deadlock: while one waits, another that does
    /// not wait holds bytes. When those are given back, all waits end.
    #[test]
    fn no_sequence_of_requests_deadlocks_or_leaks_bytes(
        steps in prop::collection::vec((0..6_usize, step()), 0..80)
    ) {
        let mut ledger = AccountLedger::<u32>::new(100);
        let mut held = [0_usize; 6];
        let mut waits = [false; 6];
        let drive = |steps: &[(usize, Step)], ledger: &mut AccountLedger<u32>, held: &mut [usize; 6], waits: &mut [bool; 6]| {
            for (party, step) in steps {
                let waiter = u32::try_from(*party).expect("small");
                // Two parties share each account, and two have none.
                let account = [None, GREEDY, MODEST][*party % 3];
                let decisions = match step {
                    Step::Resize(max) => ledger.resize(*max),
                    // A waiting party does nothing else.
                    _ if waits[*party] => continue,
                    Step::Take(wanted) => {
                        if ledger.take(account, *wanted) {
                            held[*party] += wanted;
                        }
                        continue;
                    }
                    Step::Wait(wanted) => {
                        waits[*party] = true;
                        ledger.ask(waiter, account, *wanted, held[*party])
                    }
                    Step::GiveBack => ledger.free(account, std::mem::take(&mut held[*party])),
                };
                for decision in decisions {
                    let (waiter, granted) = match decision {
                        LedgerDecision::Granted(waiter, _, n_bytes) => (waiter, n_bytes),
                        LedgerDecision::Refused(waiter, ..) => (waiter, 0),
                    };
                    let waiter = usize::try_from(waiter).expect("small");
                    waits[waiter] = false;
                    held[waiter] += granted;
                }
            }
        };
        for step in &steps {
            drive(std::slice::from_ref(step), &mut ledger, &mut held, &mut waits);
            prop_assert_eq!(ledger.used, held.iter().sum::<usize>(), "used is what is held");
            prop_assert!(ledger.peak >= ledger.used);
            prop_assert_eq!(ledger.share(Account::User(1)), held[1] + held[4]);
            let free: usize = held.iter().zip(waits).filter(|(_, waits)| !waits).map(|(held, _)| held).sum();
            prop_assert!(!waits.contains(&true) || free > 0, "a party can give bytes back");
        }
        for _ in 0..6 {
            let all: Vec<_> = (0..6).map(|party| (party, Step::GiveBack)).collect();
            drive(&all, &mut ledger, &mut held, &mut waits);
        }
        prop_assert!(!waits.contains(&true), "all waits are over");
        prop_assert_eq!((ledger.used, ledger.queues.len(), ledger.waiters_hold, ledger.shares.len()), (0, 0, 0, 0));
    }
}
