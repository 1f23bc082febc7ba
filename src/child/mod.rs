//! Stdio servers: child processes in their own process groups, and systemd units reached over a
//! socket. Children are drained and never left behind.
//!
//! This module knows nothing of MCP: it provides two pipes and ends the server.
//! This is the only module that starts servers.

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
