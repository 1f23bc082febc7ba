//! A configuration file: it is read, or refused with words that can be shown.

#![no_main]

use std::{cell::RefCell, fs};

use libfuzzer_sys::fuzz_target;
use metamcp::config::load;
use tempfile::NamedTempFile;

thread_local! {
    static FILE: RefCell<NamedTempFile> =
        RefCell::new(NamedTempFile::new().expect("a temporary file"));
}

fuzz_target!(|data: &[u8]| {
    FILE.with_borrow(|file| {
        fs::write(file.path(), data).expect("written");
        if let Err(error) = load::file(file.path()) {
            assert!(!error.to_string().is_empty());
        }
    });
});
