//! The words of the wire: JSON-RPC, the few MCP payloads that we read, and the framings.
//!
//! Everything here is pure: bytes in, bytes out. It knows no transport, no clock and no server.

pub mod apps;
pub mod batch;
pub mod capability;
pub mod depth;
pub mod error;
pub mod headers;
pub mod item;
pub mod items;
pub mod jsonrpc;
pub mod level;
pub mod mcp;
pub mod members;
pub mod modern;
pub mod ndjson;
pub mod pieces;
mod profile;
mod span;
pub mod sse;
pub mod task;
pub mod version;

pub use batch::{Batch, BatchError};
pub use error::RpcError;
pub use jsonrpc::{Message, MessageKind, ParseError};
pub use level::LoggingLevel;
pub use members::ObjectMembers;
pub use pieces::ByteChunks;
pub use version::Era;
