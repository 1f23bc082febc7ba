//! A client of web APIs that answer JSON, with TLS or without.
//!
//! A client serves one address; a redirect is an error. An API at a declared address needs none.
//! Following one could send the key to an undeclared host, or turn a POST into a GET. Proxy
//! variables of the environment are ignored.
//!
//! A request has one timeout, up to the last byte of its answer, and one limit on the size of its
//! answer.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT},
    http::uri::PathAndQuery,
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioTimer,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time;
use tokio_rustls::rustls::ClientConfig;

use crate::{
    config::defaults,
    http_body::{self, BodyReadError, MemoryPressurePolicy},
    redact::Redactor,
};

mod error;
mod root_certificates;
mod scoped_tasks;

pub use error::WebError;
pub use scoped_tasks::OwnedTasks;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("metamcp/", env!("CARGO_PKG_VERSION")));

/// The limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// The time from the start of the request to the last byte of its answer.
    pub timeout: Duration,
    /// The maximum length of the answer, in bytes.
    pub body_bytes_max: usize,
}

/// A client of the API at one address.
pub struct WebClient {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Uri,
    headers: HeaderMap,
    redactor: Redactor,
    limits: WebLimits,
    /// The tasks that drive the connections.
    tasks: OwnedTasks,
}

impl WebClient {
    /// Returns a client of the API at `url` that sends the token `bearer`. Nothing is sent yet.
    ///
    /// If the scheme is `https`, this reads the certificates of trusted issuers once: a file of
    /// some hundred kilobytes.
    ///
    /// # Errors
    ///
    /// [`WebError::InvalidToken`] if the token cannot be sent; [`WebError::NoTrust`] if TLS is
    /// needed and the system trusts no issuer.
    pub fn new(url: Uri, bearer: Option<&str>, limits: WebLimits) -> Result<Self, WebError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, JSON);
        headers.insert(USER_AGENT, AGENT);
        if let Some(token) = bearer {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| WebError::InvalidToken { origin: origin(&url) })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let is_secure = url.scheme_str() == Some("https");
        let tls =
            if is_secure { root_certificates::system()? } else { root_certificates::trust_none()? };
        let redactor = Redactor::new(bearer.map(str::to_owned).iter());
        Ok(Self::with(url, headers, redactor, limits, tls))
    }

    fn with(
        url: Uri,
        headers: HeaderMap,
        redactor: Redactor,
        limits: WebLimits,
        tls: ClientConfig,
    ) -> Self {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(defaults::CONNECT_TIMEOUT.min(limits.timeout)));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let tasks = OwnedTasks::default();
        let http = legacy::Client::builder(tasks.spawner())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(defaults::UPSTREAM_IDLE_TIMEOUT)
            .pool_max_idle_per_host(defaults::WEB_IDLE_MAX)
            .build(connector);
        Self { http, url, headers, redactor, limits, tasks }
    }

    /// Returns the scheme, host and port of the API: the part of its address that is not secret.
    pub fn origin(&self) -> Arc<str> {
        origin(&self.url)
    }

    /// Requests `target` (a path with its query), or the address of the API itself. If dropped, the
    /// request ends with its connection.
    ///
    /// # Errors
    ///
    /// [`WebError`], which never holds the token.
    pub async fn get<T: DeserializeOwned>(&self, target: Option<&str>) -> Result<T, WebError> {
        let url = match target {
            Some(target) => self.at(target)?,
            None => self.url.clone(),
        };
        self.send(Method::GET, url, Bytes::new()).await
    }

    /// Posts `body` to the address of the API. If dropped, the request ends with its connection; the
    /// API may have executed it.
    ///
    /// # Errors
    ///
    /// [`WebError`], which never holds the token.
    pub async fn post<T: DeserializeOwned>(&self, body: &impl Serialize) -> Result<T, WebError> {
        let body = serde_json::to_vec(body)
            .map_err(|source| WebError::InvalidRequest { origin: self.origin(), source })?;
        self.send(Method::POST, self.url.clone(), body.into()).await
    }

    /// Returns the address of `target` at the same origin.
    fn at(&self, target: &str) -> Result<Uri, WebError> {
        let wrong = || WebError::InvalidTarget { origin: self.origin() };
        // Any other target would change the authority, or have none.
        let target = Some(target).filter(|target| target.starts_with('/')).ok_or_else(wrong)?;
        let mut parts = self.url.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(target).map_err(|_| wrong())?);
        Uri::from_parts(parts).map_err(|_| wrong())
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        url: Uri,
        body: Bytes,
    ) -> Result<T, WebError> {
        let after = self.limits.timeout;
        // Boxed, so that the future of a waiting caller stays small.
        let exchanged = Box::pin(self.exchange(method, url, body));
        let text = match time::timeout(after, exchanged).await {
            Ok(exchanged) => exchanged?,
            Err(_) => return Err(WebError::Timeout { origin: self.origin(), after }),
        };
        serde_json::from_slice(&text).map_err(|error| WebError::NotJson {
            origin: self.origin(),
            // The message of the error may quote the answer.
            why: self.redactor.quote(&error.to_string()),
            quote: self.quote(&text),
        })
    }

    async fn exchange(&self, method: Method, url: Uri, body: Bytes) -> Result<Bytes, WebError> {
        let mut request = Request::new(Full::new(body));
        *request.headers_mut() = self.headers.clone();
        if method == Method::POST {
            request.headers_mut().insert(CONTENT_TYPE, JSON);
        }
        (*request.method_mut(), *request.uri_mut()) = (method, url);
        let sent = self.http.request(request).await;
        let mut answer = sent.map_err(|error| WebError::unsent(self.origin(), error))?;
        if answer.status() != StatusCode::OK {
            return Err(self.refused(answer).await);
        }
        let bytes_max = self.limits.body_bytes_max;
        http_body::read_whole(answer.body_mut(), bytes_max, MemoryPressurePolicy::Refuse(None))
            .await
            .map_err(|error| match error {
                BodyReadError::NoMemory(source) => WebError::broken_off(self.origin(), source),
                BodyReadError::TooLong => WebError::TooLarge { origin: self.origin(), bytes_max },
                BodyReadError::Broken(source) => WebError::broken_off(self.origin(), source),
            })
    }

    /// Returns the error for an unexpected status, with the beginning of the answer.
    async fn refused(&self, mut answer: Response<Incoming>) -> WebError {
        let retry_after = answer.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let page = http_body::read_whole(
            answer.body_mut(),
            defaults::WEB_ERROR_BYTES_MAX,
            MemoryPressurePolicy::Refuse(None),
        )
        .await;
        WebError::Status {
            origin: self.origin(),
            status: answer.status(),
            quote: page.map(|page| self.quote(&page)).unwrap_or_default(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn quote(&self, text: &[u8]) -> String {
        let beginning = &text[..text.len().min(defaults::WEB_ERROR_BYTES_MAX)];
        self.redactor.quote(&String::from_utf8_lossy(beginning))
    }
}

impl fmt::Debug for WebClient {
    /// Prints neither headers nor the path, either of which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebClient")
            .field("origin", &self.origin())
            .field("n_tasks", &self.tasks.n_running())
            .finish_non_exhaustive()
    }
}

/// Returns the scheme, host and port of a URL, without its secret parts.
fn origin(url: &Uri) -> Arc<str> {
    let (scheme, host) = (url.scheme_str().unwrap_or("http"), url.host().unwrap_or_default());
    match url.port() {
        Some(port) => format!("{scheme}://{host}:{port}").into(),
        None => format!("{scheme}://{host}").into(),
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::test_site;
