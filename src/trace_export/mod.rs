//! The spans of calls, sent to a collector by OTLP over HTTP.
//!
//! Each call of a client is a SERVER span, and each request to a server a CLIENT span below it. They
//! are made from the records of calls, so that a slow collector delays no call.

mod exporter;
mod span_batch;

pub use exporter::TraceExporter;
