//! A client of plain web APIs that answer JSON, with TLS or without.
//!
//! One client is made for one address, and never goes anywhere else: a redirect is an error. An API
//! at a declared address has no reason for one, and to follow it would take the key to a place that
//! nobody declared, or turn a POST into a GET. No proxy is used, whatever the environment says.
//!
//! A request has one bound on its time, from its beginning to the last byte of its answer, and its
//! answer one on its size.

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
    body::{self, BodyReadError, MemoryPressurePolicy},
    config::defaults,
    redact::Redactor,
};

mod error;
mod owned_tasks;
mod root_certificates;

pub use error::WebError;
pub use owned_tasks::{OwnedTasks, TaskSpawner};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("metamcp/", env!("CARGO_PKG_VERSION")));

/// How much one request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebLimits {
    /// From its beginning to the last byte of its answer.
    pub timeout: Duration,
    /// How long its answer may be, in bytes.
    pub body_bytes_max: usize,
}

/// A client of the API at one address.
pub struct WebClient {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Uri,
    headers: HeaderMap,
    redactor: Redactor,
    bounds: WebLimits,
    /// Those that move bytes on the connections.
    tasks: OwnedTasks,
}

impl WebClient {
    /// Returns a client of the API at `url`, which is told `bearer`; nothing is sent yet.
    ///
    /// Where the scheme is `https`, this reads the certificates of issuers that the system trusts,
    /// once: a file of some hundred kilobytes.
    ///
    /// # Errors
    ///
    /// [`WebError::Bearer`] when the token cannot be sent, [`WebError::Untrusting`] when TLS is
    /// wanted and the system trusts nobody.
    pub fn new(url: Uri, bearer: Option<&str>, bounds: WebLimits) -> Result<Self, WebError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, JSON);
        headers.insert(USER_AGENT, AGENT);
        if let Some(token) = bearer {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| WebError::Bearer { origin: origin(&url) })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let is_secure = url.scheme_str() == Some("https");
        let tls =
            if is_secure { root_certificates::system()? } else { root_certificates::trust_none()? };
        let secrets = bearer.map(str::to_owned);
        let redactor = Redactor::new(secrets.iter());
        Ok(Self::with(url, headers, redactor, bounds, tls))
    }

    fn with(
        url: Uri,
        headers: HeaderMap,
        redactor: Redactor,
        bounds: WebLimits,
        tls: ClientConfig,
    ) -> Self {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(defaults::CONNECT_TIMEOUT.min(bounds.timeout)));
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
        Self { http, url, headers, redactor, bounds, tasks }
    }

    /// Returns the scheme, host and port of the API: what may be shown of its address.
    pub fn origin(&self) -> Arc<str> {
        origin(&self.url)
    }

    /// Reads what is at `target` of the API, a path with its query, or at its own address.
    ///
    /// # Errors
    ///
    /// [`WebError`] says what went wrong, and never holds the token.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the request is given up with the connection that it was sent on.
    pub async fn get<T: DeserializeOwned>(&self, target: Option<&str>) -> Result<T, WebError> {
        let url = match target {
            Some(target) => self.at(target)?,
            None => self.url.clone(),
        };
        self.send(Method::GET, url, Bytes::new()).await
    }

    /// Posts `body` to the address of the API.
    ///
    /// # Errors
    ///
    /// [`WebError`] says what went wrong, and never holds the token.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the request is given up with the connection that it was sent on. It may
    /// have been executed.
    pub async fn post<T: DeserializeOwned>(&self, body: &impl Serialize) -> Result<T, WebError> {
        let body = serde_json::to_vec(body)
            .map_err(|source| WebError::Unwritable { origin: self.origin(), source })?;
        self.send(Method::POST, self.url.clone(), body.into()).await
    }

    /// Returns the address of `target` at the same origin.
    fn at(&self, target: &str) -> Result<Uri, WebError> {
        let wrong = || WebError::Target { origin: self.origin() };
        // Anything else would be another authority, or none.
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
        let after = self.bounds.timeout;
        // Boxed: what waits for an answer need not have the room of it.
        let exchanged = Box::pin(self.exchange(method, url, body));
        let text = match time::timeout(after, exchanged).await {
            Ok(exchanged) => exchanged?,
            Err(_) => return Err(WebError::Late { origin: self.origin(), after }),
        };
        serde_json::from_slice(&text).map_err(|error| WebError::NotJson {
            origin: self.origin(),
            // Its text may quote what was read.
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
        let bytes_max = self.bounds.body_bytes_max;
        body::read_whole(answer.body_mut(), bytes_max, MemoryPressurePolicy::Refuse(None))
            .await
            .map_err(|error| match error {
                BodyReadError::NoMemory(source) => {
                    WebError::BrokenOff { origin: self.origin(), source: Box::new(source) }
                }
                BodyReadError::TooLong => WebError::TooLarge { origin: self.origin(), bytes_max },
                BodyReadError::Broken(source) => {
                    WebError::BrokenOff { origin: self.origin(), source: Box::new(source) }
                }
            })
    }

    /// Returns what a status means that is not the answer, with the beginning of its page.
    async fn refused(&self, mut answer: Response<Incoming>) -> WebError {
        let retry_after = answer.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let page = body::read_whole(
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
        f.debug_struct("Client")
            .field("origin", &self.origin())
            .field("n_tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}

/// Returns scheme, host and port of a URL, without what may be secret.
fn origin(url: &Uri) -> Arc<str> {
    let (scheme, host) = (url.scheme_str().unwrap_or("http"), url.host().unwrap_or_default());
    match url.port() {
        Some(port) => format!("{scheme}://{host}:{port}").into(),
        None => format!("{scheme}://{host}").into(),
    }
}

#[cfg(test)]
pub(crate) mod test_site;
#[cfg(test)]
mod tests;
