//! Looking for what is wrong.

use std::time::Duration;

/// How long one server may take to be connected and to list its tools while it is looked at. Ours: a
/// package manager that fetches it first needs that long.
pub const PROBE_PATIENCE: Duration = Duration::from_secs(60);

/// From how long on a server is slow, in each of its phases. Ours: a client waits as long for its first
/// list.
pub const PROBE_SLOW: Duration = Duration::from_secs(4);

/// How many servers are looked at at a time. Ours: each is a process that starts.
pub const PROBES_MAX: usize = 4;

/// How much of what a server writes is looked at, in bytes. Ours.
pub const PROBE_OUTPUT_BYTES_MAX: usize = 64 << 10;

/// How many lines of that are shown. Ours.
pub const PROBE_LINES_SHOWN: usize = 5;

/// How long a socket may take to answer while it is looked at. Ours.
pub const PROBE_SOCKET_PATIENCE: Duration = Duration::from_secs(2);

/// The largest unit file or program that is compared, in bytes. Ours.
pub const PROBE_FILE_BYTES_MAX: u64 = 256 << 20;

/// With less memory that can be had, servers may be killed, in bytes. Ours: what a few servers that run
/// on Node take.
pub const MEMORY_SCARCE_BYTES: u64 = 256 << 20;

/// How many names one finding shows. Ours.
pub const FINDING_NAMES_MAX: usize = 5;
