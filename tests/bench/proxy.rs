//! `proxy`: the minimum cost of a hop.
//!
//! A bare hyper reverse proxy: no MCP, no inspection of bodies, no timeout. Every client connection
//! has a separate persistent connection to the upstream, which avoids even the lock of a pool.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use http_body_util::{Either, Empty};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::{self as client, SendRequest},
    header::CONNECTION,
    server::conn::http1 as server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
};
use tokio_util::task::TaskTracker;

use crate::process;

/// Run the bare reverse proxy until standard input ends
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The address of the upstream
    #[arg(long)]
    upstream: SocketAddr,
    /// Serve with one thread instead of as many as there are cores
    #[arg(long)]
    pub(crate) single_thread: bool,
}

/// The upstream connection of one client connection.
struct Hop {
    upstream: SocketAddr,
    /// A client has one request at a time, so the lock is never contended.
    connection: Mutex<Option<SendRequest<Incoming>>>,
    tasks: TaskTracker,
}

type Body = Either<Incoming, Empty<Bytes>>;

/// Serves until standard input ends, which means that the parent process is gone.
pub(crate) async fn run(args: Args) {
    let listener = TcpListener::bind(args.listen).await.expect("the address is free");
    process::announce(&listener);
    let tasks = TaskTracker::new();
    let serve = async {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a TCP socket");
            let (upstream, connection) = (args.upstream, Mutex::default());
            let hop = Arc::new(Hop { upstream, connection, tasks: tasks.clone() });
            let service = service_fn(move |request| {
                let hop = Arc::clone(&hop);
                async move { Ok::<_, Infallible>(hop.pass(request).await) }
            });
            let serving = server::Builder::new().serve_connection(TokioIo::new(stream), service);
            tasks.spawn(async move {
                let _client_gone = serving.await;
            });
        }
    };
    tokio::select! {
        () = serve => {}
        () = process::parent_gone() => {}
    }
}

impl Hop {
    async fn pass(&self, mut request: Request<Incoming>) -> Response<Body> {
        request.headers_mut().remove(CONNECTION);
        match self.send(request).await {
            Ok(response) => response.map(Either::Left),
            Err(_) => {
                let mut response = Response::new(Either::Right(Empty::new()));
                *response.status_mut() = StatusCode::BAD_GATEWAY;
                response
            }
        }
    }

    #[expect(
        clippy::await_holding_invalid_type,
        reason = "a client connection has one request at a time, so the lock is free"
    )]
    async fn send(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
        let mut connection = self.connection.lock().await;
        if let Some(sender) = connection.as_mut()
            && sender.ready().await.is_ok()
        {
            return Ok(sender.send_request(request).await?);
        }
        let stream = TcpStream::connect(self.upstream).await?;
        stream.set_nodelay(true)?;
        let (sender, driver) = client::handshake(TokioIo::new(stream)).await?;
        self.tasks.spawn(driver);
        Ok(connection.insert(sender).send_request(request).await?)
    }
}
