//! The sandbox of a script: a process of its own with nothing but an engine and one pipe.
//!
//! ```text
//!  service ──▶ pipe ──▶ engine: QuickJS ── prelude.js ── the script
//!          ◀── messages: operations, output, its end
//! ```
//!
//! The process confines itself before it reads the script, so that not even an error of the engine
//! gives the script anything but the pipe. It serves one script and ends.

mod bounded_allocator;
mod call_place;
mod engine;
pub mod message;
mod process;
mod thrown_value;
mod type_stripping;
mod unicode_escapes;

pub use engine::{SandboxError, run_script};
pub use process::main;
