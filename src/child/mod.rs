//! Stdio servers: processes of ours, in a group of their own, drained and never left behind, and
//! units of systemd, which are connected to.
//!
//! Knows nothing of MCP: it hands out two pipes and promises an end.
//! This is the only module that starts processes.

mod descendants;
pub mod environment;
mod error_output;
mod family;
mod journal;
pub mod kinship;
pub mod ladder;
pub mod launch;
mod mark;
pub mod memory;
pub mod orphans;
pub mod process;
mod processes;
mod spawn_error;
pub mod stderr;
pub mod unit;

pub use descendants::kill_descendants;
pub use error_output::ErrorOutput;
pub use family::see_off_orphans;
pub use kinship::{Kinship, KnownClientProcess, ServerAncestry};
pub use launch::{
    HostLauncher, LaunchError, LaunchSite, LaunchedServer, Launcher, RunningServer, StdioServerKind,
};
pub use process::{Child, ChildExit, ChildProgram};
pub use spawn_error::SpawnError;
pub use unit::UnitServer;
