//! The sources of the names of users, groups and hosts in a program without libraries.
//!
//! The C library reads `/etc/nsswitch.conf`, and loads a module for each source that it does not
//! have itself, such as `systemd` or `resolve`. In a static program this loads a second C library,
//! that of the host. If its version is another one, the process ends with a signal: the program of
//! Debian 12 does so on Debian 13, as soon as it asks for a group that `/etc/group` does not have.

#![cfg_attr(
    all(target_feature = "crt-static", target_env = "gnu"),
    expect(unsafe_code, reason = "only the C library knows its sources")
)]

/// Ensures that a static program uses only the sources that are in it. Does nothing in a program
/// with libraries. Call it before the first lookup.
#[cfg(not(all(target_feature = "crt-static", target_env = "gnu")))]
pub fn restrict_sources() {}

/// Ensures that a static program uses only the sources that are in it. Call it before the first
/// lookup.
#[cfg(all(target_feature = "crt-static", target_env = "gnu"))]
pub fn restrict_sources() {
    use std::ffi::{CStr, c_char, c_int};

    /// The sources that glibc has without a module.
    const BUILT_IN: [(&CStr, &CStr); 4] = [
        (c"passwd", c"files"),
        (c"group", c"files"),
        (c"initgroups", c"files"),
        (c"hosts", c"files dns"),
    ];

    // Source: nss.h of glibc.
    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
    }

    for (database, sources) in BUILT_IN {
        // SAFETY: both are strings that end with a null byte, and glibc copies them.
        let status = unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
        debug_assert_eq!(status, 0, "glibc knows the database");
    }
}
