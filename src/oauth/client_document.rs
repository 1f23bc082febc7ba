//! The document that describes metamcp to authorization servers. Source: the draft "OAuth Client ID
//! Metadata Document".

use hyper::Uri;
use serde_json::{Value, json};

use crate::http_client::Origin;

/// Returns the Client ID Metadata Document that an operator serves at `url`, for logins that end at
/// `redirect_url`. Without `url`, it has no id: it shows what to register by hand. For an address on
/// loopback, it lists the same address without a port as well: servers that follow RFC 8252 ignore
/// the port, and others compare it exactly.
pub fn client_document(url: Option<&Uri>, redirect_url: &str) -> Value {
    let mut redirects = vec![redirect_url.to_owned()];
    if let Ok(redirect_url) = redirect_url.parse::<Uri>()
        && Origin::of(&redirect_url).is_some_and(|origin| origin.is_loopback())
        && let (Some(scheme), Some(host)) = (redirect_url.scheme_str(), redirect_url.host())
    {
        redirects.push(format!("{scheme}://{host}{}", redirect_url.path()));
        redirects.dedup();
    }
    let mut document = json!({
        "client_name": "metamcp",
        "redirect_uris": redirects,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    if let Some(url) = url {
        document["client_id"] = url.to_string().into();
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_itself_and_the_redirect_address() {
        let url = Uri::from_static("https://example.com/metamcp.json");
        let document = |redirect: &'static str| client_document(Some(&url), redirect);
        let local = document("http://127.0.0.1:12011/oauth/callback");
        assert_eq!(local["client_id"], "https://example.com/metamcp.json");
        assert_eq!(
            local["redirect_uris"],
            json!(["http://127.0.0.1:12011/oauth/callback", "http://127.0.0.1/oauth/callback"])
        );
        let remote = document("https://mcp.example.com/oauth/callback");
        assert_eq!(remote["redirect_uris"], json!(["https://mcp.example.com/oauth/callback"]));
    }
}
