//! HTTP with server-sent events, as in protocol version 2024-11-05: the stream of one GET names the
//! address for messages and then carries every answer.
//!
//! The stream is the connection: when it ends, so does the session.
//! Source: MCP 2024-11-05, "HTTP with SSE"; 2025-03-26, "Backwards compatibility".

use http_body_util::BodyExt as _;
use hyper::Uri;
use std::sync::Arc;
use tokio::time;

use super::{
    Connection, RequestFailure,
    endpoint::{HttpUpstream, is_event_stream},
    stream::{MeteredEvents, read_shared},
};
use crate::{
    config::defaults,
    http_client::{Origin, ResponseBody, resolve_reference},
    protocol::sse::SseItem,
};

/// An upstream that has named its message address.
pub(in super::super) struct LegacySseEndpoint {
    /// The upstream at the message address.
    pub(in super::super) upstream: HttpUpstream,
    pub(in super::super) stream: LegacySseStream,
}

/// The stream that carries every answer.
pub(in super::super) struct LegacySseStream {
    body: ResponseBody,
    events: MeteredEvents,
}

/// A message address of another origin; metamcp sends no credentials there.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct ForeignEndpoint(pub(in super::super) String);

/// Opens the stream of `upstream`; `None` when there is none, or when it does not name an address
/// within [`defaults::ENDPOINT_TIMEOUT`]. Cancel safe: the stream is closed.
///
/// # Errors
///
/// [`ForeignEndpoint`] when the address is of another origin, or invalid.
pub(in super::super) async fn open(
    upstream: &HttpUpstream,
) -> Result<Option<LegacySseEndpoint>, ForeignEndpoint> {
    let opening = async {
        let answer = upstream.listen(b"", None).await.ok().filter(is_event_stream)?;
        let (mut body, mut events) = (answer.into_body(), MeteredEvents::new(None, 0));
        loop {
            events.parser.push(body.frame().await?.ok()?.into_data().unwrap_or_default());
            while let Some(item) = events.parser.next_item() {
                if let SseItem::Event(event) = item
                    && event.kind == "endpoint"
                {
                    let named = String::from_utf8_lossy(&event.data).into_owned();
                    return Some((named, LegacySseStream { body, events }));
                }
            }
            // An address is short.
            if events.parser.n_kept() > defaults::BUFFER_KEPT_BYTES {
                return None;
            }
        }
    };
    let opened = time::timeout(defaults::ENDPOINT_TIMEOUT, opening).await;
    let Some((named, stream)) = opened.ok().flatten() else { return Ok(None) };
    match resolve(&upstream.url, &named) {
        Some(url) => Ok(Some(LegacySseEndpoint { upstream: upstream.at(url), stream })),
        None => Err(ForeignEndpoint(named)),
    }
}

impl LegacySseStream {
    /// Reads the stream until it ends, which also ends the connection, and returns why it ended.
    pub(super) async fn read(mut self, connection: &Arc<Connection>) -> RequestFailure {
        RequestFailure::BrokenOff(read_shared(connection, &mut self.body, &mut self.events).await)
    }
}

/// Resolves the reference `named` against `base`; `None` if the result is of another origin.
fn resolve(base: &Uri, named: &str) -> Option<Uri> {
    resolve_reference(base, named).filter(|url| Origin::of(url) == Origin::of(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn resolved(named: &str) -> Option<String> {
        let base = "http://Host:8080/a/sse?x=1".parse().expect("a URL");
        resolve(&base, named).map(|url| url.to_string())
    }

    #[test]
    fn a_message_address_is_a_url_or_a_path_at_the_same_origin() {
        for (named, expected) in [
            ("http://host:8080/messages?sessionId=1", "http://host:8080/messages?sessionId=1"),
            ("//host:8080/m", "http://host:8080/m"),
            ("/messages/?session_id=a:b", "http://Host:8080/messages/?session_id=a:b"),
            ("messages?id=1#x", "http://Host:8080/a/messages?id=1"),
            ("./messages", "http://Host:8080/a/messages"),
            ("?id=1", "http://Host:8080/a/sse?id=1"),
        ] {
            assert_eq!(resolved(named).as_deref(), Some(expected), "{named}");
        }
    }

    #[test]
    fn a_message_address_at_another_origin_is_refused() {
        for named in [
            "http://evil:8080/m",
            "http://host/m",
            "http://host:8081/m",
            "https://host:8080/m",
            "//evil/m",
            "http://host:8080@evil/m",
            "file:///etc/passwd",
            "",
            "http://",
            "/with a space",
        ] {
            assert_eq!(resolved(named), None, "{named}");
        }
    }

    #[test]
    fn the_default_port_is_that_of_the_scheme() {
        for (base, same, other) in [
            ("http://host/sse", "http://host:80/m", "http://host:8080/m"),
            ("https://host/sse", "https://host:443/m", "https://host:80/m"),
            ("https://host/sse", "https://HOST/m", "http://host/m"),
        ] {
            let base = base.parse().expect("a URL");
            assert_eq!(resolve(&base, same).expect("the same origin"), same);
            assert_eq!(resolve(&base, other), None, "{other}");
        }
    }
}
