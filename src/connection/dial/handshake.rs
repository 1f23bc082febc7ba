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
    config::defaults,
    era::{ClientEra, add_client_meta},
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
    /// The handshake failed, and no other connection is tried.
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

struct Handshake<'a> {
    connection: &'a Arc<Connection>,
    timeout: Duration,
    deadline: Instant,
}

/// Opens the connection in the order `opening` within `timeout`, and returns the finding.
pub(super) async fn shake_hands(
    connection: &Arc<Connection>,
    opening: OpeningOrder,
    timeout: Duration,
) -> Result<EraFinding, HandshakeFailure> {
    let handshake = Handshake { connection, timeout, deadline: Instant::now() + timeout };
    match opening {
        OpeningOrder::Initialize => {
            let answer = handshake.initialize().await?;
            if answer.part(MessagePart::Result).is_none() {
                // The assumption about its era no longer holds.
                let error = handshake.refused(method::INITIALIZE, &answer);
                return Err(HandshakeFailure::Reopen(OpeningOrder::Probe, error));
            }
            handshake.complete_legacy(&answer, EraFinding::Nothing).await
        }
        OpeningOrder::DiscoverOnly => handshake.discover_only().await,
        OpeningOrder::Discover => handshake.probe(timeout).await,
        // Half of the time is kept for the other order if there is little of it.
        OpeningOrder::Probe => handshake.probe(defaults::PROBE_TIMEOUT.min(timeout / 2)).await,
    }
}

impl Handshake<'_> {
    /// Sends the probe, and `initialize` too if `silence` passes without an answer.
    async fn probe(&self, silence: Duration) -> Result<EraFinding, HandshakeFailure> {
        let mut discovering = pin!(self.discover());
        let answer = match self.connection.within_silence(silence, discovering.as_mut()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) if is_no_answer(&failure) => return self.fall_back().await,
            Ok(Err(failure)) => {
                let error = match &failure {
                    RequestFailure::Exited { .. }
                    | RequestFailure::HungUp { .. }
                    | RequestFailure::Gone => HandshakeFailure::EndedAtProbe,
                    _ => HandshakeFailure::Failed,
                };
                return Err(error(self.failed(method::DISCOVER, failure)));
            }
            Err(_) if self.time_left().is_zero() => {
                let failure = RequestFailure::Timeout(self.timeout);
                return Err(self.failed(method::DISCOVER, failure).into());
            }
            Err(_) => {
                tracing::debug!(
                    mcp_server = %self.connection.server,
                    "server `{}` has not answered `server/discover` yet", self.connection.server
                );
                return self.ask_both(discovering).await;
            }
        };
        match Discovery::of(&answer) {
            Discovery::Modern(profile) => Ok(self.complete_modern(profile)),
            Discovery::Refused => self.discover_only().await,
            Discovery::Legacy => self.fall_back().await,
        }
    }

    /// Shakes hands with a server that did not accept the probe.
    async fn fall_back(&self) -> Result<EraFinding, HandshakeFailure> {
        self.end_abandoned_session();
        let answer = self.initialize().await?;
        self.initialized(&answer, LegacyEvidence::Refusal).await
    }

    /// Handles the answer to `initialize` of a server that has not answered the probe, or has
    /// refused it, as `evidence` says.
    async fn initialized(
        &self,
        answer: &Message,
        evidence: LegacyEvidence,
    ) -> Result<EraFinding, HandshakeFailure> {
        if answer.part(MessagePart::Result).is_some() {
            return self.complete_legacy(answer, EraFinding::Legacy(evidence)).await;
        }
        match Discovery::of(answer) {
            // It is modern, and had no time for the probe.
            Discovery::Refused => self.discover_only().await,
            Discovery::Modern(_) | Discovery::Legacy => {
                let error = self.refused(method::INITIALIZE, answer);
                Err(match self.connection.link {
                    // The server may refuse everything that follows a probe on its pipe.
                    Link::Stdio(_) => HandshakeFailure::Reopen(OpeningOrder::Initialize, error),
                    Link::Http(_) => error.into(),
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
                    self.end_abandoned_session();
                    None
                }
            };
        let answer = tokio::select! {
            biased;
            found = discovering.as_mut() => {
                let Some(profile) = modern(&found) else {
                    return self.initialized(&initializing.await?, LegacyEvidence::Refusal).await;
                };
                let timeout = defaults::PROBE_TIMEOUT.min(self.time_left());
                return match time::timeout(timeout, initializing).await {
                    Ok(answer) if is_accepted(&answer) => self.reopen_for_probe(),
                    Ok(_) | Err(_) => Ok(self.complete_modern(profile)),
                };
            }
            answer = initializing.as_mut() => answer,
        };
        // A refused `initialize` decides nothing while the probe is on its way.
        let timeout = match &self.connection.link {
            Link::Http(_) if answer.is_err() => self.time_left(),
            Link::Stdio(_) | Link::Http(_) => defaults::PROBE_GRACE.min(self.time_left()),
        };
        match time::timeout(timeout, discovering).await {
            Ok(found) => match modern(&found) {
                Some(_) if is_accepted(&answer) => self.reopen_for_probe(),
                Some(profile) => Ok(self.complete_modern(profile)),
                None => self.initialized(&answer?, LegacyEvidence::Refusal).await,
            },
            Err(_) => self.initialized(&answer?, LegacyEvidence::CostlyProbe).await,
        }
    }

    /// Ends a session that an upstream has created for the probe.
    fn end_abandoned_session(&self) {
        if let Link::Http(link) = &self.connection.link {
            link.end_abandoned_session();
        }
    }

    /// Requests a new connection to a server of both eras that has accepted both requests.
    fn reopen_for_probe(&self) -> Result<EraFinding, HandshakeFailure> {
        let late = RequestFailure::Timeout(defaults::PROBE_TIMEOUT);
        Err(HandshakeFailure::Reopen(OpeningOrder::Discover, self.failed(method::DISCOVER, late)))
    }

    /// Probes a server that is of the modern era, as far as is known.
    async fn discover_only(&self) -> Result<EraFinding, HandshakeFailure> {
        let answer = self.discover().await;
        let answer = answer.map_err(|failure| self.failed(method::DISCOVER, failure))?;
        match Discovery::of(&answer) {
            Discovery::Modern(profile) => Ok(self.complete_modern(profile)),
            Discovery::Refused | Discovery::Legacy => {
                let error = self.not_discovered(&answer);
                Err(HandshakeFailure::Reopen(OpeningOrder::Initialize, error))
            }
        }
    }

    async fn discover(&self) -> Result<Message, RequestFailure> {
        let answer = self.connection.probe(&discovery(), self.time_left()).await;
        self.with_exit_reason(answer).await
    }

    async fn initialize(&self) -> Result<Message, ConnectError> {
        let params = payloads::initialize_params(self.connection.owner.capabilities());
        let request = Message::request(method::INITIALIZE, Some(&params));
        let limits = ConnectionLimits::of_total(self.time_left());
        let answer = self.connection.ask(&request, limits).await;
        let answer = self.with_exit_reason(answer).await;
        answer.map_err(|failure| self.failed(method::INITIALIZE, failure))
    }

    /// Replaces [`RequestFailure::Gone`] of a child by its exit, which is known a little later.
    async fn with_exit_reason(
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
    async fn complete_legacy(
        &self,
        answer: &Message,
        finding: EraFinding,
    ) -> Result<EraFinding, HandshakeFailure> {
        let Some(result) = answer.part(MessagePart::Result) else {
            return Err(self.refused(method::INITIALIZE, answer).into());
        };
        let profile = ServerProfile::read(result).map_err(|source| {
            let server = self.connection.server().clone();
            ConnectError::Profile { server, request: method::INITIALIZE, source }
        })?;
        if let Link::Http(link) = &self.connection.link {
            link.upstream.set_session(&profile);
        }
        let _set_before = self.connection.profile.set(profile);
        self.connection.notify(&Message::notification(method::INITIALIZED, None)).await;
        self.connection.warm_up.initialized.cancel();
        Ok(finding)
    }

    /// Stores the profile of a server of the modern era.
    fn complete_modern(&self, profile: ServerProfile) -> EraFinding {
        let _set_before = self.connection.profile.set(profile);
        EraFinding::Modern
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn failed(&self, request: &'static str, failure: RequestFailure) -> ConnectError {
        let source = match failure {
            // The server had the whole time, not only the rest that was left for this request.
            RequestFailure::Timeout(_) => RequestFailure::Timeout(self.timeout),
            other => other,
        };
        ConnectError::Handshake { server: self.connection.server().clone(), request, source }
    }

    fn refused(&self, request: &'static str, answer: &Message) -> ConnectError {
        let answer = self.connection.quote(answer.part(MessagePart::Error).unwrap_or_default());
        ConnectError::Refused { server: self.connection.server().clone(), request, answer }
    }

    fn not_discovered(&self, answer: &Message) -> ConnectError {
        let request = method::DISCOVER;
        match answer.part(MessagePart::Result).map(ServerProfile::discovered) {
            Some(Err(source)) => {
                ConnectError::Profile { server: self.connection.server().clone(), request, source }
            }
            Some(Ok(_)) | None => self.refused(request, answer),
        }
    }
}

/// Returns whether a server has accepted `initialize`.
fn is_accepted(answer: &Result<Message, ConnectError>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.part(MessagePart::Result).is_some())
}

/// Returns the request for the profile of a server.
pub(in super::super) fn discovery() -> Message {
    add_client_meta(&Message::request(method::DISCOVER, None), &ClientEra::Metamcp)
}

/// Returns whether an upstream responded, but not with an answer: it does not know the method. An
/// upstream that is absent or denies access would respond to another method in the same way.
fn is_no_answer(failure: &RequestFailure) -> bool {
    match failure {
        RequestFailure::Status(status, _) => !matches!(
            *status,
            StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
        ),
        RequestFailure::BrokenOff(_)
        | RequestFailure::Oversized(_)
        | RequestFailure::AnswerTooDeep => true,
        _ => false,
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
    fn only_answers_of_the_modern_era_show_that_era() {
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
