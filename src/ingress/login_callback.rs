//! The page at which a browser ends after a login: `/oauth/callback`.
//!
//! The browser has no client token. What protects the page is the `state` of its address, which only
//! the login's own authorization server got.

use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY},
};

use super::{Body, IngressContext, Response, error::IngressError, http_response};
use crate::{
    error_report::chain,
    oauth::{CallbackAnswer, LoginError},
    server_name::ServerName,
};

/// Ends the login that the address of the page belongs to, and shows its outcome.
pub(super) async fn respond(
    context: &IngressContext,
    request: &Request<Incoming>,
) -> Result<Response, IngressError> {
    if *request.method() != Method::GET {
        return Err(IngressError::MethodNotAllowed("GET"));
    }
    let finished = match CallbackAnswer::parse(request.uri().query().unwrap_or_default()) {
        Ok(answer) => context.logins.finish(&answer).await,
        Err(error) => Err(error),
    };
    Ok(match finished {
        Ok(server) => page(StatusCode::OK, "Logged in", &success(&server)),
        Err(error) => {
            let error_text = chain(&error);
            // The login reports its own failure. Any other page can send browsers here without end.
            tracing::debug!(
                error = error_text,
                "a browser came to the end of a login that has failed: {error_text}"
            );
            page(StatusCode::BAD_REQUEST, "Not logged in", &failure(&error))
        }
    })
}

fn success(server: &ServerName) -> String {
    format!("metamcp is logged in at server {server}. You can close this page.")
}

fn failure(error: &LoginError) -> String {
    format!("The login has failed: {}. {}", chain(error), error.hint())
}

/// Returns a page without scripts, from which the browser passes nothing on.
fn page(status: StatusCode, title: &str, text: &str) -> Response {
    let (title, text) = (escape(title), escape(text));
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><body style=\"font:1.1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem\"><h1>{title}</h1><p>{text}</p></body></html>\n"
    );
    let body = Body::Left(bytes::Bytes::from(html).into());
    let mut response = http_response::with_body(status, "text/html; charset=utf-8", body);
    let headers = response.headers_mut();
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Returns a text for HTML, in which no character has a meaning.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_an_authorization_server_cannot_become_markup() {
        assert_eq!(escape("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
    }
}
