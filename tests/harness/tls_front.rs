//! A reverse proxy that speaks TLS in front of an upstream, as most public servers have one.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use hyper::{
    Request, Response, Uri, Version,
    body::Incoming,
    client,
    header::{HOST, HeaderValue},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};
use tokio_util::task::TaskTracker;

use super::tls::Authority;

/// A running reverse proxy.
pub(crate) struct TlsFront {
    pub(crate) url: String,
    state: Arc<FrontState>,
}

struct FrontState {
    /// Host and port of the upstream.
    target: String,
    n_connections: AtomicUsize,
    n_http2_requests: AtomicUsize,
    tasks: TaskTracker,
}

impl TlsFront {
    /// Starts a proxy in front of the upstream at `url`, with a certificate of `authority`.
    pub(crate) async fn start(authority: &Authority, url: &str, is_http2: bool) -> Self {
        let issued = authority.issue();
        let chain: Vec<_> = CertificateDer::pem_slice_iter(issued.chain.as_bytes())
            .collect::<Result<_, _>>()
            .expect("a chain");
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a pair");
        let protocol = if is_http2 { "h2" } else { "http/1.1" };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let url: Uri = url.parse().expect("a URL");
        let state = Arc::new(FrontState {
            target: url.authority().expect("a host").to_string(),
            n_connections: AtomicUsize::new(0),
            n_http2_requests: AtomicUsize::new(0),
            tasks: TaskTracker::new(),
        });
        let accepting = Arc::clone(&state);
        state.tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, acceptor) = (Arc::clone(&accepting), acceptor.clone());
                accepting.tasks.spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        state.serve(stream, is_http2).await;
                    }
                });
            }
        });
        Self { url: format!("https://localhost:{}{}", address.port(), url.path()), state }
    }

    /// Returns the number of connections with a finished handshake, so far.
    pub(crate) fn n_connections(&self) -> usize {
        self.state.n_connections.load(Ordering::Relaxed)
    }

    /// Returns the number of requests over HTTP/2 so far.
    pub(crate) fn n_http2_requests(&self) -> usize {
        self.state.n_http2_requests.load(Ordering::Relaxed)
    }
}

impl FrontState {
    async fn serve(self: Arc<Self>, stream: TlsStream<TcpStream>, is_http2: bool) {
        self.n_connections.fetch_add(1, Ordering::Relaxed);
        let service = service_fn(move |request| Arc::clone(&self).forward(request));
        let stream = TokioIo::new(stream);
        let _client_is_gone = match is_http2 {
            true => {
                http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await
            }
            false => http1::Builder::new().serve_connection(stream, service).await,
        };
    }

    /// Passes a request on, and its answer back.
    async fn forward(
        self: Arc<Self>,
        mut request: Request<Incoming>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        if request.version() == Version::HTTP_2 {
            self.n_http2_requests.fetch_add(1, Ordering::Relaxed);
        }
        let stream = TcpStream::connect(&self.target).await.expect("the upstream listens");
        let (mut sender, driver) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
        self.tasks.spawn(async move {
            let _upstream_is_gone = driver.await;
        });
        let path = request.uri().path_and_query().cloned().expect("a path");
        *request.uri_mut() = path.into();
        *request.version_mut() = Version::HTTP_11;
        let host = HeaderValue::try_from(&self.target).expect("a host");
        request.headers_mut().insert(HOST, host);
        sender.send_request(request).await
    }
}
