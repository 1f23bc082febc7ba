//! Stdio servers: processes of ours, in a group of their own, drained and never left behind, and
//! units of systemd, which are connected to.
//!
//! Knows nothing of MCP: it hands out two pipes and promises an end.
//! This is the only module that starts processes.

mod descendants;
pub mod environment;
mod environment_marker;
mod error_output;
pub mod escalation;
pub mod launch;
pub mod memory;
pub mod orphan_reaper;
mod own_descendants;
pub mod process;
pub mod process_ancestry;
mod process_table;
mod spawn_error;
pub mod stderr;
pub mod unit;
mod unit_journal;

pub use descendants::terminate_orphans;
pub use error_output::ErrorOutput;
pub use launch::{
    HostLauncher, LaunchError, LaunchSite, LaunchedServer, Launcher, RunningServer, StdioServerKind,
};
pub use own_descendants::kill_descendants;
pub use process::{Child, ChildExit, ChildProgram};
pub use process_ancestry::{Kinship, KnownClientProcess, ServerAncestry};
pub use spawn_error::SpawnError;
pub use unit::UnitServer;
