//! The time at which a reload of the configuration applies a changed key.

use serde::Serialize;

/// The time at which a reload applies a changed key: `x-reload` of the key in the JSON Schema.
///
/// A key without it has that of the table that contains it. If no table has one, the key is
/// applied [at once](Self::AtOnce).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum ReloadEffect {
    /// From the next request on.
    #[serde(rename = "at once")]
    AtOnce,
    /// With each connection of a client that is made after the reload.
    #[serde(rename = "new connections")]
    NewConnections,
    /// At once, by another connection to the server.
    #[serde(rename = "the changed server reconnects")]
    Reconnect,
    /// Only when the service starts again.
    #[serde(rename = "restart")]
    Restart,
}
