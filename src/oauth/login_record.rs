//! The stored state of one login.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::header::HeaderValue;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{
    endpoint_client::EndpointClient,
    login_basis::LoginBasis,
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
    #[serde(flatten)]
    pub(super) basis: LoginBasis,
    /// The granted scopes.
    pub(super) granted: ScopeSet,
    pub(super) access_token: SecretText,
    pub(super) refresh_token: Option<SecretText>,
    /// The life of the access token in seconds.
    expires_in: Option<f64>,
    /// The time of its issue, in seconds since 1970.
    issued: u64,
}

impl LoginRecord {
    /// Returns the record of a new login.
    pub(super) fn new(basis: LoginBasis, tokens: TokenSet, now: SystemTime) -> Self {
        Self {
            version: VERSION,
            principal: HOST_PRINCIPAL.to_owned(),
            granted: tokens.scopes.unwrap_or_else(|| basis.requested.clone()),
            access_token: tokens.access_token,
            // metamcp logs in again instead. Source: RFC 6749, section 4.4.3.
            refresh_token: tokens.refresh_token.filter(|_| !basis.is_client_credentials),
            expires_in: tokens.lifetime.map(|life| life.as_secs_f64()),
            issued: unix_seconds(now),
            basis,
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
            None if self.basis.is_client_credentials => {
                TokenGrant::ClientCredentials(&self.basis.requested)
            }
            None => return None,
        };
        Some(self.basis.request(grant))
    }

    /// Returns whether the record is that of a server as it is declared now.
    pub(super) fn is_of(
        &self,
        server: &ServerName,
        http: &HttpServerConfig,
        oauth: &OAuthConfig,
    ) -> bool {
        let client = &self.basis.client;
        let is_client = match client.source {
            ClientIdSource::Configured => oauth.client_id.as_ref() == Some(&client.id),
            ClientIdSource::Document => {
                let url = oauth.client_metadata_url.as_ref();
                url.is_some_and(|url| url.to_string() == client.id)
            }
            ClientIdSource::Registered => oauth.client_id.is_none(),
        };
        self.version == VERSION
            && self.principal == HOST_PRINCIPAL
            && self.basis.server == server.as_str()
            && self.basis.url == super::resource_metadata::canonical_uri(&http.url)
            && self.basis.is_client_credentials == (oauth.grant == OAuthGrant::ClientCredentials)
            && is_client
    }

    /// Returns the name of the file: one for each principal, server, issuer, resource and client.
    pub(super) fn file_name(&self) -> String {
        let LoginBasis { server, issuer, resource, client, .. } = &self.basis;
        format!("login-{}.json", digest(&[&self.principal, server, issuer, resource, &client.id]))
    }

    /// Sends the request for the next tokens. A configured secret may have changed meanwhile.
    pub(super) async fn renew(
        &self,
        http: &EndpointClient,
        configured: Option<&OAuthClient>,
    ) -> Option<Result<TokenSet, super::LoginError>> {
        let client = match configured {
            // The method was chosen by the metadata.
            Some(client) => {
                OAuthClient { auth_method: self.basis.client.auth_method, ..client.clone() }
            }
            None => self.basis.client.clone(),
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
