//! The errors of requests that got no answer from a server, for clients and operators.

use std::time::Duration;

use super::input_required::InputRefusal;
use crate::{
    breaker::BreakerIncident,
    compute_pool::ComputeError,
    connection::RequestFailure,
    era::TranslationError,
    fault_class::Fault,
    pool::{BreakerOpen, SlotError},
    server_name::ServerName,
};

mod client_error;
mod recorded_failure;

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
    /// The server with that name is disabled.
    #[error("server `{server}` is disabled")]
    DisabledServer {
        /// The name.
        server: String,
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
    #[error("`{0}` needs a session, and the request names none")]
    NoSession(String),
    /// No server lists the resource.
    #[error("no server lists the resource `{0}`")]
    UnknownResource(String),
    /// The list has no page with this cursor.
    #[error("the list has no page `{0}`")]
    UnknownCursor(String),
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
    /// The client watches this maximum number of resources.
    #[error("the client already watches {0} resources, the maximum")]
    TooManyWatched(usize),
    /// The log level does not exist.
    #[error("there is no log level `{0}`")]
    UnknownLevel(String),
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
        "server `{}` is not available: {}; next attempt in {} s",
        .0,
        .1.cause.as_deref().unwrap_or("it failed repeatedly"),
        whole_seconds(.1.retry_in)
    )]
    Tripped(ServerName, BreakerOpen),
    /// The server could not be connected. The cause names it.
    #[error("{1}")]
    NotConnected(ServerName, SlotError),
    /// The request has no counterpart in the era of the server.
    #[error("server `{0}` did not receive the request")]
    Untranslatable(ServerName, #[source] TranslationError),
    /// The server has asked the client a question, and cannot get the answer.
    #[error("server `{0}` got no answer to its question")]
    Unanswered(ServerName, #[source] InputRefusal),
    /// metamcp would have to compute the answer itself, and is overloaded.
    #[error("metamcp did not compute the answer")]
    Overloaded(#[source] ComputeError),
    /// The server has answered, but metamcp could not process the answer for the client.
    #[error("server `{0}` answered, but metamcp did not process the answer")]
    NotComputed(ServerName, #[source] ComputeError),
    /// The server was connected and gave no answer.
    #[error("request to server `{0}` failed")]
    Failed(ServerName, #[source] RequestFailure),
}

impl CallError {
    /// Returns the cause as a statement about the server, if the server is the cause.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::NotConnected(_, error) => error.cause(),
            Self::Failed(_, source) => Some(source.cause()),
            _ => None,
        }
    }

    /// Returns the kind of failure, from the point of view of the server.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NoList { .. } => Fault::Protocol,
            Self::NotConnected(_, error) => error.fault(),
            Self::Failed(_, source) => source.fault(),
            // The server did not get the request, or did its part.
            Self::Unqualified { .. }
            | Self::UnknownServer { .. }
            | Self::DisabledServer { .. }
            | Self::MissingParameter { .. }
            | Self::NoSession(_)
            | Self::UnknownResource(_)
            | Self::UnknownCursor(_)
            | Self::TooManyWatched(_)
            | Self::UnknownLevel(_)
            | Self::UnknownMethod { .. }
            | Self::Untranslatable(..)
            | Self::Unanswered(..)
            | Self::Overloaded(_)
            | Self::NotComputed(..)
            | Self::Tripped(..) => Fault::Cancelled,
        }
    }

    /// Returns the cause that other requests may share. The request was on a connection of
    /// `generation`, or waited for the connection attempt `attempt`.
    pub(super) fn incident(
        &self,
        attempt: u64,
        generation: Option<u64>,
    ) -> Option<BreakerIncident> {
        if let Self::NotConnected(_, SlotError::Dial { attempt, .. }) = self {
            return Some(BreakerIncident::Dial(*attempt));
        }
        match self.failure()? {
            RequestFailure::ConnectTimeout(_) => Some(BreakerIncident::Dial(attempt)),
            RequestFailure::Timeout(_) => Some(BreakerIncident::Timeout),
            other => generation.filter(|_| other.is_shared()).map(BreakerIncident::Connection),
        }
    }

    /// Returns the reason why the server gave no answer, if the request was sent.
    pub(super) fn failure(&self) -> Option<&RequestFailure> {
        if let Self::Failed(_, source) = self { Some(source) } else { None }
    }

    /// Returns whether the server requires a login.
    pub(super) fn is_login_required(&self) -> bool {
        match self {
            Self::NotConnected(_, SlotError::Dial { error, .. }) => error.is_login_required(),
            Self::Failed(_, source) => source.is_login_required(),
            _ => false,
        }
    }

    /// Returns whether connecting failed, and another attempt may succeed.
    pub(super) fn may_reconnect(&self) -> bool {
        matches!(
            self,
            Self::NotConnected(_, SlotError::Dial { error, .. }) if error.is_transient()
        )
    }
}

/// Returns a duration in whole seconds, rounded up.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
