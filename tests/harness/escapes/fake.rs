//! The programs next to this one.

use std::path::PathBuf;

/// Returns the path of the fake server.
pub(crate) fn program() -> PathBuf {
    let own = std::env::current_exe().expect("a program knows its own path");
    own.with_file_name("fake_mcp")
}
