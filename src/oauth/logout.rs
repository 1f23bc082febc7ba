//! The logout of this host from a server.

use tokio::time;

use super::{
    LoginError, LoginService, login_record::LoginRecord, login_service::lock,
    pending_logins::LoginPhase, token_keeper::TokenKeeper, token_request::revoke,
};
use crate::{config::defaults, error_report::chain, server_name::ServerName};

/// The outcome of a logout. metamcp has forgotten the tokens in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogoutOutcome {
    /// The authorization server has revoked the tokens.
    Revoked,
    /// The authorization server cannot revoke tokens, or has not confirmed it.
    Forgotten,
    /// There were no tokens.
    NoTokens,
}

impl LoginService {
    /// Forgets the tokens of a server, and revokes them where its authorization server can. If the
    /// caller leaves, it is done all the same. The registration is kept.
    ///
    /// # Errors
    ///
    /// [`LoginError`] if the server has no login, or a file cannot be removed.
    pub async fn logout(&self, server: &ServerName) -> Result<LogoutOutcome, LoginError> {
        let authorizer = self.oauth(server)?;
        let exchanging = {
            let mut pending = self.pending();
            pending.replace(server);
            pending.exchanging(server)
        };
        let (pending, name) = (self.pending_logins(), server.clone());
        let leaving = self.tasks.spawn(async move {
            // The tokens of a login or a renewal in flight would be neither forgotten nor revoked.
            let settled = async {
                authorizer.settle().await;
                for mut phase in exchanging {
                    let is_over = |phase: &LoginPhase| matches!(phase, LoginPhase::Ended(_));
                    let _forgotten = phase.wait_for(is_over).await;
                }
            };
            let _much_too_slow = time::timeout(defaults::OAUTH_REVOCATION_TIMEOUT, settled).await;
            let keeper = authorizer.keeper();
            let forgotten = keeper.in_background(TokenKeeper::forget).await?;
            // One that began meanwhile would not count.
            lock(&pending).replace(&name);
            match forgotten? {
                Some(record) => Ok(revoke_all(keeper, &record).await),
                None => Ok(LogoutOutcome::NoTokens),
            }
        });
        leaving.await.unwrap_or(Err(LoginError::Stopping))
    }
}

/// Revokes the tokens of a login.
pub(super) async fn revoke_all(keeper: &TokenKeeper, record: &LoginRecord) -> LogoutOutcome {
    let Some(endpoint) = &record.basis.revocation_endpoint else { return LogoutOutcome::Forgotten };
    let revoking = async {
        let http = keeper.settings.load_full().endpoints()?;
        let configured = keeper.configured_client(None)?;
        // A client that was declared since belongs to another login: its secret must not go there.
        let configured = configured.filter(|client| client.id == record.basis.client.id);
        let client = configured.as_ref().unwrap_or(&record.basis.client);
        if let Some(token) = &record.refresh_token {
            revoke(&http, endpoint, client, token, "refresh_token").await?;
        }
        revoke(&http, endpoint, client, &record.access_token, "access_token").await
    };
    match revoking.await {
        Ok(()) => LogoutOutcome::Revoked,
        Err(error) => {
            let (server, reason) = (&keeper.server, chain(&error));
            tracing::warn!(mcp_server = %server, reason, "the tokens of server `{server}` are forgotten, but not revoked: {reason}");
            LogoutOutcome::Forgotten
        }
    }
}
