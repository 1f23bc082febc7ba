//! The expiry of a certificate, which the TLS library checks but does not show.
//!
//! Pure. Source: RFC 5280, section 4.1, and X.690 for the encoding.

use std::time::{Duration, SystemTime};

use chrono::NaiveDateTime;

const SEQUENCE: u8 = 0x30;
/// The version, which certificates of version 1 lack.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the time at which a certificate expires; `None` if it cannot be read.
pub(super) fn read(certificate: &[u8]) -> Option<SystemTime> {
    let (_, certificate, _) = element(certificate)?;
    let (SEQUENCE, mut rest, _) = element(certificate)? else { return None };
    if rest.first() == Some(&VERSION) {
        (_, _, rest) = element(rest)?;
    }
    // The serial number, the algorithm and the issuer.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (SEQUENCE, validity, _) = element(rest)? else { return None };
    let (_, _, not_after) = element(validity)?;
    let (tag, text, _) = element(not_after)?;
    let text = std::str::from_utf8(text).ok()?;
    let text = match tag {
        // Source: RFC 5280, section 4.1.2.5.1.
        UTC_TIME if text.get(..2)? >= "50" => format!("19{text}"),
        UTC_TIME => format!("20{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%SZ").ok()?;
    let seconds = u64::try_from(time.and_utc().timestamp()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Splits the first element off: its tag, its content, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&[length], rest) = rest.split_first_chunk()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (&length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(length)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(year, 3, 1);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("it signs itself").der().to_vec()
    }

    #[test]
    fn the_expiry_of_a_certificate_is_read_before_and_after_2050() {
        for (year, seconds) in [(2027, 1_803_859_200), (2060, 2_845_324_800)] {
            let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(read(&certificate(year)), Some(expected), "{year}");
        }
    }

    #[test]
    fn a_truncated_certificate_has_no_expiry() {
        let whole = certificate(2027);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_fail(bytes: Vec<u8>) {
            let _any = read(&bytes);
        }
    }
}
