//! The interface to the service manager.
//!
//! Without a manager, there are no inherited sockets, and notifications are discarded.

pub mod capabilities;
pub mod listen;
pub mod notify;
pub mod unit;
