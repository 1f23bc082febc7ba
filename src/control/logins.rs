//! The methods `auth/login`, `auth/wait`, `auth/finish`, `auth/logout` and `auth/document`: logins at
//! servers, for the whole host.

use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;

use super::{ControlRequest, MethodResult};
use crate::{
    error_report::chain,
    oauth::{CallbackAnswer, LoginError, LoginId, LoginService, LogoutOutcome},
    protocol::{RpcError, rpc_error::INVALID_REQUEST},
    server_name::ServerName,
};

/// Answers `auth/login`: begins a login, or joins one; `auth/wait` or `auth/finish` ends it.
pub(super) async fn begin(request: &ControlRequest<'_>) -> MethodResult {
    let server = server(request)?;
    tracing::info!(
        mcp_server = %server, peer_uid = request.requester.uid(),
        "an operator has begun a login at server `{server}`"
    );
    let login = logins(request).join(&server).await.map_err(refused)?;
    let ends_in = login.ends.saturating_duration_since(Instant::now());
    let ends_in_ms = u64::try_from(ends_in.as_millis()).unwrap_or(u64::MAX);
    let begun = json!({
        "loginId": login.id.to_string(),
        "server": login.server,
        "url": login.url,
        "endsInMs": ends_in_ms,
    });
    Ok(begun.to_string())
}

/// Answers `auth/wait` when the login has ended.
pub(super) async fn wait(request: &ControlRequest<'_>) -> MethodResult {
    let id: String = request.params.required("loginId")?;
    logins(request).wait(&LoginId::from(id.as_str())).await.map_err(refused)?;
    Ok(json!({ "ok": true }).to_string())
}

/// Answers `auth/finish`, which takes the address that the browser ended at.
pub(super) async fn finish(request: &ControlRequest<'_>) -> MethodResult {
    let answer: String = request.params.required("answer")?;
    let answer = CallbackAnswer::parse(&answer).map_err(refused)?;
    let server = logins(request).finish(&answer).await.map_err(refused)?;
    Ok(json!({ "server": server }).to_string())
}

/// Answers `auth/logout`.
pub(super) async fn logout(request: &ControlRequest<'_>) -> MethodResult {
    let server = server(request)?;
    tracing::info!(
        mcp_server = %server, peer_uid = request.requester.uid(),
        "an operator has requested a logout from server `{server}`"
    );
    let outcome = logins(request).logout(&server).await.map_err(refused)?;
    Ok(json!({ "server": server, "outcome": name(outcome) }).to_string())
}

/// Answers `auth/document` with the document that describes metamcp to authorization servers.
pub(super) fn document(request: &ControlRequest<'_>) -> MethodResult {
    let server = server(request)?;
    Ok(logins(request).client_document(&server).map_err(refused)?.to_string())
}

fn logins<'a>(request: &ControlRequest<'a>) -> &'a Arc<LoginService> {
    &request.service.parts.logins
}

/// Returns the declared server that the request names.
fn server(request: &ControlRequest<'_>) -> Result<ServerName, Box<RpcError>> {
    let name: String = request.params.required("server")?;
    request.service.parts.operators.check_declared(&name)?;
    ServerName::new(&name).map_err(|_| request.params.invalid("server", "the name of a server"))
}

/// Returns the outcome of a logout in one word.
fn name(outcome: LogoutOutcome) -> &'static str {
    match outcome {
        LogoutOutcome::Revoked => "revoked",
        LogoutOutcome::Forgotten => "forgotten",
        LogoutOutcome::NoTokens => "none",
    }
}

fn refused(error: LoginError) -> Box<RpcError> {
    RpcError::new(INVALID_REQUEST, error.code(), chain(&error)).suggest(error.hint()).into()
}
