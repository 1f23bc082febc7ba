//! The meta-tool `mcp_provision`, which starts a server that does what the client asks for.

use super::{
    arguments::{ArgumentError, FieldReader},
    meta_call::MetaCall,
};
use crate::{forward::RequestOutcome, provision::ProvisionRequest};

/// The arguments of `mcp_provision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisionArguments {
    /// The need that a server should meet.
    pub intent: String,
    /// More context.
    pub context: Option<String>,
    /// `true` to start the best match, if that is allowed.
    pub auto_provision: bool,
}

impl ProvisionArguments {
    pub(super) fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        Ok(Self {
            intent: fields.required("intent")?,
            context: fields.text("context")?,
            auto_provision: fields.flag("autoProvision", false)?,
        })
    }
}

/// Answers `mcp_provision`.
pub(super) async fn provision(
    call: MetaCall<'_>,
    arguments: &ProvisionArguments,
) -> RequestOutcome {
    let request = ProvisionRequest {
        intent: &arguments.intent,
        context: arguments.context.as_deref(),
        auto: arguments.auto_provision,
        limits: call.services.forwarder.limits(),
    };
    let found = call.services.provisioner.provision(request).await;
    let found = serde_json::to_string(&found).expect("our own values have string keys");
    call.reply.value(&found)
}
