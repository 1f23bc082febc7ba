//! Bounds on reading the lists of servers, keeping them on disk and searching them.

use std::time::Duration;

/// The shortest validity of a list whose server sets one and does not announce changes. With a
/// validity of zero, every step of every client would read the list.
pub const LIST_TTL_MIN: Duration = Duration::from_secs(10);

/// The time that the merged lists wait for servers that are still starting. Clients are notified if
/// one comes later. It is below the 5 s after which Claude Code gives up a list.
pub const LIST_TIMEOUT: Duration = Duration::from_secs(4);

/// The time that a search waits for servers that are still starting, if their name or profile has a
/// word of the query. It is a third of the 60 s that the SDKs of clients wait for a call.
pub const SEARCH_TIMEOUT: Duration = Duration::from_secs(20);

/// The largest confidence, of 1, of a search while servers are unread, which may match better.
pub const CONFIDENCE_MAX_UNREAD: f64 = 0.5;

/// The time from a notice of a changed list to the read of the list. A burst causes one read.
pub const NOTICE_WINDOW: Duration = Duration::from_millis(100);

/// The largest number of pages that are read of one list, against a server that repeats the cursor.
pub const LIST_PAGES_MAX: usize = 200;

/// The largest number of items on a page of a merged list. Some clients read the first page only,
/// and none can use more tools than that.
pub const LIST_PAGE_ITEMS: usize = 1000;

/// The largest number of items of a list from the disk cache: ten times the tools of the largest
/// known server, and no more than the pages of a list that is read.
pub const CACHED_ITEMS_MAX: usize = 10_000;

/// The largest file of one server in the disk cache, in bytes. A tool takes about a kilobyte, so
/// this holds thousands of them; metamcp writes no larger file.
pub const CACHE_FILE_BYTES_MAX: usize = 16 << 20;

/// The time that a stop waits for lists that are being read, so that the next start has them.
/// Reading a list from a connected server takes milliseconds.
pub const LAST_READS_TIMEOUT: Duration = Duration::from_secs(1);

/// The time that a change waits for others of the same server before it is written to the disk
/// cache. The lists of a server are read one after the other, and no request waits for the disk.
pub const CACHE_WRITE_WINDOW: Duration = Duration::from_millis(250);

/// The shortest time between two writes of a server's file in the disk cache. A list that differs
/// at each read must not keep the disk busy, and a restart asks the server again.
pub const CACHE_WRITE_PAUSE: Duration = Duration::from_secs(10);

/// The time that the start waits for the disk cache. Reading hundreds of files takes a few
/// milliseconds, and a disk that hangs must not prevent the start.
pub const CACHE_READ_TIMEOUT: Duration = Duration::from_secs(2);

/// The age at which a draft in the disk cache is abandoned. Writing one takes milliseconds.
pub const CACHE_DRAFT_AGE: Duration = Duration::from_secs(60 * 60);

/// The largest number of changed definitions of a list that the log names. A server that rewrites
/// all of them must not fill the journal.
pub const CHANGES_LOGGED_MAX: usize = 20;

/// The searched part of a server's instructions, in bytes. Clients cut instructions at 2 KB.
pub const ABOUT_BYTES_MAX: usize = 4096;

/// The time that a search waits for a snapshot with the last change before it uses the previous
/// one. A snapshot of 10,000 tools takes less than a second.
pub const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that a request waits for the first snapshot of the catalog. Without it nothing is
/// found, and the slowest host indexes 10,000 tools in this time.
pub const FIRST_SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(20);

/// The largest number of threads that read the files and words of all servers after a start. With
/// more, most of the time goes into merging the words on one thread.
pub const START_THREADS_MAX: usize = 4;

/// The largest age of a list that is used, if its server does not announce changes. It also applies
/// if lists are not read with each connection, because each request may have its own.
pub const REFRESH_AFTER: Duration = Duration::from_secs(15 * 60);

/// The pause after a list could not be read in the background. It is also the shortest time between
/// two checks of all servers for lists that are too old.
pub const REFRESH_PAUSE: Duration = Duration::from_secs(60);

/// The largest number of servers that are primed at a time. The start of a child takes a second of
/// one or two cores, and requests of clients come first.
pub const PRIMED_AT_ONCE: usize = 2;

/// The pause between two checks for room in the pool to prime another server.
pub const PRIME_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait of a list notice during a cold start: as long as a search waits for servers.
pub const COLD_START_MAX: Duration = SEARCH_TIMEOUT;

/// The time without a first connect after which a cold start ends. It suffices to read lists.
pub const COLD_START_QUIET: Duration = Duration::from_secs(1);
