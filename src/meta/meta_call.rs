//! A call of a meta-tool, with the services that answer it, and the reason for a refusal.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    arguments::ArgumentError, cursor::CursorError, kept_results::KeptResults, reply::MetaReply,
};
use crate::{
    call_record::{ParentCall, RecordedFailure},
    connection::{ConnectionLimits, ForwardedHeaders},
    forward::Forwarder,
    protocol::{Message, RpcError, jsonrpc::MessagePart},
    provision::Provisioner,
    script::{SandboxLauncher, ScriptServices},
    session::Session,
    tool::{ArgumentChecker, ErrorObject, RequestedTool, ResolvedTool, ToolDirectory},
};

/// The services that the meta-tools use.
#[derive(Debug)]
pub(super) struct MetaServices {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) directory: Arc<ToolDirectory>,
    pub(super) checker: Arc<ArgumentChecker>,
    pub(super) provisioner: Arc<Provisioner>,
    /// The scripts of all clients.
    pub(super) scripts: ScriptServices,
    /// The large results from which clients read on.
    pub(super) results: Arc<KeptResults>,
}

impl MetaServices {
    /// Returns the way to start the sandbox of a script.
    ///
    /// # Errors
    ///
    /// The reason why no script may run, in words.
    pub(super) fn sandbox_launcher(&self) -> Result<SandboxLauncher, String> {
        self.scripts.launcher(&self.forwarder.peek_config().execute)
    }
}

/// A call of a meta-tool, with everything that answers it.
#[derive(Clone, Copy)]
pub(super) struct MetaCall<'a> {
    /// The services of the view.
    pub(super) services: &'a Arc<MetaServices>,
    /// The session of the client.
    pub(super) session: &'a Arc<Session>,
    /// The reply to the client.
    pub(super) reply: &'a MetaReply,
    /// The request of the client.
    pub(super) request: &'a Message,
    /// The headers of the client for the servers that get them.
    pub(super) forwarded: Option<&'a Arc<ForwardedHeaders>>,
    /// The call as the cause of others in their records, if it is observed.
    pub(super) observed: Option<ParentCall>,
}

impl MetaCall<'_> {
    /// Returns the client's progress token, as JSON text.
    pub(super) fn token(&self) -> Option<&str> {
        self.request.part(MessagePart::ProgressToken)
    }

    /// Returns the requested tool of a server, as this client sees its tools. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] if there is no such server or tool, or the server cannot be asked.
    pub(super) async fn resolve(
        &self,
        tool: &RequestedTool,
        limits: ConnectionLimits,
    ) -> Result<ResolvedTool, ErrorObject> {
        let list_owner = self.services.forwarder.list_owner(self.session);
        self.services.directory.resolve(list_owner, tool, limits).await
    }
}

/// Returns the request without the members that concern the call of the meta-tool itself: the
/// progress token and the input responses.
pub(super) fn inner_request(request: &Message) -> Message {
    request.with_params(|params| {
        params.take("inputResponses");
        params.take("requestState");
        params.edit_object("_meta", |meta| drop(meta.take("progressToken")));
    })
}

/// The reason why a meta-tool rejects a call.
#[derive(Debug)]
pub(super) enum MetaRefusal {
    /// The call is invalid: a fault of the client. The text is the cause for records.
    Protocol(Box<RpcError>, String),
    /// An error for the model, which can correct the call.
    Tool(Box<ErrorObject>),
}

impl MetaRefusal {
    /// Returns the answer to the call.
    pub(super) fn answer(self, reply: &MetaReply) -> Bytes {
        match self {
            Self::Protocol(error, _) => reply.refused(*error),
            Self::Tool(error) => reply.failed(*error),
        }
    }

    /// Returns the failure as the record of the call tells it.
    pub(super) fn to_record(&self) -> RecordedFailure {
        match self {
            Self::Protocol(error, cause) => RecordedFailure::own(error.name, cause),
            Self::Tool(error) => error.to_record(),
        }
    }
}

impl From<ErrorObject> for MetaRefusal {
    fn from(error: ErrorObject) -> Self {
        Self::Tool(Box::new(error))
    }
}

impl From<Box<ErrorObject>> for MetaRefusal {
    fn from(error: Box<ErrorObject>) -> Self {
        Self::Tool(error)
    }
}

impl From<ArgumentError> for MetaRefusal {
    fn from(error: ArgumentError) -> Self {
        Self::Protocol(Box::new(error.to_rpc()), error.recorded_cause())
    }
}

impl From<CursorError> for MetaRefusal {
    fn from(error: CursorError) -> Self {
        let error = error.to_rpc();
        // It has no text of the client.
        let cause = error.message.clone();
        Self::Protocol(Box::new(error), cause)
    }
}
