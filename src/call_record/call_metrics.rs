//! The durations and sizes of calls, by server and tool, for Prometheus.
//!
//! Names follow the MCP conventions of OpenTelemetry, as Prometheus spells them. For its clients,
//! metamcp is a server; for its servers, it is a client.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use foldhash::quality::RandomState;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, LabelSetEncoder},
    metrics::{MetricType, counter::ConstCounter},
    registry::Unit,
};

use super::{CallOutcome, CallRecord};
use crate::{
    config::defaults, protocol::payloads::method, server_name::ServerName,
    telemetry::duration_histogram::DurationHistogram,
};

/// The name of all tools that have no room of their own: beyond [`defaults::METRIC_SERIES_MAX`] in
/// metrics, and beyond [`defaults::RECENT_SUBJECTS_MAX`] among the recent calls.
pub(super) const OTHER: &str = "other";

/// The type of failures beyond it that have a number. Source: OpenTelemetry, `error.type`.
const OTHER_ERROR: &str = "_OTHER";

/// The type of a failure that a tool reports. Source: OpenTelemetry, semantic conventions for MCP.
const TOOL_ERROR: &str = "tool_error";

/// The durations and sizes of calls, by server and tool.
#[derive(Debug, Default)]
pub struct CallMetrics {
    /// Replaced by a longer copy for a new operation, so that calls wait for no lock.
    operations: ArcSwap<Operations>,
    /// Serialises changes.
    changing: Mutex<()>,
}

/// The operations that are counted.
#[derive(Clone, Debug, Default)]
struct Operations {
    by_labels: HashMap<OperationLabels, Arc<OperationMetrics>, RandomState>,
    /// The number of operations with names that no server has answered to.
    n_unproven: usize,
}

/// The labels of calls that are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct OperationLabels {
    method: &'static str,
    server: Option<ServerName>,
    tool: Option<Arc<str>>,
    /// The type of the failure; empty for a success.
    error: ErrorType,
}

/// The type of a failure, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum ErrorType {
    None,
    /// A failure of the tool, an error of metamcp, or a cancellation.
    Named(&'static str),
    /// A JSON-RPC error of the server.
    Code(i64),
}

/// The durations and sizes of calls with the same labels.
#[derive(Debug, Default)]
pub(super) struct OperationMetrics {
    /// The durations that clients saw.
    by_client: DurationHistogram,
    /// The durations from the last attempt to the answer of the server.
    by_server: OnceLock<DurationHistogram>,
    request_bytes: AtomicU64,
    answer_bytes: AtomicU64,
    n_retries: AtomicU64,
}

impl CallMetrics {
    /// Counts a call.
    pub(super) fn count(&self, call: &CallRecord) {
        let metrics = || {
            self.of(OperationLabels {
                method: call.method,
                server: call.subject.server.clone(),
                tool: call.subject.item.clone(),
                error: ErrorType::of(&call.outcome),
            })
        };
        let searched;
        let metrics = match call.method == method::TOOLS_CALL && call.outcome.is_ok() {
            true => call.subject.succeeded.get_or_init(metrics),
            false => {
                searched = metrics();
                &searched
            }
        };
        metrics.by_client.observe(call.duration);
        if let Some(at_server) = call.at_server {
            metrics.by_server.get_or_init(DurationHistogram::default).observe(at_server);
        }
        metrics.request_bytes.fetch_add(call.request_bytes, Ordering::Relaxed);
        metrics.answer_bytes.fetch_add(call.answer_bytes, Ordering::Relaxed);
        metrics.n_retries.fetch_add(u64::from(call.n_retries), Ordering::Relaxed);
    }

    fn of(&self, labels: OperationLabels) -> Arc<OperationMetrics> {
        let known = self.operations.load();
        if let Some(found) = known.find(&labels) {
            return Arc::clone(found);
        }
        drop(known);
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.operations.load();
        // Another call may have added it meanwhile.
        if let Some(found) = known.find(&labels) {
            return Arc::clone(found);
        }
        let mut longer = Operations::clone(&known);
        let added = longer.add(labels);
        self.operations.store(Arc::new(longer));
        added
    }

    /// Returns all operations in the order of their labels.
    fn operations(&self) -> Vec<(OperationLabels, Arc<OperationMetrics>)> {
        let known = self.operations.load();
        let known = known.by_labels.iter();
        let mut all: Vec<_> =
            known.map(|(labels, metrics)| (labels.clone(), Arc::clone(metrics))).collect();
        all.sort_by(|(first, _), (second, _)| first.cmp(second));
        all
    }
}

impl Operations {
    /// Returns the operation that calls with `labels` are counted as, if it exists.
    fn find(&self, labels: &OperationLabels) -> Option<&Arc<OperationMetrics>> {
        self.by_labels.get(labels).or_else(|| match self.has_room_for(labels) {
            true => None,
            false => self.by_labels.get(&labels.clone().other()),
        })
    }

    /// Adds the operation that calls with `labels` are counted as.
    fn add(&mut self, labels: OperationLabels) -> Arc<OperationMetrics> {
        let labels = match self.has_room_for(&labels) {
            true => {
                self.n_unproven += usize::from(!self.is_proven(&labels));
                labels
            }
            false => labels.other(),
        };
        Arc::clone(self.by_labels.entry(labels).or_default())
    }

    /// Returns whether a new operation gets a series of its own.
    fn has_room_for(&self, labels: &OperationLabels) -> bool {
        self.by_labels.len() < defaults::METRIC_SERIES_MAX
            && (self.n_unproven < defaults::METRIC_UNPROVEN_MAX || self.is_proven(labels))
    }

    /// Returns whether a server has answered to the name. A client may invent names, which must not
    /// take the place of real ones.
    fn is_proven(&self, labels: &OperationLabels) -> bool {
        let success = || OperationLabels { error: ErrorType::None, ..labels.clone() };
        match labels.error {
            ErrorType::None => true,
            // Some servers answer to any name with the failure of a tool.
            ErrorType::Named(_) => self.by_labels.contains_key(&success()),
            // One tool may fail with any number.
            ErrorType::Code(_) => false,
        }
    }
}

impl OperationLabels {
    /// Returns the labels of all calls to a server that have no series of their own.
    fn other(self) -> Self {
        let error = match self.error {
            // A server may send any number.
            ErrorType::Code(_) => ErrorType::Named(OTHER_ERROR),
            error => error,
        };
        Self { tool: Some(OTHER.into()), error, ..self }
    }
}

impl ErrorType {
    fn of(outcome: &CallOutcome) -> Self {
        match outcome {
            CallOutcome::Ok => Self::None,
            CallOutcome::ToolError => Self::Named(TOOL_ERROR),
            CallOutcome::ServerError(code) => Self::Code(*code),
            CallOutcome::Failed { code, .. } => Self::Named(code),
            CallOutcome::Cancelled => Self::Named("cancelled"),
        }
    }
}

impl EncodeLabelSet for OperationLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let server = self.server.as_ref().map_or("", |server| server.as_str());
        let tool = self.tool.as_deref().unwrap_or_default();
        let error = match self.error {
            ErrorType::None => String::new(),
            ErrorType::Named(name) => name.to_owned(),
            ErrorType::Code(code) => code.to_string(),
        };
        [
            ("mcp_method_name", self.method),
            ("mcp_server", server),
            ("gen_ai_tool_name", tool),
            ("error_type", &error),
        ]
        .encode(encoder)
    }
}

impl Collector for CallMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let operations = self.operations();
        let mut histogram =
            |name: &str, help: &str, of: fn(&OperationMetrics) -> Option<&DurationHistogram>| {
                let seconds = Unit::Seconds;
                let mut family =
                    encoder.encode_descriptor(name, help, Some(&seconds), MetricType::Histogram)?;
                for (labels, metrics) in &operations {
                    if let Some(found) = of(metrics) {
                        found.encode(family.encode_family(labels)?)?;
                    }
                }
                fmt::Result::Ok(())
            };
        histogram(
            "mcp_server_operation_duration",
            "The time from a request of a client to its answer",
            |metrics| Some(&metrics.by_client),
        )?;
        histogram(
            "mcp_client_operation_duration",
            "The time from the last request to a server to its answer",
            |metrics| metrics.by_server.get(),
        )?;
        let mut counter =
            |name: &str, help: &str, unit, of: fn(&OperationMetrics) -> &AtomicU64| {
                let mut family =
                    encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
                for (labels, metrics) in &operations {
                    let count = ConstCounter::new(of(metrics).load(Ordering::Relaxed));
                    count.encode(family.encode_family(labels)?)?;
                }
                fmt::Result::Ok(())
            };
        let bytes = Unit::Bytes;
        counter(
            "metamcp_request",
            "The bytes of the requests of clients",
            Some(&bytes),
            |metrics| &metrics.request_bytes,
        )?;
        counter(
            "metamcp_answer",
            "The bytes of the answers to clients",
            Some(&bytes),
            |metrics| &metrics.answer_bytes,
        )?;
        counter("metamcp_retries", "The requests that were sent again", None, |metrics| {
            &metrics.n_retries
        })
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::prometheus_text, registry::Registry};

    use super::*;
    use crate::{call_record::record::tests::record, fault_class::Fault};

    fn exposed(metrics: &Arc<CallMetrics>) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(metrics)));
        let mut text = String::new();
        prometheus_text::encode(&mut text, &registry).expect("memory takes all");
        text
    }

    fn failed(tool: &str) -> CallRecord {
        let (code, fault) = ("SERVER_TIMEOUT", Fault::Offline);
        let outcome = CallOutcome::Failed { code, fault, cause: "no answer".into() };
        CallRecord { outcome, ..record("git", tool) }
    }

    #[test]
    fn calls_are_counted_by_tool_and_failure() {
        let metrics = Arc::<CallMetrics>::default();
        metrics.count(&record("git", "log"));
        metrics.count(&CallRecord { at_server: None, ..record("git", "log") });
        metrics.count(&failed("log"));
        let text = exposed(&metrics);
        let log = r#"mcp_method_name="tools/call",mcp_server="git",gen_ai_tool_name="log""#;
        for line in [
            format!(r#"mcp_server_operation_duration_seconds_count{{{log},error_type=""}} 2"#),
            format!(r#"mcp_client_operation_duration_seconds_count{{{log},error_type=""}} 1"#),
            format!(
                r#"mcp_server_operation_duration_seconds_count{{{log},error_type="SERVER_TIMEOUT"}} 1"#
            ),
            format!(r#"metamcp_answer_bytes_total{{{log},error_type=""}} 4000"#),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn names_that_clients_invent_take_no_place_of_real_tools() {
        let metrics = Arc::<CallMetrics>::default();
        for number in 0..2 * defaults::METRIC_SERIES_MAX {
            metrics.count(&failed(&number.to_string()));
        }
        assert_eq!(metrics.operations().len(), defaults::METRIC_UNPROVEN_MAX + 1);
        for number in 0..2 * defaults::METRIC_SERIES_MAX {
            metrics.count(&record("git", &format!("tool{number}")));
        }
        assert_eq!(metrics.operations().len(), defaults::METRIC_SERIES_MAX + 1);
        assert!(exposed(&metrics).contains(r#"gen_ai_tool_name="other",error_type="""#));
    }

    #[test]
    fn failures_of_invented_names_and_codes_of_one_tool_leave_room_for_tools() {
        let metrics = Arc::<CallMetrics>::default();
        metrics.count(&record("git", "log"));
        for number in 0..2 * defaults::METRIC_SERIES_MAX {
            let outcome = CallOutcome::ToolError;
            metrics.count(&CallRecord { outcome, ..record("git", &format!("no{number}")) });
            let outcome = CallOutcome::ServerError(number as i64);
            metrics.count(&CallRecord { outcome, ..record("git", "log") });
        }
        metrics.count(&record("git", "status"));
        let text = exposed(&metrics);
        assert!(text.contains(r#"gen_ai_tool_name="status",error_type="""#), "{text}");
        assert!(text.contains(r#"mcp_server="git",gen_ai_tool_name="other",error_type="_OTHER""#));
    }

    #[test]
    fn no_server_makes_series_without_end_by_its_tools_or_its_errors() {
        let metrics = Arc::<CallMetrics>::default();
        for number in 0..2 * defaults::METRIC_SERIES_MAX {
            metrics.count(&record("git", &format!("tool{number}")));
        }
        let n_series = metrics.operations().len();
        assert_eq!(n_series, defaults::METRIC_SERIES_MAX + 1);
        for code in 0..2 * defaults::METRIC_SERIES_MAX {
            let outcome = CallOutcome::ServerError(code as i64);
            metrics.count(&CallRecord { outcome, ..record("git", &format!("error{code}")) });
            let outcome = CallOutcome::ServerError(code as i64);
            metrics.count(&CallRecord { outcome, ..record("git", "tool1") });
        }
        assert_eq!(metrics.operations().len(), n_series + 1);
        assert!(exposed(&metrics).contains(r#"gen_ai_tool_name="other",error_type="_OTHER""#));
    }

    #[test]
    fn a_hostile_name_stays_one_label() {
        let metrics = Arc::<CallMetrics>::default();
        metrics.count(&record("git", "a\"} 1\nfake_total 1\n\\"));
        let text = exposed(&metrics);
        assert!(text.contains(r#"gen_ai_tool_name="a\"} 1\nfake_total 1\n\\","#), "{text}");
        assert!(text.lines().all(|line| line.starts_with("# ") || line.contains('{')), "{text}");
    }
}
