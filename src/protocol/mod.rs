//! The wire formats: JSON-RPC, the MCP payloads that metamcp reads, and the framings.
//!
//! All functions are pure: bytes in, bytes out. This module knows no transport, clock or server.

pub mod batch;
pub mod byte_chunks;
pub mod capability;
pub mod client_meta;
pub mod json_array;
pub mod jsonrpc;
pub mod list_page;
pub mod logging_level;
pub mod malformed_items;
pub mod mcp_apps;
pub mod ndjson;
pub mod nesting_depth;
pub mod object_members;
pub mod parameter_headers;
pub mod payloads;
pub mod rpc_error;
mod server_profile;
pub mod sse;
pub mod task;
mod value_span;
pub mod version;

pub use batch::{Batch, BatchError};
pub use byte_chunks::ByteChunks;
pub use jsonrpc::{Message, MessageKind, ParseError};
pub use logging_level::LoggingLevel;
pub use object_members::ObjectMembers;
pub use rpc_error::RpcError;
pub use version::Era;
