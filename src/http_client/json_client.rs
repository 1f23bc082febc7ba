//! A client of a web API that answers JSON.
//!
//! A client serves one address, and follows no redirect: that could send the key to an undeclared
//! host, or turn a POST into a GET.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
    http::uri::PathAndQuery,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Connector, ConnectorSettings, Origin, ResponseBody, WebClient, WebError, WebLimits,
    web_client::required_origin,
};
use crate::{
    config::{ProxyConfig, defaults},
    http_body::{self, MemoryPressurePolicy},
    redact::Redactor,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A client of the API at one address.
pub struct JsonClient {
    web: WebClient,
    url: Uri,
    origin: Origin,
    headers: HeaderMap,
    redactor: Redactor,
}

impl JsonClient {
    /// Returns a client of the API at `url` that sends the token `bearer`, through the proxy of
    /// `[service]`. Nothing is sent yet.
    ///
    /// If the scheme is `https`, the first client of the process reads the certificates of trusted
    /// issuers: a file of some hundred kilobytes.
    ///
    /// # Errors
    ///
    /// [`WebError::InvalidToken`] if the token cannot be sent; [`WebError::Dial`] if TLS is needed
    /// and the system trusts no issuer.
    pub fn new(
        url: Uri,
        bearer: Option<&str>,
        limits: WebLimits,
        proxy: &ProxyConfig,
    ) -> Result<Self, WebError> {
        let settings =
            ConnectorSettings { proxy: proxy.inherited(&url), ..ConnectorSettings::default() };
        let connector = Connector::new(settings).map_err(Arc::new)?;
        Self::over(connector, url, bearer, limits)
    }

    /// Returns a client that connects with `connector`.
    pub(super) fn over(
        connector: Arc<Connector>,
        url: Uri,
        bearer: Option<&str>,
        limits: WebLimits,
    ) -> Result<Self, WebError> {
        let origin = required_origin(&url)?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, JSON);
        if let Some(token) = bearer {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| WebError::InvalidToken { origin: origin.clone() })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if origin.is_secure() {
            connector.tls().map_err(Arc::new)?;
        }
        let redactor = Redactor::new(bearer.map(str::to_owned).iter());
        Ok(Self { web: WebClient::new(connector, limits), url, origin, headers, redactor })
    }

    /// Returns the scheme, host and port of the API: the part of its address that is not secret.
    pub fn origin(&self) -> &Origin {
        &self.origin
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
            .map_err(|source| WebError::InvalidRequest { origin: self.origin.clone(), source })?;
        self.send(Method::POST, self.url.clone(), body.into()).await
    }

    /// Returns the address of `target` at the same origin.
    fn at(&self, target: &str) -> Result<Uri, WebError> {
        let wrong = || WebError::InvalidTarget { origin: self.origin.clone() };
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
        // Boxed, so that the future of a waiting caller stays small.
        let exchanged = Box::pin(self.exchange(method, url, body));
        let text = self.web.in_time(&self.origin, exchanged).await?;
        serde_json::from_slice(&text).map_err(|error| WebError::NotJson {
            origin: self.origin.clone(),
            // The message of the error may quote the answer.
            why: self.redactor.quote(&error.to_string()),
            quote: self.quote(&text),
        })
    }

    async fn exchange(&self, method: Method, url: Uri, body: Bytes) -> Result<Bytes, WebError> {
        let mut request = Request::new(body);
        *request.headers_mut() = self.headers.clone();
        if method == Method::POST {
            request.headers_mut().insert(CONTENT_TYPE, JSON);
        }
        (*request.method_mut(), *request.uri_mut()) = (method, url);
        let answer = self.web.exchange(&self.origin, &request).await?;
        match answer.status() {
            StatusCode::OK => Ok(self.web.read(&self.origin, answer).await?.into_body()),
            _ => Err(self.refused(answer).await),
        }
    }

    /// Returns the error for an unexpected status, with the beginning of the answer.
    async fn refused(&self, mut answer: Response<ResponseBody>) -> WebError {
        let retry_after = answer.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let page = http_body::read_whole(
            answer.body_mut(),
            defaults::WEB_ERROR_BYTES_MAX,
            MemoryPressurePolicy::Refuse(None),
        )
        .await;
        WebError::Status {
            origin: self.origin.clone(),
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

impl fmt::Debug for JsonClient {
    /// Prints neither headers nor the path, either of which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonClient").field("origin", &self.origin).finish_non_exhaustive()
    }
}
