//! The requests of one server's login.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde::de::DeserializeOwned;
use zeroize::Zeroize as _;

use super::{LoginError, oauth_http::OAuthHttp};
use crate::{
    config::{defaults, url::without_secrets},
    http_client::Origin,
    redact::Redactor,
};

/// The requests of one server's login. Each URL must be https, with two exceptions: loopback, if the
/// declared URL is on loopback, and the origin of the declared URL.
#[derive(Clone)]
pub(super) struct EndpointClient {
    http: Arc<dyn OAuthHttp>,
    /// The declared URL of the server.
    declared: Uri,
}

/// A request to an endpoint with a form or a JSON document.
pub(super) struct EndpointRequest {
    pub(super) content_type: &'static str,
    pub(super) accept: &'static str,
    pub(super) body: String,
    /// The value of `Authorization`.
    pub(super) authorization: Option<HeaderValue>,
}

impl EndpointClient {
    pub(super) fn new(http: Arc<dyn OAuthHttp>, declared: Uri) -> Self {
        Self { http, declared }
    }

    /// Returns the declared URL of the server.
    pub(super) fn declared(&self) -> &Uri {
        &self.declared
    }

    /// Checks a URL that came over the network.
    pub(super) fn check(&self, url: &str) -> Result<Uri, LoginError> {
        let insecure = || LoginError::InsecureUrl { url: without_secrets(url).into() };
        let parsed: Uri = url.parse().map_err(|_| insecure())?;
        let authority = parsed.authority().ok_or_else(insecure)?.as_str();
        let (Some(found), false) = (Origin::of(&parsed), authority.contains('@')) else {
            return Err(insecure());
        };
        let declared = Origin::of(&self.declared);
        let is_local = || declared.as_ref().is_some_and(Origin::is_loopback) && found.is_loopback();
        match found.is_secure() || declared.as_ref() == Some(&found) || is_local() {
            true => Ok(parsed),
            false => Err(insecure()),
        }
    }

    /// Gets a document. `None` if there is none, or something else than a JSON object.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        url: &str,
    ) -> Result<Option<T>, LoginError> {
        let request = Request::get(self.check(url)?).header(ACCEPT, "application/json");
        let answer = self.fetch(url, request.body(Bytes::new())).await?;
        let status = answer.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(status_error(url, &answer));
        }
        if status != StatusCode::OK || !answer.body().trim_ascii_start().starts_with(b"{") {
            return Ok(None);
        }
        parse(url, answer.body()).map(Some)
    }

    /// Sends a request and returns the whole answer.
    pub(super) async fn post(
        &self,
        url: &str,
        sent: EndpointRequest,
    ) -> Result<Response<Bytes>, LoginError> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.check(url)?)
            .header(CONTENT_TYPE, sent.content_type)
            .header(ACCEPT, sent.accept);
        if let Some(value) = sent.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        self.fetch(url, request.body(sent.body.into())).await
    }

    async fn fetch(
        &self,
        url: &str,
        request: hyper::http::Result<Request<Bytes>>,
    ) -> Result<Response<Bytes>, LoginError> {
        let url: Arc<str> = without_secrets(url).into();
        let request = request.map_err(|_| LoginError::InsecureUrl { url: Arc::clone(&url) })?;
        let answer = self.http.fetch(request).await;
        let answer = answer
            .map_err(|source| LoginError::Http { url: Arc::clone(&url), source: source.into() })?;
        match answer.body().len() > defaults::OAUTH_BODY_BYTES_MAX {
            true => Err(LoginError::InvalidAnswer { url, why: "it is too large".into() }),
            false => Ok(answer),
        }
    }
}

impl EndpointRequest {
    /// Returns the request with a JSON document.
    pub(super) fn json(body: String) -> Self {
        Self {
            content_type: "application/json",
            accept: "application/json",
            body,
            authorization: None,
        }
    }

    /// Returns the request with the parameters of a form.
    pub(super) fn form(parameters: &[(&str, &str)]) -> Self {
        let body =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
        Self { content_type: "application/x-www-form-urlencoded", ..Self::json(body) }
    }
}

/// Parses an answer. The error quotes nothing, because the answer may hold a token.
pub(super) fn parse<T: DeserializeOwned>(url: &str, body: &[u8]) -> Result<T, LoginError> {
    serde_json::from_slice(body).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        let why = match error.classify() {
            serde_json::error::Category::Data => {
                format!("a member is missing or of the wrong type at {place}")
            }
            _ => format!("it is not JSON at {place}"),
        };
        LoginError::InvalidAnswer { url: without_secrets(url).into(), why: why.into() }
    })
}

/// Returns the error of an unexpected status. It quotes the page only of a failed request.
pub(super) fn status_error(url: &str, answer: &Response<Bytes>) -> LoginError {
    let quote = match answer.status().is_success() {
        true => String::new(),
        false => quote(&String::from_utf8_lossy(answer.body())),
    };
    LoginError::Status {
        url: without_secrets(url).into(),
        status: answer.status().as_u16(),
        quote: quote.into(),
    }
}

/// Returns foreign text in displayable form.
pub(super) fn quote(text: &str) -> String {
    Redactor::default().quote(text)
}

/// Clears an answer that held tokens, if this is its only copy.
pub(super) fn clear(answer: Response<Bytes>) {
    if let Ok(mut bytes) = answer.into_body().try_into_mut() {
        bytes.as_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;

    use super::*;
    use crate::http_client::WebError;

    struct NoHttp;

    impl OAuthHttp for NoHttp {
        fn fetch(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, WebError>> {
            unreachable!("no request is sent")
        }
    }

    fn is_allowed(declared: &'static str, url: &str) -> bool {
        EndpointClient::new(Arc::new(NoHttp), Uri::from_static(declared)).check(url).is_ok()
    }

    #[test]
    fn a_discovered_url_must_be_https_unless_the_server_is_local() {
        let remote = "https://mcp.example.com/mcp";
        assert!(is_allowed(remote, "https://auth.example.com/token"));
        for url in [
            "http://auth.example.com",
            "http://localhost:1",
            "http://127.0.0.1/token",
            "https://user@auth.example.com",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "/token",
            "",
        ] {
            assert!(!is_allowed(remote, url), "{url}");
        }
        let local = "http://localhost:9/mcp";
        for url in ["http://127.0.0.1:8/x", "http://[::1]:8/x", "http://LOCALHOST:9", "https://h/"]
        {
            assert!(is_allowed(local, url), "{url}");
        }
        assert!(!is_allowed(local, "http://192.168.0.1/x"));
        assert!(!is_allowed(local, "http://localhost.example.com/x"));
        let private = "http://192.168.0.1:8080/mcp";
        assert!(is_allowed(private, "http://192.168.0.1:8080/.well-known/x"));
        assert!(!is_allowed(private, "http://192.168.0.1:8081/x"));
    }
}
