//! The logs of the service, the durations that it measures, and the liveness of its loops.

pub mod duration_histogram;
mod journal_queue;
pub mod journal_socket;
pub mod liveness;
pub mod log;
mod log_fields;
pub mod log_ring;
pub mod message_id;
pub mod ring;
pub mod trace_context;
