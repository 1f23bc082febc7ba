//! Durations that are measured for Prometheus.

use std::{fmt, time::Duration};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::{MetricType, histogram::Histogram},
};
use tokio::time::Instant;

/// The bounds of the buckets, in seconds. Source: OpenTelemetry, semantic conventions for MCP,
/// "Metrics".
const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Durations that are measured for Prometheus. Clones count together.
#[derive(Clone, Debug)]
pub struct DurationHistogram(Histogram);

/// A duration that ends when the timer is dropped.
#[derive(Debug)]
pub struct HistogramTimer<'a> {
    histogram: &'a DurationHistogram,
    started: Instant,
}

impl Default for DurationHistogram {
    fn default() -> Self {
        Self(Histogram::new(BOUNDS))
    }
}

impl DurationHistogram {
    /// Counts a duration.
    pub fn observe(&self, duration: Duration) {
        self.0.observe(duration.as_secs_f64());
    }

    /// Starts to measure a duration.
    pub fn start(&self) -> HistogramTimer<'_> {
        HistogramTimer { histogram: self, started: Instant::now() }
    }
}

impl Drop for HistogramTimer<'_> {
    fn drop(&mut self) {
        self.histogram.observe(self.started.elapsed());
    }
}

impl EncodeMetric for DurationHistogram {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
