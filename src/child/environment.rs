//! The environment of a child: a short list of inherited variables, and those declared for it.

use std::ffi::OsString;

/// The variables that a child inherits from the service.
///
/// All others are withheld: secrets of the service, `NOTIFY_SOCKET` (a child could notify in the
/// name of the service), `WATCHDOG_*`, `LISTEN_*`, `CREDENTIALS_DIRECTORY`.
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

/// The variable that marks a child and its descendants: `PID.NUMBER.START.NAMESPACE`. It holds the
/// service's process id, the number of the child, and the service's start time and PID namespace.
/// No two services share a value.
///
/// Every process that carries it ends with the child. A server that starts processes to outlive it
/// must remove the variable from their environment.
pub const MARKER: &str = "METAMCP_CHILD";

/// Returns the variables that every child inherits from the service.
pub fn inherited() -> impl Iterator<Item = (&'static str, OsString)> {
    INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}
