//! The first exchange with a server: what it is, and that we are ready.

use std::{sync::Arc, time::Duration};

use super::{
    super::{Connection, Failure, Limits, Link},
    DialError,
};
use crate::protocol::{
    Message,
    jsonrpc::Part,
    mcp::{self, Profile, method},
};

/// Shakes hands within `patience`.
pub(super) async fn shake_hands(
    connection: &Arc<Connection>,
    patience: Duration,
) -> Result<(), DialError> {
    let server = connection.server();
    let failed = |source| DialError::Handshake { server: server.clone(), source };
    let request = Message::request(
        method::INITIALIZE,
        Some(&mcp::initialize_params(connection.party.capabilities())),
    );
    let limits = Limits { silence: patience, total: patience };
    let answer = match connection.ask(&request, limits).await {
        Ok(answer) => answer,
        // A child that has ended before it was written to: how it ended is known a little later.
        Err(Failure::Gone) => {
            connection.down().await;
            return Err(failed(connection.reason().cloned().unwrap_or(Failure::Gone)));
        }
        Err(failure) => return Err(failed(failure)),
    };
    let Some(result) = answer.part(Part::Result) else {
        let answer = connection.quote(answer.part(Part::Error).unwrap_or_default());
        return Err(DialError::Refused { server: server.clone(), answer });
    };
    let profile = Profile::read(result)
        .map_err(|source| DialError::Profile { server: server.clone(), source })?;
    if let Link::Http(link) = &connection.link {
        link.settled(&profile);
    }
    let _set_before = connection.profile.set(profile);
    connection.notify(&Message::notification(method::INITIALIZED, None)).await;
    connection.told_initialized();
    Ok(())
}
