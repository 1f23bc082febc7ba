//! URLs of endpoints.

use hyper::Uri;
use toml::Spanned;

use super::diagnostic::Problem;

/// Checks the URL of an endpoint over HTTP, with TLS or without; `example` says how one is written.
pub(super) fn web(text: &Spanned<String>, example: &str) -> Result<Uri, Problem> {
    let problem =
        |why: &str| Problem::at(text.span(), format!("`{}` {why}", text.get_ref())).help(example);
    let url: Uri = text.get_ref().parse().map_err(|_| problem("is not a URL"))?;
    let authority = url.authority().map(|authority| authority.as_str()).unwrap_or_default();
    // A port that does not fit is parsed all the same, and then is none.
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
