//! The services and the circumstances of a script.

use std::sync::Arc;

use super::{
    operation_runner::OperationRunner, record_store::ScriptRecords,
    sandbox_process::SandboxLauncher,
};
use crate::{capacity_holder::Holder, fair_share::Admission};

/// The services and the circumstances of a script.
pub struct ScriptContext {
    /// The way to start its sandbox.
    pub launcher: SandboxLauncher,
    /// The services that do its operations.
    pub runner: Arc<dyn OperationRunner>,
    /// The records of all scripts.
    pub records: Arc<ScriptRecords>,
    /// `true` if the client can answer a question with another request.
    pub can_suspend: bool,
    /// The client's progress token, JSON text.
    pub token: Option<String>,
    /// The places of the scripts that run at the same time.
    pub places: Arc<Admission>,
    /// The holder that it counts for.
    pub holder: Holder,
}
