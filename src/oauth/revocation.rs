//! The revocation of the tokens of a login. Source: RFC 7009.

use super::{login_record::LoginRecord, token_keeper::TokenKeeper, token_request::revoke};
use crate::error_report::chain;

/// Revokes the tokens of a login. Returns whether the authorization server has revoked them; a failure
/// is logged.
pub(super) async fn revoke_all(keeper: &TokenKeeper, record: &LoginRecord) -> bool {
    let Some(endpoint) = &record.basis.revocation_endpoint else { return false };
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
        Ok(()) => true,
        Err(error) => {
            let (server, reason) = (&keeper.server, chain(&error));
            tracing::warn!(mcp_server = %server, reason, "the tokens of server `{server}` are forgotten, but not revoked: {reason}");
            false
        }
    }
}
