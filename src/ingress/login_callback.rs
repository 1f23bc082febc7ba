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
    status_page::html::Html,
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
    let mut html = Html::default();
    html.markup("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>").text(title);
    html.markup("</title><body style=\"font:1.1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem\"><h1>").text(title);
    html.markup("</h1><p>").text(text).markup("</p></body></html>\n");
    let body = Body::Left(bytes::Bytes::from(html.into_string()).into());
    let mut response = http_response::with_body(status, "text/html; charset=utf-8", body);
    let headers = response.headers_mut();
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
