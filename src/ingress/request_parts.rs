//! The headers and bodies of requests, checked and read alike for both eras.

use http_body_util::Limited;
use hyper::{
    HeaderMap,
    body::{Bytes, Incoming},
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use tokio::time;

use super::{error::IngressError, reply::AcceptedForms};
use crate::{
    capacity_holder::Account,
    config::defaults,
    http_body::{self, BodyReadError, MemoryPressurePolicy},
    protocol::{payloads::VERSION_HEADER, version},
};

pub(super) const VERSION: HeaderName = HeaderName::from_static(VERSION_HEADER);
const EVENT_STREAM: &[u8] = b"text/event-stream";

/// Requires the name of the type: a browser with `*/*` that follows a link would wait forever.
pub(super) fn check_accepts_events(headers: &HeaderMap) -> Result<(), IngressError> {
    let is_named = |value: &HeaderValue| {
        let mut parts = value.as_bytes().windows(EVENT_STREAM.len());
        parts.any(|part| part.eq_ignore_ascii_case(EVENT_STREAM))
    };
    if headers.get_all(ACCEPT).iter().any(is_named) {
        return Ok(());
    }
    let accepted = header_text(headers, &ACCEPT).unwrap_or_default();
    Err(IngressError::StreamNotAccepted(accepted.to_owned()))
}

/// Returns the protocol version that a client names. It must be a supported one.
pub(super) fn version(headers: &HeaderMap) -> Result<Option<&str>, IngressError> {
    supported_version(headers.get(&VERSION))
}

/// Returns the protocol version in its header. It must be a supported one.
pub(super) fn supported_version(
    header: Option<&HeaderValue>,
) -> Result<Option<&str>, IngressError> {
    let Some(requested) = header else { return Ok(None) };
    let known = requested.to_str().ok().filter(|requested| version::is_legacy(requested));
    known.map(Some).ok_or_else(|| {
        IngressError::UnsupportedVersion(String::from_utf8_lossy(requested.as_bytes()).into_owned())
    })
}

/// Reads the body of a request, which counts for `account`.
pub(super) fn read_body(
    account: Account,
    body: Incoming,
) -> impl Future<Output = Result<Bytes, IngressError>> {
    // Not an `async fn`: the future of the callee would be copied into another one.
    read_body_up_to(account, body, defaults::BODY_BYTES_MAX)
}

/// Reads the body of a request, of `length_max` bytes at most, which counts for `account`.
pub(super) async fn read_body_up_to(
    account: Account,
    mut body: Incoming,
    length_max: usize,
) -> Result<Bytes, IngressError> {
    let pressure = MemoryPressurePolicy::Refuse(Some(account));
    let whole = http_body::read_whole(&mut body, length_max, pressure);
    let error = match time::timeout(defaults::BODY_TIMEOUT, whole).await {
        Ok(Ok(body)) => return Ok(body),
        Ok(Err(BodyReadError::Broken(_))) => return Err(IngressError::BodyIncomplete),
        Err(_) => return Err(IngressError::BodyTimeout),
        Ok(Err(BodyReadError::TooLong)) => IngressError::BodyTooLarge,
        Ok(Err(BodyReadError::NoMemory(exhausted))) => IngressError::MemoryExhausted(exhausted),
    };
    // A client that still writes when the connection closes never sees the answer.
    let mut rest = Limited::new(body, defaults::BODY_BYTES_SKIPPED);
    let _all = http_body::discard(&mut rest, defaults::BODY_TIMEOUT).await;
    Err(error)
}

/// Requires JSON: a page of another site can send plain text without a preflight, but not JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), IngressError> {
    let declared = header_text(headers, &CONTENT_TYPE).unwrap_or_default();
    // Nearly all clients send exactly this value.
    if declared == JSON {
        return Ok(());
    }
    let kind = declared.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case(JSON) {
        Ok(())
    } else {
        Err(IngressError::ContentType(declared.to_owned()))
    }
}

/// The required type of a body. Source: MCP 2025-11-25, "Sending Messages to the Server".
const JSON: &str = "application/json";

/// The required `Accept` value. Source: MCP 2025-11-25, "Sending Messages to the Server".
const BOTH: &str = "application/json, text/event-stream";

pub(super) fn accepted_forms(headers: &HeaderMap) -> Result<AcceptedForms, IngressError> {
    let mut accepts = AcceptedForms::default();
    let values = || headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut is_empty = true;
    for value in values() {
        is_empty &= value.is_empty();
        // Nearly all clients send exactly this value.
        if value == BOTH {
            accepts = AcceptedForms::both();
            continue;
        }
        for range in value.split(',') {
            let kind = range.split(';').next().unwrap_or_default().trim();
            let is = |known: &str| kind.eq_ignore_ascii_case(known);
            if is("*/*") {
                accepts = AcceptedForms::both();
            }
            accepts.json |= is("application/json") || is("application/*");
            accepts.events |= is("text/event-stream") || is("text/*");
        }
    }
    if is_empty {
        accepts = AcceptedForms::both();
    }
    if accepts.json || accepts.events {
        Ok(accepts)
    } else {
        Err(IngressError::Accept(values().collect::<Vec<_>>().join(", ")))
    }
}

pub(super) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_body_must_be_declared_as_json() {
        assert!(
            check_content_type(&headers(CONTENT_TYPE, "application/json; charset=utf-8")).is_ok()
        );
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
            assert!(check_content_type(&headers(CONTENT_TYPE, kind)).is_err(), "{kind}");
        }
    }

    #[test]
    fn a_request_names_a_supported_version_or_none() {
        assert_eq!(version(&HeaderMap::new()).ok(), Some(None));
        assert_eq!(version(&headers(VERSION, "2025-06-18")).ok(), Some(Some("2025-06-18")));
        for value in [&b"2027-01-01"[..], b"", b"2025-06-18 ", b"\xff"] {
            let value = HeaderValue::from_bytes(value).expect("a header");
            assert!(version(&HeaderMap::from_iter([(VERSION, value)])).is_err());
        }
    }

    #[test]
    fn the_accept_header_selects_the_forms_of_an_answer() {
        let accept = |value| {
            accepted_forms(&headers(ACCEPT, value)).map(|found| (found.json, found.events)).ok()
        };
        assert_eq!(accept("application/json, text/event-stream"), Some((true, true)));
        assert_eq!(accept("*/*"), Some((true, true)));
        assert_eq!(accept("application/json;q=0.9"), Some((true, false)));
        assert_eq!(accept("text/event-stream"), Some((false, true)));
        assert_eq!(accept("Application/JSON, TEXT/event-stream"), Some((true, true)));
        assert_eq!(accept("text/html"), None);
        assert!(accepted_forms(&HeaderMap::new()).is_ok());
    }
}
