//! The memory of an engine: bounded, and counted alike in every run.

#![expect(unsafe_code, reason = "the engine calls its allocator through an unsafe trait")]

use std::{cell::Cell, ptr, rc::Rc};

use rquickjs::allocator::{Allocator, RustAllocator};

/// The bytes that count for each allocation, besides its own.
const OVERHEAD_BYTES: usize = 16;

/// The memory that one engine has.
pub(super) struct EngineMemory {
    n_used: Cell<usize>,
    limit: usize,
    /// The engine gets an error instead of the end.
    is_lenient: Cell<bool>,
    /// Ends the script.
    on_exhausted: Box<dyn Fn()>,
}

impl EngineMemory {
    /// Returns memory of `limit` bytes. `on_exhausted` is called at the first request beyond them,
    /// and should not return: the errors of an engine without memory are not those of its script.
    pub(super) fn new(limit: usize, on_exhausted: impl Fn() + 'static) -> Rc<Self> {
        let (n_used, is_lenient) = (Cell::new(0), Cell::new(false));
        Rc::new(Self { n_used, limit, is_lenient, on_exhausted: Box::new(on_exhausted) })
    }

    /// Does `work`, in which exhausted memory is an error that the engine reports.
    pub(super) fn leniently<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_lenient.set(true);
        let done = work();
        self.is_lenient.set(false);
        done
    }

    /// Replaces an allocation of `before` bytes by one of `after`, with the pointer that `allocate`
    /// returns. A null pointer changes nothing.
    fn replace(&self, before: usize, after: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        let n_others = self.n_used.get().saturating_sub(before);
        let n_wanted = n_others.saturating_add(after);
        let made = if n_wanted <= self.limit { allocate() } else { ptr::null_mut() };
        if !made.is_null() {
            self.n_used.set(n_wanted);
        } else if !self.is_lenient.get() {
            (self.on_exhausted)();
        }
        made
    }
}

/// The allocator of an engine.
pub(super) struct BoundedAllocator(pub(super) Rc<EngineMemory>);

/// Returns the bytes that an allocation counts for.
fn counted(size: usize) -> usize {
    size.saturating_add(OVERHEAD_BYTES)
}

/// Returns the bytes that the allocation at `made` counts for.
///
/// # Safety
///
/// `made` was allocated by [`RustAllocator`] and is not freed.
unsafe fn counted_at(made: *mut u8) -> usize {
    // SAFETY: as for this function.
    counted(unsafe { RustAllocator::usable_size(made) })
}

/// Returns the size that an allocation of `size` bytes has.
fn rounded(size: usize) -> usize {
    size.checked_next_multiple_of(align_of::<u64>()).unwrap_or(usize::MAX)
}

// SAFETY: each pointer comes from the allocator of Rust, or is null, which is allowed.
unsafe impl Allocator for BoundedAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.0.replace(0, counted(rounded(size)), || RustAllocator.alloc(size))
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let after = count.checked_mul(size).map_or(usize::MAX, |size| counted(rounded(size)));
        self.0.replace(0, after, || RustAllocator.calloc(count, size))
    }

    unsafe fn dealloc(&mut self, made: *mut u8) {
        // SAFETY: the engine frees what it got from this allocator, once.
        unsafe {
            let before = counted_at(made);
            self.0.n_used.set(self.0.n_used.get().saturating_sub(before));
            RustAllocator.dealloc(made);
        }
    }

    unsafe fn realloc(&mut self, made: *mut u8, new_size: usize) -> *mut u8 {
        if made.is_null() {
            return self.alloc(new_size);
        }
        // SAFETY: the engine has the pointer from this allocator and has not freed it.
        let before = unsafe { counted_at(made) };
        self.0.replace(before, counted(rounded(new_size)), || {
            // SAFETY: as before. The size is at most the limit.
            unsafe { RustAllocator.realloc(made, new_size) }
        })
    }

    unsafe fn usable_size(made: *mut u8) -> usize {
        // SAFETY: as for this function.
        unsafe { RustAllocator::usable_size(made) }
    }
}

#[cfg(test)]
mod tests {
    use rquickjs::{Context, Runtime};

    use super::*;

    /// Returns the number of bytes that an engine has after a script, and of refused requests.
    fn run(limit: usize, code: &str) -> (usize, usize) {
        let n_refused = Rc::new(Cell::new(0));
        let refused = Rc::clone(&n_refused);
        let memory = EngineMemory::new(limit, move || refused.set(refused.get() + 1));
        let runtime = Runtime::new_with_alloc(BoundedAllocator(Rc::clone(&memory))).unwrap();
        let context = Context::full(&runtime).unwrap();
        context.with(|ctx| drop(ctx.eval::<(), _>(code)));
        let n_used = memory.n_used.get();
        drop(context);
        drop(runtime);
        assert_eq!(memory.n_used.get(), 0, "everything is freed");
        (n_used, n_refused.get())
    }

    #[test]
    fn an_engine_stays_within_its_memory_and_each_refusal_is_reported() {
        let limit = 4 << 20;
        let (n_used, n_refused) = run(limit, "globalThis.kept = new Uint8Array(1 << 20)");
        assert!((1 << 20..limit).contains(&n_used) && n_refused == 0, "{n_used} {n_refused}");
        for code in [
            "globalThis.kept = new Uint8Array(1 << 22)",
            "globalThis.kept = []; for (;;) kept.push({ kept })",
            "globalThis.kept = []; kept.length = 2 ** 32 - 1; kept.fill(0)",
            "globalThis.kept = 'x'.repeat(2 ** 29)",
        ] {
            let (n_used, n_refused) = run(limit, code);
            assert!(n_used <= limit && n_refused > 0, "{code}: {n_used} {n_refused}");
        }
    }

    #[test]
    fn a_script_needs_the_same_memory_in_every_run() {
        let code =
            "globalThis.kept = []; for (let n = 0; n < 5000; n++) kept.push({ n, s: 's' + n })";
        assert_eq!(run(64 << 20, code), run(64 << 20, code));
    }
}
