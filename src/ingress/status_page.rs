//! The page that shows the service in a browser, its updates, and the login to it.
//!
//! The page reads by the control interface, as the user that the kernel reports for the browser's
//! connection. Where a token is set, a form takes it once; a cookie then opens this page, and nothing
//! else.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::Incoming,
    header::{
        ACCEPT, CONTENT_SECURITY_POLICY, COOKIE, HeaderName, HeaderValue, LOCATION,
        REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use serde_json::{Value, json};
use tokio::time::{self, MissedTickBehavior};

use super::{
    Body, IngressContext, Response, RpcReply, authentication, error::IngressError, http_response,
    request_parts,
};
use crate::{
    bearer_token::BearerToken,
    config::defaults,
    fair_share::EvictablePermit,
    peer_process::ConnectedClient,
    protocol::{ByteChunks, Message, ObjectMembers, jsonrpc::MessagePart, sse},
    status_page::{self, LIVE_SECTIONS, PageData, html::Html},
};

/// The path of the page. It is at `/`, too.
const PAGE: &str = "/status";
/// The path of the updates.
const EVENTS: &str = "/status/events";
/// The path that takes the token.
const LOGIN: &str = "/status/login";
/// The cookie that opens the page.
const COOKIE_NAME: &str = "metamcp_page";

/// The request of a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageRequest {
    Page,
    Events,
    Login,
}

impl PageRequest {
    /// Returns what a request asks for, if that is a part of the page.
    pub(super) fn of(request: &Request<Incoming>) -> Option<Self> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match request.uri().path() {
            "/" | PAGE if is_read && wants_html(request.headers()) => Some(Self::Page),
            EVENTS if *request.method() == Method::GET => Some(Self::Events),
            LOGIN if *request.method() == Method::POST => Some(Self::Login),
            _ => None,
        }
    }
}

/// Returns whether the reader names HTML, as browsers do and other programs do not.
fn wants_html(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.contains("text/html"))
}

/// Answers a request for the page from `caller`, who needs `token` where one is set.
pub(super) async fn respond(
    context: Arc<IngressContext>,
    asked: PageRequest,
    caller: ConnectedClient,
    request: Request<Incoming>,
    token: Option<BearerToken>,
) -> Result<Response, IngressError> {
    if let Some(token) = token {
        if asked == PageRequest::Login {
            return login(&context, caller, request, &token).await;
        }
        let headers = request.headers();
        if !has_cookie(headers, &token) && authentication::check(headers, &token).is_err() {
            let page = status_page::login_page(false);
            return Ok(html(StatusCode::UNAUTHORIZED, page));
        }
    }
    match asked {
        PageRequest::Page => page(&context, caller, request.uri().query()).await,
        PageRequest::Events => events(context, caller),
        PageRequest::Login => Ok(see_page()),
    }
}

/// Takes the token from the form, and answers with the cookie.
async fn login(
    context: &IngressContext,
    caller: ConnectedClient,
    request: Request<Incoming>,
    token: &BearerToken,
) -> Result<Response, IngressError> {
    let is_secure = context.views.config().listen.tls.is_some();
    let body = request_parts::read_body(caller.holder.account, request.into_body()).await?;
    let sent = form_urlencoded::parse(&body).find(|(name, _)| name == "token");
    if !sent.is_some_and(|(_, sent)| token.matches(sent.as_bytes())) {
        return match authentication::delay_wrong_token(context, &caller).await {
            true => Ok(html(StatusCode::UNAUTHORIZED, status_page::login_page(true))),
            false => Err(IngressError::TooManyWrongTokens { is_read: true }),
        };
    }
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = token.page_cookie();
    let cookie = format!("{COOKIE_NAME}={cookie}; Path=/; HttpOnly; SameSite=Strict{secure}");
    let mut response = see_page();
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

fn has_cookie(headers: &HeaderMap, token: &BearerToken) -> bool {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    });
    pairs.any(|value| token.matches_page_cookie(value))
}

/// Sends the browser to the page.
fn see_page() -> Response {
    let mut response = http_response::empty(StatusCode::SEE_OTHER);
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(PAGE));
    response
}

/// Returns the page, with the answer to the search of the query.
async fn page(
    context: &IngressContext,
    caller: ConnectedClient,
    query: Option<&str>,
) -> Result<Response, IngressError> {
    let words = form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "q")
        .map(|(_, words)| words.trim().to_owned())
        .unwrap_or_default();
    let data = match read(context, caller).await {
        Ok(data) => data,
        Err(message) => PageData::failed(message),
    };
    let found = match words.is_empty() {
        true => None,
        false => Some(search(context, caller, &words).await),
    };
    Ok(html(StatusCode::OK, status_page::page(&data, &words, found.as_ref())))
}

fn html(status: StatusCode, page: Html) -> Response {
    let body = Body::Left(Bytes::from(page.into_string()).into());
    let mut response = http_response::with_body(status, "text/html; charset=utf-8", body);
    let fixed: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, status_page::content_policy()),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Reads all that the sections show.
async fn read(context: &IngressContext, caller: ConnectedClient) -> Result<PageData, String> {
    let calls = json!({ "lines": defaults::PAGE_CALLS });
    Ok(PageData {
        status: ask(context, caller, "daemon/status", &json!({ "memory": true })).await?,
        top: ask(context, caller, "daemon/top", &json!({})).await?,
        calls: ask(context, caller, "daemon/calls", &calls).await?,
        error: None,
    })
}

/// Searches for tools, and reads their definitions.
async fn search(
    context: &IngressContext,
    caller: ConnectedClient,
    words: &str,
) -> Result<Value, String> {
    let params = json!({ "query": words, "explain": true, "limit": defaults::PAGE_TOOLS });
    let mut found = ask(context, caller, "tools/search", &params).await?;
    for tool in found["tools"].as_array_mut().into_iter().flatten() {
        let part = |name: &str| tool[name].as_str().unwrap_or_default();
        let params = json!({ "name": format!("{}/{}", part("server"), part("tool")) });
        tool["definition"] = ask(context, caller, "tools/info", &params).await.unwrap_or_default();
    }
    Ok(found)
}

/// Asks the control interface, and returns the result, or the message of the error.
async fn ask(
    context: &IngressContext,
    caller: ConnectedClient,
    method: &str,
    params: &Value,
) -> Result<Value, String> {
    let starting = || "the service starts or stops".to_owned();
    let control = context.control().ok_or_else(starting)?;
    let request = Message::request(method, Some(&params.to_string()));
    let RpcReply::Answer(answer) = control.answer(request.bytes().clone(), caller).await else {
        return Err(starting());
    };
    let answer = Message::parse_own(answer).map_err(|error| error.to_string())?;
    if let Some(error) = answer.part(MessagePart::Error) {
        let message = ObjectMembers::read(error).and_then(|error| error.string("message"));
        return Err(message.unwrap_or_default());
    }
    let result = answer.part(MessagePart::Result).unwrap_or("null");
    serde_json::from_str(result).map_err(|error| error.to_string())
}

/// The updates of one open page.
struct PageUpdates {
    context: Arc<IngressContext>,
    caller: ConnectedClient,
    permit: EvictablePermit,
    ticks: time::Interval,
    /// The sections as the browser has them.
    shown: [Html; LIVE_SECTIONS.len()],
}

/// Opens the stream of updates.
fn events(context: Arc<IngressContext>, caller: ConnectedClient) -> Result<Response, IngressError> {
    let permit = context.stream_permit(caller.holder)?;
    let mut ticks = time::interval(defaults::PAGE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let updates = PageUpdates { context, caller, permit, ticks, shown: Default::default() };
    Ok(http_response::event_stream(stream::unfold(updates, |mut updates| async move {
        updates.next().await.map(|event| (event, updates))
    })))
}

impl PageUpdates {
    /// Returns the changed sections as events, or a comment that keeps the stream open; `None` ends
    /// the stream.
    async fn next(&mut self) -> Option<ByteChunks> {
        tokio::select! {
            _ = self.ticks.tick() => {}
            () = self.context.stop.cancelled() => return None,
            // Another browser needs the room.
            () = self.permit.evicted() => return None,
        }
        self.permit.touch();
        let data = match read(&self.context, self.caller).await {
            Ok(data) => data,
            Err(message) => PageData::failed(message),
        };
        let changed = changed_sections(&mut self.shown, &data);
        Some(if changed.is_empty() { sse::KEEP_ALIVE.into() } else { Bytes::from(changed).into() })
    }
}

/// Returns the events for the sections that differ from those `shown`, and records them.
fn changed_sections(shown: &mut [Html; LIVE_SECTIONS.len()], data: &PageData) -> String {
    let mut events = String::new();
    for (section, shown) in LIVE_SECTIONS.into_iter().zip(shown) {
        let now = status_page::section(section, data);
        if now != *shown {
            let update = json!({ "id": section.id(), "html": now.as_str() });
            events.push_str(&format!("event: section\ndata: {update}\n\n"));
            *shown = now;
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_only_the_sections_that_have_changed() {
        let mut shown = Default::default();
        let status = |version: &str| PageData {
            status: json!({ "version": version, "servers": [] }),
            ..PageData::default()
        };
        let first = changed_sections(&mut shown, &status("1"));
        assert_eq!(first.matches("event: section\n").count(), LIVE_SECTIONS.len());
        assert_eq!(changed_sections(&mut shown, &status("1")), "");
        let second = changed_sections(&mut shown, &status("2"));
        assert!(second.starts_with("event: section\ndata: {"), "{second}");
        assert_eq!(second.lines().filter(|line| line.starts_with("data: ")).count(), 1);
    }

    #[test]
    fn a_thousand_updates_keep_no_more_than_the_last_one() {
        let mut shown = Default::default();
        let data = |number: u32| PageData {
            status: json!({ "version": format!("{number:04}"), "servers": [] }),
            ..PageData::default()
        };
        changed_sections(&mut shown, &data(0));
        let size = |shown: &[Html]| shown.iter().map(|html| html.as_str().len()).sum::<usize>();
        let first = size(&shown);
        for number in 1..1000 {
            changed_sections(&mut shown, &data(number));
        }
        assert_eq!(size(&shown), first);
    }
}
