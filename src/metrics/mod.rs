//! The metrics of the service, for Prometheus.
//!
//! Calls are counted as they end. Everything else is read from the status of the service when a
//! scraper asks.

mod activity_metrics;
mod exposition;
mod metric_family;
mod service_metrics;

pub use exposition::{MetricsForm, exposition};
