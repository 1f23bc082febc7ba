//! Child processes: started in a group of their own, drained, and never left behind.
//!
//! Knows nothing of MCP: it hands out two pipes and promises an end.
//! This is the only module that starts processes.

pub mod environment;
pub mod ladder;
pub mod launch;
pub mod process;
pub mod stderr;

pub use launch::{Home, Host, LaunchError, Launched, Launcher, Tenant};
pub use process::{Child, Exit, Program, SpawnError};
