//! Scripts: programs of models and operators that call tools, from their start to their end.
//!
//! ```text
//!  code ──▶ ScriptExchange ── driver ──┬── ScriptState (pure) ◀── record
//!                 │                    ├── SandboxProcess ──▶ metamcp sandbox
//!     events, the end                  └── OperationRunner ──▶ calls of tools
//! ```
//!
//! A script runs in a [`sandbox`](crate::sandbox) of its own. Its calls are calls of its client,
//! which an [`OperationRunner`] makes. What happens to it is recorded, so that it can go on later
//! from a [`ScriptRecords`] file: after a person was asked, or after the service has ended.

mod driver;
mod limits;
mod message_check;
mod operation_runner;
mod operation_stage;
mod progress_reporter;
mod record;
mod record_store;
mod running_operations;
mod sandbox_cgroup;
mod sandbox_process;
mod script_clock;
mod script_context;
mod script_exchange;
mod script_outcome;
mod script_questions;
mod script_services;
mod script_state;
#[cfg(test)]
mod tests;

pub use driver::PreparedScript;
pub use limits::{ScriptEnd, ScriptLimit, ScriptLimits};
pub use message_check::check_sandbox_bytes;
pub use operation_runner::{
    OperationAttempt, OperationEnd, OperationEvents, OperationRunner, ScriptEvent,
};
pub use record_store::{ResumeError, ScriptRecords};
pub use sandbox_process::SandboxLauncher;
pub use script_context::ScriptContext;
pub use script_exchange::{ScriptExchange, ScriptStep};
pub use script_outcome::ScriptOutcome;
pub use script_services::ScriptServices;
