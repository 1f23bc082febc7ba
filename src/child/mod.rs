//! Stdio servers: child processes in their own process groups, and systemd units reached over a
//! socket. Children are drained and never left behind.
//!
//! This module knows nothing of MCP: it provides two pipes and ends the server. It is the only
//! module that starts servers.

mod client_visible_stderr;
mod descendants;
pub mod environment;
mod environment_marker;
pub mod escalation;
pub mod launcher;
pub mod orphan_reaper;
pub mod process;
pub mod process_ancestry;
mod process_table;
pub mod resource_usage;
mod spawn_error;
pub mod stderr;
pub mod unit;
mod unit_journal;

pub use client_visible_stderr::ErrorOutput;
pub use descendants::{kill_descendants, terminate_orphans};
pub use launcher::{
    HostLauncher, LaunchError, LaunchSite, LaunchedServer, Launcher, RunningServer, StdioServerKind,
};
pub use process::{Child, ChildExit, ChildProgram};
pub use process_ancestry::{KnownClientProcess, ServerAncestry, ServerRelation};
pub use spawn_error::{SpawnError, SpawnFault};
pub use unit::UnitServer;
