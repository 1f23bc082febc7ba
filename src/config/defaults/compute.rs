//! Computations beside the event loops.

/// The threads that compute at a time; never more than there are processors. Ours: the event loops
/// need processors as well.
pub const COMPUTE_THREADS_MAX: usize = 4;

/// The stack of such a thread, in bytes. Ours: four times what a check may take, most of it never
/// touched.
pub const COMPUTE_STACK_BYTES: usize = 4 << 20;

/// The computations that wait for a thread. Ours: a few seconds of work; beyond that an answer comes
/// too late to be of use.
pub const COMPUTE_QUEUE_MAX: usize = 256;
