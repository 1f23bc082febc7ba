//! The steps that the check of one call may take, and the way out once they are spent.
//!
//! A schema of a few lines can ask for years of work. So each look at a value of the arguments
//! spends a step, and the first step beyond the budget unwinds the whole check. An error alone
//! would let the other branches of an `anyOf` run. The unwinding carries a [`CheckStopped`] and
//! never reaches the panic hook.

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::Ordering,
};

use crate::{compute_pool::StopFlag, config::defaults::CHECK_STACK_BYTES_MAX};

/// The reason that a check was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckStopped {
    /// It has spent its steps.
    Spent,
    /// It is nested deeper than the stack of its thread allows.
    Deep,
    /// The caller has gone.
    Unwanted,
}

/// The number of steps between two looks at the flag.
const LOOK_EVERY: u64 = 4096;

thread_local! {
    static METER: Meter = const {
        Meter {
            left: Cell::new(0),
            look_at: Cell::new(0),
            base: Cell::new(0),
            stop: RefCell::new(None),
        }
    };
}

/// The budget of the check that runs on this thread.
struct Meter {
    left: Cell<u64>,
    /// The flag is read once fewer steps than this are left.
    look_at: Cell<u64>,
    /// An address on the stack where the check began.
    base: Cell<usize>,
    stop: RefCell<Option<StopFlag>>,
}

/// Runs `work` with a budget of `steps`, and returns its value and the steps that it spent. Calls
/// must not be nested.
pub(super) fn run_with<T>(
    steps: u64,
    stop: Option<&StopFlag>,
    work: impl FnOnce() -> T,
) -> (Result<T, CheckStopped>, u64) {
    METER.with(|meter| {
        meter.left.set(steps);
        meter.look_at.set(steps.saturating_sub(LOOK_EVERY));
        meter.base.set(stack_address());
        meter.stop.replace(stop.cloned());
        // Values left half done are dropped here, or belonged to the check alone.
        let outcome = catch_unwind(AssertUnwindSafe(work));
        meter.stop.replace(None);
        let spent = steps - meter.left.get();
        match outcome {
            Ok(value) => (Ok(value), spent),
            Err(payload) => match payload.downcast::<CheckStopped>() {
                Ok(stopped) => (Err(*stopped), spent),
                Err(panic) => resume_unwind(panic),
            },
        }
    })
}

/// Spends steps of the check that runs on this thread, and unwinds it if too few are left.
pub(super) fn spend(steps: u64) {
    METER.with(|meter| {
        let Some(left) = meter.left.get().checked_sub(steps) else {
            meter.left.set(0);
            leave(CheckStopped::Spent)
        };
        meter.left.set(left);
        if stack_address().abs_diff(meter.base.get()) > CHECK_STACK_BYTES_MAX {
            leave(CheckStopped::Deep);
        }
        if left < meter.look_at.get() {
            meter.look_at.set(left.saturating_sub(LOOK_EVERY));
            let is_unwanted =
                meter.stop.borrow().as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
            if is_unwanted {
                leave(CheckStopped::Unwanted);
            }
        }
    });
}

fn leave(reason: CheckStopped) -> ! {
    resume_unwind(Box::new(reason))
}

/// Returns an address on the stack of this thread, near its top.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn endless_work_is_stopped_at_its_budget_its_stack_limit_or_its_flag() {
        fn forever(depth: usize) -> usize {
            spend(1);
            if depth == usize::MAX { 0 } else { forever(depth + 1) + 1 }
        }
        let (outcome, spent) = run_with(100, None, || {
            loop {
                spend(1);
            }
        });
        assert_eq!((outcome, spent), (Err::<(), _>(CheckStopped::Spent), 100));
        assert_eq!(run_with(u64::MAX, None, || forever(1)).0, Err(CheckStopped::Deep));
        let gone = StopFlag::new(AtomicBool::new(true));
        let (outcome, spent) = run_with(u64::MAX, Some(&gone), || {
            loop {
                spend(1);
            }
        });
        assert_eq!(outcome, Err::<(), _>(CheckStopped::Unwanted));
        assert!(spent <= LOOK_EVERY + 1, "{spent}");
    }

    #[test]
    #[should_panic(expected = "a bug")]
    fn a_panic_of_the_work_is_passed_on() {
        let (Ok(()) | Err(_), _) = run_with(1, None, || panic!("a bug"));
    }

    proptest! {
        #[test]
        fn work_never_spends_more_steps_than_its_budget(
            steps in 0..1000_u64, all in prop::collection::vec(0..200_u64, 0..20),
        ) {
            let (outcome, spent) = run_with(steps, None, || all.iter().for_each(|n| spend(*n)));
            let sum: u64 = all.iter().sum();
            prop_assert_eq!(outcome.is_ok(), sum <= steps);
            prop_assert_eq!(spent, sum.min(steps));
        }
    }
}
