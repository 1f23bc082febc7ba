//! The login of a person with a browser: its start, and its end.

use std::{sync::Arc, time::SystemTime};

use super::{
    CallbackAnswer, LoginError,
    discovery::{DiscoveredAuthorization, discover},
    login_basis::LoginBasis,
    login_record::LoginRecord,
    login_settings::LoginSettings,
    machine_login::{bound_issuer, configured_client},
    pkce::{self, PkceVerifier},
    registration::{ClientIdSource, OAuthClient, register},
    resource_metadata::canonical_uri,
    revocation::revoke_all,
    scope_selection::{ScopeSelection, ScopeSet, wants_offline_access},
    secret_text::SecretText,
    token_keeper::TokenKeeper,
    token_request::TokenGrant,
    token_request_counts::GrantType,
};
use crate::config::defaults;

/// A login that waits for the answer of the authorization server. One answer ends it.
pub(super) struct PersonLogin {
    pub(super) keeper: Arc<TokenKeeper>,
    settings: Arc<LoginSettings>,
    basis: LoginBasis,
    /// The authorization server announces that its answers name it.
    is_issuer_named: bool,
    verifier: PkceVerifier,
    /// The previous login has requested the same scopes, which a server refused.
    is_futile: bool,
    /// The number of logouts when it began.
    n_logouts: u64,
}

/// A login to add to those that wait, with its state and the address for the person.
pub(super) struct LoginInvitation {
    pub(super) login: PersonLogin,
    pub(super) state: SecretText,
    pub(super) url: String,
}

/// Discovers the authorization server, registers metamcp there, and writes the address for the
/// person.
///
/// # Errors
///
/// [`LoginError`] if a step fails.
pub(super) async fn invite(
    keeper: Arc<TokenKeeper>,
    redirect_url: String,
) -> Result<LoginInvitation, LoginError> {
    let settings = keeper.settings.load_full();
    if settings.is_client_credentials() {
        return Err(LoginError::NoPerson(keeper.server.clone()));
    }
    let http = settings.endpoints()?;
    let (challenge, lacking, replaced, n_logouts) = {
        let facts = keeper.facts();
        let (challenge, lacking) = (facts.challenge.clone(), facts.lacking.clone());
        (challenge, lacking, facts.record.clone(), facts.n_logouts)
    };
    let is_futile = check_scopes(&keeper, lacking.as_ref(), replaced.as_deref())?;
    let bound = keeper.in_background(bound_issuer).await?;
    let preferred =
        bound.as_deref().or(replaced.as_ref().map(|record| record.basis.issuer.as_str()));
    let found = discover(&http, &keeper.server, challenge, preferred).await?;
    found.metadata.check_pkce()?;
    let authorization_endpoint = found.metadata.endpoint("authorization_endpoint")?;
    let token_endpoint = found.metadata.endpoint("token_endpoint")?;
    for url in [authorization_endpoint, token_endpoint] {
        http.check(url)?;
    }
    let client = obtain_client(&keeper, &settings, &found, &redirect_url).await?;
    let previous = replaced.as_ref().filter(|record| record.basis.issuer == found.metadata.issuer);
    let requested = ScopeSelection {
        configured: settings.oauth.scopes.iter().cloned().collect(),
        challenged: found.challenge.as_ref().and_then(|challenge| challenge.scopes.as_ref()),
        resource: found.resource_scopes.as_ref(),
        authorization_server: found.metadata.scopes().as_ref(),
        previous: previous.map(|record| &record.basis.requested),
        required: lacking.as_ref(),
    }
    .scopes();
    let (state, verifier) = (SecretText::random(), PkceVerifier::random());
    let basis = LoginBasis {
        server: keeper.server.to_string(),
        url: canonical_uri(&settings.http.url),
        issuer: found.metadata.issuer.clone(),
        resource: found.resource,
        sends_resource: settings.oauth.sends_resource,
        client,
        token_endpoint: token_endpoint.to_owned(),
        revocation_endpoint: found.metadata.revocation_endpoint.clone(),
        redirect_url,
        is_client_credentials: false,
        requested,
    };
    let url = authorization_url(authorization_endpoint, &basis, &state, &verifier);
    let is_issuer_named =
        found.metadata.authorization_response_iss_parameter_supported == Some(true);
    let login =
        PersonLogin { keeper, settings, basis, is_issuer_named, verifier, is_futile, n_logouts };
    Ok(LoginInvitation { login, state, url })
}

/// Checks that a login can change the scopes of the token, or has not been tried too often. Returns
/// whether it changes nothing.
fn check_scopes(
    keeper: &TokenKeeper,
    lacking: Option<&ScopeSet>,
    replaced: Option<&LoginRecord>,
) -> Result<bool, LoginError> {
    let (Some(lacking), Some(replaced)) = (lacking, replaced) else { return Ok(false) };
    let is_futile = replaced.basis.requested.contains_all(lacking);
    match is_futile && keeper.facts().n_futile >= defaults::STEP_UP_LOGINS_MAX {
        true => Err(LoginError::ScopesRefused {
            server: keeper.server.clone(),
            scopes: keeper.redactor().quote(&lacking.joined()).into(),
        }),
        false => Ok(is_futile),
    }
}

/// Returns metamcp's id at the authorization server. Source: the MCP specification, "Client
/// Registration", for the order.
async fn obtain_client(
    keeper: &Arc<TokenKeeper>,
    settings: &LoginSettings,
    found: &DiscoveredAuthorization,
    redirect_url: &str,
) -> Result<OAuthClient, LoginError> {
    let metadata = found.metadata.clone();
    if settings.oauth.client_id.is_some() {
        return keeper.in_background(move |keeper| configured_client(keeper, &metadata)).await?;
    }
    if let Some(client) = OAuthClient::documented(&settings.oauth, &metadata) {
        return Ok(client);
    }
    let (issuer, redirect) = (metadata.issuer.clone(), redirect_url.to_owned());
    let stored = keeper.in_background(move |keeper| keeper.store.registration(&issuer, &redirect));
    let stored = stored.await?.filter(|client| client.is_valid(SystemTime::now()));
    if let Some(client) = stored {
        return Ok(client);
    }
    let client = register(&settings.endpoints()?, found, redirect_url).await?;
    let (issuer, redirect, registered) = (metadata.issuer, redirect_url.to_owned(), client.clone());
    let put = keeper.in_background(move |keeper| {
        keeper.store.put_registration(&issuer, &redirect, &registered)
    });
    match put.await? {
        Ok(()) => Ok(client),
        Err(source) => {
            Err(LoginError::Store { server: keeper.server.clone(), source: source.into() })
        }
    }
}

/// Returns the address at which a person agrees.
fn authorization_url(
    endpoint: &str,
    basis: &LoginBasis,
    state: &SecretText,
    verifier: &PkceVerifier,
) -> String {
    let endpoint = endpoint.split('#').next().unwrap_or_default();
    let mut query = form_urlencoded::Serializer::new(String::new());
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &basis.client.id)
        .append_pair("redirect_uri", &basis.redirect_url)
        .append_pair("state", state.expose())
        .append_pair("code_challenge", &verifier.challenge())
        .append_pair("code_challenge_method", pkce::CHALLENGE_METHOD);
    if !basis.requested.is_empty() {
        query.append_pair("scope", &basis.requested.joined());
    }
    if wants_offline_access(&basis.requested) {
        // Source: OpenID Connect Core 1.0, section 11.
        query.append_pair("prompt", "consent");
    }
    if basis.sends_resource {
        query.append_pair("resource", &basis.resource);
    }
    let separator = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{separator}{}", query.finish())
}

impl PersonLogin {
    /// Exchanges the code of an answer for tokens, and stores them.
    ///
    /// # Errors
    ///
    /// [`LoginError`] if the answer is forged or a refusal, or there are no tokens.
    pub(super) async fn finish(self, answer: &CallbackAnswer) -> Result<(), LoginError> {
        let Self { keeper, settings, basis, verifier, is_issuer_named, is_futile, n_logouts } =
            self;
        let code = answer.code(&keeper.server, &basis.issuer, is_issuer_named)?;
        let redirect_url = &basis.redirect_url;
        let request = basis.request(TokenGrant::Code { code, verifier: &verifier, redirect_url });
        let tokens = request.send(&settings.endpoints()?).await;
        keeper.requests.add(GrantType::AuthorizationCode, &tokens);
        let tokens = match tokens {
            Ok(tokens) => tokens,
            Err(error) => {
                forget_unknown_client(&keeper, &basis, &error).await;
                return Err(error);
            }
        };
        let record = LoginRecord::new(basis, tokens, SystemTime::now());
        let unwanted = record.clone();
        let replaced =
            keeper.in_background(move |keeper| keeper.replace(record, is_futile, n_logouts));
        let outcome = replaced.await?;
        if let Err(LoginError::Replaced(_)) = &outcome {
            let _logged = revoke_all(&keeper, &unwanted).await;
        }
        outcome
    }

    /// Returns whether the login is still one of the server that `keeper` keeps the tokens of, and
    /// browsers still return to `redirect_url`.
    pub(super) fn is_current(&self, keeper: &Arc<TokenKeeper>, redirect_url: &str) -> bool {
        self.basis.redirect_url == redirect_url
            && Arc::ptr_eq(&self.keeper, keeper)
            && Arc::ptr_eq(&self.settings, &self.keeper.settings.load_full())
            && self.keeper.facts().n_logouts == self.n_logouts
    }
}

/// Forgets a registration that the authorization server no longer knows.
async fn forget_unknown_client(keeper: &Arc<TokenKeeper>, basis: &LoginBasis, error: &LoginError) {
    let is_unknown =
        matches!(error, LoginError::TokenRefused { error, .. } if &**error == "invalid_client");
    if is_unknown && basis.client.source == ClientIdSource::Registered {
        let (issuer, redirect) = (basis.issuer.clone(), basis.redirect_url.clone());
        let removed = keeper
            .in_background(move |keeper| keeper.store.remove_registration(&issuer, &redirect));
        let _the_next_login_fails_alike = removed.await;
    }
}
