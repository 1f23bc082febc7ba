//! The durations of the configuration: `"250ms"`, `"30s"`, `"5m"`, `"1h"`.

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, de};

/// The longest duration that a configuration may set: a day.
///
/// A longer one is probably a typing error.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A duration as written in the file.
pub(super) struct WrittenDuration(pub(super) Duration);

/// A duration as written in the file, where `"0s"`, or zero in another unit, means never.
pub(super) struct WrittenTimeout(pub(super) Option<Duration>);

impl<'de> Deserialize<'de> for WrittenDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a duration such as \"250ms\", \"30s\", \"5m\" or \"1h\"";
        deserializer.deserialize_str(TextVisitor { expected, parse }).map(Self)
    }
}

impl<'de> Deserialize<'de> for WrittenTimeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a duration such as \"20s\", or \"0s\" for never";
        deserializer.deserialize_str(TextVisitor { expected, parse: parse_or_never }).map(Self)
    }
}

struct TextVisitor<T> {
    expected: &'static str,
    parse: fn(&str) -> Result<T, String>,
}

impl<T> de::Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

fn parse_or_never(text: &str) -> Result<Option<Duration>, String> {
    match read(text) {
        Ok(Duration::ZERO) => Ok(None),
        _ => parse(text).map(Some),
    }
}

/// Reads a duration: a whole number and one of the units `ms`, `s`, `m`, `h`.
///
/// # Errors
///
/// A sentence with the text and the expected form.
pub fn parse(text: &str) -> Result<Duration, String> {
    let duration = read(text)?;
    if duration.is_zero() || duration > LONGEST {
        return Err(format!("`{text}` is out of range, expected `1ms` to `24h`"));
    }
    Ok(duration)
}

/// Writes a duration as [`parse`] reads it, in the largest unit that divides it.
pub fn text(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    match units.into_iter().find(|(_, unit)| ms != 0 && ms.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", ms / unit),
        None if ms == 0 => "0s".to_owned(),
        None => format!("{ms}ms"),
    }
}

fn read(text: &str) -> Result<Duration, String> {
    let expected =
        || format!("`{text}` is not a duration, expected one such as `250ms`, `30s`, `5m` or `1h`");
    let digits = text.find(|found: char| !found.is_ascii_digit()).ok_or_else(expected)?;
    let number: u64 = text[..digits].parse().map_err(|_| expected())?;
    let unit_ms: u64 = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_in_each_of_the_four_units() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse("24h"), Ok(LONGEST));
    }

    #[test]
    fn zero_in_any_unit_means_never_for_a_timeout() {
        let read = |text: &str| {
            let text = de::value::StrDeserializer::<de::value::Error>::new(text);
            WrittenTimeout::deserialize(text).map(|timeout| timeout.0)
        };
        for never in ["0s", "0ms", "0m", "0h", "00s"] {
            assert_eq!(read(never), Ok(None), "{never}");
        }
        assert_eq!(read("1m"), Ok(Some(Duration::from_secs(60))));
        for bad in ["0", "0d", "25h"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_duration_is_refused_with_the_reason() {
        for bad in ["", "5", "s", "5 s", "-1s", "1.5s", "5d", "99999999999999999999s"] {
            assert!(parse(bad).expect_err(bad).contains("is not a duration"), "{bad}");
        }
        assert_eq!(parse("0s"), Err("`0s` is out of range, expected `1ms` to `24h`".into()));
        assert!(parse("25h").expect_err("over a day").contains("out of range"));
    }
}
