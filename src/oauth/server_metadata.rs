//! The metadata of an authorization server. Source: RFC 8414, and OpenID Connect Discovery 1.0.

use hyper::Uri;
use serde::Deserialize;

use super::{LoginError, endpoint_client::quote, pkce, scope_selection::ScopeSet};
use crate::http_client::Origin;

/// The well-known path of RFC 8414.
const OAUTH: &str = "/.well-known/oauth-authorization-server";

/// The well-known path of OpenID Connect.
const OPENID: &str = "/.well-known/openid-configuration";

/// The metadata of an authorization server, as far as metamcp uses it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ServerMetadata {
    /// The identifier of the authorization server.
    #[serde(default)]
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) registration_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(super) client_id_metadata_document_supported: Option<bool>,
    pub(super) authorization_response_iss_parameter_supported: Option<bool>,
    /// The server has no metadata, and the endpoints are those of the specification of 2025-03-26.
    #[serde(skip)]
    pub(super) is_assumed: bool,
}

impl ServerMetadata {
    /// Returns the endpoints that a server of 2025-03-26 has without metadata.
    pub(super) fn assumed(origin: &str) -> Self {
        let endpoint = |name: &str| Some(format!("{origin}/{name}"));
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: endpoint("authorize"),
            token_endpoint: endpoint("token"),
            registration_endpoint: endpoint("register"),
            code_challenge_methods_supported: Some(vec![pkce::CHALLENGE_METHOD.to_owned()]),
            is_assumed: true,
            ..Self::default()
        }
    }

    /// Returns whether the document has any member of such metadata. Some servers answer every
    /// request with 200.
    pub(super) fn is_usable(&self) -> bool {
        !self.issuer.is_empty() || self.token_endpoint.is_some()
    }

    /// Checks that this is the metadata of `issuer`. Source: RFC 8414, section 3.3.
    pub(super) fn check_issuer(&self, issuer: &str) -> Result<(), LoginError> {
        match is_same_issuer(&self.issuer, issuer) {
            true => Ok(()),
            false => Err(LoginError::IssuerMismatch {
                expected: quote(issuer).into(),
                found: quote(&self.issuer).into(),
            }),
        }
    }

    /// Checks that the authorization server supports PKCE. Source: the MCP specification,
    /// "Authorization Code Protection": without the member, a client must not proceed.
    pub(super) fn check_pkce(&self) -> Result<(), LoginError> {
        let methods = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        match methods.iter().any(|method| method == pkce::CHALLENGE_METHOD) {
            true => Ok(()),
            false => Err(LoginError::NoPkce { issuer: quote(&self.issuer).into() }),
        }
    }

    /// Returns an endpoint that a login cannot do without.
    pub(super) fn endpoint(&self, name: &'static str) -> Result<&str, LoginError> {
        let found = match name {
            "authorization_endpoint" => &self.authorization_endpoint,
            "registration_endpoint" => &self.registration_endpoint,
            _ => &self.token_endpoint,
        };
        let missing =
            || LoginError::NoEndpoint { issuer: self.issuer.as_str().into(), endpoint: name };
        found.as_deref().ok_or_else(missing)
    }

    /// Returns `scopes_supported`.
    pub(super) fn scopes(&self) -> Option<ScopeSet> {
        Some(self.scopes_supported.as_ref()?.iter().cloned().collect())
    }

    /// Returns whether the token endpoint accepts an authentication method; `None` if unknown.
    pub(super) fn accepts(&self, method: &str) -> Option<bool> {
        let methods = self.token_endpoint_auth_methods_supported.as_ref()?;
        Some(methods.iter().any(|found| found == method))
    }
}

/// Returns whether two identifiers are identical. An origin with a slash and without one is the same:
/// both lead to the same URL of metadata.
fn is_same_issuer(found: &str, expected: &str) -> bool {
    let is_root = |text: &str| text.parse::<Uri>().is_ok_and(|url| url.path() == "/");
    let trimmed = |text: &str| text.strip_suffix('/').map(str::to_owned).unwrap_or(text.to_owned());
    found == expected || (is_root(expected) && trimmed(found) == trimmed(expected))
}

/// Returns the well-known URLs of the metadata of an issuer, in the order of their precedence.
pub(super) fn well_known_urls(issuer: &str) -> Result<Vec<String>, LoginError> {
    let url: Option<Uri> = issuer.parse().ok().filter(|_| !issuer.contains(['?', '#']));
    let origin = url.as_ref().and_then(Origin::of);
    let (Some(url), Some(origin)) = (url, origin) else {
        return Err(LoginError::InsecureUrl { url: super::endpoint_client::quote(issuer).into() });
    };
    let path = url.path().trim_end_matches('/');
    let mut urls = vec![format!("{origin}{OAUTH}{path}"), format!("{origin}{OPENID}{path}")];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}{OPENID}"));
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_an_issuer_has_an_order_of_urls() {
        assert_eq!(
            well_known_urls("https://auth.example.com/tenant1").expect("a URL"),
            [
                "https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example.com/.well-known/openid-configuration/tenant1",
                "https://auth.example.com/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            well_known_urls("https://auth.example.com:8443").expect("a URL"),
            [
                "https://auth.example.com:8443/.well-known/oauth-authorization-server",
                "https://auth.example.com:8443/.well-known/openid-configuration",
            ]
        );
        for wrong in ["", "auth.example.com", "https://a/?x", "https://a/#x", "urn:a"] {
            well_known_urls(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn an_issuer_is_compared_without_normalization_except_for_the_slash_of_an_origin() {
        assert!(is_same_issuer("https://a", "https://a"));
        assert!(is_same_issuer("https://a/", "https://a"));
        assert!(is_same_issuer("https://a", "https://a/"));
        for (found, expected) in [
            ("https://A", "https://a"),
            ("https://a:443", "https://a"),
            ("https://a/t/", "https://a/t"),
            ("https://a/t", "https://a/t/"),
            ("https://a//", "https://a"),
            ("https://evil", "https://a"),
            ("", "https://a"),
        ] {
            assert!(!is_same_issuer(found, expected), "{found} {expected}");
        }
    }

    #[test]
    fn an_authorization_server_without_pkce_is_refused() {
        let with = |methods: Option<&[&str]>| ServerMetadata {
            code_challenge_methods_supported: methods
                .map(|methods| methods.iter().map(|method| (*method).to_owned()).collect()),
            ..ServerMetadata::default()
        };
        for methods in [None, Some(&[] as &[&str]), Some(&["plain"])] {
            assert_eq!(with(methods).check_pkce().expect_err("refused").code(), "NO_PKCE");
        }
        with(Some(&["plain", "S256"])).check_pkce().expect("supported");
        ServerMetadata::assumed("https://h").check_pkce().expect("2025-03-26 requires it");
    }
}
