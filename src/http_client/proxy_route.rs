//! The route to an origin: directly, or through a tunnel that an HTTP proxy opens.
//!
//! A tunnel is used for `http` origins as well, so the proxy sees no request. Proxies that open
//! tunnels only to port 443 refuse those. An origin on loopback is this host: it never goes through
//! a proxy of the environment or of `[service]`, which would reach itself.

use std::{fmt, future::pending};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::{
    Request, StatusCode, Uri,
    client::conn::http1,
    header::{HOST, HeaderValue, PROXY_AUTHORIZATION},
    upgrade,
};
use hyper_util::{client::proxy::matcher::Matcher, rt::TokioIo};
use tokio::net::TcpStream;

use super::Origin;
use crate::{
    config::{ProxyConfig, defaults},
    error_report::chain,
};

/// The choice between direct connections and a proxy.
#[derive(Debug)]
pub(super) struct ProxyRoute {
    matcher: Option<Matcher>,
    /// `true` if the environment names the proxy, so that loopback is not meant.
    is_of_environment: bool,
}

/// An HTTP proxy, and the login at it.
pub(super) struct ProxyHop {
    /// Its URL without the login.
    pub(super) url: Uri,
    login: Option<HeaderValue>,
}

/// The reason why a proxy opened no tunnel. Never holds the login.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyRefusal {
    /// The proxy has another scheme than `http`.
    #[error("is not an http proxy")]
    Unsupported,
    /// The proxy requires another login.
    #[error("requires a login (HTTP 407)")]
    Login,
    /// The proxy does not allow the connection.
    #[error("refuses to connect to it (HTTP 403)")]
    Forbidden,
    /// The proxy does not reach the origin.
    #[error("cannot reach it (HTTP {0})")]
    Unreachable(StatusCode),
    /// The proxy answered with another status.
    #[error("opens no tunnel to it (HTTP {0})")]
    Status(StatusCode),
    /// The connection to the proxy broke.
    #[error("gave no usable answer: {0}")]
    BrokenOff(String),
}

impl ProxyRoute {
    /// Returns the route of the configuration. Reads the environment if that names the proxy.
    pub(super) fn new(proxy: &ProxyConfig) -> Self {
        let matcher = match proxy {
            ProxyConfig::None => None,
            ProxyConfig::Environment => Some(Matcher::from_env()),
            ProxyConfig::Http(url) => Some(Matcher::builder().all(url.to_string()).build()),
        };
        Self { matcher, is_of_environment: *proxy == ProxyConfig::Environment }
    }

    /// Returns the proxy for an origin; `None` for a direct connection.
    pub(super) fn hop(&self, origin: &Origin) -> Option<ProxyHop> {
        if self.is_of_environment && origin.is_loopback() {
            return None;
        }
        let url = origin.url(&Uri::from_static("/"))?;
        let found = self.matcher.as_ref()?.intercept(&url)?;
        Some(ProxyHop { url: found.uri().clone(), login: found.basic_auth().cloned() })
    }
}

impl ProxyHop {
    /// Has the proxy open a tunnel to `target` on a connection to it.
    pub(super) async fn tunnel(
        &self,
        stream: TokioIo<TcpStream>,
        target: &Origin,
    ) -> Result<TokioIo<TcpStream>, ProxyRefusal> {
        let broken = |error: hyper::Error| ProxyRefusal::BrokenOff(chain(&error));
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(defaults::HTTP_BUFFER_BYTES_MAX)
            .handshake(stream)
            .await
            .map_err(broken)?;
        let request = self.request(target).ok_or(ProxyRefusal::Unsupported)?;
        let asking = async {
            let answer = sender.send_request(request).await.map_err(broken)?;
            match answer.status() {
                status if status.is_success() => upgrade::on(answer).await.map_err(broken),
                status => Err(ProxyRefusal::of(status)),
            }
        };
        let driving = async {
            let _outcome_is_in_the_answer = connection.with_upgrades().await;
            pending::<()>().await;
        };
        let upgraded = tokio::select! {
            biased;
            upgraded = asking => upgraded?,
            () = driving => return Err(ProxyRefusal::BrokenOff("it hung up".to_owned())),
        };
        let early = || ProxyRefusal::BrokenOff("it sent data before any request".to_owned());
        let parts = upgraded.downcast::<TokioIo<TcpStream>>().map_err(|_| early())?;
        if parts.read_buf.is_empty() { Ok(parts.io) } else { Err(early()) }
    }

    fn request(&self, target: &Origin) -> Option<Request<Empty<Bytes>>> {
        let address = target.host_and_port();
        let host = HeaderValue::try_from(&address).ok()?;
        let mut request = Request::connect(address).body(Empty::new()).ok()?;
        request.headers_mut().insert(HOST, host);
        if let Some(login) = &self.login {
            request.headers_mut().insert(PROXY_AUTHORIZATION, login.clone());
        }
        Some(request)
    }
}

impl fmt::Debug for ProxyHop {
    /// Prints no login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyHop").field("origin", &Origin::of(&self.url)).finish_non_exhaustive()
    }
}

impl ProxyRefusal {
    fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => Self::Login,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::INTERNAL_SERVER_ERROR => Self::Unreachable(status),
            _ => Self::Status(status),
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unsupported => "Set `proxy` to the URL of an HTTP proxy: `http://HOST:PORT`.",
            Self::Login => {
                "Write user and password into the URL: `http://USER:PASSWORD@HOST:PORT`."
            }
            Self::Forbidden | Self::Status(_) => {
                "Let the proxy allow `CONNECT` to this host and port, or set `proxy = \"none\"`."
            }
            Self::Unreachable(_) => "Check the URL of the server: the proxy cannot reach it.",
            Self::BrokenOff(_) => "Check that `proxy` is the address of an HTTP proxy.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Origin {
        Origin::of(&url.parse().expect("a URL")).expect("an origin")
    }

    #[test]
    fn the_login_at_a_proxy_is_sent_and_never_shown() {
        let url = "http://ada:hunt%65r2@proxy:3128".parse().expect("a URL");
        let route = ProxyRoute::new(&ProxyConfig::Http(url));
        let hop = route.hop(&origin("https://mcp.example/")).expect("a proxy");
        assert_eq!(hop.url, "http://proxy:3128/");
        assert_eq!(hop.login.as_ref().expect("a login"), "Basic YWRhOmh1bnRlcjI=");
        let shown = format!("{route:?} {hop:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("YWRh"), "{shown}");
    }

    #[test]
    fn a_tunnel_leads_to_host_and_port() {
        let hop = ProxyHop { url: Uri::from_static("http://proxy/"), login: None };
        for (url, expected) in [
            ("https://mcp.example/mcp", "mcp.example:443"),
            ("http://mcp.example/", "mcp.example:80"),
            ("https://[2001:db8::1]:8443/", "[2001:db8::1]:8443"),
        ] {
            let request = hop.request(&origin(url)).expect("a request");
            assert_eq!(request.uri(), expected);
            assert_eq!(request.headers()[HOST], expected);
        }
    }
}
