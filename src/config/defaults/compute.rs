//! Computations beside the event loops.

/// The largest number of threads that compute at a time, and never more than there are processors.
/// The event loops need processors as well.
pub const COMPUTE_THREADS_MAX: usize = 4;

/// The stack of a compute thread, in bytes: four times the stack of a check, mostly untouched.
pub const COMPUTE_STACK_BYTES: usize = 4 << 20;

/// The largest number of computations that wait for a thread: a few seconds of work. A later answer
/// would come too late to be useful.
pub const COMPUTE_QUEUE_MAX: usize = 256;
