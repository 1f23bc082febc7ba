//! The routing of requests by path.

use std::{net::IpAddr, sync::Arc};

use futures_util::FutureExt as _;
use hyper::{Method, Request, StatusCode, body::Incoming};
use serde_json::json;

use super::{
    IngressContext, Response, authentication, control_rpc, cors,
    error::IngressError,
    http_response, legacy, legacy_sse, login_callback, metrics_listener, origin,
    status_page::{self, PageRequest},
};
use crate::{
    config::CALLBACK_PATH,
    fair_share::EvictablePermit,
    peer_process::ConnectedClient,
    telemetry::liveness::StuckLoop,
    view::{View, ViewChoice},
};

/// Answers an HTTP request from `caller` that arrived at `address` on the connection of `permit`.
pub(super) fn respond(
    context: Arc<IngressContext>,
    permit: Arc<EvictablePermit>,
    caller: ConnectedClient,
    address: Option<IpAddr>,
    request: Request<Incoming>,
) -> impl Future<Output = Response> {
    let path = request.uri().path();
    let is_rpc = path == control_rpc::PATH;
    let config = context.views.config();
    let reader = cors::reader(request.headers(), path, &config.listen);
    let has_readers = cors::has_readers(path, &config.listen);
    let is_preflight = reader.is_some() && cors::is_preflight(&request);
    // Boxed: the future is moved several times, and hyper reserves its space while idle.
    let answering = Box::pin(dispatch(context, permit, caller, address, request, is_preflight));
    answering.map(move |answered| {
        let response = match answered {
            Ok(response) => response,
            Err(error) if is_rpc => error.into_complete_response(),
            Err(error) => error.into_response(),
        };
        match reader {
            Some(origin) => cors::expose(response, origin),
            None if has_readers => cors::add_vary(response),
            None => response,
        }
    })
}

async fn dispatch(
    context: Arc<IngressContext>,
    permit: Arc<EvictablePermit>,
    mut caller: ConnectedClient,
    address: Option<IpAddr>,
    request: Request<Incoming>,
    is_preflight: bool,
) -> Result<Response, IngressError> {
    // This check comes first, so that a foreign page cannot even try a token.
    origin::check(request.headers(), &context.views.config().listen, address)?;
    if is_preflight {
        return Ok(cors::preflight(request.headers()));
    }
    if let Some(asked) = PageRequest::of(&request) {
        // Boxed, to keep the future of other requests small.
        return Box::pin(status_page::respond(context, &permit, asked, caller, request)).await;
    }
    if let Some(token) = context.token.get().filter(|_| !authentication::is_open(&request)) {
        if let Err(denied) = authentication::check(request.headers(), &token) {
            // Boxed, to keep the future of admitted requests small.
            return Err(Box::pin(authentication::refuse(&context, denied, &caller, request)).await);
        }
        caller = caller.with_token(token.fingerprint());
    }
    permit.trust();
    let path = request.uri().path();
    if !is_for_operators(path) && !permit.confirm() {
        return Err(IngressError::ConnectionsFull);
    }
    match path {
        "/healthz" => return probe(&request, || health(&context)),
        "/readyz" => return probe(&request, || readiness(&context)),
        "/status" => {
            return probe(&request, || {
                http_response::json(StatusCode::OK, &context.board.status())
            });
        }
        metrics_listener::PATH => {
            return Box::pin(metrics_listener::respond(&context, &request)).await;
        }
        // Boxed, to keep the future of other requests small.
        CALLBACK_PATH => return Box::pin(login_callback::respond(&context, &request)).await,
        control_rpc::PATH => {
            return Box::pin(control_rpc::respond(&context, caller, request)).await;
        }
        legacy_sse::MESSAGES => {
            return Box::pin(legacy_sse::receive(context, request, caller.holder.account)).await;
        }
        _ => {}
    }
    // A server may be named `sse`.
    if let Some(path) = path.strip_suffix("/sse").filter(|path| *path != "/servers") {
        let view = view(&context, if path.is_empty() { "/" } else { path })?;
        return legacy_sse::open(context, view, &request, caller.holder);
    }
    let view = view(&context, path)?;
    match *request.method() {
        Method::POST => legacy::post(context, &view, request, caller.holder).await,
        _ => legacy::respond(context, &view, &request, caller.holder),
    }
}

/// Returns whether the path serves probes or operators, for whom connections are reserved.
fn is_for_operators(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/status" | metrics_listener::PATH | control_rpc::PATH)
}

/// Returns the view at a path.
fn view(context: &IngressContext, path: &str) -> Result<View, IngressError> {
    let choice = ViewChoice::at_path(path);
    let choice = choice.ok_or_else(|| IngressError::PathNotFound(path.to_owned()))?;
    context.views.choose(choice).map_err(IngressError::ServerNotFound)
}

fn probe(
    request: &Request<Incoming>,
    answer: impl FnOnce() -> Response,
) -> Result<Response, IngressError> {
    match *request.method() {
        Method::GET | Method::HEAD => Ok(answer()),
        _ => Err(IngressError::MethodNotAllowed("GET, HEAD")),
    }
}

/// Reports whether the service is alive: all event loops turn, whatever its servers do.
fn health(context: &IngressContext) -> Response {
    let stuck: Vec<StuckLoop> = context.board.stuck();
    let status = if stuck.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let uptime_ms = u64::try_from(context.board.uptime().as_millis()).unwrap_or(u64::MAX);
    let report = json!({
        "ok": stuck.is_empty(), "name": "metamcp", "version": env!("CARGO_PKG_VERSION"),
        "uptime_ms": uptime_ms, "stuck": stuck,
    });
    http_response::json(status, &report)
}

fn readiness(context: &IngressContext) -> Response {
    let readiness = context.board.readiness();
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    http_response::json(status, &readiness)
}
