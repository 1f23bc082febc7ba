//! What a child inherits: a short list of harmless variables, and what was declared for it.

use std::ffi::OsString;

/// The variables that a child inherits from us.
///
/// Everything else stays behind: our secrets, `NOTIFY_SOCKET` (a child could speak in our name),
/// `WATCHDOG_*`, `LISTEN_*`, `CREDENTIALS_DIRECTORY`. Source: seed 000, v1.0's allow-list.
pub const INHERITED: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "LOCALE_ARCHIVE",
];

/// The variable that marks a child, and with it what it starts: `PID.NUMBER.START.NAMESPACE`, the
/// process id of the service, the number of the child, and when and in which namespace of process
/// ids the service was started, so that no two services have the same.
///
/// What carries it ends with the child, wherever it went. A server whose offspring is to outlive
/// it takes the variable out of their environment.
pub const MARK: &str = "METAMCP_CHILD";

/// Returns the variables that every child inherits from us.
pub fn inherited() -> impl Iterator<Item = (&'static str, OsString)> {
    INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}
