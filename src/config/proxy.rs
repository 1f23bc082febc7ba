//! The proxy between metamcp and servers: `service.proxy`, and `proxy` of a server.

use std::fmt;

use hyper::Uri;
use serde::{Deserialize, Deserializer};

use super::{refusal::Refusal, text_visitor::TextVisitor, url};

/// The proxy for requests that leave this host.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum ProxyConfig {
    /// No proxy.
    #[default]
    None,
    /// The proxy of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    Environment,
    /// The HTTP proxy at this URL. It may contain a login.
    Http(Uri),
}

/// The pattern of a proxy.
pub(super) const PATTERN: &str = "^(none|environment|http://.+)$";

/// [`PATTERN`] in words.
pub(super) const TITLE: &str = "none, environment, or URL that starts with http://";

/// The expected type in serde's messages about another value.
pub(super) const EXPECTED: &str = "a proxy";

/// The help that shows how to write a proxy.
pub(super) const EXAMPLE: &str =
    "write \"none\", \"environment\", or the URL of a proxy as in \"http://HOST:3128\"";

impl<'de> Deserialize<'de> for ProxyConfig {
    fn deserialize<D: Deserializer<'de>>(found: D) -> Result<Self, D::Error> {
        found.deserialize_str(TextVisitor { expected: EXPECTED, parse })
    }
}

fn parse(text: &str) -> Result<ProxyConfig, Refusal> {
    match text {
        "none" => return Ok(ProxyConfig::None),
        "environment" => return Ok(ProxyConfig::Environment),
        _ => {}
    }
    let url = url::parse_http(text, EXAMPLE)?;
    match url.scheme_str() {
        Some("http") => Ok(ProxyConfig::Http(url)),
        _ => {
            let message =
                format!("`{}` is not the URL of an HTTP proxy", url::without_secrets(text));
            Err(Refusal::new(message, EXAMPLE))
        }
    }
}

impl ProxyConfig {
    /// Returns the proxy of `[service]` as it applies to `url`: a proxy elsewhere would reach its own
    /// loopback interface.
    pub fn inherited(&self, url: &Uri) -> Self {
        match url::is_loopback(url) {
            true => Self::None,
            false => self.clone(),
        }
    }

    /// Returns whether the URL of the proxy contains a login.
    pub fn has_login(&self) -> bool {
        let authority = match self {
            Self::Http(url) => url.authority(),
            Self::None | Self::Environment => None,
        };
        authority.is_some_and(|authority| authority.as_str().contains('@'))
    }
}

impl fmt::Display for ProxyConfig {
    /// Prints the proxy as in the file, without its login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Environment => f.write_str("environment"),
            Self::Http(url) => f.write_str(&url::without_secrets(&url.to_string())),
        }
    }
}

impl fmt::Debug for ProxyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_of_the_service_is_not_for_this_host() {
        let service = ProxyConfig::Http("http://proxy:3128".parse().expect("a URL"));
        let at = |url: &str| service.inherited(&url.parse().expect("a URL"));
        assert_eq!(at("https://mcp.example/"), service);
        assert_eq!(at("http://localhost:3000/mcp"), ProxyConfig::None);
    }

    use crate::config::load::tests::{bad, good};

    #[test]
    fn a_proxy_is_a_word_or_an_http_url() {
        let of = |text: &str| good(&format!("[service]\nproxy = {text:?}\n")).service.proxy;
        assert_eq!(good("").service.proxy, ProxyConfig::None);
        assert_eq!(of("none"), ProxyConfig::None);
        assert_eq!(of("environment"), ProxyConfig::Environment);
        let shown = format!("{:?}", of("http://ada:hunter2@proxy:3128"));
        assert_eq!(shown, "http://***@proxy:3128/");
        insta::assert_snapshot!(bad("[service]\nproxy = \"https://ada:hunter2@proxy\"\n"), @r#"
        `https://***@proxy` is not the URL of an HTTP proxy
         --> c.toml:2:9
          |
        2 | proxy = "*************************"
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: write "none", "environment", or the URL of a proxy as in "http://HOST:3128"
        "#);
        insta::assert_snapshot!(bad("[servers.a]\nurl = \"https://h/\"\nproxy = \"proxy:3128\"\n"), @r#"
        `proxy:3128` has no scheme and host
         --> c.toml:3:9
          |
        3 | proxy = "proxy:3128"
          |         ^^^^^^^^^^^^
          = help: write "none", "environment", or the URL of a proxy as in "http://HOST:3128"
        "#);
        insta::assert_snapshot!(bad("[service]\nproxy = true\n"), @r#"
        invalid type: boolean `true`, expected a proxy
         --> c.toml:2:9
          |
        2 | proxy = true
          |         ^^^^
          = help: write "none", "environment", or the URL of a proxy as in "http://HOST:3128"
        "#);
    }
}
