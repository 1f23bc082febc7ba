//! Counts, durations and sizes in readable form.

/// Returns a number with its noun: `1 tool`, `2 tools`.
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Returns a duration in its two largest units: `3 d 4 h`, `5 min 2 s`, `7 s`.
pub(super) fn time(ms: u64) -> String {
    let seconds = ms / 1000;
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let Some(first) = units.iter().position(|(unit, _)| seconds >= *unit) else {
        return "0 s".to_owned();
    };
    let mut parts = Vec::new();
    let mut left = seconds;
    for (unit, name) in units.iter().skip(first).take(2) {
        if left / unit > 0 {
            parts.push(format!("{} {name}", left / unit));
        }
        left %= unit;
    }
    parts.join(" ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_in_its_two_largest_units() {
        let shown = [0, 999, 7_000, 302_000, 3_600_000, 3_605_000, 273_600_000, 273_660_000];
        assert_eq!(
            shown.map(time),
            ["0 s", "0 s", "7 s", "5 min 2 s", "1 h", "1 h", "3 d 4 h", "3 d 4 h"]
        );
    }

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
}
