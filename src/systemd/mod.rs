//! What the service manager and we say to each other.
//!
//! Works without a manager too: then there are no inherited sockets, and notices go nowhere.

pub mod capabilities;
pub mod listen;
pub mod notify;
pub mod unit;
