//! The origin of a URL, and references that are relative to a URL.

use std::{fmt, net::IpAddr, sync::Arc};

use hyper::{
    Uri,
    header::HeaderValue,
    http::uri::{Authority, PathAndQuery, Scheme},
};

/// The scheme, host and port of a URL: the part of it that is not secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Origin(Arc<OriginParts>);

#[derive(PartialEq, Eq, Hash)]
struct OriginParts {
    scheme: Scheme,
    /// Host and port, without the default port of the scheme.
    authority: Authority,
    /// The host in lower case, an IPv6 address without its brackets.
    host: String,
    port: u16,
}

impl Origin {
    /// Returns the origin of an absolute `http` or `https` URL.
    pub fn of(url: &Uri) -> Option<Self> {
        let scheme = url.scheme().filter(|found| is_http(found))?.clone();
        let default = if scheme == Scheme::HTTPS { 443 } else { 80 };
        let host = url.host().filter(|host| !host.is_empty())?.to_ascii_lowercase();
        let port = url.port_u16().unwrap_or(default);
        let text = if port == default { host.clone() } else { format!("{host}:{port}") };
        let authority = Authority::try_from(text).ok()?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Some(Self(Arc::new(OriginParts { scheme, authority, host, port })))
    }

    /// Returns whether requests to this origin use TLS.
    pub fn is_secure(&self) -> bool {
        self.0.scheme == Scheme::HTTPS
    }

    /// Returns the host in lower case, an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// Returns the port, also if the URL does not name it.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Returns the address that the URL names instead of a name.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.host.parse().ok()
    }

    /// Returns whether the host is `localhost` or a name below it. Source: RFC 6761, section 6.3.
    pub fn is_localhost(&self) -> bool {
        let host = self.0.host.trim_end_matches('.');
        host == "localhost" || host.ends_with(".localhost")
    }

    /// Returns whether the URL itself shows that the host is this one.
    pub fn is_loopback(&self) -> bool {
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        self.is_localhost() || self.address().is_some_and(is_loopback)
    }

    /// Returns the value of the header `Host`.
    pub fn host_header(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.0.authority.as_str()).ok()
    }

    /// Returns the URL of `target` at this origin.
    pub(super) fn url(&self, target: &Uri) -> Option<Uri> {
        let root = || PathAndQuery::from_static("/");
        let target = target.path_and_query().cloned().unwrap_or_else(root);
        let url = Uri::builder().scheme(self.0.scheme.clone()).authority(self.0.authority.clone());
        url.path_and_query(target).build().ok()
    }

    /// Returns host and port, which `CONNECT` requests name.
    pub(super) fn host_and_port(&self) -> String {
        match self.0.authority.port() {
            Some(_) => self.0.authority.to_string(),
            None => format!("{}:{}", self.0.authority, self.0.port),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme, self.0.authority)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn is_http(scheme: &Scheme) -> bool {
    *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS
}

/// Resolves `reference` against `base`; `None` if the result is not a `http` or `https` URL.
///
/// Source: RFC 3986, section 5.2, limited to the forms that servers use.
pub fn resolve_reference(base: &Uri, reference: &str) -> Option<Uri> {
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let path = base.path();
    let absolute = if has_scheme(reference) {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else if reference.starts_with('/') {
        format!("{scheme}://{authority}{reference}")
    } else if reference.starts_with('?') {
        format!("{scheme}://{authority}{path}{reference}")
    } else {
        let directory = &path[..=path.rfind('/')?];
        format!("{scheme}://{authority}{directory}{}", reference.trim_start_matches("./"))
    };
    // The fragment after a `#` is not sent to the server.
    let url: Uri = absolute.split('#').next()?.parse().ok()?;
    (!reference.is_empty() && Origin::of(&url).is_some()).then_some(url)
}

/// Returns whether a reference begins with a scheme.
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|found: char| found.is_ascii_alphabetic())
        && scheme.chars().all(|found| found.is_ascii_alphanumeric() || "+-.".contains(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn origin(url: &str) -> Origin {
        Origin::of(&url.parse().expect("a URL")).expect("an origin")
    }

    #[test]
    fn an_origin_shows_no_login_and_no_default_port() {
        for (url, expected) in [
            ("https://ada:hunter2@Host.example/mcp?key=1", "https://host.example"),
            ("https://host:443/", "https://host"),
            ("http://host:443/", "http://host:443"),
            ("http://[::1]:80/", "http://[::1]"),
        ] {
            assert_eq!(origin(url).to_string(), expected);
        }
        assert_eq!(origin("https://[::1]/").host_and_port(), "[::1]:443");
        assert_eq!(
            origin("http://h:8/a").url(&Uri::from_static("/b?c")).expect("one"),
            "http://h:8/b?c"
        );
        assert!(origin("https://host") == origin("https://HOST:443/a"));
    }

    #[test]
    fn a_loopback_origin_is_recognised_without_a_resolver() {
        for (url, is_loopback) in [
            ("http://localhost:1/", true),
            ("http://a.localhost./", true),
            ("http://127.9.9.9/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(origin(url).is_loopback(), is_loopback, "{url}");
        }
    }

    #[track_caller]
    fn resolved(base: &str, reference: &str) -> Option<String> {
        let base = base.parse().expect("a URL");
        resolve_reference(&base, reference).map(|url| url.to_string())
    }

    #[test]
    fn a_reference_is_a_url_or_a_path() {
        for (reference, expected) in [
            ("http://host:8080/messages?id=1", "http://host:8080/messages?id=1"),
            ("//host:8080/m", "http://host:8080/m"),
            ("/messages/?session_id=a:b", "http://Host:8080/messages/?session_id=a:b"),
            ("messages?id=1#x", "http://Host:8080/a/messages?id=1"),
            ("./messages", "http://Host:8080/a/messages"),
            ("?id=1", "http://Host:8080/a/sse?id=1"),
        ] {
            let found = resolved("http://Host:8080/a/sse?x=1", reference);
            assert_eq!(found.as_deref(), Some(expected), "{reference}");
        }
        for reference in ["file:///etc/passwd", "", "http://", "/with a space", "javascript:1"] {
            assert_eq!(resolved("http://Host:8080/a/sse?x=1", reference), None, "{reference}");
        }
    }
}
