//! Every default and every bound, with its unit and where the number comes from.
//!
//! A bound that is not in the configuration file yet still has its name here. They stand in files by
//! area, and are all called `defaults::NAME`.

mod bridge;
mod call;
mod catalog;
mod child;
mod cli;
mod compute;
mod connection;
mod doctor;
mod import;
mod ingress;
mod memory;
mod meta;
mod pool;
mod provision;
mod search;
mod service;
mod session;
mod share;
mod tasks;
mod typegen;

pub use bridge::*;
pub use call::*;
pub use catalog::*;
pub use child::*;
pub use cli::*;
pub use compute::*;
pub use connection::*;
pub use doctor::*;
pub use import::*;
pub use ingress::*;
pub use memory::*;
pub use meta::*;
pub use pool::*;
pub use provision::*;
pub use search::*;
pub use service::*;
pub use session::*;
pub use share::*;
pub use tasks::*;
pub use typegen::*;
