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
    #[error("`{name}` has no server prefix")]
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
    #[error("`{method}` lacks `params.{parameter}`")]
    MissingParameter {
        /// The method.
        method: String,
        /// The parameter.
        parameter: &'static str,
    },
    /// The request needs a session, and names none.
    #[error("`{method}` needs a session, and the request names none")]
    NoSession {
        /// The method.
        method: String,
    },
    /// No server lists the resource.
    #[error("no server lists the resource `{uri}`")]
    UnknownResource {
        /// The URI.
        uri: String,
    },
    /// The list has no page with this cursor.
    #[error("the list has no page `{cursor}`")]
    UnknownCursor {
        /// The cursor.
        cursor: String,
    },
    /// The server did not answer a list request with a list.
    #[error("server `{server}` did not answer `{method}` with a list, but with {answer}")]
    NoList {
        /// The server.
        server: ServerName,
        /// The list method.
        method: &'static str,
        /// The answer instead of a list.
        answer: String,
    },
    /// The client watches the maximum number of resources.
    #[error("the client already watches {max} resources, the maximum")]
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
        "server `{server}` is temporarily unavailable: it failed repeatedly, next attempt in {} s",
        whole_seconds(*.retry_in)
    )]
    Tripped {
        /// The server.
        server: ServerName,
        /// The longest time until a request may pass.
        retry_in: Duration,
    },
    /// The server could not be connected.
    #[error("{error}")]
    NotConnected {
        /// The server.
        server: ServerName,
        /// The cause, which names the server.
        error: SlotError,
    },
    /// The request has no counterpart in the era of the server.
    #[error("server `{server}` did not receive the request")]
    Untranslatable {
        /// The server.
        server: ServerName,
        /// The cause.
        source: TranslationError,
    },
    /// The server has asked the client a question, and cannot get the answer.
    #[error("server `{server}` got no answer to its question")]
    Unanswered {
        /// The server.
        server: ServerName,
        /// The cause.
        source: InputRefusal,
    },
    /// metamcp would have to compute the answer itself, and is overloaded.
    #[error("metamcp did not compute the answer")]
    Overloaded {
        /// The cause.
        source: ComputeError,
    },
    /// The server has answered, but metamcp could not process the answer for the client.
    #[error("server `{server}` answered, but metamcp did not process the answer")]
    NotComputed {
        /// The server.
        server: ServerName,
        /// The cause.
        source: ComputeError,
    },
    /// The server was connected and gave no answer.
    #[error("request to server `{server}` failed")]
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
            Self::NoList { .. } => Fault::Protocol,
            Self::NotConnected { error, .. } => error.fault(),
            Self::Failed { source, .. } => source.fault(),
            // The server did not get the request, or did its part.
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
        }
    }

    /// Returns the cause that other requests may share. The request was on a connection of
    /// `generation`, or waited for the connection attempt `attempt`.
    pub(super) fn incident(
        &self,
        attempt: u64,
        generation: Option<u64>,
    ) -> Option<BreakerIncident> {
        if let Self::NotConnected { error: SlotError::Dial { attempt, .. }, .. } = self {
            return Some(BreakerIncident::Dial(*attempt));
        }
        match self.failure()? {
            RequestFailure::ConnectTimeout { .. } => Some(BreakerIncident::Dial(attempt)),
            RequestFailure::Timeout { .. } => Some(BreakerIncident::Timeout),
            other => generation.filter(|_| other.is_shared()).map(BreakerIncident::Connection),
        }
    }

    /// Returns the reason why the server gave no answer, if the request was sent.
    pub(super) fn failure(&self) -> Option<&RequestFailure> {
        if let Self::Failed { source, .. } = self { Some(source) } else { None }
    }

    /// Returns whether connecting failed, and another attempt may succeed.
    pub(super) fn may_reconnect(&self) -> bool {
        matches!(
            self,
            Self::NotConnected { error: SlotError::Dial { error, .. }, .. } if error.is_transient()
        )
    }
}

/// Returns a duration in whole seconds, rounded up.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
