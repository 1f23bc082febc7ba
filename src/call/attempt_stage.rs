//! The stages of an attempt.

use futures_util::future::BoxFuture;

use super::{InputExchange, connecting::RequestConnection, login_exchange::LoginExchange};
use crate::{
    connection::PendingRequest,
    pool::{BreakerOpen, ConnectionLease},
};

/// The stage of the current attempt.
pub(super) enum AttemptStage {
    /// The breaker is open.
    Tripped(BreakerOpen),
    /// The connection attempt is stored here, so that a cancelled wait can continue.
    Connecting(BoxFuture<'static, RequestConnection>),
    /// There is a connection, and the request must be sent.
    Leased(ConnectionLease),
    /// The request is on its way. The call is first, so that none runs on a returned connection.
    Running { call: PendingRequest, lease: ConnectionLease },
    /// The client must log in at the server first.
    LoggingIn(Box<LoginExchange>),
    /// The client must answer the server's questions first.
    AwaitingInput(Box<InputExchange>, ConnectionLease),
    /// Nothing follows: there is an answer or an error, or the client has cancelled the request.
    Over,
}

impl AttemptStage {
    /// Returns the connection of the attempt, if it has one.
    pub(super) fn lease(&self) -> Option<&ConnectionLease> {
        match self {
            Self::Leased(lease) | Self::Running { lease, .. } | Self::AwaitingInput(_, lease) => {
                Some(lease)
            }
            Self::Tripped(_) | Self::Connecting(_) | Self::LoggingIn(_) | Self::Over => None,
        }
    }
}
