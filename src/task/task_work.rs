//! The work of a task, before its start.

use std::{io, sync::Arc, time::Duration};

use super::TaskSubject;
use crate::{
    capacity_holder::Holder,
    config::defaults,
    pool::ServerSlot,
    protocol::{Message, list_page::ListItem},
    script::PreparedScript,
};

/// The work of a task to start.
pub enum TaskWork {
    /// A call of a tool.
    Call(Box<CallWork>),
    /// A script, with its name for operators.
    Script(Box<PreparedScript>, Option<String>),
}

/// A call to start.
#[derive(Debug)]
pub struct CallWork {
    /// The server.
    pub slot: Arc<ServerSlot>,
    /// The definition of the tool.
    pub tool: ListItem,
    /// The `tools/call` request, as a client of the server would send it.
    pub request: Message,
    /// The maximum time that it may run.
    pub timeout: Duration,
    /// The party that it counts for.
    pub holder: Holder,
}

/// The reason why a task does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskStartError {
    /// Too many tasks run.
    #[error("{} calls and scripts run in the background already", defaults::TASKS_RUNNING_MAX)]
    Full,
    /// The record of a script cannot be written.
    #[error("the script would not survive a restart: its record cannot be written: {0}")]
    Unrecorded(String),
    /// The service stops.
    #[error("the service is stopping")]
    Stopping,
}

impl TaskWork {
    /// Returns the subject of the task. Writes the record of a script.
    pub(super) async fn subject(&mut self) -> Result<TaskSubject, TaskStartError> {
        Ok(match self {
            Self::Call(call) => TaskSubject::Call {
                server: call.slot.name().to_string(),
                tool: call.tool.key.clone(),
            },
            Self::Script(script, name) => {
                let state = script.record_from_start().await;
                let unrecorded = |error: io::Error| TaskStartError::Unrecorded(error.to_string());
                TaskSubject::Script { state: state.map_err(unrecorded)?, name: name.take() }
            }
        })
    }
}
