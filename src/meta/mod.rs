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
pub mod backend;
pub mod call_outcome;
pub mod call_warnings;
pub mod chain;
pub mod cursor;
pub mod definitions;
pub mod describe;
pub mod error;
pub mod field_selection;
mod json_digest;
mod json_type;
pub mod preview;
pub mod progress;
pub mod result_cache;
pub mod result_document;
pub mod tool_id;
pub mod validation;

pub use arguments::{ArgumentError, MetaArguments};
pub use backend::backend_of;
pub use call_outcome::ToolOutcome;
pub use call_warnings::{ToolWarning, warnings};
pub use chain::ToolChain;
pub use cursor::{CursorError, CursorScope};
pub use definitions::MetaTool;
pub use describe::DescribedTool;
pub use error::{ErrorCode, ErrorObject};
pub use field_selection::FieldSelection;
pub use preview::ResultPreview;
pub use progress::{ProgressReport, ToolProgress};
pub use result_cache::ResultCache;
pub use result_document::ResultDocument;
pub use tool_id::{RequestedTool, ToolId};
pub use validation::{ArgumentVerdict, SchemaCache};

#[cfg(test)]
mod tests;
