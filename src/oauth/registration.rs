//! The registration of metamcp at an authorization server. Source: the MCP specification of
//! 2026-07-28, "Client Registration", and RFC 7591.

use std::{path::Path, sync::Arc, time::SystemTime};

use hyper::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time;

use super::{
    LoginError,
    discovery::DiscoveredAuthorization,
    endpoint_client::{EndpointClient, EndpointRequest, parse, quote, status_error},
    secret_text::SecretText,
    server_metadata::ServerMetadata,
    token_set::unix_seconds,
};
use crate::{
    config::{OAuthConfig, defaults},
    http_client::Origin,
    server_name::ServerName,
};

/// The authentication of metamcp at a token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuthMethod {
    /// None: the client is public.
    None,
    /// The secret in `Authorization: Basic`.
    ClientSecretBasic,
    /// The secret among the parameters.
    ClientSecretPost,
}

/// The way in which metamcp got its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientIdSource {
    /// An operator has registered metamcp.
    Configured,
    /// The id is the URL of a document.
    Document,
    /// metamcp has registered itself.
    Registered,
}

/// metamcp as an authorization server knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OAuthClient {
    pub(super) id: String,
    /// The secret. Files have it only if metamcp has registered itself.
    pub(super) secret: Option<SecretText>,
    pub(super) auth_method: ClientAuthMethod,
    pub(super) source: ClientIdSource,
    /// The time at which the secret expires, in seconds since 1970.
    pub(super) secret_expires: Option<u64>,
}

impl OAuthClient {
    /// Returns whether the id and secret can still be used.
    pub(super) fn is_valid(&self, now: SystemTime) -> bool {
        self.secret_expires.is_none_or(|expires| unix_seconds(now) < expires)
    }

    /// Returns the client that an operator has registered, if any.
    pub(super) fn configured(
        config: &OAuthConfig,
        server: &ServerName,
        credentials: Option<&Path>,
        metadata: Option<&ServerMetadata>,
    ) -> Result<Option<Self>, LoginError> {
        let Some(id) = config.client_id.clone() else { return Ok(None) };
        let secret = config.client_secret.as_ref().map(|secret| secret.resolve(credentials));
        let secret = secret.transpose().map_err(|source| LoginError::Secret {
            server: server.clone(),
            source: Arc::new(source),
        })?;
        let auth_method = auth_method(None, secret.is_some(), metadata);
        Ok(Some(Self {
            id,
            secret: secret.map(SecretText::from),
            auth_method,
            source: ClientIdSource::Configured,
            secret_expires: None,
        }))
    }

    /// Returns the client whose id is the URL of a document, if the authorization server supports
    /// that.
    pub(super) fn documented(config: &OAuthConfig, metadata: &ServerMetadata) -> Option<Self> {
        let url = config.client_metadata_url.as_ref()?;
        let is_supported = metadata.client_id_metadata_document_supported == Some(true);
        is_supported.then(|| Self {
            id: url.to_string(),
            secret: None,
            auth_method: ClientAuthMethod::None,
            source: ClientIdSource::Document,
            secret_expires: None,
        })
    }
}

/// Chooses the authentication: the one that a registration answered, else one that the metadata
/// lists. Without either, a secret goes into the header. Source: RFC 8414, section 2.
fn auth_method(
    answered: Option<&str>,
    has_secret: bool,
    metadata: Option<&ServerMetadata>,
) -> ClientAuthMethod {
    let accepts = |method| metadata.is_some_and(|found| found.accepts(method) == Some(true));
    match answered {
        Some("client_secret_basic") if has_secret => ClientAuthMethod::ClientSecretBasic,
        Some("client_secret_post") if has_secret => ClientAuthMethod::ClientSecretPost,
        Some("none") => ClientAuthMethod::None,
        _ if !has_secret => ClientAuthMethod::None,
        _ if accepts("client_secret_basic") => ClientAuthMethod::ClientSecretBasic,
        _ if accepts("client_secret_post") => ClientAuthMethod::ClientSecretPost,
        _ => ClientAuthMethod::ClientSecretBasic,
    }
}

/// The answer to a registration.
#[derive(Deserialize)]
struct RegistrationAnswer {
    client_id: String,
    client_secret: Option<SecretText>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

/// The refusal of a registration.
#[derive(Default, Deserialize)]
struct RegistrationRefusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

/// Registers metamcp. If the authorization server refuses the redirect address, metamcp tries the
/// other type of application once.
///
/// # Errors
///
/// [`LoginError`] if the authorization server registers no clients or refuses this one.
pub(super) async fn register(
    client: &EndpointClient,
    found: &DiscoveredAuthorization,
    redirect_url: &str,
) -> Result<OAuthClient, LoginError> {
    let metadata = &found.metadata;
    let issuer: Arc<str> = metadata.issuer.as_str().into();
    let Some(url) = metadata.registration_endpoint.as_deref() else {
        return Err(LoginError::NoClientId { issuer });
    };
    let is_local = redirect_url
        .parse::<Uri>()
        .is_ok_and(|url| Origin::of(&url).is_some_and(|origin| origin.is_loopback()));
    let types = if is_local { ["native", "web"] } else { ["web", "native"] };
    let limit = defaults::OAUTH_REGISTRATION_TIMEOUT;
    let registering = async {
        match register_as(client, metadata, url, redirect_url, types[0]).await {
            Err(Attempt::OtherType(_)) => {
                register_as(client, metadata, url, redirect_url, types[1]).await
            }
            other => other,
        }
    };
    match time::timeout(limit, registering).await {
        Ok(registered) => registered.map_err(Attempt::into_error),
        Err(_) => Err(LoginError::Timeout { step: "the registration", seconds: limit.as_secs() }),
    }
}

/// The failure of one request for registration.
enum Attempt {
    /// Another type of application may succeed.
    OtherType(LoginError),
    Failed(LoginError),
}

impl Attempt {
    fn into_error(self) -> LoginError {
        match self {
            Self::OtherType(error) | Self::Failed(error) => error,
        }
    }
}

impl From<LoginError> for Attempt {
    fn from(error: LoginError) -> Self {
        Self::Failed(error)
    }
}

async fn register_as(
    client: &EndpointClient,
    metadata: &ServerMetadata,
    url: &str,
    redirect_url: &str,
    application_type: &str,
) -> Result<OAuthClient, Attempt> {
    let methods = ["none", "client_secret_basic", "client_secret_post"];
    let method = methods.into_iter().find(|method| metadata.accepts(method) != Some(false));
    let body = json!({
        "client_name": "metamcp",
        "redirect_uris": [redirect_url],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.unwrap_or("none"),
        "application_type": application_type,
        "software_id": "metamcp",
        "software_version": env!("CARGO_PKG_VERSION"),
    });
    let answer = client.post(url, EndpointRequest::json(body.to_string())).await?;
    let status = answer.status();
    if status == StatusCode::CREATED || status == StatusCode::OK {
        let registered: RegistrationAnswer = parse(url, answer.body())?;
        super::endpoint_client::clear(answer);
        let method = registered.token_endpoint_auth_method.as_deref();
        let has_secret = registered.client_secret.is_some();
        return Ok(OAuthClient {
            auth_method: auth_method(method, has_secret, Some(metadata)),
            id: registered.client_id,
            secret: registered.client_secret,
            source: ClientIdSource::Registered,
            // Zero means that it never expires. Source: RFC 7591, section 3.2.1.
            secret_expires: registered.client_secret_expires_at.filter(|expires| *expires > 0),
        });
    }
    let issuer: Arc<str> = metadata.issuer.as_str().into();
    if metadata.is_assumed
        && matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
    {
        return Err(LoginError::NoMetadata { issuer }.into());
    }
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(status_error(url, &answer).into());
    }
    let refusal: RegistrationRefusal = serde_json::from_slice(answer.body()).unwrap_or_default();
    let why = match refusal.error.is_empty() {
        true => status.to_string(),
        false => format!("{} {}", quote(&refusal.error), quote(&refusal.error_description)),
    };
    let error = LoginError::RegistrationRefused { issuer, why: why.trim_end().into() };
    match refusal.error.as_str() {
        "invalid_redirect_uri" | "invalid_client_metadata" => Err(Attempt::OtherType(error)),
        _ => Err(Attempt::Failed(error)),
    }
}
