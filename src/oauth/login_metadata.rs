//! The ways to log in at a server, as its metadata shows them, for the diagnosis of a host.

use serde::Serialize;

use super::{
    LoginError, discovery::discover, endpoint_client::quote, login_settings::LoginSettings,
    oauth_http::OAuthHttpFactory, registration::OAuthClient, server_metadata::ServerMetadata,
};
use crate::{
    config::{HttpServerConfig, OAuthConfig, OAuthGrant},
    server_name::ServerName,
};

/// The ways to log in at a server, as its metadata shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginMetadata {
    /// The authorization server.
    pub issuer: String,
    /// The authorization server has no metadata, and its endpoints are those of 2025-03-26.
    pub is_assumed: bool,
    /// It accepts the URL of a document as the id of a client.
    pub client_metadata_documents: bool,
    /// It registers clients on request.
    pub dynamic_registration: bool,
    /// It supports PKCE with S256.
    pub pkce: bool,
}

impl LoginMetadata {
    /// Fetches the metadata of a server and of its authorization server. It registers nothing,
    /// requests no token and stores nothing. Returns the obstacle to a login, too, if there is one.
    ///
    /// # Errors
    ///
    /// [`LoginError`] if a document is missing or invalid, or a request fails.
    pub async fn discover(
        server: &ServerName,
        http: &HttpServerConfig,
        clients: &OAuthHttpFactory,
    ) -> Result<(Self, Option<LoginError>), LoginError> {
        let settings = LoginSettings::new(http, http.oauth().unwrap_or_default(), clients);
        let found = discover(&settings.endpoints()?, server, None, None).await?;
        let (metadata, obstacle) = (&found.metadata, obstacle(&settings.oauth, &found.metadata));
        let shown = Self {
            issuer: quote(&metadata.issuer),
            is_assumed: metadata.is_assumed,
            client_metadata_documents: metadata.client_id_metadata_document_supported == Some(true),
            dynamic_registration: metadata.registration_endpoint.is_some(),
            pkce: metadata.check_pkce().is_ok(),
        };
        Ok((shown, obstacle))
    }
}

/// Returns the reason why a login cannot start, if the metadata shows one.
fn obstacle(oauth: &OAuthConfig, metadata: &ServerMetadata) -> Option<LoginError> {
    let check = || {
        metadata.endpoint("token_endpoint")?;
        if oauth.grant == OAuthGrant::ClientCredentials {
            return Ok(());
        }
        metadata.endpoint("authorization_endpoint")?;
        metadata.check_pkce()?;
        let has_id =
            oauth.client_id.is_some() || OAuthClient::documented(oauth, metadata).is_some();
        match has_id || metadata.registration_endpoint.is_some() {
            true => Ok(()),
            false => Err(LoginError::NoClientId { issuer: metadata.issuer.as_str().into() }),
        }
    };
    check().err()
}
