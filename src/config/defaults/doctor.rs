//! Bounds of the examination of a host and its servers.

use std::time::Duration;

/// The time that a socket may take to answer.
pub const DOCTOR_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that a program may take to print a word such as its version.
pub const DOCTOR_PROGRAM_TIMEOUT: Duration = Duration::from_secs(5);

/// The part of a program's or socket's answer that is read, in bytes. It is one line.
pub const DOCTOR_ANSWER_BYTES_MAX: usize = 4 << 10;

/// The largest number of servers that are probed at a time. More would distort the reported times.
pub const DOCTOR_PROBES_MAX: usize = 4;

/// The first lines that are shown of standard error, and of standard output without messages.
pub const DOCTOR_LINES_MAX: usize = 10;

/// The part of a shown line that is read, in bytes. The beginning identifies a message.
pub const DOCTOR_LINE_BYTES_MAX: usize = 4 << 10;

/// The largest number of pages of tools that are read. Servers with a hundred tools have two.
pub const DOCTOR_PAGES_MAX: usize = 50;

/// The time from a server's start to its tools above which the doctor reports it. Some clients give
/// up at five seconds.
pub const DOCTOR_SLOW: Duration = Duration::from_secs(3);

/// The number of tools that clients accept. Source: VS Code refuses more in one request.
pub const DOCTOR_TOOLS_MAX: usize = 128;

/// The memory that should be free, in bytes: enough for two servers in Node.
pub const DOCTOR_MEMORY_MIN: u64 = 256 << 20;
