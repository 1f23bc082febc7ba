//! `upstream`: an MCP server over streamable HTTP, with the sessions of the usual SDKs.
//!
//! `initialize` creates a session id. A message with an unknown id gets 404, one without an id 400.
//! `GET /counters` returns the counts of these events.

use std::{
    collections::HashSet,
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Either, Full, StreamBody};
use hyper::{
    Method, Request, StatusCode,
    body::{Frame, Incoming},
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    time::{self, Instant},
};
use tokio_util::task::TaskTracker;

use crate::{
    answer::{self, Reply},
    process,
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Run the in-house upstream until standard input ends
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Answer with an event stream instead of JSON
    #[arg(long)]
    events: bool,
    /// The start time, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    start_delay: u64,
    /// The behaviour towards clients during the start
    #[arg(long, value_enum, default_value_t = ColdStart::Delayed)]
    cold: ColdStart,
}

/// The behaviour towards clients while the upstream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColdStart {
    /// It listens, and answers late
    Delayed,
    /// It does not listen
    Refused,
}

/// The sessions and counters of the upstream.
#[derive(Debug, Default)]
struct UpstreamState {
    sessions: Mutex<HashSet<String>>,
    mints: AtomicU64,
    calls: AtomicU64,
    unknown: AtomicU64,
    missing: AtomicU64,
    with_events: bool,
    ready_at: Option<Instant>,
}

type Body = Either<Full<Bytes>, Events>;
type Events = StreamBody<stream::Iter<std::array::IntoIter<Result<Frame<Bytes>, Infallible>, 1>>>;
type Response = hyper::Response<Body>;

/// Serves until standard input ends, which means that the parent process is gone.
pub(crate) async fn run(args: Args) {
    let start_delay = Duration::from_millis(args.start_delay);
    let ready_at = Some(Instant::now() + start_delay);
    if args.cold == ColdStart::Refused {
        time::sleep(start_delay).await;
    }
    let listener = TcpListener::bind(args.listen).await.expect("the address is free");
    process::announce(&listener);
    let state =
        Arc::new(UpstreamState { with_events: args.events, ready_at, ..UpstreamState::default() });
    let tasks = TaskTracker::new();
    let serve = async {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a TCP socket");
            let state = Arc::clone(&state);
            let service = service_fn(move |request| respond(Arc::clone(&state), request));
            let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
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

async fn respond(
    state: Arc<UpstreamState>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    if request.uri().path() == "/counters" {
        return Ok(json(StatusCode::OK, state.counters()));
    }
    if let Some(ready_at) = state.ready_at {
        time::sleep_until(ready_at).await;
    }
    let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok());
    let is_known = session.map(|id| state.sessions().contains(id));
    match (request.method(), is_known) {
        (_, Some(false)) => {
            state.unknown.fetch_add(1, Ordering::Relaxed);
            return Ok(json(StatusCode::NOT_FOUND, r#"{"error":"no such session"}"#.into()));
        }
        (&Method::DELETE, Some(true)) => {
            state.sessions().remove(session.unwrap_or_default());
            return Ok(json(StatusCode::OK, String::new()));
        }
        (&Method::POST, _) => {}
        _ => return Ok(json(StatusCode::METHOD_NOT_ALLOWED, String::new())),
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(json(StatusCode::BAD_REQUEST, String::new()));
    };
    Ok(match Reply::to(&body.to_bytes(), answer::TOOLS) {
        None => json(StatusCode::BAD_REQUEST, r#"{"error":"no message"}"#.into()),
        Some(Reply::Handshake(answer)) if is_known.is_none() => {
            let id = uuid::Uuid::new_v4().to_string();
            let value = HeaderValue::try_from(&id).expect("hexadecimal digits and dashes");
            state.sessions().insert(id);
            state.mints.fetch_add(1, Ordering::Relaxed);
            let mut response = state.answer(answer);
            response.headers_mut().insert(SESSION, value);
            response
        }
        Some(_) if is_known.is_none() => {
            state.missing.fetch_add(1, Ordering::Relaxed);
            json(StatusCode::BAD_REQUEST, r#"{"error":"not initialized: no session"}"#.into())
        }
        Some(Reply::Handshake(_)) => {
            json(StatusCode::BAD_REQUEST, r#"{"error":"initialized already"}"#.into())
        }
        Some(Reply::Nothing) => json(StatusCode::ACCEPTED, String::new()),
        Some(Reply::After(pause, answer)) => {
            state.calls.fetch_add(1, Ordering::Relaxed);
            if !pause.is_zero() {
                time::sleep(pause).await;
            }
            state.answer(answer)
        }
    })
}

impl UpstreamState {
    fn sessions(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an answer in the format chosen at the start.
    fn answer(&self, message: String) -> Response {
        if !self.with_events {
            return json(StatusCode::OK, message);
        }
        let event = Bytes::from(format!("event: message\ndata: {message}\n\n"));
        let body = Either::Right(StreamBody::new(stream::iter([Ok(Frame::data(event))])));
        let mut response = hyper::Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response
    }

    fn counters(&self) -> String {
        serde_json::json!({
            "sessions": self.sessions().len(),
            "mints": self.mints.load(Ordering::Relaxed),
            "calls": self.calls.load(Ordering::Relaxed),
            "unknown": self.unknown.load(Ordering::Relaxed),
            "missing": self.missing.load(Ordering::Relaxed),
        })
        .to_string()
    }
}

fn json(status: StatusCode, text: String) -> Response {
    let mut response = hyper::Response::new(Either::Left(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
