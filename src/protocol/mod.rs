//! The words of the wire: JSON-RPC, the few MCP payloads that we read, and the framings.
//!
//! Everything here is pure: bytes in, bytes out. It knows no transport, no clock and no server.

pub mod batch;
pub mod error;
pub mod item;
pub mod jsonrpc;
pub mod level;
pub mod mcp;
pub mod ndjson;
pub mod pieces;
pub mod sse;
pub mod version;

pub use batch::{Batch, BatchError};
pub use error::RpcError;
pub use jsonrpc::{Message, ParseError, Shape};
pub use level::Level;
pub use pieces::Pieces;
