//! The discovery of the authorization server that issues tokens for a server.
//!
//! ```text
//!  challenge ──▶ metadata of the resource ──▶ issuer ──▶ metadata of the authorization server
//!                  │ none                                  │ none
//!                  └▶ issuer = origin of the server ───────┴▶ endpoints of 2025-03-26
//! ```

use hyper::{StatusCode, header::WWW_AUTHENTICATE};
use tokio::time;

use super::{
    LoginError,
    challenge::BearerChallenge,
    endpoint_client::{EndpointClient, EndpointRequest, quote},
    resource_metadata::{self, ResourceMetadata},
    scope_selection::ScopeSet,
    server_metadata::{self, ServerMetadata},
};
use crate::{config::defaults, http_client::Origin, server_name::ServerName};

/// A message that changes nothing at the server, and that one without a login does not get answered.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// The way to tokens for one server.
#[derive(Debug)]
pub(super) struct DiscoveredAuthorization {
    /// The identifier of the server for its authorization server.
    pub(super) resource: String,
    /// `scopes_supported` of the server.
    pub(super) resource_scopes: Option<ScopeSet>,
    /// The challenge that the discovery started from.
    pub(super) challenge: Option<BearerChallenge>,
    /// The metadata of the authorization server.
    pub(super) metadata: ServerMetadata,
}

/// Discovers the authorization server of `server`. Of several, it takes `preferred`, or else the
/// first. Without a `challenge`, it asks the server for one.
///
/// # Errors
///
/// [`LoginError`] if a document is invalid, or a request fails.
pub(super) async fn discover(
    client: &EndpointClient,
    server: &ServerName,
    challenge: Option<BearerChallenge>,
    preferred: Option<&str>,
) -> Result<DiscoveredAuthorization, LoginError> {
    let limit = defaults::OAUTH_DISCOVERY_TIMEOUT;
    let discovered = time::timeout(limit, discover_unlimited(client, server, challenge, preferred));
    let step = "the discovery of the authorization server";
    discovered.await.unwrap_or(Err(LoginError::Timeout { step, seconds: limit.as_secs() }))
}

async fn discover_unlimited(
    client: &EndpointClient,
    server: &ServerName,
    challenge: Option<BearerChallenge>,
    preferred: Option<&str>,
) -> Result<DiscoveredAuthorization, LoginError> {
    let challenge = match challenge {
        Some(challenge) => Some(challenge),
        None => probe(client).await,
    };
    let named = challenge.as_ref().and_then(|challenge| challenge.resource_metadata.as_deref());
    let resource = resource(client, server, named).await?;
    let origin = Origin::of(client.declared()).map(|origin| origin.to_string()).unwrap_or_default();
    let issuers = resource.as_ref().and_then(|found| found.authorization_servers.as_deref());
    let issuers = issuers.unwrap_or_default();
    let issuer = issuers.iter().find(|issuer| Some(issuer.as_str()) == preferred);
    let issuer = issuer.or(issuers.first());
    let metadata = match (authorization_server(client, issuer.unwrap_or(&origin)).await?, issuer) {
        (Some(metadata), _) => metadata,
        (None, None) => ServerMetadata::assumed(&origin),
        (None, Some(issuer)) => {
            return Err(LoginError::NoMetadata { issuer: quote(issuer).into() });
        }
    };
    let resource = resource.unwrap_or_default();
    Ok(DiscoveredAuthorization {
        resource: resource
            .resource
            .unwrap_or_else(|| resource_metadata::canonical_uri(client.declared())),
        resource_scopes: resource.scopes_supported.map(ScopeSet::from_iter),
        challenge,
        metadata,
    })
}

/// Asks the server for its challenge. `None` if it gives none, or cannot be reached: its metadata
/// may have a well-known place.
async fn probe(client: &EndpointClient) -> Option<BearerChallenge> {
    let declared = client.declared();
    let path = declared.path_and_query().map_or("/", |path| path.as_str());
    let url = format!("{}{path}", Origin::of(declared)?);
    // Source: the MCP specification requires both types of each client.
    let accept = "application/json, text/event-stream";
    let request = EndpointRequest { accept, ..EndpointRequest::json(PROBE.to_owned()) };
    let answer = client.post(&url, request).await.ok()?;
    let headers = answer.headers().get_all(WWW_AUTHENTICATE);
    BearerChallenge::parse(headers).filter(|_| answer.status() == StatusCode::UNAUTHORIZED)
}

/// Returns the metadata of the resource, at the URL of the challenge or at a well-known one.
async fn resource(
    client: &EndpointClient,
    server: &ServerName,
    named: Option<&str>,
) -> Result<Option<ResourceMetadata>, LoginError> {
    let mut urls: Vec<String> = named.map(str::to_owned).into_iter().collect();
    for url in resource_metadata::well_known_urls(client.declared()) {
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    for url in urls {
        let found = client.document::<ResourceMetadata>(&url).await?;
        let Some(found) = found.filter(ResourceMetadata::is_usable) else { continue };
        if let Some(resource) = &found.resource
            && !resource_metadata::is_resource_of(resource, client.declared())
        {
            return Err(LoginError::ResourceMismatch {
                server: server.clone(),
                resource: quote(resource).into(),
            });
        }
        return Ok(Some(found));
    }
    Ok(None)
}

/// Returns the metadata of the authorization server `issuer`, if it has any.
async fn authorization_server(
    client: &EndpointClient,
    issuer: &str,
) -> Result<Option<ServerMetadata>, LoginError> {
    client.check(issuer)?;
    for url in server_metadata::well_known_urls(issuer)? {
        let found = client.document::<ServerMetadata>(&url).await?;
        if let Some(found) = found.filter(ServerMetadata::is_usable) {
            found.check_issuer(issuer)?;
            return Ok(Some(found));
        }
    }
    Ok(None)
}
