//! The meta tools: what they are called, what they take, and what they answer with.
//!
//! Everything here is pure: text in, text out. It starts no server, asks nobody and knows no time
//! but the one that it is told; what drives it is the view.

pub mod definitions;

pub use definitions::{Set, Tool};
