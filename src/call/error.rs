//! Why a request did not get an answer from a server, as clients and operators see it.

use std::time::Duration;

use super::input_required::InputRefusal;
use crate::{
    breaker::BreakerIncident, compute_pool::ComputeError, connection::RequestFailure,
    era::TranslationError, fault::Fault, name::ServerName, pool::SlotError,
};

mod client_error;

/// Why a request did not get an answer from a server.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The name has no server in front.
    #[error("`{name}` has no server in front")]
    Unqualified {
        /// The name of the tool or prompt.
        name: String,
        /// Names that exist and are close to it.
        similar: Vec<String>,
    },
    /// No server of that name is declared.
    #[error("there is no server `{server}`")]
    UnknownServer {
        /// The name.
        server: String,
        /// Names that exist and are close to it.
        similar: Vec<String>,
    },
    /// A parameter is missing that the request cannot be routed without.
    #[error("`{method}` without `params.{parameter}`")]
    MissingParameter {
        /// The method.
        method: String,
        /// The parameter.
        parameter: &'static str,
    },
    /// What was asked for is kept for a session, and the request names none.
    #[error("`{method}` without a session")]
    NoSession {
        /// The method.
        method: String,
    },
    /// No server lists the resource.
    #[error("no server has a resource `{uri}`")]
    UnknownResource {
        /// The URI.
        uri: String,
    },
    /// A list has no such page.
    #[error("there is no page `{cursor}`")]
    UnknownCursor {
        /// The cursor.
        cursor: String,
    },
    /// The server did not answer a list request with a list.
    #[error("server `{server}` answered `{method}` with {answer}")]
    NoList {
        /// The server.
        server: ServerName,
        /// The list.
        method: &'static str,
        /// What it said instead.
        answer: String,
    },
    /// As many resources are watched for the client as may be.
    #[error("{max} resources are watched for this client already")]
    TooManyWatched {
        /// How many may be.
        max: usize,
    },
    /// The level is none.
    #[error("there is no log level `{level}`")]
    UnknownLevel {
        /// What was asked for.
        level: String,
    },
    /// The view does not carry the method.
    #[error("the method `{method}` is not available here")]
    UnknownMethod {
        /// The method.
        method: String,
        /// Where it is available, or why it is not.
        hint: &'static str,
    },
    /// The server has failed so often that it is left alone for a while.
    #[error(
        "server `{server}` is temporarily unavailable: breaker open, next probe in {} s",
        whole_seconds(*.retry_in)
    )]
    Tripped {
        /// The server.
        server: ServerName,
        /// How long it takes at most until a request may pass.
        retry_in: Duration,
    },
    /// The server could not be connected.
    #[error("server `{server}` is not connected")]
    NotConnected {
        /// The server.
        server: ServerName,
        /// Why.
        source: SlotError,
    },
    /// The request has no meaning in the era of the server.
    #[error("server `{server}` cannot be asked this")]
    Untranslatable {
        /// The server.
        server: ServerName,
        /// What of the request.
        source: TranslationError,
    },
    /// The server wants to know something of the client first, and does not get to know it.
    #[error("server `{server}` has asked its client something")]
    Unanswered {
        /// The server.
        server: ServerName,
        /// What became of that.
        source: InputRefusal,
    },
    /// The service would have to compute the answer itself, and has too much of that to do.
    #[error("the answer was not computed")]
    Overloaded {
        /// Why.
        source: ComputeError,
    },
    /// The server has answered, and the answer could not be made ready for the client.
    #[error("server `{server}` has answered, and its answer was not read")]
    NotComputed {
        /// The server.
        server: ServerName,
        /// Why.
        source: ComputeError,
    },
    /// The server was connected and gave no answer.
    #[error("server `{server}` gave no answer")]
    Failed {
        /// The server.
        server: ServerName,
        /// Why.
        source: RequestFailure,
    },
}

impl CallError {
    /// Returns what kind of failure it is, as far as the server is concerned.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unqualified { .. }
            | Self::UnknownServer { .. }
            | Self::MissingParameter { .. }
            | Self::NoSession { .. }
            | Self::UnknownResource { .. }
            | Self::UnknownCursor { .. }
            | Self::TooManyWatched { .. }
            | Self::UnknownLevel { .. }
            | Self::UnknownMethod { .. }
            | Self::Untranslatable { .. }
            | Self::Unanswered { .. }
            | Self::Overloaded { .. }
            | Self::NotComputed { .. }
            | Self::Tripped { .. } => Fault::Cancelled,
            Self::NoList { .. } => Fault::Protocol,
            Self::NotConnected { source, .. } => source.fault(),
            Self::Failed { source, .. } => source.fault(),
        }
    }

    /// Returns what may have made other requests fail with this one, which was on a connection of
    /// `generation`, or waited for the dial `attempt`.
    pub(super) fn incident(
        &self,
        attempt: u64,
        generation: Option<u64>,
    ) -> Option<BreakerIncident> {
        match self {
            Self::NotConnected { source, .. } => match source {
                SlotError::Dial { attempt, .. } => Some(BreakerIncident::Dial(*attempt)),
                SlotError::Closing(_)
                | SlotError::Busy { .. }
                | SlotError::Exhausted { .. }
                | SlotError::SessionRequired(_)
                | SlotError::SessionEnded(_) => None,
            },
            Self::Failed { source: RequestFailure::NotInTime { .. }, .. } => {
                Some(BreakerIncident::Dial(attempt))
            }
            Self::Failed { source: RequestFailure::Timeout { .. }, .. } => {
                Some(BreakerIncident::Timeout)
            }
            Self::Failed { source, .. } => {
                generation.filter(|_| source.is_shared()).map(BreakerIncident::Connection)
            }
            Self::Unqualified { .. }
            | Self::UnknownServer { .. }
            | Self::MissingParameter { .. }
            | Self::NoSession { .. }
            | Self::UnknownResource { .. }
            | Self::UnknownCursor { .. }
            | Self::NoList { .. }
            | Self::TooManyWatched { .. }
            | Self::UnknownLevel { .. }
            | Self::UnknownMethod { .. }
            | Self::Untranslatable { .. }
            | Self::Unanswered { .. }
            | Self::Overloaded { .. }
            | Self::NotComputed { .. }
            | Self::Tripped { .. } => None,
        }
    }

    /// Returns why the server gave no answer, if it was asked.
    pub(super) fn failure(&self) -> Option<&RequestFailure> {
        if let Self::Failed { source, .. } = self { Some(source) } else { None }
    }

    /// Tells whether the server could not be connected, and another dial may fare better.
    pub(super) fn may_be_dialled_again(&self) -> bool {
        let dial = |source: &SlotError| match source {
            SlotError::Dial { error, .. } => error.may_pass(),
            SlotError::Closing(_)
            | SlotError::Busy { .. }
            | SlotError::Exhausted { .. }
            | SlotError::SessionRequired(_)
            | SlotError::SessionEnded(_) => false,
        };
        matches!(self, Self::NotConnected { source, .. } if dial(source))
    }
}

/// Returns a time in whole seconds, so that it is over when they are.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
