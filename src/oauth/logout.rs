//! The logout of this host from a server.

use std::sync::Arc;

use tokio::time;

use super::{
    LoginError, LoginService, pending_logins::LoginPhase, revocation::revoke_all,
    token_keeper::TokenKeeper,
};
use crate::{config::defaults, server_name::ServerName};

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
    pub async fn logout(
        self: &Arc<Self>,
        server: &ServerName,
    ) -> Result<LogoutOutcome, LoginError> {
        let authorizer = self.oauth(server)?;
        let exchanging = {
            let mut pending = self.pending();
            pending.replace(server);
            pending.exchanging(server)
        };
        let (service, server) = (Arc::clone(self), server.clone());
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
            service.pending().replace(&server);
            match forgotten? {
                None => Ok(LogoutOutcome::NoTokens),
                Some(record) if revoke_all(keeper, &record).await => Ok(LogoutOutcome::Revoked),
                Some(_) => Ok(LogoutOutcome::Forgotten),
            }
        });
        leaving.await.unwrap_or(Err(LoginError::Stopping))
    }
}
