//! One metric with its samples.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

use crate::telemetry::duration_histogram::DurationHistogram;

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
    /// Durations since the start of the service.
    Histogram,
}

/// A value with its labels.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: SampleValue,
}

/// The value of a sample.
#[derive(Debug)]
pub(super) enum SampleValue {
    Number(f64),
    Durations(DurationHistogram),
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
            FamilyKind::Histogram => MetricType::Histogram,
        };
        let mut family =
            encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), kind)?;
        for Sample { labels, value } in &self.samples {
            let labels = labels.as_slice();
            let encoder = family.encode_family(&labels)?;
            match (value, self.kind) {
                (SampleValue::Number(value), FamilyKind::Counter) => {
                    ConstCounter::new(*value).encode(encoder)?;
                }
                (SampleValue::Number(value), _) => ConstGauge::new(*value).encode(encoder)?,
                (SampleValue::Durations(durations), _) => durations.encode(encoder)?,
            }
        }
        Ok(())
    }
}

/// Returns a metric of numbers at this moment.
pub(super) fn gauge(
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    samples: Vec<Sample>,
) -> MetricFamily {
    MetricFamily { name, help, unit, kind: FamilyKind::Gauge, samples }
}

/// Returns a metric of numbers that grow.
pub(super) fn counter(
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    samples: Vec<Sample>,
) -> MetricFamily {
    MetricFamily { name, help, unit, kind: FamilyKind::Counter, samples }
}

/// Returns a metric of durations.
pub(super) fn histogram(
    name: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
) -> MetricFamily {
    let (unit, kind) = (Some(Unit::Seconds), FamilyKind::Histogram);
    MetricFamily { name, help, unit, kind, samples }
}

/// Returns the one sample of a metric without labels.
pub(super) fn number(value: f64) -> Vec<Sample> {
    vec![sample([], value)]
}

/// Returns a number with labels.
pub(super) fn sample<const N: usize>(labels: [(&'static str, String); N], value: f64) -> Sample {
    Sample { labels: labels.into(), value: SampleValue::Number(value) }
}

/// Returns durations with labels.
pub(super) fn durations<const N: usize>(
    labels: [(&'static str, String); N],
    measured: &DurationHistogram,
) -> Sample {
    Sample { labels: labels.into(), value: SampleValue::Durations(measured.clone()) }
}
