//! The return of unused resident memory to the system.
//!
//! Two kinds of memory stay resident although nothing uses them. The C library keeps freed memory:
//! after twelve results of 10 MB, 485 of 596 MiB. The kernel maps 64 kB of the program around each
//! executed page: a start executes 2.7 MB of code, and 8 MB stay mapped. [`return_memory`] returns
//! both; code that is needed again is mapped again, from the page cache. A [`ReturnSchedule`]
//! decides when.

#![expect(
    unsafe_code,
    reason = "the allocator of the C library and the mappings of the program have no safe interface"
)]

use std::{fs, num::NonZero, ops::Range};

use rustix::mm::{Advice, madvise};
use tokio::time::Instant;

use crate::config::defaults::{CLIENT_BYTES, RETURN_AFTER, RETURN_BYTES_MIN};

/// The size in bytes from which blocks are mapped, and unmapped once they are freed. Chosen for
/// metamcp: smaller messages are so frequent that each would pay for its page faults.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES_MIN: i32 = 4 << 20;

/// The number of heaps that threads share. Chosen for metamcp: each heap keeps some memory, and
/// most allocations use a cache of the thread.
#[cfg(target_env = "gnu")]
const HEAPS_MAX: i32 = 4;

/// The schedule for returning memory: once after the start, and after each load.
#[derive(Debug)]
pub struct ReturnSchedule {
    due: Option<Instant>,
    /// The bytes that had been freed by then.
    seen: u64,
}

impl ReturnSchedule {
    /// Returns the schedule of a process that starts at `now`.
    pub fn new(now: Instant) -> Self {
        Self { due: Some(now + RETURN_AFTER), seen: 0 }
    }

    /// Returns whether memory must be returned now. `freed` bytes of messages were freed since the
    /// start, and `n_clients` clients have left.
    pub fn is_due(&mut self, now: Instant, freed: u64, n_clients: u64) -> bool {
        let freed = freed + n_clients * CLIENT_BYTES;
        if freed.saturating_sub(self.seen) >= RETURN_BYTES_MIN {
            self.seen = freed;
            self.due.get_or_insert(now + RETURN_AFTER);
        }
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.due = None;
        }
        is_due
    }
}

/// Configures the allocator to return large blocks at once. Call this before threads are started.
pub fn configure_allocator() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes numbers, and there is one thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
        libc::mallopt(libc::M_ARENA_MAX, HEAPS_MAX);
    }
}

/// Returns freed memory and unused pages of the program. Takes some milliseconds.
pub fn return_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim touches only freed memory, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for Range { start, end } in maps.lines().filter_map(code) {
        let Some(address) = NonZero::new(start) else { continue };
        let pointer = std::ptr::without_provenance_mut(address.get());
        // SAFETY: these are private, read-only mappings of files, so they equal the files: the
        // kernel reads them again when needed.
        let advised = unsafe { madvise(pointer, end - start, Advice::LinuxDontNeed) };
        if let Err(error) = advised {
            tracing::debug!(%error, "unused pages of the program stay in memory: {error}");
        }
    }
}

/// Returns the range of a line of `/proc/self/maps` that maps code of a file. Source: proc(5).
fn code(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (addresses, mode, path) = (fields.next()?, fields.next()?, fields.nth(3)?);
    let (start, end) = addresses.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    (mode == "r-xp" && path.starts_with('/')).then_some(range)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn memory_is_given_back_once_after_the_start_and_after_each_load() {
        let start = Instant::now();
        let mut schedule = ReturnSchedule::new(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        let dues: Vec<u64> = (0..60_u64)
            .filter(|second| {
                // Bytes are freed from the 20th to the 30th second.
                let freed = RETURN_BYTES_MIN * second.saturating_sub(20).min(10);
                // Clients leave from the 40th to the 50th second.
                let n_clients = second.saturating_sub(40).min(10) * RETURN_BYTES_MIN / CLIENT_BYTES;
                schedule.is_due(at(*second), freed, n_clients)
            })
            .collect();
        let expected = [5, 26, 32, 46, 52];
        assert_eq!(dues, expected, "at most every five seconds, and once after the last");
    }

    #[test]
    fn only_file_backed_code_is_returned() {
        let of = "7f00-8f00 r-xp 00001000 fe:00 1234    /usr/bin/metamcp";
        assert_eq!(code(of), Some(0x7f00..0x8f00));
        for other in [
            "7f00-8f00 r--p 00001000 fe:00 1234    /usr/bin/metamcp",
            "7f00-8f00 rwxp 00001000 fe:00 1234    /usr/bin/metamcp",
            "7f00-8f00 r-xp 00000000 00:00 0       [vdso]",
            "7f00-8f00 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(code(other), None, "{other}");
        }
    }

    #[test]
    fn the_program_continues_after_its_code_pages_were_returned() {
        let resident = || {
            let status = fs::read_to_string("/proc/self/status").expect("readable");
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
            let number = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
            number.expect("a number")
        };
        let before = resident();
        return_memory();
        let after = resident();
        assert!(after < before, "{before} kB before, {after} kB after");
    }
}
