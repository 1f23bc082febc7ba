//! The login of metamcp by itself, with client credentials.

use std::{sync::Arc, time::SystemTime};

use super::{
    LoginError, discovery::discover, login_basis::LoginBasis, login_record::LoginRecord,
    registration::OAuthClient, resource_metadata::canonical_uri, scope_selection::ScopeSelection,
    server_metadata::ServerMetadata, token_keeper::TokenKeeper, token_request::TokenGrant,
    token_request_counts::GrantType,
};

/// Discovers the authorization server and gets the first token.
///
/// # Errors
///
/// [`LoginError`] if a step fails.
pub(super) async fn log_in(keeper: &Arc<TokenKeeper>) -> Result<LoginRecord, LoginError> {
    let settings = keeper.settings.load_full();
    let http = settings.endpoints()?;
    let (challenge, lacking, previous) = {
        let facts = keeper.facts();
        (facts.challenge.clone(), facts.lacking.clone(), facts.record.clone())
    };
    let bound = keeper.in_background(bound_issuer).await?;
    let found = discover(&http, &keeper.server, challenge, bound.as_deref()).await?;
    let metadata = found.metadata.clone();
    let client = keeper.in_background(move |keeper| configured_client(keeper, &metadata)).await??;
    let endpoint = found.metadata.endpoint("token_endpoint")?.to_owned();
    let requested = ScopeSelection {
        configured: settings.oauth.scopes.iter().cloned().collect(),
        challenged: found.challenge.as_ref().and_then(|challenge| challenge.scopes.as_ref()),
        resource: found.resource_scopes.as_ref(),
        // There is no refresh token to ask for.
        authorization_server: None,
        previous: previous.as_ref().map(|record| &record.basis.requested),
        required: lacking.as_ref(),
    }
    .scopes();
    let basis = LoginBasis {
        server: keeper.server.to_string(),
        url: canonical_uri(&settings.http.url),
        issuer: found.metadata.issuer,
        resource: found.resource,
        sends_resource: settings.oauth.sends_resource,
        client,
        token_endpoint: endpoint,
        revocation_endpoint: found.metadata.revocation_endpoint,
        redirect_url: String::new(),
        is_client_credentials: true,
        requested,
    };
    let request = basis.request(TokenGrant::ClientCredentials(&basis.requested));
    let tokens = request.send(&http).await;
    keeper.requests.add(GrantType::ClientCredentials, &tokens);
    let tokens = tokens?;
    keeper.facts().lacking = None;
    Ok(LoginRecord::new(basis, tokens, SystemTime::now()))
}

/// Returns the authorization server that the configured client was used with.
pub(super) fn bound_issuer(keeper: &TokenKeeper) -> Option<String> {
    let settings = keeper.settings.load();
    keeper.store.bound_issuer(&keeper.server, settings.oauth.client_id.as_deref()?)
}

/// Returns the client that an operator has registered, if it belongs to the authorization server
/// that `metadata` describes. The first one that it is used with is remembered. Blocks.
///
/// # Errors
///
/// [`LoginError::IssuerChanged`] if it belongs to another one.
pub(super) fn configured_client(
    keeper: &TokenKeeper,
    metadata: &ServerMetadata,
) -> Result<OAuthClient, LoginError> {
    let (server, issuer) = (&keeper.server, metadata.issuer.as_str());
    let Some(client) = keeper.configured_client(Some(metadata))? else {
        return Err(LoginError::NoClientId { issuer: issuer.into() });
    };
    match keeper.store.bound_issuer(server, &client.id) {
        Some(expected) if expected != issuer => Err(LoginError::IssuerChanged {
            server: server.clone(),
            expected: expected.into(),
            found: issuer.into(),
        }),
        Some(_) => Ok(client),
        None => match keeper.store.bind_issuer(server, &client.id, issuer) {
            Ok(()) => Ok(client),
            Err(error) => Err(LoginError::Store { server: server.clone(), source: error.into() }),
        },
    }
}
