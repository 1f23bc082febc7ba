//! The TCP server: connections, control routes, and their end.

use std::{
    convert::Infallible,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http_body_util::Either;
use hyper::{
    Request, StatusCode,
    body::Incoming,
    header::{HeaderMap, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    signal::unix::{SignalKind, signal},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    control::{self, Control},
    exit,
    fake::Fake,
    http_response::{self, HttpResponse, header},
    options::{HttpOptions, PortOptions, SseOptions},
};

/// The interval at which the start of listening is checked.
const GATE_INTERVAL: Duration = Duration::from_millis(2);

/// The maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// The state shared by all connections.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) fake: Arc<Fake>,
    pub(crate) control: Control,
    /// Cancelled when no more connections are accepted.
    pub(crate) draining: CancellationToken,
    transport: Transport,
    port: PortOptions,
    connections: TaskTracker,
}

/// The protocol of the port.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    Http(HttpOptions),
    Sse(SseOptions),
}

/// Serves until the process is killed or drained.
pub(crate) async fn serve(
    fake: Arc<Fake>,
    transport: Transport,
    port: PortOptions,
) -> io::Result<()> {
    let socket = bind(port.port)?;
    let address = socket.local_addr()?;
    let control = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let path = match transport {
        Transport::Http(_) => "mcp",
        Transport::Sse(_) => "sse",
    };
    // Connections are never refused, unless the test wants that.
    let listening = match port.listen_after {
        None => Either::Left(socket.listen(BACKLOG)?),
        Some(_) => Either::Right(socket),
    };
    let mut stdout = io::stdout();
    writeln!(
        stdout,
        r#"{{"listening":"http://{address}/{path}","control":"http://{}/control/"}}"#,
        control.local_addr()?
    )?;
    stdout.flush()?;
    let server = Arc::new(Server {
        fake: fake.clone(),
        control: Control::default(),
        draining: CancellationToken::new(),
        transport,
        port,
        connections: TaskTracker::new(),
    });
    fake.tasks.spawn(server.clone().serve_control(control));
    if !fake.options.ignore_term {
        fake.tasks.spawn(server.clone().drain_on_term());
    }
    while server.port.listen_after.as_ref().is_some_and(|gate| !gate.exists()) {
        tokio::time::sleep(GATE_INTERVAL).await;
    }
    let listener = match listening {
        Either::Left(listener) => listener,
        Either::Right(socket) => socket.listen(BACKLOG)?,
    };
    server.accept(listener).await?;
    server.drain().await
}

/// Binds a port so that another process can bind it again at once.
///
/// `SO_REUSEADDR` is set for a free port only after the bind: two sockets that both set it before
/// may get the same port.
fn bind(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(port != 0)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    socket.set_reuseaddr(true)?;
    Ok(socket)
}

impl Server {
    /// Accepts connections until the drain.
    async fn accept(self: &Arc<Self>, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = tokio::select! {
                accepted = listener.accept() => accepted?,
                () = self.draining.cancelled() => return Ok(()),
            };
            stream.set_nodelay(true)?;
            self.fake.count("connections");
            self.connections.spawn(self.clone().serve_connection(stream));
        }
    }

    async fn serve_connection(self: Arc<Self>, stream: TcpStream) {
        let server = self.clone();
        let service = service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = &mut connection => return,
            () = self.draining.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await.ok();
    }

    /// Serves control routes on a separate port, which exists before and after the other.
    async fn serve_control(self: Arc<Self>, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).ok();
            let server = self.clone();
            let service = service_fn(move |request| {
                let server = server.clone();
                async move { Ok::<_, Infallible>(server.answer_control(request).await) }
            });
            self.fake.tasks.spawn(async move {
                http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
            });
        }
    }

    async fn drain_on_term(self: Arc<Self>) {
        let Ok(mut signals) = signal(SignalKind::terminate()) else { return };
        signals.recv().await;
        self.fake.log("sigterm", "");
        self.draining.cancel();
    }

    /// Finishes the requests in flight and exits.
    async fn drain(&self) -> io::Result<()> {
        self.fake.count("drains");
        let orphans = std::mem::take(&mut self.fake.state().orphans);
        drop(orphans);
        if matches!(self.transport, Transport::Sse(_)) {
            // The answers in flight use the stream of the session.
            self.fake.wait_until(|state| state.in_flight.is_empty()).await;
        }
        self.fake.close(true);
        self.fake.end_listen_requests().await;
        self.connections.close();
        self.connections.wait().await;
        exit(&self.fake, 0)
    }

    async fn answer(&self, request: Request<Incoming>) -> HttpResponse {
        if request.uri().path().starts_with("/control/") {
            return self.answer_control(request).await;
        }
        if let Some(refusal) = self.missing_header(request.headers()) {
            return refusal;
        }
        match &self.transport {
            Transport::Http(options) => self.answer_http(options, request).await,
            Transport::Sse(options) => self.answer_sse(options, request).await,
        }
    }

    async fn answer_control(&self, request: Request<Incoming>) -> HttpResponse {
        let route = request.uri().path().trim_start_matches("/control/").to_owned();
        control::answer(self, &route, request).await
    }

    fn missing_header(&self, headers: &HeaderMap) -> Option<HttpResponse> {
        let required = self.port.require_header.as_ref()?;
        let (name, value) = required.split_once('=').unwrap_or((required, ""));
        if header(headers, name) == value {
            return None;
        }
        let mut refusal = http_response::json(
            StatusCode::UNAUTHORIZED,
            &json!({ "error": "authentication_required", "error_description": "key required" }),
        );
        let challenge = http_response::value_of("Bearer realm=\"fake\"");
        refusal.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        Some(refusal)
    }
}
