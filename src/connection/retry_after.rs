//! The wait that an upstream asks for instead of an answer: HTTP 429 or 503 with `Retry-After`.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, NaiveDateTime, Utc};
use hyper::{
    HeaderMap, StatusCode,
    header::{DATE, HeaderName, RETRY_AFTER},
};

use crate::{config::defaults, time_format::to_the_millisecond};

/// The longest wait that is understood; a longer one counts as this. It can be added to any clock.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The forms of a date. Source: RFC 9110, section 5.6.7.
const DATE_FORMS: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// The wait that an upstream asks for instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// The status: 429 or 503.
    pub status: StatusCode,
    /// The time to wait.
    pub wait: Duration,
}

impl fmt::Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wait, status) = (to_the_millisecond(self.wait), self.status.as_u16());
        write!(f, "asks to wait {wait} (HTTP {status})")
    }
}

impl RetryAfter {
    /// Returns the longest pause that metamcp makes of the wait: a part of it is random.
    pub(super) fn longest_pause(self) -> Duration {
        self.wait.max(defaults::RETRY_AFTER_MIN).mul_f64(1.0 + defaults::RETRY_AFTER_JITTER)
    }

    /// Reads the head of an answer that comes at the time `now`; `None` if it asks for no wait.
    ///
    /// Source: RFC 9110, section 10.2.3. A date counts from the time in the answer, so that the two
    /// clocks may differ.
    pub(super) fn read(
        status: StatusCode,
        headers: &HeaderMap,
        now: fn() -> SystemTime,
    ) -> Option<Self> {
        if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return None;
        }
        let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
        let asked = text(RETRY_AFTER)?;
        let wait = if !asked.is_empty() && asked.bytes().all(|byte| byte.is_ascii_digit()) {
            asked.parse().map_or(LONGEST, Duration::from_secs)
        } else {
            let until = date(asked)?;
            let now = text(DATE).and_then(date).unwrap_or_else(|| now().into());
            // A moment that has passed is not a wait.
            (until - now).to_std().unwrap_or_default()
        };
        Some(Self { status, wait: wait.min(LONGEST) })
    }
}

fn date(text: &str) -> Option<DateTime<Utc>> {
    let mut forms = DATE_FORMS.iter();
    forms.find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()).map(|time| time.and_utc())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const BUSY: StatusCode = StatusCode::TOO_MANY_REQUESTS;

    /// Returns the wait of an answer at Sun, 06 Nov 1994 08:49:37 by the clock of this host.
    fn wait(status: StatusCode, pairs: &[(HeaderName, &str)]) -> Option<Duration> {
        let value = |text: &str| HeaderValue::from_str(text).expect("a value");
        let headers = pairs.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        RetryAfter::read(status, &headers, now).map(|asked| asked.wait)
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_or_a_date_in_one_of_three_forms() {
        let seconds = |n| Some(Duration::from_secs(n));
        for (asked, expected) in [
            ("12", seconds(12)),
            (" 0 ", seconds(0)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", seconds(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", seconds(30)),
            ("Sun Nov  6 08:50:07 1994", seconds(30)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", seconds(0)),
            ("99999999999999999999999", Some(LONGEST)),
            ("Sun, 06 Nov 2094 08:49:00 GMT", None),
            ("Sat, 06 Nov 2094 08:49:00 GMT", Some(LONGEST)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(wait(BUSY, &[(RETRY_AFTER, asked)]), expected, "{asked}");
        }
        assert_eq!(wait(BUSY, &[]), None);
    }

    #[test]
    fn a_date_counts_from_the_time_in_the_answer() {
        let asked = (RETRY_AFTER, "Mon, 07 Nov 1994 08:50:07 GMT");
        let date = (DATE, "Mon, 07 Nov 1994 08:50:00 GMT");
        assert_eq!(wait(BUSY, &[asked, date]), Some(Duration::from_secs(7)));
    }

    #[test]
    fn only_429_and_503_ask_for_a_wait() {
        for (status, asks) in [(429, true), (503, true), (403, false), (500, false), (200, false)] {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(wait(status, &[(RETRY_AFTER, "1")]).is_some(), asks, "{status}");
        }
    }

    #[test]
    fn the_wait_is_written_with_its_status() {
        let asked = RetryAfter { status: BUSY, wait: Duration::from_secs(12) };
        assert_eq!(asked.to_string(), "asks to wait 12 s (HTTP 429)");
    }
}
