//! Tests of whole logins. The scenarios of the official conformance suite for clients are among them,
//! under the names that comments give.

use std::{path::Path, sync::Arc};

use hyper::{StatusCode, header::HeaderValue};

use super::{
    AuthRefusal, AuthorizationFailure, Authorizer, CallbackAnswer, LoginError, LoginService,
    OAuthHttp, PendingLogin,
};
use crate::{config::load::parsed, server_name::ServerName};

mod discovery;
mod fake_authorization;
mod issuer;
mod registration;
mod renewal;
mod scopes;
mod secrets;
mod service;
mod store;

use fake_authorization::FakeAuthorization;

/// The usual declaration.
const PLAIN: &str = "[servers.git]\nurl = \"https://mcp.example.com/mcp\"\n";

/// Returns the name of the only server.
fn git() -> ServerName {
    ServerName::new("git").expect("a name")
}

/// Returns a service for `config` with the fake as its only HTTP peer.
fn service(config: &str, fake: &Arc<FakeAuthorization>, state: Option<&Path>) -> Arc<LoginService> {
    let fake = Arc::clone(fake);
    let http = move |_: &_| Ok(Arc::clone(&fake) as Arc<dyn OAuthHttp>);
    LoginService::new(&parsed(config), None, state, None, Arc::new(http))
}

/// Returns a service for a server with this `auth`.
fn with_auth(auth: &str, fake: &Arc<FakeAuthorization>, state: Option<&Path>) -> Arc<LoginService> {
    service(&format!("{PLAIN}auth = {auth}\n"), fake, state)
}

fn authorizer(service: &LoginService) -> Arc<Authorizer> {
    service.authorizer(&git()).expect("a login")
}

/// Logs in as a person would.
async fn log_in(
    service: &Arc<LoginService>,
    fake: &FakeAuthorization,
) -> Result<PendingLogin, LoginError> {
    let login = service.begin(&git()).await?;
    let answer = CallbackAnswer::parse(&fake.agree(&login.url))?;
    service.finish(&answer).await?;
    service.wait(&login.id).await?;
    Ok(login)
}

/// Returns the token of a header.
fn token(header: &HeaderValue) -> &str {
    assert!(header.is_sensitive());
    header.to_str().expect("text").strip_prefix("Bearer canary-").expect("a bearer token")
}

fn refusal(status: StatusCode, challenge: &str) -> AuthRefusal {
    let challenges = vec![HeaderValue::from_str(challenge).expect("a header")];
    AuthRefusal { status, challenges }
}

/// Refuses the current token with 401.
async fn refuse(authorizer: &Authorizer) -> Result<HeaderValue, AuthorizationFailure> {
    let refusal = refusal(StatusCode::UNAUTHORIZED, "Bearer error=\"invalid_token\"");
    let sent = authorizer.bearer();
    authorizer.after_refusal(&refusal, sent.as_ref()).await
}
