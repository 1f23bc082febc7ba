//! The page that shows the service in a browser, its updates, and the login to it.
//!
//! The page reads by the control interface, as the user that the kernel reports for the browser's
//! connection. Where a token is set, a form takes it once; a cookie then opens this page, and nothing
//! else: browsers send it to the paths below [`PAGE`] only, and other paths do not read it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::Incoming,
    header::{
        ACCEPT, CONTENT_SECURITY_POLICY, COOKIE, HeaderName, HeaderValue, LOCATION,
        REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use serde_json::{Value, json};

use super::{
    Body, IngressContext, Response, RpcReply,
    authentication::{self, BearerError},
    error::IngressError,
    http_response,
    page_updates::PageUpdates,
    request_parts,
};
use crate::{
    bearer_token::BearerToken,
    config::defaults,
    fair_share::EvictablePermit,
    peer_process::ConnectedClient,
    protocol::{Message, ObjectMembers, jsonrpc::MessagePart},
    status_page::{self, FoundTools, PageData, ToolsQuery, html::Html},
};

/// The path of the page. It is at `/`, too.
const PAGE: &str = "/status";
/// The path of the updates.
const EVENTS: &str = "/status/events";
/// The path that takes the token.
const LOGIN: &str = "/status/login";
/// The cookie that opens the page.
const COOKIE_NAME: &str = "metamcp_page";

/// A part of the page that a browser asks for.
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

/// Answers a request for the page from `caller` on the connection of `permit`.
pub(super) async fn respond(
    context: Arc<IngressContext>,
    permit: &EvictablePermit,
    asked: PageRequest,
    caller: ConnectedClient,
    request: Request<Incoming>,
) -> Result<Response, IngressError> {
    let token = context.token.get();
    if let Some(token) = token {
        if asked == PageRequest::Login {
            return login(&context, caller, request, &token).await;
        }
        let headers = request.headers();
        if !has_cookie(headers, &token)
            && let Err(denied) = authentication::check(headers, &token)
        {
            return match (denied, asked) {
                (BearerError::Missing, PageRequest::Page) if request.uri().path() != PAGE => {
                    // The browser has the cookie for this path only.
                    Ok(see_page())
                }
                (BearerError::Missing, PageRequest::Page) => Ok(ask_for_token(false)),
                _ => Err(authentication::refuse(&context, denied, &caller, request).await),
            };
        }
    }
    permit.trust();
    match asked {
        PageRequest::Page => page(&context, caller, request.uri().query()).await,
        PageRequest::Events => events(context, caller, token),
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
    let (account, length_max) = (caller.holder.account, defaults::PAGE_LOGIN_BYTES_MAX);
    let body = request_parts::read_body_up_to(account, request.into_body(), length_max).await?;
    let sent = form_urlencoded::parse(&body).find(|(name, _)| name == "token");
    if !sent.is_some_and(|(_, sent)| token.matches(sent.as_bytes())) {
        return match authentication::delay_wrong_token(context, &caller).await {
            true => Ok(ask_for_token(true)),
            false => Err(IngressError::TooManyWrongTokens { is_read: true }),
        };
    }
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = token.page_cookie();
    let cookie = format!("{COOKIE_NAME}={cookie}; Path={PAGE}; HttpOnly; SameSite=Strict{secure}");
    let mut response = see_page();
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Returns the form that takes the token.
fn ask_for_token(is_wrong: bool) -> Response {
    let mut response = html(StatusCode::UNAUTHORIZED, status_page::login_page(is_wrong));
    let challenge = if is_wrong { BearerError::Wrong } else { BearerError::Missing }.challenge();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
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

/// Returns the page, with the answer to `query`.
async fn page(
    context: &IngressContext,
    caller: ConnectedClient,
    query: Option<&str>,
) -> Result<Response, IngressError> {
    let query = tools_query(query.unwrap_or_default());
    let data = read(context, caller).await.unwrap_or_else(PageData::failed);
    let found = find(context, caller, &query).await;
    Ok(html(StatusCode::OK, status_page::page(&data, &query, &found)))
}

fn tools_query(query: &str) -> ToolsQuery {
    let mut asked = ToolsQuery::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let member = match &*name {
            "q" => &mut asked.words,
            "server" => &mut asked.server,
            // A link has the exact name.
            "tool" => {
                asked.tool = value.into_owned();
                continue;
            }
            "from" => {
                asked.from = value.trim().parse().unwrap_or_default();
                continue;
            }
            _ => continue,
        };
        value.trim().clone_into(member);
    }
    asked
}

fn html(status: StatusCode, page: Html) -> Response {
    let body = Body::Left(Bytes::from(page.into_string()).into());
    let mut response = http_response::with_body(status, "text/html; charset=utf-8", body);
    let fixed: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, status_page::content_policy()),
        // With `no-referrer`, a browser sends the form with `Origin: null`, which is refused.
        (REFERRER_POLICY, "same-origin"),
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

/// Returns the tools that `query` asks for, and the definition.
async fn find(context: &IngressContext, caller: ConnectedClient, query: &ToolsQuery) -> FoundTools {
    let tools = match (query.words.as_str(), query.server.as_str()) {
        ("", "") => None,
        ("", server) => Some(listed(context, caller, server).await),
        (words, _) => {
            let params = json!({ "query": words, "explain": true, "limit": defaults::PAGE_TOOLS });
            let found = ask(context, caller, "tools/search", &params).await;
            Some(found.map(|mut found| members(found["tools"].take())))
        }
    };
    let definition = match query.tool.as_str() {
        "" => None,
        tool => Some(ask(context, caller, "tools/info", &json!({ "name": tool })).await),
    };
    FoundTools { tools, definition }
}

/// Returns the tools of a server in the form of those that a search finds.
async fn listed(
    context: &IngressContext,
    caller: ConnectedClient,
    server: &str,
) -> Result<Vec<Value>, String> {
    let params = json!({ "server": server, "includeSchema": true, "schemaDepth": 0 });
    let tools = members(ask(context, caller, "tools/list", &params).await?);
    let found = tools.into_iter().map(|mut listed| {
        let mut tool = listed["tool"].take();
        json!({
            "server": listed["server"].take(),
            "tool": tool["name"].take(),
            "title": tool["title"].take(),
            "description": tool["description"].take(),
        })
    });
    Ok(found.collect())
}

fn members(list: Value) -> Vec<Value> {
    match list {
        Value::Array(members) => members,
        _ => Vec::new(),
    }
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

/// Opens the stream of updates. A token that differs from `token` ends it.
fn events(
    context: Arc<IngressContext>,
    caller: ConnectedClient,
    token: Option<BearerToken>,
) -> Result<Response, IngressError> {
    let permit = context.pages.admit(caller.holder).ok_or(IngressError::StreamsFull)?;
    let (stop, tokens) = (context.stop.clone(), Arc::clone(&context.token));
    let read = move || {
        let context = Arc::clone(&context);
        async move { read(&context, caller).await.unwrap_or_else(PageData::failed) }
    };
    let updates = PageUpdates::new(read, permit, stop, move || tokens.get() == token);
    Ok(http_response::event_stream(stream::unfold(updates, |mut updates| async move {
        updates.next().await.map(|event| (event, updates))
    })))
}
