//! A parallel map over a slice, for callers that may block.

use std::{num::NonZero, panic, thread};

use crate::config::defaults::START_THREADS_MAX;

/// Returns the results of `of` for all items, in their order.
pub(super) fn map<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let n_threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = items.len().div_ceil(n_threads.min(START_THREADS_MAX));
    if share == items.len() {
        return items.iter().map(of).collect();
    }
    let work = |items: &[T]| items.iter().map(&of).collect::<Vec<_>>();
    thread::scope(|scope| {
        let work = &work;
        let shares: Vec<_> =
            items.chunks(share).map(|share| scope.spawn(move || work(share))).collect();
        let done = |share: thread::ScopedJoinHandle<'_, Vec<R>>| {
            share.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
        };
        shares.into_iter().flat_map(done).collect()
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_parallel_map_handles_each_item_once_and_keeps_the_order() {
        for n_items in 0..40 {
            let items: Vec<u32> = (0..n_items).collect();
            assert_eq!(super::map(&items, |item| item + 1), (1..=n_items).collect::<Vec<_>>());
        }
    }
}
