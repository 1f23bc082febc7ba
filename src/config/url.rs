//! URLs of endpoints.

use std::net::IpAddr;

use hyper::Uri;

use super::refusal::Refusal;

/// The pattern of an HTTP URL, with TLS or without.
pub(super) const PATTERN: &str = "^https?://.+";

/// [`PATTERN`] in words.
pub(super) const TITLE: &str = "URL that starts with http:// or https://";

/// Checks an HTTP URL, with TLS or without; `example` is the help that shows how to write one.
pub(super) fn parse_http(text: &str, example: &str) -> Result<Uri, Refusal> {
    let problem = |why: &str| Refusal::new(format!("`{}` {why}", without_secrets(text)), example);
    let url: Uri = text.parse().map_err(|_| problem("is not a URL"))?;
    let authority = url.authority().map(|authority| authority.as_str()).unwrap_or_default();
    // `Uri` parses a port that is too large, and then has no port.
    if authority.rsplit(['@', ']']).next().is_some_and(|end| end.contains(':'))
        && url.port_u16().is_none()
    {
        return Err(problem("has no port between 0 and 65535"));
    }
    match (url.scheme_str(), url.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(url),
        (Some(_), Some(_)) => Err(problem("is not an http URL")),
        _ => Err(problem("has no scheme and host")),
    }
}

/// Returns whether a URL leads to this host's loopback interface.
pub fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Returns the text of a URL without its login and query, which may be secret.
pub fn without_secrets(text: &str) -> String {
    let (text, query) = match text.split_once('?') {
        Some((before, _)) => (before, "?***"),
        None => (text, ""),
    };
    let Some((scheme, rest)) = text.split_once("://") else { return format!("{text}{query}") };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://***{}{query}", &rest[at..]),
        None => format!("{text}{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_login_and_query() {
        for (url, expected) in [
            ("http://h:1/mcp", "http://h:1/mcp"),
            ("http://h/@scope/name", "http://h/@scope/name"),
            ("http://h:1/mcp?key=hunter2", "http://h:1/mcp?***"),
            ("https://ada:hunter2@h/mcp", "https://***@h/mcp"),
            ("http://ada:hunter@2@h", "http://***@h"),
            ("http://hunter2@h/?a=hunter2?b=c", "http://***@h/?***"),
            ("no url", "no url"),
        ] {
            assert_eq!(without_secrets(url), expected);
        }
    }
}
