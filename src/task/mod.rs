//! Calls and scripts that continue without their callers: started, polled, fetched and cancelled
//! later.
//!
//! ```text
//!  tools/call-async ──▶ TaskDriver ──▶ one driver per call ──▶ call::Exchange ──▶ server
//!                          │              │  a task of the server: tasks/get … tasks/result
//!  tasks/get … ─────▶ TaskStore (pure) ◀──┘
//!                          │
//!                      TaskFiles: one file per task, so that a restart forgets none
//! ```
//!
//! If the server has tasks and the tool accepts them, the call becomes a task of the server, which
//! may outlive the connection. All other calls are requests that wait for their answers here.
//! Callers see no difference, except for the outcome when the server or metamcp ends. A script keeps
//! a record from its start, and goes on from it after a restart.

mod driver;
mod record;
mod script_run;
mod store;
mod task_files;
mod task_run;
mod task_work;
mod upstream_task;

pub use driver::{CancelError, TaskDriver};
pub use record::{TaskOutcome, TaskRecord, TaskStatus, TaskSubject, UpstreamTask};
pub use store::{TaskEnd, TaskEvent, TaskLimits, TaskStore};
pub use task_files::TaskFiles;
pub use task_work::{CallWork, TaskStartError, TaskWork};
