//! Counts, sizes and times in readable form.

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

/// Parses a duration with a unit, or a number of milliseconds.
///
/// # Errors
///
/// A sentence that describes the expected form.
pub(super) fn milliseconds(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse::<u64>() {
        return if number == 0 {
            Err("the time must be longer than 0".to_owned())
        } else {
            Ok(number)
        };
    }
    let duration = duration::parse(text)?;
    Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
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
    fn a_time_has_a_unit_or_is_in_milliseconds() {
        assert_eq!(milliseconds("5s"), Ok(5000));
        assert_eq!(milliseconds("250"), Ok(250));
        assert!(milliseconds("0").is_err() && milliseconds("x").is_err());
    }
}
