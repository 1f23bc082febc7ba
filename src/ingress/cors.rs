//! Access by pages of other origins: those in `listen.allowed_origins` may read answers.
//!
//! A browser sends a preflight, without the token, before a request that no form could send. It
//! shows pages only the headers that the answer exposes. Pages cannot use the control interface.
//!
//! Source: the Fetch standard, "CORS protocol".

use hyper::{
    HeaderMap, Method, Request, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN, VARY,
    },
};

use super::{Response, control_rpc, http_response};
use crate::config::{ListenConfig, defaults};

const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// The response headers that clients need.
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After");

/// The request headers on which the answer to a preflight depends.
const PREFLIGHT_VARY: HeaderValue = HeaderValue::from_static(
    "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
);

/// The header with which browsers ask whether a public page may reach a private address. Source:
/// W3C, "Private Network Access".
const REQUEST_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Returns whether any page may read answers to requests to `path`.
pub(super) fn has_readers(path: &str, listen: &ListenConfig) -> bool {
    path != control_rpc::PATH && !listen.allowed_origins.is_empty()
}

/// Returns the origin of the page that sends a request to `path`, if it may read the answer.
pub(super) fn reader(
    headers: &HeaderMap,
    path: &str,
    listen: &ListenConfig,
) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let is_allowed = has_readers(path, listen)
        && headers.get_all(ORIGIN).iter().nth(1).is_none()
        && origin.to_str().is_ok_and(|origin| {
            listen.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
        });
    is_allowed.then(|| origin.clone())
}

/// Returns whether a request is a preflight.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    *request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the answer to a preflight of an allowed page, which permits any header.
pub(super) fn preflight(headers: &HeaderMap) -> Response {
    let mut response = http_response::empty(StatusCode::NO_CONTENT);
    let answer = response.headers_mut();
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    // Tool arguments may be repeated in headers of any name.
    if let Some(requested) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, requested.clone());
    }
    if headers.contains_key(REQUEST_PRIVATE) {
        answer.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
    answer.insert(ACCESS_CONTROL_MAX_AGE, defaults::PREFLIGHT_MAX_AGE.as_secs().into());
    answer.insert(VARY, PREFLIGHT_VARY);
    response
}

/// Allows the page at `origin` to read an answer.
pub(super) fn expose(mut response: Response, origin: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    add_vary(response)
}

/// Marks an answer as dependent on `Origin`, so that caches keep one copy per origin.
pub(super) fn add_vary(mut response: Response) -> Response {
    response.headers_mut().entry(VARY).or_insert(HeaderValue::from_static("Origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "https://chat.example";

    fn reads(origins: &[&str], path: &str) -> bool {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(ORIGIN, origin.parse().expect("a header"));
        }
        let listen = ListenConfig { allowed_origins: vec![PAGE.into()], ..ListenConfig::default() };
        reader(&headers, path, &listen).is_some()
    }

    #[test]
    fn only_a_page_of_an_allowed_origin_may_read_answers() {
        assert!(reads(&[PAGE], "/") && reads(&["HTTPS://chat.example"], "/servers/git"));
        assert!(!reads(&[], "/"), "no page");
        assert!(!reads(&[PAGE, PAGE], "/"), "whose is it?");
        for other in
            ["null", "*", "http://chat.example", "https://chat.example:1", "http://localhost"]
        {
            assert!(!reads(&[other], "/"), "{other}");
        }
        assert!(!reads(&[PAGE], control_rpc::PATH), "not for pages");
    }
}
