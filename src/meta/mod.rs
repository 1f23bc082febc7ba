//! The meta-tools: their names, arguments and answers.
//!
//! A few tools give access to hundreds. A model finds a tool by what it does, reads its arguments,
//! and calls it.
//!
//! ```text
//!  tools/list ── definitions
//!  tools/call ── arguments ── tool_id ── describe ── warnings ──▶ the answer
//!                │              └── validation ── progress ──▶ the call
//!                ▼                     ▼                       ▼
//!            RpcError         ErrorObject ◀─ outcome ─ field_selection ─ preview ─ result_cache
//! ```
//!
//! Everything here is pure: text in, text out. It starts no server and has no clock. The view
//! drives it, and passes the time.

pub mod arguments;
pub mod call_outcome;
pub mod chain;
pub mod cursor;
pub mod definitions;
pub mod describe;
pub mod preview;
pub mod progress;
pub mod result_cache;
pub mod result_document;

pub use arguments::{ArgumentError, MetaArguments};
pub use call_outcome::ToolOutcome;
pub use chain::ToolChain;
pub use cursor::{CursorError, CursorScope};
pub use definitions::MetaTool;
pub use describe::DescribedTool;
pub use preview::ResultPreview;
pub use progress::{ProgressReport, ToolProgress};
pub use result_cache::ResultCache;
pub use result_document::ResultDocument;

#[cfg(test)]
mod tests;
