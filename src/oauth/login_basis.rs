//! The part of a login that a refresh does not change.

use serde::{Deserialize, Serialize};

use super::{
    registration::OAuthClient,
    scope_selection::ScopeSet,
    token_request::{TokenGrant, TokenRequest},
};

/// The part of a login that a refresh does not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LoginBasis {
    pub(super) server: String,
    /// The declared URL of the server, without its query and login.
    pub(super) url: String,
    pub(super) issuer: String,
    /// The server as its authorization server knows it.
    pub(super) resource: String,
    pub(super) sends_resource: bool,
    pub(super) client: OAuthClient,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) redirect_url: String,
    pub(super) is_client_credentials: bool,
    /// The requested scopes.
    pub(super) requested: ScopeSet,
}

impl LoginBasis {
    /// Returns a request for tokens.
    pub(super) fn request<'a>(&'a self, grant: TokenGrant<'a>) -> TokenRequest<'a> {
        TokenRequest {
            endpoint: &self.token_endpoint,
            issuer: &self.issuer,
            client: &self.client,
            resource: self.sends_resource.then_some(self.resource.as_str()),
            grant,
        }
    }
}
