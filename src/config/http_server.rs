//! The settings of a server over HTTP: the keys of a `[servers.NAME]` table with `url`.

use std::collections::BTreeMap;

use hyper::{Uri, header::HeaderName, http::uri::Scheme};
use toml::Spanned;

use super::{
    ClientTlsConfig, Config, OAuthConfig, ProxyConfig, SecretValue, ServerAuth, ServerConfig,
    TransportConfig, defaults,
    diagnostic::ConfigProblem,
    refusal::Refusal,
    url,
    variables::{self, VariableTable, is_header, is_private_header},
};

/// The settings of a server over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpServerConfig {
    /// The URL of the endpoint.
    pub url: Uri,
    /// Headers in addition to those of the protocol.
    pub headers: BTreeMap<String, SecretValue>,
    /// The headers of a client's request that are passed on to this server.
    pub forward_headers: Vec<HeaderName>,
    /// The login at the server.
    pub auth: ServerAuth,
    /// The trusted authorities, and the certificate of metamcp.
    pub tls: ClientTlsConfig,
    /// The proxy: its own, or that of `[service]`, so that a change of either reconnects the server.
    pub proxy: ProxyConfig,
}

impl HttpServerConfig {
    /// Returns the settings of the endpoint at `url`, with defaults for everything else.
    pub fn new(url: Uri) -> Self {
        Self {
            url,
            headers: BTreeMap::new(),
            forward_headers: Vec::new(),
            auth: ServerAuth::Auto,
            tls: ClientTlsConfig::default(),
            proxy: ProxyConfig::None,
        }
    }

    /// Returns the settings of its login with OAuth; `None` if it has no such login.
    pub fn oauth(&self) -> Option<OAuthConfig> {
        match &self.auth {
            _ if self.has_static_authorization() => None,
            ServerAuth::Auto => Some(OAuthConfig::default()),
            ServerAuth::OAuth(oauth) => Some(oauth.clone()),
            ServerAuth::None => None,
        }
    }

    /// Returns whether the operator sets `Authorization` for this server. No login starts then.
    pub fn has_static_authorization(&self) -> bool {
        self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    }
}

impl ServerConfig {
    /// Returns the headers of a client's request that are passed on to this server.
    pub fn forward_headers(&self) -> &[HeaderName] {
        match &self.transport {
            TransportConfig::Http(http) => &http.forward_headers,
            TransportConfig::Stdio { .. } | TransportConfig::Unit { .. } => &[],
        }
    }
}

impl Config {
    /// Returns the headers of a client's request that some server gets, each once. The servers that
    /// may be added count too.
    pub fn forward_headers(&self) -> Vec<HeaderName> {
        let addable = self.provision.servers.values().map(|added| &added.server);
        let mut names: Vec<HeaderName> = Vec::new();
        for name in self.servers.values().chain(addable).flat_map(|server| server.forward_headers())
        {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

/// [`HttpServerConfig`] as written in the file.
pub(super) struct HttpServerTable {
    pub(super) url: Spanned<String>,
    pub(super) headers: Option<VariableTable>,
    pub(super) forward_headers: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) auth: Option<Spanned<ServerAuth>>,
    pub(super) tls: Option<Spanned<ClientTlsConfig>>,
    pub(super) proxy: Option<ProxyConfig>,
}

/// The help that shows how to write the URL of a server.
const EXAMPLE: &str = "write it as `https://HOST/PATH` or `http://HOST:PORT/PATH`";

impl HttpServerTable {
    /// Checks the keys. A server without its own proxy has that of the service, except on loopback.
    pub(super) fn checked(
        self,
        service_proxy: &ProxyConfig,
    ) -> Result<HttpServerConfig, ConfigProblem> {
        let refused = |refusal| ConfigProblem::refused(self.url.span(), refusal);
        let url = url::parse_http(self.url.get_ref(), EXAMPLE).map_err(refused)?;
        let headers = variables::of_headers(self.headers)?;
        let forward_headers = forwarded(self.forward_headers, &headers)?;
        if let Some(tls) = &self.tls
            && url.scheme() != Some(&Scheme::HTTPS)
        {
            return Err(ConfigProblem::at(tls.span(), "`tls` has no effect on an http URL")
                .help("remove it, or write the https URL"));
        }
        let proxy = self.proxy.unwrap_or_else(|| service_proxy.inherited(&url));
        let auth_span = self.auth.as_ref().map(Spanned::span);
        let http = HttpServerConfig {
            url,
            headers,
            forward_headers,
            auth: self.auth.map(Spanned::into_inner).unwrap_or_default(),
            tls: self.tls.map(Spanned::into_inner).unwrap_or_default(),
            proxy,
        };
        match (&http.auth, auth_span) {
            (ServerAuth::OAuth(_), Some(span)) if http.has_static_authorization() => {
                Err(ConfigProblem::at(span, "both `auth` and a header `Authorization`")
                    .help("remove one of the two: each is a login"))
            }
            _ => Ok(http),
        }
    }
}

/// Checks the names of headers that a client's request may pass on to a server. `headers` are those
/// that the operator sets.
fn forwarded(
    names: Option<Spanned<Vec<Spanned<String>>>>,
    headers: &BTreeMap<String, SecretValue>,
) -> Result<Vec<HeaderName>, ConfigProblem> {
    let Some(names) = names else { return Ok(Vec::new()) };
    let (count, most) = (names.get_ref().len(), defaults::FORWARDED_HEADERS_MAX);
    if count > most {
        return Err(ConfigProblem::too_many(names.span(), count, "forwarded headers", most));
    }
    let mut forwarded: Vec<HeaderName> = Vec::new();
    for name in names.into_inner() {
        let shown = name.get_ref().escape_debug().to_string();
        let refused = |message: String, help: &str| {
            ConfigProblem::refused(name.span(), Refusal::new(message, help))
        };
        let header = match name.get_ref().parse::<HeaderName>() {
            Ok(header) if is_private_header(&header) => {
                let help = "remove it: metamcp never passes on credentials of clients, or headers of one hop";
                return Err(refused(format!("`{shown}` is never forwarded"), help));
            }
            Ok(header) if is_header(header.as_str()) => header,
            Ok(_) | Err(_) => {
                let help = "write a valid name; metamcp sets the headers of the protocol itself";
                return Err(refused(
                    format!("`{shown}` is not the name of a header to forward"),
                    help,
                ));
            }
        };
        if headers.keys().any(|name| header.as_str().eq_ignore_ascii_case(name)) {
            let help = "remove one of the two: a client could replace the value of `headers`";
            return Err(refused(format!("`{shown}` is also in `headers`"), help));
        }
        if !forwarded.contains(&header) {
            forwarded.push(header);
        }
    }
    Ok(forwarded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        Config, TransportConfig,
        load::tests::{bad, good},
    };

    fn http(config: &Config) -> HttpServerConfig {
        match &config.servers["a"].transport {
            TransportConfig::Http(http) => http.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_key_of_an_endpoint_is_read() {
        let read = http(&good(
            r#"
            [servers.a]
            url = "https://host/mcp"
            headers = { X-Team = "shop" }
            forward_headers = ["X-Project", "x-project", "baggage"]
            auth = { scopes = ["read"] }
            tls = { ca = "/etc/ca.pem" }
            proxy = "environment"
            "#,
        ));
        assert_eq!(read.url, "https://host/mcp");
        let names: Vec<&str> = read.forward_headers.iter().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-project", "baggage"]);
        assert!(matches!(&read.auth, ServerAuth::OAuth(oauth) if oauth.scopes == ["read"]));
        assert!(read.tls.ca.is_some());
        assert_eq!(read.proxy, ProxyConfig::Environment);

        let url = "https://host/mcp".parse().expect("a URL");
        let plain = http(&good("[servers.a]\nurl = \"https://host/mcp\"\n"));
        let expected = HttpServerConfig { proxy: ProxyConfig::None, ..HttpServerConfig::new(url) };
        assert_eq!(plain, expected);
    }

    #[test]
    fn a_changed_proxy_of_the_service_changes_the_servers_that_use_it() {
        let with = |proxy: &str| {
            good(&format!(
                "[service]\nproxy = {proxy:?}\n[servers.a]\nurl = \"https://h/\"\n\
                 [servers.b]\nurl = \"https://h/\"\nproxy = \"none\"\n[servers.c]\ncommand = \"x\"\n\
                 [servers.d]\nurl = \"http://localhost:1/\"\n"
            ))
        };
        let (before, after) = (with("none"), with("http://proxy:3128"));
        assert_ne!(before.servers["a"], after.servers["a"]);
        assert_eq!(before.servers["b"], after.servers["b"]);
        assert_eq!(before.servers["c"], after.servers["c"]);
        assert_eq!(before.servers["d"], after.servers["d"], "this host needs no proxy");
    }

    #[test]
    fn only_harmless_headers_of_clients_are_forwarded() {
        let refused = |names: &str, more: &str| {
            bad(&format!("[servers.a]\nurl = \"https://h/\"\n{more}forward_headers = {names}\n"))
        };
        insta::assert_snapshot!(refused("[\"X-A\", \"Authorization\"]", ""), @r#"
        `Authorization` is never forwarded
         --> c.toml:3:27
          |
        3 | forward_headers = ["X-A", "Authorization"]
          |                           ^^^^^^^^^^^^^^^
          = help: remove it: metamcp never passes on credentials of clients, or headers of one hop
        "#);
        insta::assert_snapshot!(refused("[\"Mcp-Session-Id\"]", ""), @r#"
        `Mcp-Session-Id` is not the name of a header to forward
         --> c.toml:3:20
          |
        3 | forward_headers = ["Mcp-Session-Id"]
          |                    ^^^^^^^^^^^^^^^^
          = help: write a valid name; metamcp sets the headers of the protocol itself
        "#);
        insta::assert_snapshot!(refused("[\"X-Team\"]", "headers = { x-team = \"shop\" }\n"), @r#"
        `X-Team` is also in `headers`
         --> c.toml:4:20
          |
        4 | forward_headers = ["X-Team"]
          |                    ^^^^^^^^
          = help: remove one of the two: a client could replace the value of `headers`
        "#);
        let many: Vec<String> =
            (0..=defaults::FORWARDED_HEADERS_MAX).map(|n| format!("X-{n}")).collect();
        assert!(refused(&format!("{many:?}"), "").contains("17 forwarded headers"));
        for never in ["Cookie", "connection", "TE", "Proxy-Authorization", "Host", "a b", ""] {
            let shown = refused(&format!("[{never:?}]"), "");
            assert!(shown.contains("c.toml:3:20") && shown.contains("= help: "), "{shown}");
        }
    }

    #[test]
    fn settings_that_contradict_the_url_are_refused() {
        insta::assert_snapshot!(bad("[servers.a]\nurl = \"http://h/\"\ntls = { ca = \"/ca.pem\" }\n"), @r#"
        `tls` has no effect on an http URL
         --> c.toml:3:7
          |
        3 | tls = { ca = "/ca.pem" }
          |       ^^^^^^^^^^^^^^^^^^
          = help: remove it, or write the https URL
        "#);
        insta::assert_snapshot!(
            bad("[servers.a]\nurl = \"https://h/\"\nheaders.Authorization = \"env:T\"\nauth = { scopes = [\"a\"] }\n"),
            @r#"
            both `auth` and a header `Authorization`
             --> c.toml:4:8
              |
            4 | auth = { scopes = ["a"] }
              |        ^^^^^^^^^^^^^^^^^^
              = help: remove one of the two: each is a login
            "#
        );
        let text = "[servers.a]\nurl = \"https://h/\"\nheaders.authorization = \"env:T\"\nauth = \"none\"\n";
        assert!(http(&good(text)).has_static_authorization());
    }
}
