//! The renewal of tokens, with its retries.
//!
//! ```text
//!  attempt ──▶ tokens: stored, then used
//!     ▲ ├────▶ passing failure: pause ──▶ attempt, until the time of the waiting requests is over
//!     └─┘
//!       └────▶ final refusal: a person must log in, or an operator must correct the credentials
//! ```

use std::{sync::Arc, time::SystemTime};

use hyper::header::HeaderValue;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::{
    AuthorizationFailure, LoginError, login_basis::LoginBasis, login_record::LoginRecord,
    machine_login, token_keeper::TokenKeeper, token_request_counts::GrantType,
};
use crate::telemetry::message_id::message_id;
use crate::{config::defaults, error_report::chain};

impl TokenKeeper {
    /// Gets the next tokens, and tries again for a while if the authorization server is down.
    pub(super) async fn renew(
        self: Arc<Self>,
        stopping: CancellationToken,
    ) -> Result<HeaderValue, AuthorizationFailure> {
        let give_up_at = Instant::now() + defaults::TOKEN_WAIT;
        loop {
            let (retry_at, why) = {
                let facts = self.facts();
                (facts.retry_at, facts.last_error.clone())
            };
            if let Some(at) = retry_at {
                if at > give_up_at {
                    return Err(self.unavailable(why.unwrap_or_default()));
                }
                let stopped = stopping.run_until_cancelled(time::sleep_until(at)).await;
                if stopped.is_none() {
                    return Err(self.unavailable(LoginError::Stopping.to_string().into()));
                }
            }
            let record = self.record();
            let error = match self.renew_once(record.as_ref()).await {
                Ok(()) => match self.current.load().as_ref() {
                    Some(current) => return Ok(current.header.clone()),
                    None => LoginError::Replaced(self.server.clone()),
                },
                Err(error) => error,
            };
            if !error.is_transient() {
                return self.give_up(record, error).await;
            }
            self.postpone(&error);
        }
    }

    async fn renew_once(
        self: &Arc<Self>,
        record: Option<&Arc<LoginRecord>>,
    ) -> Result<(), LoginError> {
        let settings = self.settings.load_full();
        let lacking = self.facts().lacking.is_some();
        let renewed = match record.filter(|_| !(lacking && settings.is_client_credentials())) {
            Some(record) => {
                let client = self.configured_client(None)?;
                match record.renew(&settings.endpoints()?, client.as_ref()).await {
                    Some(tokens) => {
                        self.requests.add(GrantType::RefreshToken, &tokens);
                        record.refreshed(tokens?, SystemTime::now())
                    }
                    None => return Err(LoginError::Replaced(self.server.clone())),
                }
            }
            None if settings.is_client_credentials() => machine_login::log_in(self).await?,
            None => return Err(LoginError::Replaced(self.server.clone())),
        };
        self.commit_in_background(record.cloned(), renewed).await
    }

    /// Plans the next attempt after one that failed for a passing reason.
    fn postpone(&self, error: &LoginError) {
        let (server, reason) = (&self.server, chain(error));
        let mut facts = self.facts();
        let pause = facts.backoff.pause(fastrand::f64());
        facts.retry_at = Some(Instant::now() + pause);
        facts.last_error = Some(reason.as_str().into());
        drop(facts);
        tracing::warn!(
            mcp_server = %server, reason,
            "no new token for server `{server}`, next attempt in {} s: {reason}", pause.as_secs()
        );
    }

    /// Ends the attempts after a final refusal. The current token is used until it expires.
    async fn give_up(
        self: &Arc<Self>,
        record: Option<Arc<LoginRecord>>,
        error: LoginError,
    ) -> Result<HeaderValue, AuthorizationFailure> {
        let code = match &error {
            LoginError::TokenRefused { error, .. } => Some(Arc::clone(error)),
            // Another login has taken the place of this one.
            LoginError::Replaced(_) => {
                let current = self.current.load();
                return match current.as_ref() {
                    Some(current) => Ok(current.header.clone()),
                    None => Err(self.login_required("it was logged out".into())),
                };
            }
            _ => None,
        };
        let reason: Arc<str> = chain(&error).into();
        if let Some(record) = record {
            let code = code.clone();
            let adopted =
                self.in_background(move |keeper| keeper.drop_refused(&record, code.as_deref()));
            if adopted.await.unwrap_or(false)
                && let Some(current) = self.current.load().as_ref()
            {
                return Ok(current.header.clone());
            }
        }
        {
            let mut facts = self.facts();
            facts.last_error = Some(Arc::clone(&reason));
            facts.needs_login = Some(Arc::clone(&reason));
            facts.is_renewal_refused = true;
            // Client credentials are tried again, since an operator may correct them meanwhile.
            facts.retry_at = Some(Instant::now() + defaults::TOKEN_REFUSED_PAUSE);
        }
        let (server, hint) = (&self.server, error.hint());
        tracing::warn!(mcp_server = %server, reason = %reason, hint, message_id = message_id("LOGIN_REQUIRED"), "server `{server}` needs a login: {reason}. {hint}");
        match self.settings.load().is_client_credentials() {
            true => Err(self.unavailable(reason)),
            false => Err(self.login_required(reason)),
        }
    }

    /// Drops what an authorization server has refused by the error `code`. Returns whether the file
    /// had another login, which is now the current one.
    fn drop_refused(&self, refused: &Arc<LoginRecord>, code: Option<&str>) -> bool {
        let stored = self.store.login(refused);
        let adopted = stored.filter(|stored| stored.refresh_token != refused.refresh_token);
        if code == Some("invalid_grant") {
            if let Some(adopted) = adopted.filter(|adopted| adopted.refresh_token.is_some()) {
                return self.commit(Some(refused), adopted).is_ok();
            }
            let without = refused.without_refresh_token();
            let _is_replaced = self.commit(Some(refused), without);
        }
        if code == Some("invalid_client") {
            let LoginBasis { issuer, redirect_url, .. } = &refused.basis;
            let _stays_until_the_next_login = self.store.remove_registration(issuer, redirect_url);
        }
        false
    }
}
