//! Reproducible random choices.

use std::{env, time::SystemTime};

/// The variable that sets the seed, to repeat a failed run.
const SEED: &str = "METAMCP_TEST_SEED";

/// A random number generator that prints its seed when the test fails.
#[derive(Debug)]
pub(crate) struct SeededRandom {
    seed: u64,
    state: u64,
}

impl SeededRandom {
    /// Returns a generator with a different seed in each run.
    pub(crate) fn new() -> Self {
        let given = env::var(SEED).ok().map(|seed| seed.parse().expect("a number"));
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos();
        let seed = given.unwrap_or(u64::from(now));
        Self { seed, state: seed }
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let end = u64::try_from(end).expect("it fits");
        usize::try_from((mixed ^ (mixed >> 31)) % end).expect("it fits")
    }
}

impl Drop for SeededRandom {
    #[expect(clippy::print_stderr, reason = "the test harness shows it with the failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat this run with {SEED}={}", self.seed);
        }
    }
}
