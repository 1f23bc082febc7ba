//! The examination of a host and of its servers.

use std::time::Duration;

/// How long a socket may take to answer. Source: design ruling 13, the connect test.
pub const DOCTOR_PATIENCE: Duration = Duration::from_secs(2);

/// How long a program may take that is asked for a word, as its version. Ours: they need a fraction of
/// a second.
pub const DOCTOR_PROGRAM_PATIENCE: Duration = Duration::from_secs(5);

/// How much of what a program or a socket says is read, in bytes. Ours: it is one line.
pub const DOCTOR_ANSWER_BYTES_MAX: usize = 4 << 10;

/// How many servers are dialled at a time. Ours: more would slow each other down, and the times that
/// are told with them.
pub const DOCTOR_DIALS: usize = 4;

/// How many of the first lines of standard error, and of what is no message on standard output, are
/// shown. Ours: what is wrong is said in the first ones.
pub const DOCTOR_LINES_MAX: usize = 10;

/// How much of such a line is read, in bytes. Ours: that of a message is known by how it begins.
pub const DOCTOR_LINE_BYTES_MAX: usize = 4 << 10;

/// How many pages of tools are read. Ours: servers with a hundred tools have two.
pub const DOCTOR_PAGES_MAX: usize = 50;

/// How long a server may take from its start to its tools before that is told. Ours: people wait that
/// long, and clients that give up at five seconds do.
pub const DOCTOR_SLOW: Duration = Duration::from_secs(3);

/// How many tools clients take without complaint. Source: VS Code refuses more than 128 tools in a
/// request.
pub const DOCTOR_TOOLS_MAX: usize = 128;

/// How much memory should be to spare, in bytes. Ours: two servers in Node.
pub const DOCTOR_MEMORY_MIN: u64 = 256 << 20;
