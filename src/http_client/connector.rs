//! The connector: from an origin to a byte stream, in the steps resolve, connect, tunnel, TLS.
//!
//! IPv6 and IPv4 are raced: if the first family does not connect soon, the other one is tried too.

use std::{
    convert::Infallible,
    error::Error,
    future::{self, Ready},
    io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    task::{Context, Poll},
    vec,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use hyper::Uri;
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use tokio::net::{self, TcpStream};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, pki_types::ServerName},
};
use tower_service::Service;

use super::{
    AddressPolicy, DialError, DialStep, DialTrace, Origin, TlsFailure, TlsSummary,
    http_stream::HttpStream,
    proxy_route::{ProxyHop, ProxyRoute},
    tls_trust,
};
use crate::{
    config::{ClientTlsConfig, HttpServerConfig, ProxyConfig, defaults},
    error_report::chain,
};

/// The file with the name servers. Source: resolv.conf(5).
const NAME_SERVERS: &str = "/etc/resolv.conf";

/// The settings of the connections to one server, and to all that it names.
#[derive(Clone, Debug, Default)]
pub struct ConnectorSettings {
    /// The trusted authorities, and the certificate of metamcp.
    pub tls: ClientTlsConfig,
    /// The proxy.
    pub proxy: ProxyConfig,
    /// The policy for addresses.
    pub policy: AddressPolicy,
    /// The directory of credentials.
    pub credentials: Option<PathBuf>,
}

impl ConnectorSettings {
    /// Returns the settings for a declared server: its trust and its proxy. `credentials` is the
    /// directory of `credential:NAME`.
    pub fn of(
        server: &HttpServerConfig,
        policy: AddressPolicy,
        credentials: Option<&Path>,
    ) -> Self {
        Self {
            tls: server.tls.clone(),
            proxy: server.proxy.clone(),
            policy,
            credentials: credentials.map(Path::to_owned),
        }
    }
}

/// Connects to origins as its settings say.
#[derive(Debug)]
pub struct Connector {
    settings: ConnectorSettings,
    route: ArcSwap<ProxyRoute>,
    /// `None` until the first connection with TLS, unless the settings name certificates.
    tls: ArcSwapOption<ClientConfig>,
}

/// A byte stream to an origin, and the protocol to speak on it.
#[derive(Debug)]
pub(super) struct DialedStream {
    pub(super) stream: HttpStream,
    pub(super) is_http2: bool,
}

impl Connector {
    /// Returns a connector with these settings. The declared certificates are read now.
    ///
    /// # Errors
    ///
    /// [`DialError::Certificate`] or [`DialError::NoTrust`].
    pub fn new(settings: ConnectorSettings) -> Result<Arc<Self>, DialError> {
        let route = ArcSwap::from_pointee(ProxyRoute::new(&settings.proxy));
        let connector = Self { settings, route, tls: ArcSwapOption::empty() };
        connector.reload()?;
        Ok(Arc::new(connector))
    }

    /// Makes new connections over another proxy, or without one.
    pub fn route_over(&self, proxy: &ProxyConfig) {
        self.route.store(Arc::new(ProxyRoute::new(proxy)));
    }

    /// Reads the declared certificates again, for new connections. An error changes nothing.
    ///
    /// # Errors
    ///
    /// [`DialError::Certificate`] or [`DialError::NoTrust`].
    pub fn reload(&self) -> Result<(), DialError> {
        if self.settings.tls != ClientTlsConfig::default() {
            self.load_tls()?;
        }
        Ok(())
    }

    /// Returns the settings for TLS. The first call may read the certificates of the system.
    ///
    /// # Errors
    ///
    /// [`DialError::Certificate`] or [`DialError::NoTrust`].
    pub(super) fn tls(&self) -> Result<Arc<ClientConfig>, DialError> {
        self.tls.load_full().map_or_else(|| self.load_tls(), Ok)
    }

    fn load_tls(&self) -> Result<Arc<ClientConfig>, DialError> {
        let credentials = self.settings.credentials.as_deref();
        let config = Arc::new(tls_trust::client_config(&self.settings.tls, credentials)?);
        self.tls.store(Some(Arc::clone(&config)));
        Ok(config)
    }

    /// Connects to an origin. Cancel safe: the connection is closed.
    pub(super) async fn dial(&self, origin: &Origin) -> Result<DialedStream, DialError> {
        self.dial_in_steps(origin, &mut DialTrace::default()).await
    }

    /// Connects to an origin as for a request, and hangs up. Cancel safe: the connection is closed.
    pub async fn trace(&self, origin: &Origin) -> DialTrace {
        let mut trace = DialTrace::default();
        match self.dial_in_steps(origin, &mut trace).await {
            Ok(dialed) => trace.tls = dialed.stream.session().map(TlsSummary::of),
            Err(error) => trace.error = Some(error),
        }
        trace
    }

    async fn dial_in_steps(
        &self,
        origin: &Origin,
        trace: &mut DialTrace,
    ) -> Result<DialedStream, DialError> {
        let hop = self.route.load().hop(origin);
        let policy = self.policy_for(origin, hop.is_some()).await;
        let forbidden = |source| DialError::Forbidden { origin: origin.clone(), source };
        policy.check(origin).map_err(forbidden)?;
        let stream = match &hop {
            None => connect(origin, policy, trace).await?,
            Some(hop) => tunnel(hop, origin, trace).await?,
        };
        if origin.is_secure() {
            return self.encrypt(stream, origin, trace).await;
        }
        Ok(DialedStream { stream: HttpStream::Plain(stream), is_http2: false })
    }

    /// Returns the policy for one connection. A declared name is resolved for it, unless the proxy
    /// resolves names.
    async fn policy_for(&self, origin: &Origin, has_proxy: bool) -> AddressPolicy {
        let policy = &self.settings.policy;
        let Some(declared) = policy.unresolved(origin) else { return policy.clone() };
        let addresses: Vec<IpAddr> = match has_proxy {
            true => Vec::new(),
            false => {
                let found = lookup(declared.host());
                match DialTrace::default().step(origin, DialStep::Resolve, found).await {
                    Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
                    Ok(Err(_)) | Err(_) => Vec::new(),
                }
            }
        };
        policy.resolved(&addresses)
    }

    async fn encrypt(
        &self,
        stream: TokioIo<TcpStream>,
        origin: &Origin,
        trace: &mut DialTrace,
    ) -> Result<DialedStream, DialError> {
        let failed = |source| DialError::Tls { origin: origin.clone(), source };
        let name = ServerName::try_from(origin.host().to_owned())
            .map_err(|_| failed(TlsFailure::Other("its host is not a valid name".to_owned())))?;
        let connecting = TlsConnector::from(self.tls()?).connect(name, stream.into_inner());
        let stream = trace
            .step(origin, DialStep::Tls, connecting)
            .await?
            .map_err(|error| failed(TlsFailure::of_handshake(&error, origin.host())))?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(tls_trust::HTTP2);
        Ok(DialedStream { stream: HttpStream::tls(stream), is_http2 })
    }
}

/// Opens a TCP connection to a permitted address of an origin.
async fn connect(
    origin: &Origin,
    policy: AddressPolicy,
    trace: &mut DialTrace,
) -> Result<TokioIo<TcpStream>, DialError> {
    let url = origin.url(&Uri::from_static("/"));
    let addresses = match origin.address() {
        // The URL names it, and its check is done.
        Some(_) => Vec::new(),
        None => trace.step(origin, DialStep::Resolve, permitted(origin, &policy)).await??,
    };
    let mut connector = HttpConnector::new_with_resolver(KnownAddresses(addresses));
    connector.enforce_http(false);
    connector.set_nodelay(true);
    // TCP keepalive detects a peer that disappears without a word, even in the middle of a long
    // answer.
    connector.set_connect_timeout(Some(defaults::CONNECT_TIMEOUT));
    connector.set_keepalive(Some(defaults::UPSTREAM_TCP_PROBE_AFTER));
    connector.set_keepalive_interval(Some(defaults::UPSTREAM_TCP_PROBE_INTERVAL));
    connector.set_keepalive_retries(Some(defaults::UPSTREAM_TCP_PROBES));
    connector.set_tcp_user_timeout(Some(defaults::UPSTREAM_TCP_TIMEOUT));
    let connecting = connector.call(url.unwrap_or_default());
    let connected = trace.step(origin, DialStep::Connect, connecting).await?;
    connected.map_err(|error| connect_failure(origin, &error))
}

/// Opens a tunnel to an origin through a proxy.
async fn tunnel(
    hop: &ProxyHop,
    target: &Origin,
    trace: &mut DialTrace,
) -> Result<TokioIo<TcpStream>, DialError> {
    let refused = |why| DialError::Proxy {
        proxy: Origin::of(&hop.url).map(|proxy| proxy.to_string()).unwrap_or_default(),
        origin: target.clone(),
        why,
    };
    let proxy = Origin::of(&hop.url).filter(|proxy| !proxy.is_secure());
    let proxy = proxy.ok_or_else(|| refused(super::ProxyRefusal::Unsupported))?;
    let stream = connect(&proxy, AddressPolicy::declared(), trace).await.map_err(|source| {
        DialError::ProxyAbsent { origin: target.clone(), source: Box::new(source) }
    })?;
    let opening = Box::pin(hop.tunnel(stream, target));
    trace.step(target, DialStep::Tunnel, opening).await?.map_err(refused)
}

/// Returns the reason for an error of the TCP connector.
fn connect_failure(origin: &Origin, error: &(dyn Error + 'static)) -> DialError {
    let origin = origin.clone();
    let mut cause = Some(error);
    while let Some(found) = cause {
        if let Some(found) = found.downcast_ref::<io::Error>() {
            return match found.kind() {
                io::ErrorKind::ConnectionRefused => DialError::Refused { origin },
                io::ErrorKind::TimedOut => {
                    let (step, after) = (DialStep::Connect, defaults::CONNECT_TIMEOUT);
                    DialError::Timeout { origin, step, after }
                }
                _ => DialError::Network { origin, why: found.to_string() },
            };
        }
        cause = found.source();
    }
    DialError::Network { origin, why: chain(error) }
}

async fn lookup(host: &str) -> io::Result<vec::IntoIter<SocketAddr>> {
    Ok(net::lookup_host((host, 0)).await?.collect::<Vec<_>>().into_iter())
}

/// Returns the reason why a lookup failed. The C library does not say that a root directory, such as
/// that of a container, has no file with the name servers.
fn lookup_failure(error: &io::Error, name_servers: &Path) -> String {
    if name_servers.exists() {
        return error.to_string();
    }
    format!("{error}; there is no {}, which lists the name servers", name_servers.display())
}

/// Resolves the name of an origin, and leaves out addresses that the policy forbids.
async fn permitted(origin: &Origin, policy: &AddressPolicy) -> Result<Vec<SocketAddr>, DialError> {
    let host = origin.host();
    let unresolved = |why| DialError::Unresolved { host: host.to_owned(), why };
    let found = lookup(host)
        .await
        .map_err(|error| unresolved(lookup_failure(&error, Path::new(NAME_SERVERS))))?;
    let (mut allowed, mut refusal) = (Vec::new(), None);
    for address in found {
        match policy.check_address(origin, address.ip()) {
            Ok(()) => allowed.push(address),
            Err(refused) => refusal = Some(refused),
        }
    }
    match (allowed.is_empty(), refusal) {
        (true, Some(source)) => Err(DialError::Forbidden { origin: origin.clone(), source }),
        (true, None) => Err(unresolved("it has no address".to_owned())),
        (false, _) => Ok(allowed),
    }
}

/// The addresses of the only name that a connector asks for.
#[derive(Clone, Debug)]
struct KnownAddresses(Vec<SocketAddr>);

impl Service<Name> for KnownAddresses {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        future::ready(Ok(self.0.clone().into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_lookup_says_whether_the_file_of_name_servers_is_missing() {
        let error = io::Error::other("no answer");
        let there = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(lookup_failure(&error, there.path()), "no answer");
        let gone = there.path().with_extension("gone");
        let text = lookup_failure(&error, &gone);
        assert!(
            text.starts_with("no answer; there is no ") && text.contains("name servers"),
            "{text}"
        );
    }
}
