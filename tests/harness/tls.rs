//! Certificates for one test, and a client that trusts their authority.

use std::{fmt::Write as _, fs, net::SocketAddr, path::PathBuf, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Method, Request, Response,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
        version::{TLS12, TLS13},
    },
};

use super::{
    DEADLINE,
    client::{MCP_HEADERS, Reply, Running, request, running},
    stream::EventStream,
};

/// A certificate authority with one intermediate issuer, as public ones have.
pub(crate) struct Authority {
    root: CertificateDer<'static>,
    intermediate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
}

/// A certificate and its key, as PEM files.
pub(crate) struct IssuedCertificate {
    certificate: CertificateDer<'static>,
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// Returns a PEM section.
fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in BASE64_STANDARD.encode(der).as_bytes().chunks(64) {
        writeln!(text, "{}", String::from_utf8_lossy(line)).expect("a string takes all");
    }
    text + &format!("-----END {label}-----\n")
}

fn issuer_named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Authority {
    pub(crate) fn new() -> Self {
        let (root_key, root) = (KeyPair::generate().expect("a key"), issuer_named("root"));
        let certificate = root.self_signed(&root_key).expect("it signs itself");
        let (key, intermediate) =
            (KeyPair::generate().expect("a key"), issuer_named("intermediate"));
        let signed =
            intermediate.signed_by(&key, &Issuer::new(root, root_key)).expect("it is signed");
        Self {
            root: certificate.der().clone(),
            intermediate: signed.der().clone(),
            issuer: Issuer::new(intermediate, key),
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    /// Issues a certificate for this host, each time with a new key.
    pub(crate) fn issue(&self) -> IssuedCertificate {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("good names");
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("it is signed");
        let certificates = [signed.der(), &self.intermediate];
        IssuedCertificate {
            certificate: signed.der().clone(),
            chain: certificates.map(|one| pem("CERTIFICATE", one)).concat(),
            key: pem("PRIVATE KEY", key.serialized_der()),
        }
    }

    /// Writes the certificate of the root, and returns its path.
    pub(crate) fn ca(&self) -> PathBuf {
        let path = self.path("ca.pem");
        fs::write(&path, pem("CERTIFICATE", &self.root)).expect("written");
        path
    }

    /// Returns the path of a file in its directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes `chain.pem` and `key.pem`, replacing existing files.
    pub(crate) fn write(&self, issued: &IssuedCertificate) {
        fs::write(self.path("chain.pem"), &issued.chain).expect("written");
        fs::write(self.path("key.pem"), &issued.key).expect("written");
    }

    /// Issues and writes a certificate, and returns the table that configures it.
    pub(crate) fn listen(&self, more: &str) -> (IssuedCertificate, String) {
        let issued = self.issue();
        self.write(&issued);
        let (chain, key) = (self.path("chain.pem"), self.path("key.pem"));
        let tls = format!("tls = {{ certificate = {chain:?}, key = {key:?} }}");
        (issued, format!("[listen]\n{tls}\n{more}\n"))
    }

    /// Returns a client that speaks only this version of TLS.
    fn connector(&self, version: &'static SupportedProtocolVersion, alpn: &[&str]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).expect("a good certificate");
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .expect("it is supported")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }

    /// Connects with TLS 1.3.
    pub(crate) async fn connect(&self, address: SocketAddr) -> TlsConnection {
        let stream = TcpStream::connect(address).await.expect("a connection");
        self.handshake(stream, &TLS13, &["h2", "http/1.1"]).await
    }

    /// Connects with TLS 1.3 and a small receive buffer.
    pub(crate) async fn connect_slow(&self, address: SocketAddr) -> TlsConnection {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("it takes a size");
        let stream = socket.connect(address).await.expect("a connection");
        self.handshake(stream, &TLS13, &[]).await
    }

    /// Connects with TLS 1.2 only.
    pub(crate) async fn connect_1_2(&self, address: SocketAddr) -> TlsConnection {
        let stream = TcpStream::connect(address).await.expect("a connection");
        self.handshake(stream, &TLS12, &[]).await
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        version: &'static SupportedProtocolVersion,
        alpn: &[&str],
    ) -> TlsConnection {
        let name = ServerName::try_from("localhost").expect("a name");
        let connecting = self.connector(version, alpn).connect(name, stream);
        let stream = tokio::time::timeout(DEADLINE, connecting).await.expect("in time");
        let stream = stream.expect("the certificate is good");
        let (_, session) = stream.get_ref();
        let version = session.protocol_version();
        let alpn = session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
        let certificates = session.peer_certificates().expect("the server presented one");
        let certificate = certificates[0].clone();
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.expect("a connection");
        let driver = running(async move { connection.await.map_err(|error| error.to_string()) });
        TlsConnection { sender, version, alpn, certificate, driver }
    }
}

/// A TLS connection.
pub(crate) struct TlsConnection {
    sender: SendRequest<Full<Bytes>>,
    pub(crate) version: Option<ProtocolVersion>,
    pub(crate) alpn: Option<String>,
    certificate: CertificateDer<'static>,
    driver: Running<Result<(), String>>,
}

impl TlsConnection {
    /// Returns whether the server presented this certificate.
    pub(crate) fn was_shown(&self, issued: &IssuedCertificate) -> bool {
        self.certificate == issued.certificate
    }

    /// Sends a request and returns the answer once its head has arrived.
    pub(crate) async fn open(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Response<Incoming> {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let sent = tokio::time::timeout(DEADLINE, self.sender.send_request(request)).await;
        sent.expect("an answer in time").expect("an answer")
    }

    /// Posts a request and returns the whole answer.
    pub(crate) async fn post(&mut self, path: &str, method: &str, params: &Value) -> Reply {
        let message = request(&json!(1), method, params);
        let (head, body) = self.open(Method::POST, path, &MCP_HEADERS, message).await.into_parts();
        let body = tokio::time::timeout(DEADLINE, body.collect()).await.expect("a body in time");
        let body = String::from_utf8(body.expect("a whole body").to_bytes().into());
        Reply { status: head.status, headers: head.headers, body: body.expect("UTF-8") }
    }

    /// Calls a tool and returns its structured content.
    pub(crate) async fn call(&mut self, path: &str, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        let answer = self.post(path, "tools/call", &params).await.answer();
        answer["result"]["structuredContent"].clone()
    }

    /// Opens the GET stream of a session.
    pub(crate) async fn listen(&mut self, path: &str, headers: &HeaderMap) -> EventStream {
        let session = headers["mcp-session-id"].to_str().expect("visible ASCII");
        let headers = [("accept", "text/event-stream"), ("mcp-session-id", session)];
        EventStream::new(self.open(Method::GET, path, &headers, String::new()).await)
    }

    /// Waits until the service closes the connection; an error means an unclean end.
    pub(crate) async fn end(self) -> Result<(), String> {
        drop(self.sender);
        self.driver.end().await
    }
}
