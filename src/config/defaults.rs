//! All defaults and bounds, each with its unit and the reason for its value.
//!
//! A number without a source is metamcp's own choice. Bounds that are no keys of the configuration
//! file are here too. The files group them by area; all are used as `defaults::NAME`.

mod call;
mod catalog;
mod child;
mod cli;
mod connection;
mod execute;
mod ingress;
mod memory;
mod meta;
mod oauth;
mod pool;
mod provision;
mod search;
mod service;
mod session;
mod share;

pub use call::*;
pub use catalog::*;
pub use child::*;
pub use cli::*;
pub use connection::*;
pub use execute::*;
pub use ingress::*;
pub use memory::*;
pub use meta::*;
pub use oauth::*;
pub use pool::*;
pub use provision::*;
pub use search::*;
pub use service::*;
pub use session::*;
pub use share::*;
