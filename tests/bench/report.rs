//! The measurements, as Markdown for the documentation.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::rig::Contestant;

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    P50Alone,
    P99Alone,
    P50Many,
    P99Many,
    Throughput,
    Cpu,
    P50Medium,
    P50Large,
    ResidentFresh,
    ResidentLoaded,
    IdleSession,
    IdleConnection,
    IdleStream,
}

/// All measurements of a run, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    measurements: BTreeMap<(Measure, Contestant), Vec<f64>>,
}

/// The median and the extremes of some numbers.
#[derive(Clone, Copy, Debug)]
struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Measure {
    const ALL: [Self; 13] = [
        Self::P50Alone,
        Self::P99Alone,
        Self::P50Many,
        Self::P99Many,
        Self::Throughput,
        Self::Cpu,
        Self::P50Medium,
        Self::P50Large,
        Self::ResidentFresh,
        Self::ResidentLoaded,
        Self::IdleSession,
        Self::IdleConnection,
        Self::IdleStream,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::P50Alone => "1 client, p50, µs",
            Self::P99Alone => "1 client, p99, µs",
            Self::P50Many => "32 clients, p50, µs",
            Self::P99Many => "32 clients, p99, µs",
            Self::Throughput => "32 clients, calls/s",
            Self::Cpu => "32 clients, processor time of the hop per call, µs",
            Self::P50Medium => "16 KiB in both directions, p50, µs",
            Self::P50Large => "1 MiB in both directions, p50, µs",
            Self::ResidentFresh => "resident memory at the start, MiB",
            Self::ResidentLoaded => "resident memory after the load, MiB",
            Self::IdleSession => "memory per idle session, KiB",
            Self::IdleConnection => "memory per idle session with an open connection, KiB",
            Self::IdleStream => "memory that its open GET stream adds, KiB",
        }
    }

    /// Returns the target; a ratio is relative to the bare proxy.
    fn target(self) -> &'static str {
        match self {
            Self::P50Alone | Self::P50Many => "≤ 1.25×",
            Self::Throughput => "≥ 0.8×",
            Self::IdleSession => "≤ 4 KiB",
            _ => "",
        }
    }

    /// Returns whether a ratio is meaningful, which needs a reference well above zero.
    fn has_ratio(self) -> bool {
        self <= Self::ResidentLoaded
    }
}

impl Report {
    /// Records one measurement.
    pub(crate) fn add(&mut self, measure: Measure, contestant: Contestant, number: f64) {
        self.measurements.entry((measure, contestant)).or_default().push(number);
    }

    /// Returns the table with an introduction.
    pub(crate) fn render(&self, n_repetitions: usize) -> String {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut text = format!(
            "Medians of {n_repetitions} interleaved repetitions (lowest–highest) on {n_cores} cores; \
             ratios are medians of the ratios within a repetition.\n\n\
             | | direct | bare proxy | metamcp | metamcp ÷ proxy | target | metamcp, stdio child |\n\
             |---|---:|---:|---:|---:|---:|---:|\n"
        );
        for measure in Measure::ALL {
            let cell = |contestant| cell(self.numbers(measure, contestant));
            let ratio = match measure.has_ratio() {
                true => ratio(&self.ratios(measure)),
                false => "–".to_owned(),
            };
            let row = format!(
                "| {} | {} | {} | {} | {ratio} | {} | {} |\n",
                measure.label(),
                cell(Contestant::Direct),
                cell(Contestant::Proxy),
                cell(Contestant::Gateway),
                measure.target(),
                cell(Contestant::Child),
            );
            text.push_str(&row);
            if measure == Measure::P50Alone {
                text.push_str(&self.added(measure));
            }
        }
        text
    }

    /// Returns the row of the latency that each hop adds to a direct call.
    fn added(&self, measure: Measure) -> String {
        let direct = self.numbers(measure, Contestant::Direct);
        let over_direct = |contestant| -> Vec<f64> {
            let all = self.numbers(measure, contestant).iter().zip(direct);
            all.map(|(with, without)| with - without).collect()
        };
        let (proxy, gateway) = (over_direct(Contestant::Proxy), over_direct(Contestant::Gateway));
        let ratios: Vec<f64> = gateway
            .iter()
            .zip(&proxy)
            .filter(|(_, proxy)| **proxy > 0.0)
            .map(|(gateway, proxy)| gateway / proxy)
            .collect();
        let mut row = String::new();
        let _always_fits = writeln!(
            row,
            "| 1 client, latency added by the hop, p50, µs | | {} | {} | {} | | |",
            cell(&proxy),
            cell(&gateway),
            ratio(&ratios)
        );
        row
    }

    fn ratios(&self, measure: Measure) -> Vec<f64> {
        let gateway = self.numbers(measure, Contestant::Gateway).iter();
        let proxy = self.numbers(measure, Contestant::Proxy);
        gateway.zip(proxy).map(|(gateway, proxy)| gateway / proxy).collect()
    }

    fn numbers(&self, measure: Measure, contestant: Contestant) -> &[f64] {
        self.measurements.get(&(measure, contestant)).map_or(&[], Vec::as_slice)
    }
}

impl Spread {
    fn of(numbers: &[f64]) -> Option<Self> {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        Some(Self { low, median, high })
    }
}

/// Formats the median and the extremes.
pub(crate) fn cell(numbers: &[f64]) -> String {
    match Spread::of(numbers) {
        None => "–".to_owned(),
        Some(Spread { median, .. }) if numbers.len() == 1 => number(median),
        Some(Spread { low, median, high }) => {
            format!("{} ({}–{})", number(median), number(low), number(high))
        }
    }
}

/// Formats ratios like [`cell`].
pub(crate) fn ratio(numbers: &[f64]) -> String {
    match Spread::of(numbers) {
        None => "–".to_owned(),
        Some(Spread { median, .. }) if numbers.len() == 1 => format!("{median:.2}×"),
        Some(Spread { low, median, high }) => format!("{median:.2}× ({low:.2}–{high:.2})"),
    }
}

/// Returns the value that `percent` of some ascending numbers stay below.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = sorted.len() * percent / 100;
    sorted.get(rank).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

/// Formats a number with its significant digits.
fn number(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
