//! Bounds of logins at servers.

use std::time::Duration;

/// The time for the discovery of an authorization server. It takes up to six small requests.
pub const OAUTH_DISCOVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// The time for the registration at an authorization server: one request, or two.
pub const OAUTH_REGISTRATION_TIMEOUT: Duration = Duration::from_secs(15);

/// The time that an authorization server may take to issue a token.
pub const OAUTH_TOKEN_TIMEOUT: Duration = Duration::from_secs(20);

/// The time for the revocation of a token. A person waits for it, and can do without.
pub const OAUTH_REVOCATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest answer of an authorization server, in bytes. Metadata of large ones has 20 KB.
pub const OAUTH_BODY_BYTES_MAX: usize = 256 << 10;

/// The longest token, in bytes. Servers refuse headers that are longer.
pub const OAUTH_TOKEN_BYTES_MAX: usize = 16 << 10;

/// The time in which a person can finish a login. Source: RFC 6749, section 4.1.2, has the same
/// limit for codes.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The largest number of logins that wait for a person. There is one for each server at most.
pub const PENDING_LOGINS_MAX: usize = 128;

/// The number of logins with the same scopes that a server may refuse for insufficient scopes,
/// beyond the first. Another one would not help either.
pub const STEP_UP_LOGINS_MAX: u32 = 1;

/// The part of a token's life after which metamcp refreshes it.
pub const TOKEN_REFRESH_PART: f64 = 0.75;

/// The part of a token's life by which a refresh is earlier at random, so that the tokens of many
/// servers are not refreshed together.
pub const TOKEN_REFRESH_JITTER: f64 = 0.1;

/// The pauses between attempts to refresh a token: the first and the longest. Requests wait for
/// [`TOKEN_WAIT`], so that several attempts fit into it.
pub const TOKEN_REFRESH_PAUSES: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_secs(10));

/// The time that requests wait for a token while the authorization server is down.
pub const TOKEN_WAIT: Duration = Duration::from_secs(30);

/// The longest time between checks for tokens that are due, since the clock of the host may jump.
pub const TOKEN_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The age below which a token is not refreshed that is itself the answer to a refusal: the next one
/// would be refused, too.
pub const TOKEN_REFUSED_AGE_MIN: Duration = Duration::from_secs(10);

/// The pause after an authorization server has refused the credentials of metamcp. It is longer than
/// [`TOKEN_WAIT`], so that no request waits for it.
pub const TOKEN_REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// The longest life of a token that metamcp believes: ten years.
pub const TOKEN_LIFE_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The largest file of a login or registration, in bytes: two tokens and some URLs.
pub const OAUTH_FILE_BYTES_MAX: usize = 128 << 10;

/// The largest number of files that are read for logins and registrations.
pub const OAUTH_FILES_MAX: usize = 4096;
