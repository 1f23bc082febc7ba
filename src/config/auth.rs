//! Logins at servers as a whole: `[auth]`.

use hyper::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{refusal::Refusal, url};

/// The logins at servers that require one. A login is the whole host's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// If `true`, clients are shown the address at which they can log in. If `false`, only operators
    /// can, with `metamcp login`.
    pub by_clients: bool,
    /// The address that the browser returns to after a login. Without it,
    /// `http://127.0.0.1:PORT/oauth/callback` with the port of `listen.http`.
    #[serde(deserialize_with = "redirect_url")]
    #[schemars(
        with = "String",
        title = "URL that ends with /oauth/callback",
        regex(pattern = "^https?://[^/?#]+/oauth/callback$")
    )]
    pub redirect_url: Option<Uri>,
}

/// The path of the callback of logins.
pub const CALLBACK_PATH: &str = "/oauth/callback";

/// The help that shows how to write the redirect address.
const EXAMPLE: &str = "write it as `https://HOST/oauth/callback`";

fn redirect_url<'de, D: Deserializer<'de>>(found: D) -> Result<Option<Uri>, D::Error> {
    let text = String::deserialize(found)?;
    let url = url::parse_http(&text, EXAMPLE).map_err(D::Error::custom)?;
    let refused = |why: &str| {
        let message = format!("`{}` {why}", url::without_secrets(&text));
        Err(D::Error::custom(Refusal::new(message, EXAMPLE)))
    };
    if url.path() != CALLBACK_PATH || url.query().is_some() {
        return refused(&format!("does not end with `{CALLBACK_PATH}`"));
    }
    // Source: OAuth 2.1, section 2.3.1. The address carries the code of the login.
    match url.scheme_str() == Some("https") || url::is_loopback(&url) {
        true => Ok(Some(url)),
        false => refused("is neither https nor on loopback"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::{bad, good};

    #[test]
    fn clients_log_in_only_if_the_operator_allows_it() {
        assert_eq!(good("").auth, AuthConfig::default());
        let read = good(
            "[auth]\nby_clients = true\nredirect_url = \"https://me.example/oauth/callback\"\n",
        );
        assert!(read.auth.by_clients);
        assert_eq!(read.auth.redirect_url.expect("a URL"), "https://me.example/oauth/callback");
    }

    #[test]
    fn a_redirect_address_is_https_or_on_loopback_and_leads_to_the_callback() {
        for url in
            ["http://localhost:8080", "http://127.0.0.1:12011", "http://[::1]:1", "https://h"]
        {
            good(&format!("[auth]\nredirect_url = \"{url}/oauth/callback\"\n"));
        }
        let refused = |url: &str| bad(&format!("[auth]\nredirect_url = {url:?}\n"));
        insta::assert_snapshot!(refused("https://h/callback"), @r#"
        `https://h/callback` does not end with `/oauth/callback`
         --> c.toml:2:16
          |
        2 | redirect_url = "https://h/callback"
          |                ^^^^^^^^^^^^^^^^^^^^
          = help: write it as `https://HOST/oauth/callback`
        "#);
        insta::assert_snapshot!(refused("http://h/oauth/callback"), @r#"
        `http://h/oauth/callback` is neither https nor on loopback
         --> c.toml:2:16
          |
        2 | redirect_url = "http://h/oauth/callback"
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: write it as `https://HOST/oauth/callback`
        "#);
        assert!(refused("https://h/oauth/callback?a=hunter2").contains("= help: "));
        assert!(!refused("https://h/oauth/callback?a=hunter2").contains("hunter2"));
    }
}
