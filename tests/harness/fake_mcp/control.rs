//! The control routes of the HTTP transports, for tests only.
//!
//! | route | effect |
//! |---|---|
//! | `GET /control/log?NAME=N&…` | returns the events, once each named count is at least N |
//! | `POST /control/change?list=L` | adds to `tools`, `prompts` or `resources` and notifies |
//! | `POST /control/cut` | breaks all GET streams; they can be opened again after the answer |
//! | `POST /control/cut_posts` | breaks the answers of all POSTs; the calls continue |
//! | `POST /control/drain` | as SIGTERM: accepts no more, finishes requests in flight, exits |
//! | `POST /control/end_listens` | ends all subscriptions correctly |
//! | `POST /control/end_posts` | ends the streams that answer POSTs; the calls continue |
//! | `POST /control/flip` | adds a tool without a notification |
//! | `POST /control/forget` | drops all sessions, as a restart does |
//! | `POST /control/forget?finish=1` | drops them as an expiry does: pending calls are answered |
//! | `POST /control/hang?n=1` | the next n POSTs wait for `/control/resume` |
//! | `POST /control/pings?mode=never` | sets the answer to `ping`; or `answer`, `status&code=503` |
//! | `POST /control/push` | writes the body verbatim to all GET streams and subscriptions |
//! | `POST /control/release?key=K` | answers the calls held under that key |
//! | `POST /control/resume` | continues POSTs that hang |
//! | `POST /control/status?code=503&n=2` | the next n POSTs are answered with that status |
//! | `POST /control/touch?uri=U` | notifies subscribers of the resource of an update |
//!
//! The names of counts are the members of the log with a number or a list, `requests.METHOD`,
//! `executions.KEY`, `hearers` (streams that receive list changes) and `gone` (cancelled either
//! way). A separate port has all routes too; it ignores `--listen-after` and drains.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use http_body_util::BodyExt;
use hyper::{HeaderMap, Method, Request, StatusCode, body::Incoming};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    fake::Fake,
    http_response::{self, HttpResponse, not_allowed},
    notice::Notice,
    server::Server,
    state::PingMode,
};

/// The overrides that the test sets for the next POSTs.
#[derive(Debug, Default)]
pub(crate) struct Control {
    overrides: Mutex<PostOverrides>,
    resumed: Notify,
}

#[derive(Debug, Default)]
struct PostOverrides {
    status: Option<StatusCode>,
    n_status: u64,
    n_hang: u64,
    last_headers: BTreeMap<String, String>,
}

impl Control {
    /// Records the headers of a POST.
    fn note_post(&self, headers: &HeaderMap) {
        self.overrides().last_headers = headers
            .iter()
            .map(|(name, value)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into())
            })
            .collect();
    }

    /// Returns the status that the test set for this POST.
    fn take_status(&self) -> Option<StatusCode> {
        let mut overrides = self.overrides();
        overrides.n_status = overrides.n_status.checked_sub(1)?;
        overrides.status
    }

    /// Waits if the test lets this POST hang.
    async fn hang(&self, fake: &Fake) {
        let resumed = {
            let mut overrides = self.overrides();
            let Some(n_left) = overrides.n_hang.checked_sub(1) else { return };
            overrides.n_hang = n_left;
            self.resumed.notified()
        };
        fake.count("hung");
        resumed.await;
    }

    fn overrides(&self) -> MutexGuard<'_, PostOverrides> {
        self.overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers a control route.
pub(crate) async fn answer(
    server: &Server,
    route: &str,
    request: Request<Incoming>,
) -> HttpResponse {
    let query = numbers(request.uri().query().unwrap_or_default());
    let number = |name: &str, default| query.get(name).copied().unwrap_or(default);
    let (fake, control) = (&server.fake, &server.control);
    let is_post = request.method() == Method::POST;
    let report = match (is_post, route) {
        (false, "log") => {
            fake.wait_until(|state| query.iter().all(|(name, least)| state.n(name) >= *least))
                .await;
            log(server)
        }
        (true, "forget") => {
            if number("finish", 0) == 1 {
                fake.close(true);
            }
            let sessions = std::mem::take(&mut fake.state().sessions);
            if number("finish", 0) == 0 {
                for session in sessions.values() {
                    session.closed.cancel();
                }
            }
            json!({ "forgotten": sessions.len() })
        }
        (true, "change") => {
            let query = request.uri().query().unwrap_or_default();
            let Some(list) = query.strip_prefix("list=").and_then(Notice::of_list) else {
                return http_response::rpc_error(StatusCode::BAD_REQUEST, -32602, "unknown list");
            };
            let added = fake.state().extend(&list);
            json!({ "added": added, "sent": fake.announce(&list).await })
        }
        (true, "end_listens") => json!({ "ended": fake.end_listen_requests().await }),
        (true, "touch") => {
            let query = request.uri().query().unwrap_or_default();
            let uri = query.strip_prefix("uri=").unwrap_or_default().to_owned();
            json!({ "sent": fake.announce(&Notice::Updated(uri)).await })
        }
        (true, "cut") => json!({ "cut": fake.cut(true).await }),
        (true, "cut_posts") => json!({ "cut": fake.cut(false).await }),
        (true, "drain") => {
            server.draining.cancel();
            json!({})
        }
        (true, "end_posts") => json!({ "ended": fake.close(false) }),
        (true, "flip") => json!({ "added": fake.state().flip() }),
        (true, "pings") => pings(fake, request.uri().query().unwrap_or_default()),
        (true, "status") => {
            let code = number("code", 503);
            let status = u16::try_from(code).ok().and_then(|code| StatusCode::from_u16(code).ok());
            let mut overrides = control.overrides();
            overrides.status = status;
            overrides.n_status = number("n", 1);
            json!({ "code": code, "n": overrides.n_status })
        }
        (true, "hang") => {
            let n_posts = number("n", 1);
            control.overrides().n_hang = n_posts;
            json!({ "n": n_posts })
        }
        (true, "release") => {
            let query = request.uri().query().unwrap_or_default();
            let key = query.strip_prefix("key=").unwrap_or_default();
            json!({ "released": fake.release(key).await })
        }
        (true, "resume") => {
            control.overrides().n_hang = 0;
            control.resumed.notify_waiters();
            json!({})
        }
        (true, "push") => {
            let body = request.into_body().collect().await;
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            let n_streams = fake.broadcast(&String::from_utf8_lossy(&body), None).await;
            json!({ "streams": n_streams })
        }
        _ => return not_allowed("GET, POST"),
    };
    http_response::json(StatusCode::OK, &report)
}

/// Sets the reaction to each `ping` from now on.
fn pings(fake: &Fake, query: &str) -> Value {
    let mode = query.split('&').find_map(|pair| pair.strip_prefix("mode=")).unwrap_or("answer");
    let code = numbers(query).get("code").copied().unwrap_or(503);
    fake.state().pings = match mode {
        "never" => PingMode::Never,
        "status" => PingMode::Status(code.try_into().unwrap_or(503)),
        _ => PingMode::Answer,
    };
    json!({ "mode": mode })
}

impl Server {
    /// Counts a POST and applies the overrides; returns the response if the test set its status.
    pub(crate) async fn ordered_response(&self, headers: &HeaderMap) -> Option<HttpResponse> {
        self.control.note_post(headers);
        self.fake.count("posts");
        if let Some(status) = self.control.take_status() {
            return Some(http_response::json(
                status,
                &json!({ "error": "status set by the test" }),
            ));
        }
        self.control.hang(&self.fake).await;
        None
    }
}

/// Returns the events.
fn log(server: &Server) -> Value {
    let last_headers = server.control.overrides().last_headers.clone();
    let state = server.fake.state();
    let sessions: Vec<&String> = state.sessions.keys().collect();
    let count = |name: &str| state.n(name);
    let mut report = state.report();
    let more = json!({
        "pid": std::process::id(),
        "initializes": count("initializes"),
        "sessions": sessions,
        "sessions_minted": count("sessions_minted"),
        "deletes": count("deletes"),
        "gets": count("gets"),
        "streams": count("streams"),
        "streams_ended": count("streams_ended"),
        "streams_open": count("streams_open"),
        "posts_open": count("posts_open"),
        "connections": count("connections"),
        "resumes": count("resumes"),
        "posts": count("posts"),
        "hung": count("hung"),
        "calls": count("calls"),
        "held": count("held"),
        "ids": state.seen.ids,
        "in_flight": count("in_flight"),
        "last_headers": last_headers,
    });
    if let (Value::Object(report), Value::Object(more)) = (&mut report, more) {
        report.extend(more);
    }
    report
}

/// Parses `name=number` pairs and ignores others.
fn numbers(query: &str) -> BTreeMap<String, u64> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}
