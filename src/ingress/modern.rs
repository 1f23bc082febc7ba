//! MCP over streamable HTTP, modern era: self-contained requests, no sessions, only POST.
//!
//! The headers must match the body, because intermediaries rely on the headers.
//! Source: MCP 2026-07-28, "Streamable HTTP".

use std::sync::Arc;

use hyper::{HeaderMap, StatusCode, header::HeaderValue};
use serde_json::Value;

use super::{
    IngressContext, Response,
    error::{HeaderMismatch, IngressError, quoted_input},
    http_response, message_dispatch,
    request_parts::{self, VERSION},
    trace_headers::add_trace_headers,
};
use crate::{
    call_record::ClientName,
    capacity_holder::Holder,
    era::client_subscription::SubscriptionFilter,
    protocol::{
        Era, Message, MessageKind,
        client_meta::{self, ClientMeta},
        jsonrpc::MessagePart,
        parameter_headers,
        payloads::{VERSION_HEADER, method},
        version,
    },
    session::Session,
    view::View,
};

pub(super) mod subscription_stream;

/// Returns whether a message belongs to the modern era, by its own version and that in the header
/// `version`. No message of the legacy era names its version. Without any version, a header that
/// only the modern era has decides.
pub(super) fn is_modern(
    headers: &HeaderMap,
    version: Option<&HeaderValue>,
    message: &Message,
) -> bool {
    let named = version.map(|named| named.to_str().unwrap_or_default());
    let is_legacy = named.is_some_and(version::is_legacy);
    match message.method() {
        Some(method::INITIALIZE) if is_legacy || named.is_none() => false,
        _ if client_meta::version_of(message).is_some() => true,
        _ => !is_legacy && (named.is_some() || headers.contains_key(parameter_headers::METHOD)),
    }
}

/// Returns whether the headers of a request without a body name the modern era.
pub(super) fn has_modern_headers(headers: &HeaderMap) -> bool {
    headers.get(&VERSION).is_some_and(|named| named == version::MODERN)
}

/// Answers a message that was sent by POST.
pub(super) async fn respond(
    context: Arc<IngressContext>,
    view: &View,
    headers: &HeaderMap,
    message: Message,
    holder: Holder,
) -> Response {
    let id = message.part(MessagePart::Id).map(str::to_owned);
    match try_respond(context, view, headers, message, holder).await {
        Ok(response) => response,
        Err(error) => error.into_response_to(id.as_deref()),
    }
}

async fn try_respond(
    context: Arc<IngressContext>,
    view: &View,
    headers: &HeaderMap,
    mut message: Message,
    holder: Holder,
) -> Result<Response, IngressError> {
    match message.kind() {
        MessageKind::Response => return Err(IngressError::UnexpectedResponse),
        MessageKind::Notification => {
            check_version(header_value(headers, VERSION_HEADER)?)?;
            let session = Session::anonymous(view.scope(), holder);
            message_dispatch::deliver(&context, view, &message, &session).await;
            return Ok(http_response::empty(StatusCode::ACCEPTED));
        }
        MessageKind::Request => {}
    }
    let accepts = request_parts::accepted_forms(headers)?;
    check_headers(headers, &message)?;
    let client_meta = ClientMeta::read(&message)?;
    if message.method() == Some(method::SUBSCRIPTIONS_LISTEN) {
        if !accepts.events {
            return Err(IngressError::ListenNotAccepted);
        }
        let filter = SubscriptionFilter::read(&message)?;
        return subscription_stream::open(context, view, filter, &message);
    }
    check_arguments(&context, view, headers, &message)?;
    let accepts = accepts.restricted(&context);
    let name = ClientName::read(client_meta.client_info.as_deref());
    let client = context.views.sessions().clients().sessionless(holder, name, Era::Modern);
    let session = Session::of_request(view.scope(), client_meta, holder, client);
    add_trace_headers(&mut message, headers);
    let forwarded = context.views.forwarded(headers);
    let reply =
        message_dispatch::start_request(context, view, message, &session, accepts, forwarded);
    Ok(reply.into_response().await)
}

/// Compares the headers that every request has with its body.
fn check_headers(headers: &HeaderMap, request: &Message) -> Result<(), IngressError> {
    let body = client_meta::version_of(request);
    let version =
        header_value(headers, VERSION_HEADER)?.ok_or(HeaderMismatch::Missing(VERSION_HEADER))?;
    if let Some(body) = body {
        compare(VERSION_HEADER, version, &body)?;
    }
    // The version determines the other required headers.
    check_version(Some(version))?;
    let requested = request.method().unwrap_or_default();
    let method = header_value(headers, parameter_headers::METHOD)?
        .ok_or(HeaderMismatch::Missing(parameter_headers::METHOD))?;
    compare(parameter_headers::METHOD, method, requested)?;
    // A request that lacks a required name fails for that reason later.
    let Some((name, is_required)) = parameter_headers::name_of(request) else { return Ok(()) };
    let header = match header_value(headers, parameter_headers::NAME)? {
        None if !is_required => return Ok(()),
        header => header.ok_or(HeaderMismatch::Missing(parameter_headers::NAME))?,
    };
    let header = parameter_headers::decode(header)
        .ok_or(HeaderMismatch::Unreadable(parameter_headers::NAME))?;
    Ok(compare(parameter_headers::NAME, &header, &name)?)
}

/// Compares the headers that repeat arguments with the arguments.
fn check_arguments(
    context: &IngressContext,
    view: &View,
    headers: &HeaderMap,
    request: &Message,
) -> Result<(), IngressError> {
    let parameters = context.views.header_parameters(view, request);
    if parameters.is_empty() {
        return Ok(());
    }
    let arguments = parameter_headers::arguments(request);
    let arguments: Value =
        arguments.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    for argument in parameters {
        // A header that is not text matches no argument.
        let header = headers.get(&argument.header).map(|sent| sent.to_str().unwrap_or("\0"));
        if !argument.agrees(&arguments, header) {
            let (header, argument) = (argument.header, argument.path.join("."));
            return Err(HeaderMismatch::Argument { header, argument }.into());
        }
    }
    Ok(())
}

/// Returns the value of a header. A repeated header counts as unreadable.
fn header_value<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a str>, HeaderMismatch> {
    let mut values = headers.get_all(name).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    value.map(|value| Some(value.trim_matches([' ', '\t']))).ok_or(HeaderMismatch::Unreadable(name))
}

fn compare(header: &'static str, sent: &str, body: &str) -> Result<(), HeaderMismatch> {
    if sent == body {
        return Ok(());
    }
    Err(HeaderMismatch::Differs { header, sent: quoted_input(sent), body: quoted_input(body) })
}

/// Rejects all other versions: legacy versions are not served in this form either.
pub(super) fn check_version(requested: Option<&str>) -> Result<(), IngressError> {
    match requested {
        Some(requested) if requested != version::MODERN => {
            Err(IngressError::UnsupportedVersion(quoted_input(requested)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
