use std::{cell::Cell, rc::Rc};

use proptest::prelude::*;

use super::*;

impl Asker for Rc<Cell<bool>> {
    fn is_gone(&self) -> bool {
        self.get()
    }
}

impl Asker for u32 {
    fn is_gone(&self) -> bool {
        false
    }
}

#[test]
fn bytes_are_granted_in_the_order_of_the_askers() {
    let mut ledger = Ledger::new(10);
    assert!(ledger.take(8) && !ledger.take(3));
    assert_eq!(ledger.wait(1_u32, 5, 0), []);
    assert_eq!(ledger.wait(2, 2, 0), [], "it does not overtake the one before it");
    assert_eq!(ledger.give_back(3), [Decision::Granted(1, 5)]);
    assert_eq!(ledger.give_back(5), [Decision::Granted(2, 2)]);
    assert_eq!(ledger.figures(), (7, 10, 10, 0));
}

#[test]
fn more_than_the_whole_budget_is_refused_at_once() {
    let mut ledger = Ledger::new(10);
    assert!(ledger.take(1));
    assert_eq!(ledger.wait(1_u32, 11, 0), [Decision::Refused(1, 11)]);
    assert!(!ledger.take(usize::MAX));
}

#[test]
fn the_newest_is_refused_where_only_askers_hold_bytes() {
    let mut ledger = Ledger::new(10);
    assert!(ledger.take(10));
    assert_eq!(ledger.wait(1_u32, 5, 4), []);
    assert_eq!(ledger.wait(2, 5, 6), [Decision::Refused(2, 5)]);
    assert_eq!(ledger.give_back(6), [Decision::Granted(1, 5)], "it gave its own back");
}

#[test]
fn a_smaller_budget_refuses_what_does_not_fit_any_more() {
    let mut ledger = Ledger::new(10);
    assert!(ledger.take(9));
    assert_eq!(ledger.wait(1_u32, 8, 0), []);
    assert_eq!(ledger.resize(7), [Decision::Refused(1, 8)]);
    assert_eq!(ledger.wait(2, 5, 0), []);
    assert_eq!(ledger.give_back(9), [Decision::Granted(2, 5)]);
}

#[test]
fn an_asker_that_has_gone_holds_up_none_behind_it() {
    let mut ledger = Ledger::new(10);
    let (first, second) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
    assert!(ledger.take(10));
    assert_eq!(ledger.wait(Rc::clone(&first), 10, 0), []);
    assert_eq!(ledger.wait(Rc::clone(&second), 1, 0), []);
    first.set(true);
    assert_eq!(ledger.give_back(1), [Decision::Granted(second, 1)]);
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
    /// Parties that hold bytes and wait for more never wait for each other: as long as one waits,
    /// another one that does not wait holds bytes. When those have given theirs back, all waits are over.
    #[test]
    fn whatever_parties_do_no_wait_is_for_ever_and_all_is_given_back(
        steps in prop::collection::vec((0..6_usize, step()), 0..80)
    ) {
        let mut ledger = Ledger::<u32>::new(100);
        let mut held = [0_usize; 6];
        let mut waits = [false; 6];
        let drive = |steps: &[(usize, Step)], ledger: &mut Ledger<u32>, held: &mut [usize; 6], waits: &mut [bool; 6]| {
            for (party, step) in steps {
                let asker = u32::try_from(*party).expect("small");
                let decisions = match step {
                    Step::Resize(max) => ledger.resize(*max),
                    // One that waits does nothing else.
                    _ if waits[*party] => continue,
                    Step::Take(wanted) => {
                        if ledger.take(*wanted) {
                            held[*party] += wanted;
                        }
                        continue;
                    }
                    Step::Wait(wanted) => {
                        waits[*party] = true;
                        ledger.wait(asker, *wanted, held[*party])
                    }
                    Step::GiveBack => ledger.give_back(std::mem::take(&mut held[*party])),
                };
                for decision in decisions {
                    let (asker, granted) = match decision {
                        Decision::Granted(asker, n_bytes) => (asker, n_bytes),
                        Decision::Refused(asker, _) => (asker, 0),
                    };
                    let asker = usize::try_from(asker).expect("small");
                    waits[asker] = false;
                    held[asker] += granted;
                }
            }
        };
        for step in &steps {
            drive(std::slice::from_ref(step), &mut ledger, &mut held, &mut waits);
            prop_assert_eq!(ledger.used, held.iter().sum::<usize>(), "used is what is held");
            prop_assert!(ledger.peak >= ledger.used);
            let free: usize = held.iter().zip(waits).filter(|(_, waits)| !waits).map(|(held, _)| held).sum();
            prop_assert!(!waits.contains(&true) || free > 0, "somebody can give bytes back");
        }
        for _ in 0..6 {
            let all: Vec<_> = (0..6).map(|party| (party, Step::GiveBack)).collect();
            drive(&all, &mut ledger, &mut held, &mut waits);
        }
        prop_assert!(!waits.contains(&true), "all waits are over");
        prop_assert_eq!((ledger.used, ledger.queue.len()), (0, 0));
    }
}
