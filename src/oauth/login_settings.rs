//! The declaration of a server, as far as its login depends on it.

use std::sync::{Arc, OnceLock};

use super::{
    LoginError, endpoint_client::EndpointClient, oauth_http::OAuthHttpFactory,
    resource_metadata::canonical_uri,
};
use crate::config::{HttpServerConfig, OAuthConfig, OAuthGrant};

/// The declaration of a server, as far as its login depends on it.
pub(super) struct LoginSettings {
    pub(super) http: HttpServerConfig,
    pub(super) oauth: OAuthConfig,
    factory: OAuthHttpFactory,
    /// The HTTP client, made at its first use.
    client: OnceLock<EndpointClient>,
}

impl LoginSettings {
    pub(super) fn new(
        http: &HttpServerConfig,
        oauth: OAuthConfig,
        factory: &OAuthHttpFactory,
    ) -> Self {
        Self { http: http.clone(), oauth, factory: Arc::clone(factory), client: OnceLock::new() }
    }

    /// Returns the HTTP client for this login.
    pub(super) fn endpoints(&self) -> Result<EndpointClient, LoginError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let made = (self.factory)(&self.http).map_err(|source| LoginError::Http {
            url: canonical_uri(&self.http.url).into(),
            source: source.into(),
        })?;
        Ok(self.client.get_or_init(|| EndpointClient::new(made, self.http.url.clone())).clone())
    }

    pub(super) fn is_client_credentials(&self) -> bool {
        self.oauth.grant == OAuthGrant::ClientCredentials
    }
}
