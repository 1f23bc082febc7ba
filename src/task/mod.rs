//! Calls that go on without whoever made them: started, looked at, fetched and cancelled later.
//!
//! ```text
//!  tools/call-async ──▶ Tasks ──▶ one driver for each call ──▶ call::Exchange ──▶ server
//!                         │            │  a task of the server: tasks/get … tasks/result
//!  tasks/get … ─────▶ Store (pure) ◀───┘
//!                         │
//!                       Shelf: one file for each, so that a restart forgets none
//! ```
//!
//! Where the server has tasks itself and the tool takes them, the call is one of those: it may outlive
//! our connection. All others are requests that wait for their answers here. To whoever asks, both
//! look the same, but for what becomes of them when the server or we are gone.

mod driver;
mod record;
mod status;
mod store;
mod task_files;
mod task_run;

pub use driver::{CancelError, TaskDriver, TaskStartError, TaskWork};
pub use record::{TaskOutcome, TaskRecord, UpstreamTask};
pub use status::TaskStatus;
pub use store::{TaskEnd, TaskEvent, TaskLimits, TaskStore};
pub use task_files::TaskFiles;
