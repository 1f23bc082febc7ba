//! The meta-tools: a view of a few tools that give access to hundreds.
//!
//! A model finds a tool by what it does, reads its arguments, and calls it.
//!
//! ```text
//!  tools/list ── definitions
//!  tools/call ── arguments ──┬── discover, describe, provision ──────────▶ reply
//!                            └── call, chain ──▶ an exchange ── responder ──▶ reply
//!                                                                  │
//!                                    call_outcome, preview ── kept_results
//! ```
//!
//! Each tool has its execution in one file or folder, with its arguments if they are its own.
//! [`MetaView`] reads the arguments and chooses among the tools; [`definitions`] has all schemas.

pub mod arguments;
mod call;
pub mod call_outcome;
pub mod chain;
pub mod cursor;
pub mod definitions;
pub mod describe;
mod discover;
mod execute;
mod kept_results;
pub mod meta_arguments;
mod meta_call;
mod meta_view;
pub mod preview;
pub mod progress;
mod provision;
mod refused_call;
mod reply;
pub mod result_cache;
pub mod result_document;
mod tool_entries;

pub use arguments::ArgumentError;
pub use call::{CallArguments, RunArguments};
pub use call_outcome::ToolOutcome;
pub use chain::ToolChain;
pub use cursor::{CursorError, CursorScope};
pub use definitions::MetaTool;
pub use describe::DescribedTool;
pub use discover::DiscoverArguments;
pub use execute::{ExecuteArguments, OperatorScripts, RequestedScript, operator_exchange};
pub use meta_arguments::MetaArguments;
pub use meta_view::MetaView;
pub use preview::ResultPreview;
pub use progress::{ProgressReport, ToolProgress};
pub use provision::ProvisionArguments;
pub use refused_call::{MetaFailure, NamedTool, RefusedCall};
pub use result_cache::ResultCache;
pub use result_document::ResultDocument;

#[cfg(test)]
mod tests;
