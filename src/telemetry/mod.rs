//! What the service says about itself: logs, and marks that its loops still turn.

pub mod liveness;
pub mod log;
