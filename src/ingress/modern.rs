//! MCP over streamable HTTP, modern era: self-contained requests, no sessions, only POST.
//!
//! The headers must match the body, because intermediaries rely on the headers.
//! Source: MCP 2026-07-28, "Streamable HTTP".

use std::sync::Arc;

use hyper::{HeaderMap, StatusCode};
use serde_json::Value;

use super::{
    IngressContext, Response,
    error::{IngressError, quoted_input},
    http_response,
    legacy::{self, VERSION},
};
use crate::{
    capacity_holder::Holder,
    era::client_subscription::SubscriptionFilter,
    protocol::{
        ByteChunks, Message, MessageKind, RpcError,
        client_meta::{self, ClientMeta},
        jsonrpc::MessagePart,
        parameter_headers,
        payloads::{VERSION_HEADER, method},
        rpc_error::{CAPABILITY_REQUIRED, HEADER_MISMATCH, METHOD_NOT_FOUND, UNSUPPORTED_VERSION},
        version,
    },
    session::Session,
    view::View,
};

pub(super) mod subscription_stream;

/// The reason why the headers of a request contradict its body.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderMismatch {
    /// A header is missing.
    #[error("the header `{0}` is missing")]
    Missing(&'static str),
    /// A header cannot be read.
    #[error("the header `{0}` is repeated, or its value cannot be decoded")]
    Unreadable(&'static str),
    /// A header differs from the body.
    #[error("the header `{header}` is `{told}`, but the body has `{body}`")]
    Differs {
        /// The name of the header.
        header: &'static str,
        /// The value of the header.
        told: String,
        /// The value in the body.
        body: String,
    },
    /// A header that repeats an argument is missing or differs.
    #[error("the header `{header}` does not match the argument `{argument}`")]
    Argument {
        /// The name of the header.
        header: String,
        /// The path to the argument.
        argument: String,
    },
}

/// Returns whether a message belongs to the modern era. No message of the legacy era names its
/// version. Without any version, a header that only the modern era has decides.
pub(super) fn is_modern(headers: &HeaderMap, message: &Message) -> bool {
    let told = headers.get(&VERSION).map(|told| told.to_str().unwrap_or_default());
    let is_legacy = told.is_some_and(version::is_legacy);
    match message.method() {
        Some(method::INITIALIZE) if is_legacy || told.is_none() => false,
        _ if client_meta::version_of(message).is_some() => true,
        _ => !is_legacy && (told.is_some() || headers.contains_key(parameter_headers::METHOD)),
    }
}

/// Returns whether the headers of a request without a body name the modern era.
pub(super) fn has_modern_headers(headers: &HeaderMap) -> bool {
    headers.get(&VERSION).is_some_and(|told| told == version::MODERN)
}

/// Answers a message that was sent by POST.
pub(super) async fn respond(
    edge: Arc<IngressContext>,
    view: &View,
    headers: &HeaderMap,
    message: Message,
    holder: Holder,
) -> Response {
    let id = message.part(MessagePart::Id).map(str::to_owned);
    match try_respond(edge, view, headers, message, holder).await {
        Ok(response) => response,
        Err(error) => error.into_response_to(id.as_deref()),
    }
}

async fn try_respond(
    edge: Arc<IngressContext>,
    view: &View,
    headers: &HeaderMap,
    message: Message,
    holder: Holder,
) -> Result<Response, IngressError> {
    match message.shape() {
        MessageKind::Response => return Err(IngressError::Response),
        MessageKind::Notification => {
            served(told(headers, VERSION_HEADER)?)?;
            let session = Session::anonymous(view.scope(), holder);
            legacy::deliver(&edge, view, &message, &session).await;
            return Ok(http_response::empty(StatusCode::ACCEPTED));
        }
        MessageKind::Request => {}
    }
    let accepts = legacy::accepts(headers)?;
    check_headers(headers, &message)?;
    let introduction = ClientMeta::read(&message)?;
    if message.method() == Some(method::SUBSCRIPTIONS_LISTEN) {
        if !accepts.events {
            return Err(IngressError::NoEvents);
        }
        let filter = SubscriptionFilter::read(&message)?;
        return subscription_stream::open(edge, view, filter, &message);
    }
    check_arguments(&edge, view, headers, &message)?;
    let accepts = accepts.preferring(&edge);
    let session = Session::of_request(view.scope(), introduction, holder);
    Ok(legacy::reply(edge, view, message, &session, accepts).into_response().await)
}

/// Returns the status of an answer, which in this era reflects the kind of error.
pub(super) fn status_of(answer: &ByteChunks) -> StatusCode {
    // Names never span two chunks, because chunks are values and the text between them. Nearly all
    // answers are results, and this check copies no large one.
    if !answer.has(br#""error""#) {
        return StatusCode::OK;
    }
    let answer = Message::parse_own(answer.clone().join()).ok();
    let error = answer.as_ref().and_then(|answer| answer.part(MessagePart::Error));
    match error.and_then(RpcError::code_of) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(HEADER_MISMATCH | CAPABILITY_REQUIRED | UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

/// Compares the headers that every request has with its body.
fn check_headers(headers: &HeaderMap, request: &Message) -> Result<(), IngressError> {
    let body = client_meta::version_of(request);
    let version = told(headers, VERSION_HEADER)?.ok_or(HeaderMismatch::Missing(VERSION_HEADER))?;
    if let Some(body) = body {
        compare(VERSION_HEADER, version, &body)?;
    }
    // The version determines the other required headers.
    served(Some(version))?;
    let asked = request.method().unwrap_or_default();
    let method = told(headers, parameter_headers::METHOD)?
        .ok_or(HeaderMismatch::Missing(parameter_headers::METHOD))?;
    compare(parameter_headers::METHOD, method, asked)?;
    // A request that lacks a required name fails for that reason later.
    let Some((name, is_required)) = parameter_headers::name_of(request) else { return Ok(()) };
    let header = match told(headers, parameter_headers::NAME)? {
        None if !is_required => return Ok(()),
        header => header.ok_or(HeaderMismatch::Missing(parameter_headers::NAME))?,
    };
    let header = parameter_headers::decode(header)
        .ok_or(HeaderMismatch::Unreadable(parameter_headers::NAME))?;
    Ok(compare(parameter_headers::NAME, &header, &name)?)
}

/// Compares the headers that repeat arguments with the arguments.
fn check_arguments(
    edge: &IngressContext,
    view: &View,
    headers: &HeaderMap,
    request: &Message,
) -> Result<(), IngressError> {
    let mirrored = edge.views.mirrored(view, request);
    if mirrored.is_empty() {
        return Ok(());
    }
    let arguments = parameter_headers::arguments(request);
    let arguments: Value =
        arguments.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    for argument in mirrored {
        // A header that is not text matches no argument.
        let header = headers.get(&argument.header).map(|told| told.to_str().unwrap_or("\0"));
        if !argument.agrees(&arguments, header) {
            let (header, argument) = (argument.header, argument.path.join("."));
            return Err(HeaderMismatch::Argument { header, argument }.into());
        }
    }
    Ok(())
}

/// Returns the value of a header. A repeated header counts as unreadable.
fn told<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, HeaderMismatch> {
    let mut values = headers.get_all(name).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    value.map(|value| Some(value.trim_matches([' ', '\t']))).ok_or(HeaderMismatch::Unreadable(name))
}

fn compare(header: &'static str, told: &str, body: &str) -> Result<(), HeaderMismatch> {
    if told == body {
        return Ok(());
    }
    Err(HeaderMismatch::Differs { header, told: quoted_input(told), body: quoted_input(body) })
}

/// Rejects all other versions: legacy versions are not served in this form either.
pub(super) fn served(asked: Option<&str>) -> Result<(), IngressError> {
    match asked {
        Some(asked) if asked != version::MODERN => Err(IngressError::Version(quoted_input(asked))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
