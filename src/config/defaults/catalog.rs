//! Lists of servers: how they are read, kept on the disk and searched.

use std::time::Duration;

/// For how long a list is good at least whose server says for how long, and does not say when it
/// changes: one that names no time at all would be asked at every step of every client. Ours.
pub const LIST_TTL_MIN: Duration = Duration::from_secs(10);

/// How long the merged lists wait for servers that are still starting; clients are told to read them
/// again when one comes later. Below the 5 s after which Claude Code gives a list up. Ours.
pub const LIST_PATIENCE: Duration = Duration::from_secs(4);

/// How long a search waits for servers that are still starting and whose name, or what is known of
/// them, has a word of the request. Ours: a third of the 60 s for which the SDKs of clients wait for a
/// call.
pub const SEARCH_PATIENCE: Duration = Duration::from_secs(20);

/// The largest confidence that a search tells while servers are still being read, of 1. Ours: half
/// sure, as what fits better may be in one of them.
pub const CONFIDENCE_MAX_UNREAD: f64 = 0.5;

/// How long a notice of a server that its list has changed waits for more of the same, until the list
/// is read, so that a burst of them costs one look. Ours.
pub const NOTICE_WINDOW: Duration = Duration::from_millis(100);

/// How many pages of one list are read. Ours: a server that echoes the cursor would loop.
pub const LIST_PAGES_MAX: usize = 200;

/// How many items a page of a merged list has at most. Ours: some clients read the first page alone,
/// and none can do with more tools than that.
pub const LIST_PAGE_ITEMS: usize = 1000;

/// How many items a list may have that is read from the disk cache. Ours: ten times the tools of the
/// largest server that was seen, and no more than the pages of a list that is read.
pub const CACHED_ITEMS_MAX: usize = 10_000;

/// How large the file of one server in the disk cache may be, in bytes. Ours: a tool takes about a
/// kilobyte, so this is thousands of them; a file that is larger was not written by us.
pub const CACHE_FILE_BYTES_MAX: usize = 16 << 20;

/// How long a stop waits for lists that are being read, so that they are known at the next start. Ours: a
/// list of a server that is there takes milliseconds.
pub const LAST_READS_PATIENCE: Duration = Duration::from_secs(1);

/// How long a change waits for more of the same server before it is written to the disk cache. Ours:
/// the lists of a server are read one after the other, and nobody waits for the disk.
pub const CACHE_WRITE_WINDOW: Duration = Duration::from_millis(250);

/// How long the file of a server in the disk cache stays as it was written at least. Ours: a list that
/// is another one at each look must not keep the disk busy, and after a restart its server is asked.
pub const CACHE_WRITE_PAUSE: Duration = Duration::from_secs(10);

/// How long the start waits for the disk cache. Ours: reading hundreds of files takes a few
/// milliseconds, and a disk that hangs must not keep the service from starting.
pub const CACHE_READ_PATIENCE: Duration = Duration::from_secs(2);

/// How old a draft in the disk cache is that nobody finishes any more. Ours: one takes milliseconds.
pub const CACHE_DRAFT_AGE: Duration = Duration::from_secs(60 * 60);

/// How many definitions of a list the log names that are other ones than before. Ours: a server that
/// writes all of them anew fills no journal.
pub const ALTERED_MAX: usize = 20;

/// How much of what a server says of itself belongs to what is searched, in bytes. Ours: clients cut
/// instructions at 2 KB.
pub const ABOUT_BYTES_MAX: usize = 4096;

/// How long a search waits for a snapshot with the last change in it before it makes do with the one
/// before. Ours: one of 10,000 tools takes less than a second.
pub const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(2);

/// How long a request waits for the first snapshot of the catalog. Ours: without it nothing is found,
/// and 10,000 tools are indexed within it on the slowest host.
pub const FIRST_SNAPSHOT_PATIENCE: Duration = Duration::from_secs(20);

/// How many threads read the files and the words of all servers after a start. Ours: what takes longer
/// then is to put the words together, which one thread does.
pub const START_THREADS_MAX: usize = 4;

/// How old a list may be that is used, of a server that does not say when it changes, or of one whose
/// lists are not read with each connection, since each request may have one of its own. Source: the
/// `stale_after` of the metatools.
pub const REFRESH_AFTER: Duration = Duration::from_secs(15 * 60);

/// How long a server is left alone after a list could not be read that nobody had asked for, and how
/// often at most all of them are looked at for lists that are too old. Ours.
pub const REFRESH_PAUSE: Duration = Duration::from_secs(60);

/// The largest number of servers that are primed at a time. Ours: the start of a child takes a second of
/// one or two cores, and requests of clients come first.
pub const PRIMED_AT_ONCE: usize = 2;

/// The pause between two looks for room in the pool to prime another server. Ours.
pub const PRIME_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait of a list notice during a cold start. Ours: as long as a search waits for servers
/// that are starting.
pub const COLD_START_MAX: Duration = SEARCH_PATIENCE;

/// The time without a server that connects for the first time after which a cold start ends. Ours: it is
/// enough to read the lists of the last one.
pub const COLD_START_QUIET: Duration = Duration::from_secs(1);
