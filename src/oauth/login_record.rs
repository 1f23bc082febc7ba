//! The stored state of one login.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::header::HeaderValue;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{
    endpoint_client::EndpointClient,
    registration::{ClientIdSource, OAuthClient},
    scope_selection::ScopeSet,
    secret_text::SecretText,
    token_request::{TokenGrant, TokenRequest},
    token_set::{TokenSet, unix_seconds},
};
use crate::{
    config::{HttpServerConfig, OAuthConfig, OAuthGrant},
    server_name::ServerName,
};

/// The owner of all logins today. Clients may have their own later.
pub(super) const HOST_PRINCIPAL: &str = "host";

/// The version of the file format.
const VERSION: u32 = 1;

/// The stored state of one login: its tokens, and all that a refresh or revocation needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LoginRecord {
    version: u32,
    principal: String,
    pub(super) server: String,
    /// The declared URL of the server, without its query and login.
    pub(super) url: String,
    pub(super) issuer: String,
    /// The server as its authorization server knows it.
    pub(super) resource: String,
    pub(super) sends_resource: bool,
    pub(super) client: OAuthClient,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) redirect_url: String,
    pub(super) is_client_credentials: bool,
    /// The requested scopes.
    pub(super) requested: ScopeSet,
    /// The granted scopes.
    pub(super) granted: ScopeSet,
    pub(super) access_token: SecretText,
    pub(super) refresh_token: Option<SecretText>,
    /// The life of the access token in seconds.
    expires_in: Option<f64>,
    /// The time of its issue, in seconds since 1970.
    issued: u64,
}

/// The part of a record that does not change with a refresh.
#[derive(Clone, Debug)]
pub(super) struct LoginBasis {
    pub(super) server: ServerName,
    pub(super) url: String,
    pub(super) issuer: String,
    pub(super) resource: String,
    pub(super) sends_resource: bool,
    pub(super) client: OAuthClient,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) redirect_url: String,
    pub(super) is_client_credentials: bool,
    pub(super) requested: ScopeSet,
}

impl LoginRecord {
    /// Returns the record of a new login.
    pub(super) fn new(basis: LoginBasis, tokens: TokenSet, now: SystemTime) -> Self {
        Self {
            version: VERSION,
            principal: HOST_PRINCIPAL.to_owned(),
            server: basis.server.to_string(),
            url: basis.url,
            issuer: basis.issuer,
            resource: basis.resource,
            sends_resource: basis.sends_resource,
            client: basis.client,
            token_endpoint: basis.token_endpoint,
            revocation_endpoint: basis.revocation_endpoint,
            redirect_url: basis.redirect_url,
            is_client_credentials: basis.is_client_credentials,
            granted: tokens.scopes.unwrap_or_else(|| basis.requested.clone()),
            requested: basis.requested,
            access_token: tokens.access_token,
            // metamcp logs in again instead. Source: RFC 6749, section 4.4.3.
            refresh_token: tokens.refresh_token.filter(|_| !basis.is_client_credentials),
            expires_in: tokens.lifetime.map(|life| life.as_secs_f64()),
            issued: unix_seconds(now),
        }
    }

    /// Returns the record after a refresh. Without a new refresh token, the current one stays valid.
    pub(super) fn refreshed(&self, tokens: TokenSet, now: SystemTime) -> Self {
        Self {
            granted: tokens.scopes.unwrap_or_else(|| self.granted.clone()),
            access_token: tokens.access_token,
            refresh_token: tokens.refresh_token.or_else(|| self.refresh_token.clone()),
            expires_in: tokens.lifetime.map(|life| life.as_secs_f64()),
            issued: unix_seconds(now),
            ..self.clone()
        }
    }

    /// Returns the record without its refresh token, which the authorization server has refused.
    pub(super) fn without_refresh_token(&self) -> Self {
        Self { refresh_token: None, ..self.clone() }
    }

    /// Returns the value of `Authorization`.
    pub(super) fn bearer(&self) -> Option<HeaderValue> {
        let text = Zeroizing::new(format!("Bearer {}", self.access_token.expose()));
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns the time of issue.
    pub(super) fn issued(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.issued)).unwrap_or(UNIX_EPOCH)
    }

    /// Returns the life of the access token, if known.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        self.expires_in.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// Returns the request for the next tokens; `None` if a person must log in.
    pub(super) fn renewal(&self) -> Option<TokenRequest<'_>> {
        let grant = match &self.refresh_token {
            Some(token) => TokenGrant::Refresh(token),
            None if self.is_client_credentials => TokenGrant::ClientCredentials(&self.requested),
            None => return None,
        };
        Some(TokenRequest {
            endpoint: &self.token_endpoint,
            issuer: &self.issuer,
            client: &self.client,
            resource: self.sends_resource.then_some(self.resource.as_str()),
            grant,
        })
    }

    /// Returns whether the record is that of a server as it is declared now.
    pub(super) fn is_of(
        &self,
        server: &ServerName,
        http: &HttpServerConfig,
        oauth: &OAuthConfig,
    ) -> bool {
        let is_client = match self.client.source {
            ClientIdSource::Configured => oauth.client_id.as_ref() == Some(&self.client.id),
            ClientIdSource::Document => {
                let url = oauth.client_metadata_url.as_ref();
                url.is_some_and(|url| url.to_string() == self.client.id)
            }
            ClientIdSource::Registered => oauth.client_id.is_none(),
        };
        self.version == VERSION
            && self.principal == HOST_PRINCIPAL
            && self.server == server.as_str()
            && self.url == super::resource_metadata::canonical_uri(&http.url)
            && self.is_client_credentials == (oauth.grant == OAuthGrant::ClientCredentials)
            && is_client
    }

    /// Returns the name of the file: one for each principal, server, issuer, resource and client.
    pub(super) fn file_name(&self) -> String {
        let Self { principal, server, issuer, resource, client, .. } = self;
        format!("login-{}.json", digest(&[principal, server, issuer, resource, &client.id]))
    }

    /// Sends the request for the next tokens. A configured secret may have changed meanwhile.
    pub(super) async fn renew(
        &self,
        http: &EndpointClient,
        configured: Option<&OAuthClient>,
    ) -> Option<Result<TokenSet, super::LoginError>> {
        let client = match configured {
            // The method was chosen by the metadata.
            Some(client) => OAuthClient { auth_method: self.client.auth_method, ..client.clone() },
            None => self.client.clone(),
        };
        let request = self.renewal()?;
        Some(TokenRequest { client: &client, ..request }.send(http).await)
    }
}

/// Returns a digest of texts that is safe as a file name.
pub(super) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let bytes = hash.finalize();
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
