//! The metadata of a protected resource. Source: RFC 9728.

use hyper::Uri;
use serde::Deserialize;

use crate::http_client::Origin;

/// The well-known path of the metadata.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of a protected resource, as far as metamcp uses it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ResourceMetadata {
    /// The identifier of the resource.
    pub(super) resource: Option<String>,
    /// The issuers of tokens for the resource.
    pub(super) authorization_servers: Option<Vec<String>>,
    /// The scopes that suffice for basic use.
    pub(super) scopes_supported: Option<Vec<String>>,
}

impl ResourceMetadata {
    /// Returns whether the document has any member of such metadata. Some servers answer every
    /// request with 200.
    pub(super) fn is_usable(&self) -> bool {
        self.resource.is_some() || self.authorization_servers.is_some()
    }
}

/// Returns the well-known URLs of the metadata of a server, in the order of their precedence.
pub(super) fn well_known_urls(declared: &Uri) -> Vec<String> {
    let Some(origin) = Origin::of(declared) else { return Vec::new() };
    let path = declared.path().trim_end_matches('/');
    let mut urls = vec![format!("{origin}{WELL_KNOWN}{path}"), format!("{origin}{WELL_KNOWN}")];
    urls.dedup();
    urls
}

/// Returns the canonical URI of a server: without login, query and fragment, and without a lone
/// slash. Source: the MCP specification, "Canonical Server URI".
pub(super) fn canonical_uri(declared: &Uri) -> String {
    let origin = Origin::of(declared).map(|origin| origin.to_string()).unwrap_or_default();
    match declared.path() {
        "/" => origin,
        path => format!("{origin}{path}"),
    }
}

/// Returns whether `resource` identifies the server at `declared`: the same origin, and a path that
/// leads to it.
pub(super) fn is_resource_of(resource: &str, declared: &Uri) -> bool {
    let Some(parsed) = resource.parse::<Uri>().ok().filter(|_| !resource.contains('#')) else {
        return false;
    };
    let has_login = parsed.authority().is_some_and(|found| found.as_str().contains('@'));
    let (above, path) = (parsed.path().trim_end_matches('/'), declared.path());
    let below = path.strip_prefix(above);
    !has_login
        && Origin::of(&parsed).is_some_and(|origin| Some(origin) == Origin::of(declared))
        && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_is_looked_for_at_the_path_and_then_at_the_root() {
        let urls = |text: &'static str| well_known_urls(&Uri::from_static(text));
        assert_eq!(
            urls("https://u:p@Example.com:443/public/mcp/?key=x"),
            [
                "https://example.com/.well-known/oauth-protected-resource/public/mcp",
                "https://example.com/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(urls("http://h:1/"), ["http://h:1/.well-known/oauth-protected-resource"]);
    }

    #[test]
    fn a_canonical_uri_has_no_secret_and_no_lone_slash() {
        for (url, expected) in [
            ("https://H/mcp?key=hunter2", "https://h/mcp"),
            ("https://u:p@h:8443/", "https://h:8443"),
            ("https://h", "https://h"),
            ("https://h/mcp/", "https://h/mcp/"),
        ] {
            assert_eq!(canonical_uri(&Uri::from_static(url)), expected);
        }
    }

    #[test]
    fn a_resource_of_another_origin_or_path_is_refused() {
        let declared = Uri::from_static("https://h.example/team/mcp");
        for resource in [
            "https://h.example/team/mcp",
            "https://H.example:443/team",
            "https://h.example/team/",
            "https://h.example",
            "https://h.example/",
        ] {
            assert!(is_resource_of(resource, &declared), "{resource}");
        }
        for resource in [
            "https://evil.example/team/mcp",
            "http://h.example/team/mcp",
            "https://h.example:444/team/mcp",
            "https://h.example/te",
            "https://h.example/team/mcp/more",
            "https://h.example/team/mcp#fragment",
            "https://u@h.example/team/mcp",
            "h.example/team/mcp",
            "urn:mcp",
            "",
        ] {
            assert!(!is_resource_of(resource, &declared), "{resource}");
        }
    }
}
