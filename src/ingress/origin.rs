//! The check of `Host` and `Origin`, which keeps foreign web pages out.
//!
//! A page of a foreign site can send requests to 127.0.0.1. It sends its own `Origin`, or uses a
//! host name that points at 127.0.0.1 (DNS rebinding).

use std::{borrow::Cow, net::IpAddr};

use hyper::{
    HeaderMap,
    header::{HOST, HeaderValue, ORIGIN},
};

use crate::config::ListenConfig;

/// The reason why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OriginRefusal {
    /// The `Host` header is missing or names another host.
    #[error("the host `{0}` in the `Host` header is not allowed")]
    Host(String),
    /// There are several `Host` headers, and readers differ on which one counts.
    #[error("the request has several `Host` headers")]
    AmbiguousHost,
    #[error("requests from web pages of the origin `{0}` are not allowed")]
    Origin(String),
}

/// Checks the `Host` and `Origin` headers.
///
/// Loopback names and addresses are always allowed, on any port, since proxies change ports. So is
/// `address`, on which the request arrived: rebinding needs a name. A request without `Origin` does
/// not come from a page.
pub(super) fn check(
    headers: &HeaderMap,
    listen: &ListenConfig,
    address: Option<IpAddr>,
) -> Result<(), OriginRefusal> {
    let mut hosts = headers.get_all(HOST).iter().map(text);
    let host = hosts.next().unwrap_or_default();
    if hosts.next().is_some() {
        return Err(OriginRefusal::AmbiguousHost);
    }
    let name = host_name(&host);
    if !is_loopback(name)
        && !address.is_some_and(|address| name.parse() == Ok(address))
        && !listen.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    {
        return Err(OriginRefusal::Host(host.into_owned()));
    }
    for origin in headers.get_all(ORIGIN).iter().map(text) {
        let is_local = origin
            .split_once("://")
            .is_some_and(|(_, authority)| is_loopback(host_name(authority)));
        if !is_local
            && !listen.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(&origin))
        {
            return Err(OriginRefusal::Origin(origin.into_owned()));
        }
    }
    Ok(())
}

fn text(value: &HeaderValue) -> Cow<'_, str> {
    // Nearly all values are ASCII, which takes fewer instructions to check.
    value.to_str().map_or_else(|_| String::from_utf8_lossy(value.as_bytes()), Cow::Borrowed)
}

/// Returns an authority without port, and an IPv6 address without brackets. An invalid host, or one
/// with user information, yields an empty name.
fn host_name(authority: &str) -> &str {
    let (name, rest) = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']').unwrap_or_default(),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let has_port = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    if has_port && !name.contains('@') { name } else { "" }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn verdict(host: Option<&str>, origin: Option<&str>) -> Result<(), OriginRefusal> {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(HOST, host.parse().expect("a header"));
        }
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().expect("a header"));
        }
        let listen = ListenConfig {
            allowed_hosts: vec!["mcp.example".into()],
            allowed_origins: vec!["https://mcp.example".into()],
            ..ListenConfig::default()
        };
        check(&headers, &listen, Some("192.0.2.7".parse().expect("an address")))
    }

    #[test]
    fn loopback_names_are_served_on_any_port() {
        for host in ["localhost", "LOCALHOST:12011", "127.0.0.1:12011", "127.1.2.3", "[::1]:80"] {
            assert_eq!(verdict(Some(host), None), Ok(()), "{host}");
        }
    }

    #[test]
    fn only_the_address_that_the_client_connected_to_is_allowed_as_host() {
        for host in ["192.0.2.7", "192.0.2.7:12011"] {
            assert_eq!(verdict(Some(host), None), Ok(()), "{host}");
        }
        for host in ["192.0.2.8", "192.0.2.7.evil.example", "0.0.0.0", "[::ffff:192.0.2.7]"] {
            assert!(matches!(verdict(Some(host), None), Err(OriginRefusal::Host(_))), "{host}");
        }
        let page = verdict(Some("192.0.2.7"), Some("https://192.0.2.7"));
        assert!(matches!(page, Err(OriginRefusal::Origin(_))), "no page is shown there");
    }

    #[test]
    fn a_rebound_name_is_refused() {
        for host in [
            "evil.example",
            "evil.example:12011",
            "127.0.0.1.evil.example",
            "",
            "[evil",
            "[::1]evil.example",
            "localhost:80@evil.example",
            "localhost@evil.example",
            "user@localhost",
            "user:80@localhost:80",
            "[::1]:80@evil.example",
            "mcp.example:80@evil.example",
        ] {
            assert!(matches!(verdict(Some(host), None), Err(OriginRefusal::Host(_))), "{host}");
        }
        assert!(matches!(verdict(None, None), Err(OriginRefusal::Host(_))));
    }

    #[test]
    fn a_request_with_several_host_headers_is_refused() {
        let mut headers = HeaderMap::new();
        for host in ["localhost", "localhost"] {
            headers.append(HOST, host.parse().expect("a header"));
        }
        assert_eq!(
            check(&headers, &ListenConfig::default(), None),
            Err(OriginRefusal::AmbiguousHost)
        );
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        for origin in [
            "http://[::1].evil.example",
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
            "file://",
            "http://localhost:80@evil.example",
            "http://localhost@evil.example",
            "http://user@localhost",
            "http://[::1]:80@evil.example",
        ] {
            let refused = verdict(Some("localhost"), Some(origin));
            assert!(matches!(refused, Err(OriginRefusal::Origin(_))), "{origin}");
        }
        assert_eq!(verdict(Some("localhost"), Some("http://localhost:6274")), Ok(()));
        assert_eq!(verdict(Some("localhost"), Some("http://[::1]:6274")), Ok(()));
    }

    #[test]
    fn a_host_and_origin_that_the_operator_allows_are_served() {
        assert_eq!(verdict(Some("mcp.example"), Some("https://mcp.example")), Ok(()));
    }
}
