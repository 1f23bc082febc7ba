//! The memory that messages may take, over all clients together.

use std::time::Duration;

use super::MESSAGE_BYTES_MAX;

/// The memory budget without `service.memory_max` and a control group's limit: 16 largest messages.
pub const MEMORY_MAX: usize = 256 << 20;

/// The smallest and the largest budget that can be declared, in bytes. The largest message and its
/// processing ([`RESULT_WORK_FACTOR`]) take five times its size, less than one account may have
/// ([`MEMORY_KEPT_DIVISOR`]). 1 TiB is more than any host of MCP servers has.
pub const MEMORY_RANGE: (usize, usize) = (7 * MESSAGE_BYTES_MAX, 1 << 40);

/// The share of a control group's memory limit that the budget takes by default, as a divisor. The
/// rest is for the program, its buffers below the threshold, and the servers beside it.
pub const MEMORY_LIMIT_DIVISOR: usize = 2;

/// The part of the budget that is kept for accounts with less than as much, as a divisor. The
/// answers of other accounts find room whatever one does; alone, it may have three quarters.
pub const MEMORY_KEPT_DIVISOR: usize = 4;

/// The size from which each message counts against the budget, in bytes. Smaller ones are copied
/// between stages and take less than their connection's own buffers.
pub const MEMORY_COUNTED_MIN: usize = 16 << 10;

/// The time that an answer of an upstream waits for room in the budget before its client is
/// refused. It is shorter than every timeout of a client, and others read some megabytes meanwhile.
pub const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// The memory that a value takes in a tree of values, in bytes. An object of one member takes a
/// node of 630, which has room for eleven; most values are no objects.
pub const VALUE_BYTES: usize = 200;

/// The time that freed memory stays with the process after a load, or after the start. It bounds
/// the rate at which page faults slow a load that continues.
pub const RETURN_AFTER: Duration = Duration::from_secs(5);

/// The freed bytes from which metamcp returns memory to the system. The next message reuses less.
pub const RETURN_BYTES_MIN: u64 = 1 << 20;

/// The memory that a client leaves behind when it goes, in bytes. A connection without a request
/// takes 28 KiB, one with half a head twice as much.
pub const CLIENT_BYTES: u64 = 32 << 10;

/// The size that a buffer keeps while its connection is idle, in bytes: that of a pipe.
pub const BUFFER_KEPT_BYTES: usize = 64 << 10;

/// The size of each of hyper's buffers on one connection, for reads and for writes, in bytes; a
/// head must fit into it. Thousands of connections with half a head take as much each. Hyper's
/// default is 400 KiB; nginx accepts heads of 32 KiB.
pub const HTTP_BUFFER_BYTES_MAX: usize = 32 << 10;

/// The memory that a result takes while it is processed, as a multiple of its size: for the result,
/// its structured value, its text and the answer.
pub const RESULT_WORK_FACTOR: usize = 4;
