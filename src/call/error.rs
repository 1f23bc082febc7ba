//! The errors of requests that got no answer from a server, for clients and operators.

use std::time::Duration;

use super::input_required::InputRefusal;
use crate::{
    breaker::BreakerIncident, compute_pool::ComputeError, connection::RequestFailure,
    era::TranslationError, fault_class::Fault, pool::SlotError, server_name::ServerName,
};

mod client_error;

/// The reason why a request got no answer from a server.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The name has no server prefix.
    #[error("`{name}` has no server in front")]
    Unqualified {
        /// The name of the tool or prompt.
        name: String,
        /// Similar names that exist.
        similar: Vec<String>,
    },
    /// No server with that name is declared.
    #[error("there is no server `{server}`")]
    UnknownServer {
        /// The name.
        server: String,
        /// Similar names that exist.
        similar: Vec<String>,
    },
    /// The request lacks a parameter that routing needs.
    #[error("`{method}` without `params.{parameter}`")]
    MissingParameter {
        /// The method.
        method: String,
        /// The parameter.
        parameter: &'static str,
    },
    /// The request needs a session, and names none.
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
    /// The list has no page with this cursor.
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
        /// The list method.
        method: &'static str,
        /// The answer instead of a list.
        answer: String,
    },
    /// The client watches the maximum number of resources.
    #[error("{max} resources are watched for this client already")]
    TooManyWatched {
        /// The maximum.
        max: usize,
    },
    /// The log level does not exist.
    #[error("there is no log level `{level}`")]
    UnknownLevel {
        /// The requested level.
        level: String,
    },
    /// The view does not support the method.
    #[error("the method `{method}` is not available here")]
    UnknownMethod {
        /// The method.
        method: String,
        /// The path where it is available, or the reason why it is not.
        hint: &'static str,
    },
    /// The server has failed so often that its breaker is open.
    #[error(
        "server `{server}` is temporarily unavailable: breaker open, next probe in {} s",
        whole_seconds(*.retry_in)
    )]
    Tripped {
        /// The server.
        server: ServerName,
        /// The longest time until a request may pass.
        retry_in: Duration,
    },
    /// The server could not be connected.
    #[error("server `{server}` is not connected")]
    NotConnected {
        /// The server.
        server: ServerName,
        /// The cause.
        source: SlotError,
    },
    /// The request has no counterpart in the era of the server.
    #[error("server `{server}` cannot be asked this")]
    Untranslatable {
        /// The server.
        server: ServerName,
        /// The cause.
        source: TranslationError,
    },
    /// The server has asked the client a question, and cannot get the answer.
    #[error("server `{server}` has asked its client something")]
    Unanswered {
        /// The server.
        server: ServerName,
        /// The cause.
        source: InputRefusal,
    },
    /// metamcp would have to compute the answer itself, and is overloaded.
    #[error("the answer was not computed")]
    Overloaded {
        /// The cause.
        source: ComputeError,
    },
    /// The server has answered, but metamcp could not process the answer for the client.
    #[error("server `{server}` has answered, and its answer was not read")]
    NotComputed {
        /// The server.
        server: ServerName,
        /// The cause.
        source: ComputeError,
    },
    /// The server was connected and gave no answer.
    #[error("server `{server}` gave no answer")]
    Failed {
        /// The server.
        server: ServerName,
        /// The cause.
        source: RequestFailure,
    },
}

impl CallError {
    /// Returns the kind of failure, from the point of view of the server.
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

    /// Returns the cause that other requests may share. The request was on a connection of
    /// `generation`, or waited for the connection attempt `attempt`.
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

    /// Returns the reason why the server gave no answer, if the request was sent.
    pub(super) fn failure(&self) -> Option<&RequestFailure> {
        if let Self::Failed { source, .. } = self { Some(source) } else { None }
    }

    /// Returns whether connecting failed, and another attempt may succeed.
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

/// Returns a duration in whole seconds, rounded up.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
