use std::time::Duration;

use proptest::prelude::*;
use tokio::time;

use super::*;
use crate::capacity_holder::AccountMember;

const SECOND: Duration = Duration::from_secs(1);

fn of(account: u32) -> Holder {
    Holder { account: Account::User(account), member: AccountMember::Whole }
}

fn table(max: usize, reserve: usize) -> Arc<Evictables> {
    Evictables::new(EvictionBounds { max, reserve })
}

#[tokio::test(start_paused = true)]
async fn the_longest_idle_place_is_evicted() {
    let table = table(3, 0);
    let mut taken = Vec::new();
    for _ in 0..3 {
        let permit = Arc::new(table.admit(of(1)).expect("there is room"));
        permit.trust();
        taken.push(permit);
        time::advance(SECOND).await;
    }
    let running = taken[0].run();
    let _next = table.admit(of(1)).expect("an idle one goes");
    assert!(!taken[0].is_evicted() && taken[1].is_evicted() && !taken[2].is_evicted());

    drop(running);
    let _last = table.admit(of(1)).expect("an idle one goes");
    assert!(taken[2].is_evicted() && !taken[0].is_evicted(), "it was used last");
}

#[tokio::test(start_paused = true)]
async fn an_unproven_place_is_evicted_first_after_its_grace_period() {
    let table = table(2, 0);
    let proven = table.admit(of(1)).expect("there is room");
    proven.trust();
    let silent = table.admit(of(1)).expect("there is room");
    time::advance(defaults::PROOF_GRACE).await;
    proven.touch();
    silent.touch();
    time::advance(SECOND).await;

    let new = table.admit(of(1)).expect("an idle one goes");
    assert!(silent.is_evicted() && !proven.is_evicted());
    let _newer = table.admit(of(1)).expect("an idle one goes");
    assert!(proven.is_evicted() && !new.is_evicted());
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_of_the_largest_account_evicts_only_its_own_places() {
    let table = table(4, 0);
    let small = table.admit(of(2)).expect("there is room");
    time::advance(SECOND).await;
    let large: Vec<_> = (0..3).filter_map(|_| table.admit(of(1)).map(Arc::new)).collect();

    let _again = table.admit(of(1)).expect("its own goes");
    assert!(large[0].is_evicted() && !small.is_evicted());

    let _busy: Vec<_> = large.iter().map(|permit| permit.run()).collect();
    drop(table.admit(of(1)).expect("its own goes"));
    assert!(!small.is_evicted());
}

#[tokio::test(start_paused = true)]
async fn while_all_places_are_in_use_small_accounts_get_the_reserve_and_others_probation() {
    let table = table(4, 1);
    let busy: Vec<_> = (0..4).filter_map(|_| table.admit(of(1)).map(Arc::new)).collect();
    let mut running: Vec<_> = busy.iter().map(|permit| permit.run()).collect();
    assert!(table.admit(of(1)).is_none());
    let other = Arc::new(table.admit(of(2)).expect("the reserve"));
    running.push(other.run());

    let late = table.admit_on_probation(of(1)).expect("on probation");
    assert!(!late.confirm());
    running.remove(0);
    assert!(late.confirm() && busy[0].is_evicted());
    assert!(late.confirm());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_entry_leaves_no_trace_in_the_table() {
    let table = table(2, 1);
    let all: Vec<_> = (0..9).filter_map(|_| table.admit(of(1))).collect();
    assert_eq!((all.len(), table.table().n_kept), (9, 2));
    drop(all);
    assert_eq!(table.table().n_kept, 0);
}

proptest! {
    /// In any order of events, the bound holds and free room is never refused. No place in use is
    /// evicted, and an account below its share loses no place to a larger one.
    #[test]
    fn only_the_largest_holder_loses_places(
        max in 1_usize..6,
        reserve in 0_usize..3,
        steps in prop::collection::vec((0_u8..5, 0_u32..3, any::<prop::sample::Index>()), 0..80),
    ) {
        let table = table(max, reserve);
        let mut kept: Vec<(u32, Arc<EvictablePermit>, Option<EvictableUse>)> = Vec::new();
        for (step, account, at) in steps {
            let n_before = kept.len();
            let size = |account: u32| kept.iter().filter(|one| one.0 == account).count();
            let sizes = [0, 1, 2].map(size);
            match step {
                0 | 1 => {
                    let permit = table.admit(of(account));
                    prop_assert!(n_before >= max || permit.is_some(), "free room was refused");
                    for (of, _, running) in kept.iter().filter(|one| one.1.is_evicted()) {
                        prop_assert!(running.is_none(), "it was in use");
                        prop_assert!(n_before >= max, "evicted beside free room");
                        let own = sizes[account as usize] + 1;
                        prop_assert!(*of == account || sizes[*of as usize] >= own);
                    }
                    kept.retain(|one| !one.1.is_evicted());
                    kept.extend(permit.map(|permit| (account, Arc::new(permit), None)));
                }
                2 if n_before > 0 => drop(kept.remove(at.index(n_before))),
                3 if n_before > 0 => {
                    let one = &mut kept[at.index(n_before)];
                    one.2 = Some(one.1.run());
                }
                4 if n_before > 0 => kept[at.index(n_before)].2 = None,
                _ => {}
            }
            prop_assert!(kept.len() <= max + reserve);
            prop_assert_eq!(table.table().n_kept, kept.len());
        }
    }
}
