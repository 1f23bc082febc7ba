//! The clock and the memory of this host.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use super::{Finding, Level};
use crate::config::defaults;

/// When this version was not written yet, in seconds since 1970: 2026-07-28, the date of the latest
/// protocol version that it speaks.
const WRITTEN: u64 = 1_785_196_800;

/// Looks at this host and judges it.
pub fn host() -> Vec<Finding> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // systemd-timesyncd makes the directory when it starts and the file when it knows the time.
    // Source: systemd-timesyncd.service(8).
    let timesync = Path::new("/run/systemd/timesync");
    let is_synchronised = timesync.is_dir().then(|| timesync.join("synchronized").exists());
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    vec![clock(now, is_synchronised), memory(&meminfo)]
}

/// Judges the clock. Pure.
fn clock(now: Duration, is_synchronised: Option<bool>) -> Finding {
    if now.as_secs() < WRITTEN {
        return Finding::new(Level::Error, "clock", "it is earlier than this program was written")
            .why("certificates are not valid yet, and what is kept for a time is kept too long")
            .fix("Set it: `timedatectl set-ntp true`.")
            .nix("services.timesyncd.enable = true;");
    }
    match is_synchronised {
        Some(false) => Finding::new(Level::Note, "clock", "it is not synchronised yet")
            .why("systemd-timesyncd has not heard of a time server since the start of this host")
            .fix("See `timedatectl status`.")
            .nix("networking.timeServers"),
        Some(true) => Finding::new(Level::Ok, "clock", "synchronised"),
        None => Finding::new(Level::Ok, "clock", "plausible"),
    }
}

/// Judges the memory, as `/proc/meminfo` tells of it. Pure.
fn memory(meminfo: &str) -> Finding {
    let kib = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let Some(available) = kib("MemAvailable").map(|kib| kib << 10) else {
        return Finding::new(Level::Note, "memory", "how much there is cannot be told");
    };
    let what = format!("{} MiB can be had", available >> 20);
    match available < defaults::MEMORY_SCARCE_BYTES {
        true => Finding::new(Level::Warning, "memory", what)
            .why("a server that runs on Node or Python takes 50 to 100 MiB: the kernel may kill one")
            .fix("Have fewer at a time: `pool.size`, and `pool.idle_timeout` for those that nobody uses.")
            .nix("services.metamcp.settings.pool.size"),
        false => Finding::new(Level::Ok, "memory", what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_cannot_be_right_is_an_error() {
        let now = Duration::from_secs;
        assert_eq!(clock(now(0), Some(true)).level, Level::Error);
        assert_eq!(clock(now(WRITTEN - 1), None).level, Level::Error);
        assert_eq!(clock(now(WRITTEN), Some(false)).level, Level::Note);
        assert_eq!(clock(now(WRITTEN), None).level, Level::Ok);
    }

    #[test]
    fn little_memory_is_a_warning() {
        let level = |text| memory(text).level;
        assert_eq!(level("MemTotal: 8 kB\nMemAvailable:    1048576 kB\n"), Level::Ok);
        assert_eq!(level("MemAvailable: 1024 kB\n"), Level::Warning);
        assert_eq!(level(""), Level::Note);
    }
}
