//! One metric with its samples.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

/// A metric with its samples.
#[derive(Debug)]
pub(super) struct MetricFamily {
    /// The name, without the suffixes for units and counters.
    pub(super) name: &'static str,
    /// The meaning of one sample, without the full stop.
    pub(super) help: &'static str,
    pub(super) unit: Option<Unit>,
    pub(super) kind: FamilyKind,
    pub(super) samples: Vec<Sample>,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyKind {
    /// A number that grows until the service starts again.
    Counter,
    /// A number of this moment.
    Gauge,
}

/// A number with its labels.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: f64,
}

impl MetricFamily {
    /// Writes the metric, unless it has no sample.
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.samples.is_empty() {
            return Ok(());
        }
        let kind = match self.kind {
            FamilyKind::Counter => MetricType::Counter,
            FamilyKind::Gauge => MetricType::Gauge,
        };
        let mut family =
            encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), kind)?;
        for Sample { labels, value } in &self.samples {
            let labels = labels.as_slice();
            match self.kind {
                FamilyKind::Counter => {
                    ConstCounter::new(*value).encode(family.encode_family(&labels)?)?;
                }
                FamilyKind::Gauge => {
                    ConstGauge::new(*value).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}
