//! Counts, sizes and times in readable form.

use std::{borrow::Cow, time::Duration};

use crate::config::duration;

/// Returns a number with its noun: `1 tool`, `2 tools`.
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Returns a size, with one decimal if the number is below 100: `12.3 MiB`.
pub(super) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut tenths = u128::from(bytes) * 10;
    let mut shown = "B";
    for unit in units {
        if tenths < 10_240 {
            break;
        }
        tenths = (tenths + 512) / 1024;
        shown = unit;
    }
    match shown {
        "B" => format!("{bytes} B"),
        unit if tenths < 1000 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        unit => format!("{} {unit}", (tenths + 5) / 10),
    }
}

/// Parses the value of every option that takes a time: a number with its unit, or a number of
/// seconds.
///
/// # Errors
///
/// A sentence that describes the expected form.
pub(super) fn time_limit(text: &str) -> Result<Duration, String> {
    duration::parse(&with_unit(text))
        .map_err(|error| format!("{error}; a number without a unit is in seconds"))
}

/// Returns a time with its unit: a number without one is in seconds.
pub(super) fn with_unit(text: &str) -> Cow<'_, str> {
    let is_number = !text.is_empty() && text.chars().all(|found| found.is_ascii_digit());
    if is_number { format!("{text}s").into() } else { text.into() }
}

/// Returns a duration in whole milliseconds, for the parameters of a request.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_size_is_shown_with_one_decimal() {
        let shown = [0, 1023, 1024, 1536, 12_900_000, 500 << 20, 3 << 30, u64::MAX];
        assert_eq!(
            shown.map(size),
            [
                "0 B",
                "1023 B",
                "1.0 KiB",
                "1.5 KiB",
                "12.3 MiB",
                "500 MiB",
                "3.0 GiB",
                "16777216 TiB"
            ]
        );
    }

    #[test]
    fn a_time_has_a_unit_or_is_in_seconds() {
        assert_eq!(time_limit("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(time_limit("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time_limit("30"), Ok(Duration::from_secs(30)));
        for wrong in ["0", "soon", "1.5", ""] {
            let error = time_limit(wrong).expect_err(wrong);
            assert!(error.ends_with("a number without a unit is in seconds"), "{error}");
        }
        assert_eq!(milliseconds(Duration::from_secs(2)), 2000);
    }
}
