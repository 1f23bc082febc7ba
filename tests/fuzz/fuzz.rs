//! The program for all fuzz targets; `METAMCP_FUZZ_TARGET` selects the target.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[path = "targets/mod.rs"]
mod targets;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("METAMCP_FUZZ_TARGET").unwrap_or_default();
    let found = targets::ALL.iter().find(|(name, _)| *name == wanted);
    found.unwrap_or_else(|| panic!("METAMCP_FUZZ_TARGET: no target `{wanted}`")).1
});

fuzz_target!(|data: &[u8]| TARGET(data));
