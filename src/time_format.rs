//! Times and durations as people read them.

use std::{
    fmt::Write as _,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};

/// Returns the time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    now_us() / 1000
}

/// Returns the time in microseconds since 1970.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Returns a time, in milliseconds since 1970, in RFC 3339 at an offset from UTC. A time beyond the
/// calendar becomes that of the epoch.
pub fn rfc3339(unix_ms: i64, offset_minutes: i64) -> String {
    let time = DateTime::from_timestamp_millis(unix_ms).unwrap_or_default();
    let seconds = i32::try_from(offset_minutes.saturating_mul(60)).ok();
    match seconds.and_then(FixedOffset::east_opt) {
        Some(offset) => stamp(&time.with_timezone(&offset)),
        None => stamp(&time),
    }
}

/// Texts of times of which most are in the same second as the one before.
#[derive(Debug, Default)]
pub struct TimeTexts {
    second: u64,
    /// The text of the last time, if there is one.
    text: String,
}

impl TimeTexts {
    /// Returns a time, in milliseconds since 1970, in RFC 3339 in UTC.
    pub fn rfc3339(&mut self, unix_ms: u64) -> &str {
        let (second, ms) = (unix_ms / 1000, unix_ms % 1000);
        if self.text.is_empty() || second != self.second {
            self.second = second;
            self.text = rfc3339(i64::try_from(unix_ms).unwrap_or(i64::MAX), 0);
        } else {
            let start = self.text.len() - "000Z".len();
            self.text.truncate(start);
            // Writing to a string cannot fail.
            let _infallible = write!(self.text, "{ms:03}Z");
        }
        &self.text
    }
}

/// Returns a time in RFC 3339 in milliseconds since 1970; `None` for another text.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis().try_into().ok()
}

/// Returns a system time in RFC 3339, in UTC.
pub fn rfc3339_of(time: SystemTime) -> String {
    stamp(&DateTime::<Utc>::from(time))
}

/// Returns the time `ms` milliseconds ago in RFC 3339.
pub fn rfc3339_ago(ms: u64) -> Option<String> {
    SystemTime::now().checked_sub(Duration::from_millis(ms)).map(rfc3339_of)
}

fn stamp<Z: chrono::TimeZone<Offset: std::fmt::Display>>(time: &DateTime<Z>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Returns a duration in its two largest units: `3 d 4 h`, `5 min 2 s`, `7 s`.
pub fn in_two_units(ms: u64) -> String {
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

/// Returns a duration in milliseconds or, from one second on, in seconds: `250 ms`, `1.5 s`.
pub fn to_the_millisecond(time: Duration) -> String {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    match millis {
        0..1000 => format!("{millis} ms"),
        _ => format!("{} s", Duration::from_millis(millis).as_secs_f64()),
    }
}

/// Returns a duration as a configuration states it, in seconds if it can: `90s`, `1500ms`.
pub fn in_seconds(ms: u64) -> String {
    match ms.is_multiple_of(1000) {
        true => format!("{}s", ms / 1000),
        false => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_one_second_have_the_same_text_one_by_one() {
        let mut texts = TimeTexts::default();
        for unix_ms in [0, 7, 70, 999, 1000, 1_709_251_199_999, 1_709_251_199_000, 0, u64::MAX] {
            let expected = rfc3339(i64::try_from(unix_ms).unwrap_or(i64::MAX), 0);
            assert_eq!(texts.rfc3339(unix_ms), expected);
        }
    }

    #[test]
    fn known_moments_are_written_in_rfc_3339() {
        for (unix_ms, offset_minutes, text) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (-1, 0, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, 0, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, 0, "2024-02-29T23:59:59.999Z"),
            (1_709_251_199_999, 120, "2024-03-01T01:59:59.999+02:00"),
            (1_709_251_199_999, -210, "2024-02-29T20:29:59.999-03:30"),
            (4_107_542_400_000, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(unix_ms, offset_minutes), text);
        }
    }

    #[test]
    fn a_duration_is_shown_in_its_two_largest_units() {
        let shown = [0, 999, 7_000, 302_000, 3_600_000, 3_605_000, 273_600_000, 273_660_000];
        assert_eq!(
            shown.map(in_two_units),
            ["0 s", "0 s", "7 s", "5 min 2 s", "1 h", "1 h", "3 d 4 h", "3 d 4 h"]
        );
    }
}
