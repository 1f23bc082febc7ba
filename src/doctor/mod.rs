//! What is wrong with a configuration, its servers and this host, and what to do about each.
//!
//! ```text
//!  probes (they look)          findings (pure: they judge)
//!  server, host, socket ─────▶ servers, names, unit, … ─────▶ Finding: what, why, fix
//! ```
//!
//! A probe changes nothing and judges nothing. Each server is started in isolation, a second time where
//! the service has it running.

mod files;
mod finding;
mod host;
mod names;
mod pinned;
mod server;
mod socket;
mod tee;
mod unit;
mod variables;

pub use files::{directories, socket_directory};
pub use finding::{Finding, Level, count};
pub use host::host;
pub use names::names;
pub use pinned::unpinned;
pub use server::{Phase, Seen, judged, look_at};
pub use socket::{control, http};
pub use unit::{Installed, installed, unit};
pub use variables::variables;
