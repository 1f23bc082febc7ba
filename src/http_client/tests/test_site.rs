//! A web API for tests, which answers as the test says and records its requests.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Request, Response, Uri, Version,
    body::Incoming,
    header,
    rt::Executor,
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::http_client::OwnedTasks;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    /// The method and target: `POST /path?query`.
    pub(crate) line: String,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl RecordedRequest {
    /// Returns a header, or an empty text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns its body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

type Respond = dyn Fn(RecordedRequest) -> BoxFuture<'static, Response<Full<Bytes>>> + Send + Sync;

/// The TLS settings of a site.
#[derive(Clone)]
pub(crate) struct SiteTls {
    pub(crate) acceptor: TlsAcceptor,
    /// The streams that it allows on one HTTP/2 connection.
    pub(crate) streams_max: u32,
}

impl SiteTls {
    async fn serve(self, state: Arc<State>, stream: TcpStream) {
        let Ok(stream) = self.acceptor.accept(stream).await else { return };
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return serve(state, stream).await;
        }
        let tasks = Arc::<OwnedTasks>::default();
        let closing = Arc::clone(&state);
        let mut serving = pin!(
            http2::Builder::new(TaskSpawner::of(&tasks))
                .max_concurrent_streams(self.streams_max)
                .serve_connection(TokioIo::new(stream), service(state))
        );
        tokio::select! {
            _hung_up = serving.as_mut() => {}
            () = closing.closing.notified() => {
                // Says which requests it did not take.
                serving.as_mut().graceful_shutdown();
                let _hung_up = serving.await;
            }
        }
    }
}

/// A web API on its own port.
pub(crate) struct TestSite {
    port: u16,
    scheme: &'static str,
    state: Arc<State>,
    _tasks: Arc<OwnedTasks>,
}

/// Starts tasks for an owner while it exists.
#[derive(Clone)]
pub(super) struct TaskSpawner(Weak<OwnedTasks>);

impl TaskSpawner {
    pub(super) fn of(tasks: &Arc<OwnedTasks>) -> Self {
        Self(Arc::downgrade(tasks))
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for TaskSpawner {
    fn execute(&self, work: F) {
        if let Some(tasks) = self.0.upgrade() {
            tasks.spawn(work);
        }
    }
}

struct State {
    received: Mutex<Vec<RecordedRequest>>,
    n_connections: AtomicUsize,
    /// Notified to close HTTP/2 connections.
    closing: Notify,
    respond: Box<Respond>,
}

impl TestSite {
    /// Opens a site that answers as `respond` says.
    pub(crate) async fn open<F>(
        respond: impl Fn(RecordedRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        Self::open_with(None, respond).await
    }

    /// Opens a site that speaks TLS if `tls` is given, and then HTTP/2 if the handshake says so.
    pub(crate) async fn open_with<F>(
        tls: Option<SiteTls>,
        respond: impl Fn(RecordedRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = Arc::new(State {
            received: Mutex::default(),
            n_connections: AtomicUsize::new(0),
            closing: Notify::new(),
            respond: Box::new(move |recorded| Box::pin(respond(recorded))),
        });
        let tasks = Arc::<OwnedTasks>::default();
        let (serving, spawner) = (Arc::clone(&state), TaskSpawner::of(&tasks));
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.n_connections.fetch_add(1, Ordering::Relaxed);
                let (state, tls) = (Arc::clone(&serving), tls.clone());
                let connection = async move {
                    match tls {
                        None => serve(state, stream).await,
                        Some(tls) => tls.serve(state, stream).await,
                    }
                };
                spawner.execute(connection);
            }
        });
        Self { port, scheme, state, _tasks: tasks }
    }

    /// Returns the URL of `target` on the site.
    pub(crate) fn url(&self, target: &str) -> Uri {
        format!("{}://localhost:{}{target}", self.scheme, self.port).parse().expect("a URL")
    }

    /// Returns all requests so far.
    pub(crate) fn recorded(&self) -> Vec<RecordedRequest> {
        self.state.received.lock().expect("no test panics with it").clone()
    }

    /// Closes its HTTP/2 connections, as a restart of the site does.
    pub(crate) fn close_connections(&self) {
        self.state.closing.notify_waiters();
    }

    /// Returns the number of connections so far.
    pub(crate) fn n_connections(&self) -> usize {
        self.state.n_connections.load(Ordering::Relaxed)
    }
}

async fn serve(state: Arc<State>, stream: impl AsyncRead + AsyncWrite + Unpin + Send) {
    let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service(state));
    let _hung_up = serving.await;
}

fn service(
    state: Arc<State>,
) -> impl Service<
    Request<Incoming>,
    Response = Response<Full<Bytes>>,
    Error = Infallible,
    Future: Send + 'static,
> {
    service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let line = format!("{} {}", head.method, head.uri);
            let (headers, version) = (head.headers, head.version);
            let recorded = RecordedRequest { line, version, headers, body };
            state.received.lock().expect("no test panics with it").push(recorded.clone());
            Ok((state.respond)(recorded).await)
        }
    })
}

/// Returns a response with a status and a JSON body.
pub(crate) fn page(status: u16, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body.into()))
        .expect("a response")
}
