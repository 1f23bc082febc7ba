//! Requests to token and revocation endpoints. Source: RFC 6749, RFC 7009 and RFC 8707.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hyper::{Response, header::HeaderValue};
use tokio::time;
use zeroize::Zeroizing;

use super::{
    LoginError,
    endpoint_client::{EndpointClient, EndpointRequest, clear, status_error},
    pkce::PkceVerifier,
    registration::{ClientAuthMethod, OAuthClient},
    scope_selection::ScopeSet,
    secret_text::SecretText,
    token_set::{TokenAnswer, TokenSet},
};
use crate::{
    config::{defaults, url::without_secrets},
    redact::Redactor,
};

/// The reason for which an authorization server issues tokens.
#[derive(Debug)]
pub(super) enum TokenGrant<'a> {
    /// A person has agreed.
    Code { code: &'a SecretText, verifier: &'a PkceVerifier, redirect_url: &'a str },
    /// The tokens continue earlier ones.
    Refresh(&'a SecretText),
    /// metamcp logs in by itself.
    ClientCredentials(&'a ScopeSet),
}

/// A request for tokens.
#[derive(Debug)]
pub(super) struct TokenRequest<'a> {
    /// The URL of the token endpoint.
    pub(super) endpoint: &'a str,
    /// The authorization server.
    pub(super) issuer: &'a str,
    pub(super) client: &'a OAuthClient,
    /// The server that the tokens are for; `None` if the operator says not to name it.
    pub(super) resource: Option<&'a str>,
    pub(super) grant: TokenGrant<'a>,
}

impl TokenRequest<'_> {
    /// Sends the request.
    ///
    /// # Errors
    ///
    /// [`LoginError`] if the answer has no tokens.
    pub(super) async fn send(&self, http: &EndpointClient) -> Result<TokenSet, LoginError> {
        let joined;
        let (mut parameters, secrets) = match &self.grant {
            TokenGrant::Code { code, verifier, redirect_url } => (
                vec![
                    ("grant_type", "authorization_code"),
                    ("code", code.expose()),
                    ("code_verifier", verifier.expose()),
                    ("redirect_uri", redirect_url),
                ],
                vec![code.expose(), verifier.expose()],
            ),
            TokenGrant::Refresh(token) => (
                vec![("grant_type", "refresh_token"), ("refresh_token", token.expose())],
                vec![token.expose()],
            ),
            TokenGrant::ClientCredentials(scopes) => {
                joined = scopes.joined();
                let mut parameters = vec![("grant_type", "client_credentials")];
                if !scopes.is_empty() {
                    parameters.push(("scope", joined.as_str()));
                }
                (parameters, Vec::new())
            }
        };
        parameters.extend(self.resource.map(|resource| ("resource", resource)));
        let limit = defaults::OAUTH_TOKEN_TIMEOUT;
        let answer =
            post(http, self.endpoint, self.client, parameters, limit, "the token request").await?;
        self.tokens(answer, secrets)
    }

    fn tokens(&self, answer: Response<Bytes>, secrets: Vec<&str>) -> Result<TokenSet, LoginError> {
        let is_success = answer.status().is_success();
        let parsed = serde_json::from_slice::<TokenAnswer>(answer.body());
        let Ok(mut parsed) = parsed else {
            let url: Arc<str> = without_secrets(self.endpoint).into();
            let why = "it is not the expected JSON".into();
            return Err(match is_success {
                true => LoginError::InvalidAnswer { url, why },
                // The page may repeat the request.
                false => {
                    LoginError::Status { url, status: answer.status().as_u16(), quote: "".into() }
                }
            });
        };
        // Some servers report errors with 200.
        if let Some(error) = parsed.error.take() {
            let sent =
                secrets.into_iter().chain(self.client.secret.as_ref().map(SecretText::expose));
            let sent = Zeroizing::new(sent.map(str::to_owned).collect::<Vec<String>>());
            let redactor = Redactor::new(sent.iter());
            let description = parsed.error_description.unwrap_or_default();
            return Err(LoginError::TokenRefused {
                issuer: self.issuer.into(),
                error: redactor.quote(&error).into(),
                description: redactor.quote(&description).into(),
            });
        }
        if !is_success {
            let (url, status) = (without_secrets(self.endpoint).into(), answer.status().as_u16());
            return Err(LoginError::Status { url, status, quote: "".into() });
        }
        let tokens = parsed.tokens().map_err(|why| LoginError::InvalidAnswer {
            url: without_secrets(self.endpoint).into(),
            why: why.into(),
        });
        clear(answer);
        tokens
    }
}

/// Revokes a token at the revocation endpoint.
///
/// # Errors
///
/// [`LoginError`] if the authorization server does not confirm it.
pub(super) async fn revoke(
    http: &EndpointClient,
    endpoint: &str,
    client: &OAuthClient,
    token: &SecretText,
    kind: &str,
) -> Result<(), LoginError> {
    let parameters = vec![("token", token.expose()), ("token_type_hint", kind)];
    let limit = defaults::OAUTH_REVOCATION_TIMEOUT;
    let answer = post(http, endpoint, client, parameters, limit, "the revocation").await?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(status_error(
            endpoint,
            &Response::builder().status(answer.status()).body(Bytes::new()).unwrap_or_default(),
        )),
    }
}

/// Posts a form with the authentication of the client.
async fn post(
    http: &EndpointClient,
    endpoint: &str,
    client: &OAuthClient,
    mut parameters: Vec<(&str, &str)>,
    limit: Duration,
    step: &'static str,
) -> Result<Response<Bytes>, LoginError> {
    let secret = client.secret.as_ref().map(SecretText::expose);
    let mut authorization = None;
    match (client.auth_method, secret) {
        (ClientAuthMethod::ClientSecretBasic, Some(secret)) => {
            authorization = basic(&client.id, secret);
        }
        (ClientAuthMethod::ClientSecretPost, Some(secret)) => {
            parameters.extend([("client_id", client.id.as_str()), ("client_secret", secret)]);
        }
        _ => parameters.push(("client_id", client.id.as_str())),
    }
    let request = EndpointRequest { authorization, ..EndpointRequest::form(&parameters) };
    let answer = time::timeout(limit, http.post(endpoint, request)).await;
    answer.unwrap_or(Err(LoginError::Timeout { step, seconds: limit.as_secs() }))
}

/// Returns the header with id and secret. Source: RFC 6749, section 2.3.1: both are encoded first.
fn basic(id: &str, secret: &str) -> Option<HeaderValue> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let both = Zeroizing::new(format!("{}:{}", encoded(id), encoded(secret)));
    let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(both.as_bytes())));
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_and_secret_are_encoded_in_the_header() {
        let value = basic("a:b", "s c%r/t").expect("a header");
        let text = value.to_str().expect("text").strip_prefix("Basic ").expect("basic").to_owned();
        assert_eq!(STANDARD.decode(text).expect("base64"), b"a%3Ab:s+c%25r%2Ft");
        assert!(value.is_sensitive());
    }
}
