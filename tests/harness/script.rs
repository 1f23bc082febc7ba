//! The configuration under which scripts run in tests.

use metamcp::confine::isolation_support;

/// Returns the section `execute`: with isolation, unless this host lacks what it needs.
pub(crate) fn execute_section() -> &'static str {
    match isolation_support() {
        Ok(_) => "[execute]\nprofile = \"standard\"\n",
        Err(_) => "[execute]\nprofile = \"dev\"\n",
    }
}
