//! The durations of the configuration: `"250ms"`, `"30s"`, `"5m"`, `"1h"`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

use super::{
    number_pattern::numbers,
    refusal::{KEY, Refusal},
    text_visitor::TextVisitor,
};

/// The longest duration that a configuration may set: a day.
///
/// A longer one is probably a typing error.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A duration within bounds, in milliseconds. `#[serde(with)]` reads it as a [`Duration`].
#[derive(JsonSchema)]
pub(super) struct BoundedDuration<const LEAST_MS: u64, const MOST_MS: u64>(
    #[schemars(with = "String", title = title("", LEAST_MS, MOST_MS), regex(pattern = pattern("", LEAST_MS, MOST_MS)))]
    pub(super) Duration,
);

/// Any duration.
pub(super) type AnyDuration = BoundedDuration<1, LONGEST_MS>;

/// Any duration, or `"0s"`, or zero in another unit, for never. `#[serde(with)]` reads it as an
/// [`Option`], which is `None` for never.
#[derive(JsonSchema)]
pub(super) struct DurationOrOff(
    #[schemars(with = "String", title = title("0s or ", 1, LONGEST_MS), regex(pattern = pattern("0(?:ms|s|m|h)|", 1, LONGEST_MS)))]
    pub(super) Option<Duration>,
);

/// [`LONGEST`] in milliseconds.
pub(super) const LONGEST_MS: u64 = ms(LONGEST);

/// Returns a duration in milliseconds.
#[expect(clippy::cast_possible_truncation, reason = "a day at most")]
pub(super) const fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

impl AnyDuration {
    /// Reads the duration of a key.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(found: D) -> Result<Duration, D::Error> {
        let expected = "a duration such as \"250ms\", \"30s\", \"5m\" or \"1h\"";
        found.deserialize_str(TextVisitor { expected, parse })
    }
}

impl<const LEAST_MS: u64, const MOST_MS: u64> BoundedDuration<LEAST_MS, MOST_MS> {
    /// Reads the duration of a key whose remedy is `help`.
    pub(super) fn read<'de, D>(found: D, help: &str) -> Result<Duration, D::Error>
    where
        D: Deserializer<'de>,
    {
        let text = String::deserialize(found)?;
        let message = match parse(&text) {
            Ok(found) if (LEAST_MS..=MOST_MS).contains(&ms(found)) => return Ok(found),
            Ok(_) => format!("`{KEY}` is `{text}`"),
            Err(message) => message,
        };
        Err(D::Error::custom(Refusal::new(message, help)))
    }

    /// Writes the default of a key for the schema.
    pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&text(*duration))
    }
}

impl DurationOrOff {
    /// Reads the duration of a key.
    pub(super) fn deserialize<'de, D>(found: D) -> Result<Option<Duration>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let expected = "a duration such as \"20s\", or \"0s\" for never";
        found.deserialize_str(TextVisitor { expected, parse: parse_or_never })
    }

    /// Writes the default of a key for the schema.
    pub(super) fn serialize<S>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error>
    where
        S: Serializer,
    {
        AnyDuration::serialize(&duration.unwrap_or_default(), to)
    }
}

impl<'de> Deserialize<'de> for AnyDuration {
    fn deserialize<D: Deserializer<'de>>(found: D) -> Result<Self, D::Error> {
        Self::deserialize(found).map(Self)
    }
}

impl<'de> Deserialize<'de> for DurationOrOff {
    fn deserialize<D: Deserializer<'de>>(found: D) -> Result<Self, D::Error> {
        Self::deserialize(found).map(Self)
    }
}

/// Returns the type in words: `zero`, or a duration of a range.
fn title(zero: &str, least_ms: u64, most_ms: u64) -> String {
    let [least, most] = [least_ms, most_ms].map(|ms| text(Duration::from_millis(ms)));
    format!("duration: a whole number and its unit, ms, s, m or h, {zero}from {least} to {most}")
}

/// Returns a pattern for `zero`, and for the durations of a range.
fn pattern(zero: &str, least_ms: u64, most_ms: u64) -> String {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let units = units.into_iter().filter(|(_, unit)| *unit <= most_ms);
    let patterns = units
        .map(|(name, unit)| format!("{}{name}", numbers(least_ms.div_ceil(unit), most_ms / unit)));
    format!("^0*(?:{zero}{})$", patterns.collect::<Vec<_>>().join("|"))
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
    let has_no_unit = || match text.is_empty() {
        true => expected(),
        false => {
            format!("`{text}` is not a duration: it has no unit, write `{text}s` or `{text}ms`")
        }
    };
    let digits = text.find(|found: char| !found.is_ascii_digit()).ok_or_else(has_no_unit)?;
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
            let text = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text);
            DurationOrOff::deserialize(text)
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
