//! The values in a message that metamcp reads or rewrites.

/// A value in a message that a hop may read or rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// The message's `id`.
    Id,
    /// `params._meta`.
    Meta,
    /// `params._meta.progressToken` of a request, `params.progressToken` of a notification.
    ProgressToken,
    /// `params.requestId` of a cancellation.
    CancelledId,
    /// `params.name` of a tool call or a prompt request.
    Name,
    /// `params.uri` of a resource request.
    Uri,
    /// `params.cursor` of a list request.
    Cursor,
    /// `params.protocolVersion` of `initialize`.
    ProtocolVersion,
    /// `params.capabilities` of `initialize`.
    Capabilities,
    /// `params.level` of a log message, or of the request that sets the level.
    Level,
    /// `params.progress` of a progress notification.
    Progress,
    /// `params.requestState` of a request that is repeated with answers for its server.
    RequestState,
    /// `params.inputResponses` of such a request.
    InputResponses,
    /// `params.ref` of a completion.
    Reference,
    /// The whole `result`.
    Result,
    /// The whole `error`.
    Error,
}
