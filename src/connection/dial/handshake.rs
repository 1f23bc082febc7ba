//! The handshake: the first exchange with a server, which finds its profile and its era.
//!
//! ```text
//!  server/discover ──▶ its answer ──────────────▶ modern
//!        │ └─ an error, or a result of anything else ──▶ initialize ──▶ legacy
//!        └─ silence ──▶ initialize as well: the first answer that shows an era decides
//! ```
//!
//! Requests on a pipe stay there: a server that starts slowly finds both, and answers the one that
//! it understands. A server that accepts both is of the modern era: metamcp connects to it again,
//! with the probe alone.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use hyper::StatusCode;
use tokio::time::{self, Instant};

use super::{
    super::{Connection, ConnectionLimits, Link, RequestFailure},
    ConnectError,
    era_cache::{EraFinding, LegacyEvidence, OpeningOrder},
};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    era::{ClientEra, introduce},
    protocol::{
        Message, RpcError,
        jsonrpc::MessagePart,
        payloads::{self, ServerProfile, method},
        rpc_error::{CAPABILITY_REQUIRED, HEADER_MISMATCH, UNSUPPORTED_VERSION},
    },
};

/// The reason why there was no handshake.
#[derive(Debug)]
pub(super) enum HandshakeFailure {
    /// The handshake failed for good.
    Failed(ConnectError),
    /// The server ended when it was probed.
    EndedAtProbe(ConnectError),
    /// Another connection has to be opened, in this order.
    Reopen(OpeningOrder, ConnectError),
}

impl From<ConnectError> for HandshakeFailure {
    fn from(error: ConnectError) -> Self {
        Self::Failed(error)
    }
}

/// The meaning of an answer to `server/discover`.
#[derive(Debug)]
enum Discovery {
    /// The server is of the modern era, with this profile.
    Modern(ServerProfile),
    /// The server is of the modern era and refuses this request.
    Refused,
    /// The server is of the legacy era.
    Legacy,
}

/// One handshake.
struct Handshake<'a> {
    connection: &'a Arc<Connection>,
    patience: Duration,
    ends: Instant,
}

/// Opens the connection in the order `opening` within `patience`, and returns the finding.
pub(super) async fn shake_hands(
    connection: &Arc<Connection>,
    opening: OpeningOrder,
    patience: Duration,
) -> Result<EraFinding, HandshakeFailure> {
    let handshake = Handshake { connection, patience, ends: Instant::now() + patience };
    match opening {
        OpeningOrder::Initialize => {
            let answer = handshake.initialize().await?;
            if answer.part(MessagePart::Result).is_none() {
                // The assumption about its era does not hold any more.
                let error = handshake.refused(method::INITIALIZE, &answer);
                return Err(HandshakeFailure::Reopen(OpeningOrder::Probe, error));
            }
            handshake.initialized(&answer, EraFinding::Nothing).await
        }
        OpeningOrder::DiscoverOnly => {
            let answer = handshake.discover().await;
            let answer = answer.map_err(|failure| handshake.failed(method::DISCOVER, failure))?;
            match Discovery::of(&answer) {
                Discovery::Modern(profile) => Ok(handshake.discovered(profile)),
                Discovery::Refused | Discovery::Legacy => {
                    Err(handshake.not_discovered(&answer).into())
                }
            }
        }
        OpeningOrder::Discover => handshake.probe(patience).await,
        // Half of the time is kept for the other order if there is little of it.
        OpeningOrder::Probe => handshake.probe(defaults::PROBE_TIMEOUT.min(patience / 2)).await,
    }
}

impl Handshake<'_> {
    /// Sends the probe, and `initialize` too if `silence` passes without an answer.
    async fn probe(&self, silence: Duration) -> Result<EraFinding, HandshakeFailure> {
        let mut discovering = pin!(self.discover());
        let answer = match time::timeout(silence, discovering.as_mut()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) if is_no_answer(&failure) => {
                return self.fall_back().await;
            }
            Ok(Err(failure)) => {
                let is_end = matches!(
                    failure,
                    RequestFailure::Exited { .. }
                        | RequestFailure::HungUp { .. }
                        | RequestFailure::Gone
                );
                let error = self.failed(method::DISCOVER, failure);
                return Err(if is_end {
                    HandshakeFailure::EndedAtProbe(error)
                } else {
                    error.into()
                });
            }
            Err(_) if self.time_left().is_zero() => {
                let failure = RequestFailure::Timeout { after: self.patience };
                return Err(self.failed(method::DISCOVER, failure).into());
            }
            Err(_) => {
                tracing::debug!(mcp_server = %self.connection.server, "`server/discover` not answered");
                return self.ask_both(discovering).await;
            }
        };
        match Discovery::of(&answer) {
            Discovery::Modern(profile) => Ok(self.discovered(profile)),
            Discovery::Refused => self.discover_again().await,
            Discovery::Legacy => self.fall_back().await,
        }
    }

    /// Shakes hands with a server that did not accept the probe.
    async fn fall_back(&self) -> Result<EraFinding, HandshakeFailure> {
        self.forget_stray_session();
        let answer = self.initialize().await?;
        self.handshaken(&answer, LegacyEvidence::Refusal).await
    }

    /// Handles the answer to `initialize` of a server that has not answered the probe, or has
    /// refused it, as `evidence` says.
    async fn handshaken(
        &self,
        answer: &Message,
        evidence: LegacyEvidence,
    ) -> Result<EraFinding, HandshakeFailure> {
        if answer.part(MessagePart::Result).is_some() {
            return self.initialized(answer, EraFinding::Legacy(evidence)).await;
        }
        match Discovery::of(answer) {
            // It is modern, and had no time for the probe.
            Discovery::Refused => self.discover_again().await,
            Discovery::Modern(_) | Discovery::Legacy => {
                let error = self.refused(method::INITIALIZE, answer);
                // It may refuse everything that follows a probe.
                let is_spoilt = matches!(self.connection.link, Link::Stdio(_));
                Err(if is_spoilt {
                    HandshakeFailure::Reopen(OpeningOrder::Initialize, error)
                } else {
                    error.into()
                })
            }
        }
    }

    /// Sends `initialize` beside the probe, to a server that may still be starting. The first
    /// answer that shows an era decides. metamcp connects again, with the probe alone, if the
    /// server accepts both: many such servers fix the era of a pipe to that of their last request.
    async fn ask_both(
        &self,
        mut discovering: std::pin::Pin<&mut impl Future<Output = Result<Message, RequestFailure>>>,
    ) -> Result<EraFinding, HandshakeFailure> {
        let mut initializing = pin!(self.initialize());
        let modern =
            |found: &Result<Message, RequestFailure>| match found.as_ref().map(Discovery::of) {
                Ok(Discovery::Modern(profile)) => Some(profile),
                // It refuses the probe, but `initialize` is on its way.
                Ok(Discovery::Refused | Discovery::Legacy) | Err(_) => {
                    self.forget_stray_session();
                    None
                }
            };
        let answer = tokio::select! {
            biased;
            found = discovering.as_mut() => {
                let Some(profile) = modern(&found) else {
                    return self.handshaken(&initializing.await?, LegacyEvidence::Refusal).await;
                };
                let patience = defaults::PROBE_TIMEOUT.min(self.time_left());
                return match time::timeout(patience, initializing).await {
                    Ok(answer) if is_taken(&answer) => self.once_more(),
                    Ok(_) | Err(_) => Ok(self.discovered(profile)),
                };
            }
            answer = initializing.as_mut() => answer,
        };
        // A refused `initialize` decides nothing while the probe is on its way.
        let patience = match &self.connection.link {
            Link::Http(_) if answer.is_err() => self.time_left(),
            Link::Stdio(_) | Link::Http(_) => defaults::PROBE_GRACE.min(self.time_left()),
        };
        match time::timeout(patience, discovering).await {
            Ok(found) => match modern(&found) {
                Some(_) if is_taken(&answer) => self.once_more(),
                Some(profile) => Ok(self.discovered(profile)),
                None => self.handshaken(&answer?, LegacyEvidence::Refusal).await,
            },
            Err(_) => self.handshaken(&answer?, LegacyEvidence::Harm).await,
        }
    }

    /// Ends a session that an upstream has created for the probe.
    fn forget_stray_session(&self) {
        if let Link::Http(link) = &self.connection.link {
            link.end_stray_session();
        }
    }

    /// Requests a new connection to a server of both eras that has accepted both requests.
    fn once_more(&self) -> Result<EraFinding, HandshakeFailure> {
        let late = RequestFailure::Timeout { after: defaults::PROBE_TIMEOUT };
        Err(HandshakeFailure::Reopen(OpeningOrder::Discover, self.failed(method::DISCOVER, late)))
    }

    /// Probes a server of the modern era again after it has refused a request.
    async fn discover_again(&self) -> Result<EraFinding, HandshakeFailure> {
        let answer = self.discover().await;
        let answer = answer.map_err(|failure| self.failed(method::DISCOVER, failure))?;
        match Discovery::of(&answer) {
            Discovery::Modern(profile) => Ok(self.discovered(profile)),
            Discovery::Refused | Discovery::Legacy => {
                let error = self.not_discovered(&answer);
                Err(HandshakeFailure::Reopen(OpeningOrder::Initialize, error))
            }
        }
    }

    async fn discover(&self) -> Result<Message, RequestFailure> {
        let answer = self.connection.inquire(&discovery(), self.time_left()).await;
        self.known_end(answer).await
    }

    async fn initialize(&self) -> Result<Message, ConnectError> {
        let params = payloads::initialize_params(self.connection.party.capabilities());
        let request = Message::request(method::INITIALIZE, Some(&params));
        let left = self.time_left();
        let limits = ConnectionLimits { silence: left, total: left };
        let answer = match self.connection.call_internal(Holder::SERVICE, &request, limits).await {
            Ok(call) => call.finish().await,
            Err(failure) => Err(failure),
        };
        let answer = self.known_end(answer).await;
        answer.map_err(|failure| self.failed(method::INITIALIZE, failure))
    }

    /// Replaces [`RequestFailure::Gone`] of a child by its exit, which is known a little later.
    async fn known_end(
        &self,
        answer: Result<Message, RequestFailure>,
    ) -> Result<Message, RequestFailure> {
        match answer {
            Err(RequestFailure::Gone) => {
                self.connection.down().await;
                Err(self.connection.reason().cloned().unwrap_or(RequestFailure::Gone))
            }
            answer => answer,
        }
    }

    /// Stores the profile of a server of the legacy era, and sends `notifications/initialized`.
    async fn initialized(
        &self,
        answer: &Message,
        finding: EraFinding,
    ) -> Result<EraFinding, HandshakeFailure> {
        let Some(result) = answer.part(MessagePart::Result) else {
            let error = self.refused(method::INITIALIZE, answer);
            return Err(error.into());
        };
        let profile = ServerProfile::read(result).map_err(|source| {
            let server = self.connection.server().clone();
            ConnectError::Profile { server, asked: method::INITIALIZE, source }
        })?;
        if let Link::Http(link) = &self.connection.link {
            link.set_protocol_version(&profile);
        }
        let _set_before = self.connection.profile.set(profile);
        self.connection.notify(&Message::notification(method::INITIALIZED, None)).await;
        self.connection.note_initialized();
        Ok(finding)
    }

    /// Stores the profile of a server of the modern era.
    fn discovered(&self, profile: ServerProfile) -> EraFinding {
        let _set_before = self.connection.profile.set(profile);
        EraFinding::Modern
    }

    fn time_left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    fn failed(&self, asked: &'static str, failure: RequestFailure) -> ConnectError {
        let source = match failure {
            // The server had the whole time, not only the rest that was left for this request.
            RequestFailure::Timeout { .. } => RequestFailure::Timeout { after: self.patience },
            other => other,
        };
        ConnectError::Handshake { server: self.connection.server().clone(), asked, source }
    }

    fn refused(&self, asked: &'static str, answer: &Message) -> ConnectError {
        let answer = self.connection.quote(answer.part(MessagePart::Error).unwrap_or_default());
        ConnectError::Refused { server: self.connection.server().clone(), asked, answer }
    }

    fn not_discovered(&self, answer: &Message) -> ConnectError {
        let asked = method::DISCOVER;
        match answer.part(MessagePart::Result).map(ServerProfile::discovered) {
            Some(Err(source)) => {
                ConnectError::Profile { server: self.connection.server().clone(), asked, source }
            }
            Some(Ok(_)) | None => self.refused(asked, answer),
        }
    }
}

/// Returns whether a server has accepted `initialize`.
fn is_taken(answer: &Result<Message, ConnectError>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.part(MessagePart::Result).is_some())
}

/// Returns the request for the profile of a server.
pub(in super::super) fn discovery() -> Message {
    introduce(&Message::request(method::DISCOVER, None), &ClientEra::Ourselves)
}

/// Returns whether an upstream responded, but not with an answer: it does not know the method. An
/// upstream that is absent or denies access would respond to another method in the same way.
fn is_no_answer(failure: &RequestFailure) -> bool {
    match failure {
        RequestFailure::Status { status, .. } => !matches!(
            *status,
            StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
        ),
        RequestFailure::BrokenOff(_)
        | RequestFailure::Oversized { .. }
        | RequestFailure::AnswerTooDeep => true,
        RequestFailure::Exited { .. }
        | RequestFailure::HungUp { .. }
        | RequestFailure::Closed
        | RequestFailure::Gone
        | RequestFailure::Connect(_)
        | RequestFailure::SessionLost(_)
        | RequestFailure::EraLost(_)
        | RequestFailure::Unresponsive
        | RequestFailure::TooDeep
        | RequestFailure::Timeout { .. }
        | RequestFailure::NotInTime { .. }
        | RequestFailure::Overrun
        | RequestFailure::NoMemory(_)
        | RequestFailure::Saturated => false,
    }
}

impl Discovery {
    /// Reads an answer. Source: MCP 2026-07-28, "Versioning", "Backward Compatibility": only the
    /// errors of the modern era show that era, and any other error shows the legacy era.
    fn of(answer: &Message) -> Self {
        if let Some(result) = answer.part(MessagePart::Result) {
            return ServerProfile::discovered(result).map_or(Self::Legacy, Self::Modern);
        }
        let error = answer.part(MessagePart::Error).unwrap_or_default();
        match RpcError::code_of(error) {
            Some(HEADER_MISMATCH | CAPABILITY_REQUIRED) => Self::Refused,
            Some(UNSUPPORTED_VERSION) if RpcError::serves_modern(error) == Some(true) => {
                Self::Refused
            }
            _ => Self::Legacy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discovery_of(answer: &str) -> Discovery {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#);
        Discovery::of(&Message::parse(text.into()).expect("an answer"))
    }

    #[test]
    fn only_what_the_modern_era_has_tells_of_it() {
        for (answer, is_modern, is_refused) in [
            (r#""result":{"supportedVersions":["2026-07-28"]}"#, true, false),
            (r#""result":{"supportedVersions":["2025-11-25"]}"#, false, false),
            (r#""result":{}"#, false, false),
            (
                r#""error":{"code":-32022,"message":"","data":{"supported":["2026-07-28"]}}"#,
                false,
                true,
            ),
            (
                r#""error":{"code":-32022,"message":"","data":{"supported":["2025-11-25"]}}"#,
                false,
                false,
            ),
            (r#""error":{"code":-32022,"message":""}"#, false, false),
            (r#""error":{"code":-32020,"message":""}"#, false, true),
            (r#""error":{"code":-32021,"message":""}"#, false, true),
            (r#""error":{"code":-32601,"message":""}"#, false, false),
            (r#""error":{"code":-32602,"message":""}"#, false, false),
            (r#""error":{"code":-32000,"message":""}"#, false, false),
        ] {
            let found = discovery_of(answer);
            assert_eq!(matches!(found, Discovery::Modern(_)), is_modern, "{answer}: {found:?}");
            assert_eq!(matches!(found, Discovery::Refused), is_refused, "{answer}: {found:?}");
        }
    }
}
