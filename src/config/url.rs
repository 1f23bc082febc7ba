//! URLs of endpoints.

use std::net::{IpAddr, Ipv6Addr};

use hyper::Uri;

use super::refusal::Refusal;

/// The pattern of an HTTP URL, with TLS or without.
pub(super) const PATTERN: &str = "^https?://.+";

/// [`PATTERN`] in words.
pub(super) const TITLE: &str = "URL that starts with http:// or https://";

/// Checks an HTTP URL, with TLS or without; `example` is the help that shows how to write one.
pub(super) fn parse_http(text: &str, example: &str) -> Result<Uri, Refusal> {
    let parsed = text.parse();
    let shown = host_only(text);
    let problem = |why: &str| Refusal::new(format!("`{shown}` {why}"), example);
    let url: Uri = parsed.map_err(|_: hyper::http::uri::InvalidUri| problem("is not a URL"))?;
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

/// Returns a refused URL as `SCHEME://HOST:PORT/***`, or `***` where anything else may be secret.
fn host_only(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (login, host) = match authority.rsplit_once('@') {
        Some((_, host)) => ("***@", host),
        None => ("", authority),
    };
    let is_plain =
        |text: &str| text.chars().all(|it| it.is_ascii_alphanumeric() || "._:/-".contains(it));
    let behind_ip = || {
        let (ip, port) = host.strip_prefix('[')?.split_once(']')?;
        ip.parse::<Ipv6Addr>().is_ok().then_some(port)
    };
    let named = behind_ip().unwrap_or(host);
    // Before a later `@` stands a login.
    if path.contains('@') || !is_plain(&scheme) || !is_plain(named) || !has_valid_port(host) {
        return "***".to_owned();
    }
    let path = if path.len() > 1 { "/***" } else { path };
    format!("{scheme}{login}{host}{path}")
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
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let is_url = !scheme.is_empty() && has_valid_port(authority);
    // In text that is no URL, anything before the host may be the login.
    let login_end = if is_url { authority.rfind('@') } else { rest.rfind('@') };
    match login_end {
        Some(at) => format!("{scheme}***{}{query}", &rest[at..]),
        None if is_url || rest.split('/').all(has_valid_port) => format!("{text}{query}"),
        None => format!("{scheme}***{query}"),
    }
}

/// Returns whether digits follow the host, if anything does: other text may be a password.
fn has_valid_port(authority: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let behind = host.rsplit(']').next().unwrap_or_default().split_once(':');
    behind.is_none_or(|(_, port)| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()))
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
            ("http//ada:hunter2@h", "***@h"),
            ("https:/ada:hunter2@h/", "***@h/"),
            ("ada:hunter2@h/", "***@h/"),
            ("http://ada:hun/ter2@h/", "http://***@h/"),
            ("http://ada:hunter2h/", "http://***"),
            ("localhost:80/mcp", "localhost:80/mcp"),
            ("http//ada:hunter2h", "***"),
            ("http://[::1]/mcp", "http://[::1]/mcp"),
            ("http://h:1/@scope/name", "http://h:1/@scope/name"),
        ] {
            assert_eq!(without_secrets(url), expected);
        }
    }

    #[test]
    fn a_refused_url_shows_only_scheme_and_host() {
        for (url, expected) in [
            ("ftp://h:1/", "ftp://h:1/"),
            ("h/mcp", "h/***"),
            ("ftp://h/s/hunter2/mcp", "ftp://h/***"),
            ("ftp://ada-hunter2==@h/", "ftp://***@h/"),
            ("ftp://ada-hunter/2@h/", "***"),
            ("ftp://ada:hunter2h/", "***"),
            ("ftp://hunter2?@h/", "***"),
            ("ftp://h=hunter2/", "***"),
            ("http://ada:hunter2]h/", "***"),
            ("ftp://[::1]:80/", "ftp://[::1]:80/"),
            ("http//ada:hunter2@h", "***"),
        ] {
            let message = parse_http(url, "").expect_err("a refused URL").message;
            assert_eq!(message.split('`').nth(1), Some(expected), "{url}");
        }
    }
}
