//! The memory that messages may take, over all clients together.

use std::time::Duration;

use super::MESSAGE_BYTES_MAX;

/// The memory budget where neither `service.memory_max` nor a control group says otherwise, in bytes.
/// Ours: 16 of the largest messages.
pub const MEMORY_MAX: usize = 256 << 20;

/// The least and the largest budget that can be declared, in bytes. Ours: the largest message and what
/// is made of it ([`RESULT_WORK_FACTOR`]) take five times its size, which is to be less than what one
/// account may have ([`MEMORY_KEPT_DIVISOR`]), and 1 TiB is more than any host of MCP servers has.
pub const MEMORY_RANGE: (usize, usize) = (7 * MESSAGE_BYTES_MAX, 1 << 40);

/// The share of a control group's memory limit that the budget takes by default, as a divisor. Ours:
/// the other half is for the program, its buffers below the threshold, and the servers beside it.
pub const MEMORY_LIMIT_DIVISOR: usize = 2;

/// The part of the budget that is kept for accounts with less than as much, as a divisor. Ours: whatever
/// one account does, the answers of others find room; alone it may still have three quarters.
pub const MEMORY_KEPT_DIVISOR: usize = 4;

/// The size from which bytes count against the budget one message at a time, in bytes. Ours: smaller
/// ones are copied by the hops and take less than their connection's own buffers.
pub const MEMORY_COUNTED_MIN: usize = 16 << 10;

/// How long an answer of an upstream waits for room in the budget before its asker is refused. Ours:
/// short of every timeout of a client, and long enough for others to read some megabytes.
pub const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// The memory that a value takes in a tree of values, in bytes. Ours: an object of one member takes a
/// node of 630, in which eleven have room; most values are no objects.
pub const VALUE_BYTES: usize = 200;

/// How long freed memory stays with the process after a load, or after the start. Ours: a load that
/// goes on is not slowed by page faults more often than that.
pub const RETURN_AFTER: Duration = Duration::from_secs(5);

/// The freed bytes that are worth a look at what can be given back to the system. Ours: below that,
/// they are the next message's.
pub const RETURN_BYTES_MIN: u64 = 1 << 20;

/// The memory that a client leaves behind when it goes, in bytes. Ours: a connection without a request
/// takes 28 KiB, one with half a head twice as much.
pub const CLIENT_BYTES: u64 = 32 << 10;

/// The size that a buffer keeps while its connection is idle, in bytes. Ours: what pipes hold.
pub const BUFFER_KEPT_BYTES: usize = 64 << 10;

/// How much hyper reads ahead and holds back to be written on one connection, in bytes; a head must fit
/// into it. Ours: thousands of connections with half a head take as much each. Hyper has 400 KiB, nginx
/// takes heads of 32 KiB.
pub const HTTP_BUFFER_BYTES_MAX: usize = 32 << 10;

/// The memory that a result takes while parts of it are picked, previewed or wrapped, as a multiple of
/// its size. Ours: the result, its structured value, its text and the answer are strings of up to its
/// size each.
pub const RESULT_WORK_FACTOR: usize = 4;
