//! The interface to the service manager.
//!
//! Without a manager, there are no inherited sockets, and notifications are discarded.

pub mod inherited_sockets;
pub mod notify;
pub mod own_unit;
