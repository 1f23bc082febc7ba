//! The HTTP client of logins.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::{Request, Response};

use crate::{
    config::{HttpServerConfig, defaults},
    http_client::{AddressPolicy, Connector, ConnectorSettings, WebClient, WebError, WebLimits},
};

/// The HTTP client of logins. An implementation checks each address when it dials, limits the size
/// of an answer to [`OAUTH_BODY_BYTES_MAX`](crate::config::defaults::OAUTH_BODY_BYTES_MAX), and
/// follows no redirect.
pub trait OAuthHttp: Send + Sync {
    /// Sends a request to an absolute URL and returns the answer, whatever its status.
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, WebError>>;
}

/// The function that makes the HTTP client for the login at one server.
pub type OAuthHttpFactory =
    Arc<dyn Fn(&HttpServerConfig) -> Result<Arc<dyn OAuthHttp>, WebError> + Send + Sync>;

impl OAuthHttp for WebClient {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, WebError>> {
        Box::pin(Self::fetch(self, request))
    }
}

/// Returns the factory of the clients for logins. A client has the trust and the proxy of its server.
/// It connects only to addresses that may be learned from the network.
pub fn web_clients(credentials: Option<PathBuf>) -> OAuthHttpFactory {
    Arc::new(move |server| {
        let policy = AddressPolicy::discovered(&server.url);
        let settings = ConnectorSettings::of(server, policy, credentials.as_deref());
        let connector =
            Connector::new(settings).map_err(|error| WebError::Dial(Arc::new(error)))?;
        let limits = WebLimits {
            timeout: defaults::OAUTH_TOKEN_TIMEOUT,
            body_bytes_max: defaults::OAUTH_BODY_BYTES_MAX,
        };
        Ok(Arc::new(WebClient::new(connector, limits)))
    })
}
