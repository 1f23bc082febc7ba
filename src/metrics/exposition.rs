//! All metrics as text.

use std::{fmt, sync::Arc};

use prometheus_client::{
    encoding::{prometheus_text, text},
    registry::Registry,
};

use super::{activity_metrics::ActivityMetrics, service_metrics::ServiceMetrics};
use crate::{
    call_record::{CallRecorder, ViewSizes},
    status::StatusBoard,
};

/// The form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsForm {
    /// The text format of Prometheus.
    Prometheus,
    /// OpenMetrics.
    OpenMetrics,
}

impl MetricsForm {
    /// Returns the form that an `Accept` header asks for. Who does not ask for OpenMetrics gets the
    /// form that all tools read.
    pub fn accepted(accept: Option<&str>) -> Self {
        match accept.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// Returns the media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Returns all metrics; `sizes` are those of the tool lists. Takes as long as
/// [`StatusBoard::resource_usage`]. Cancel safe.
///
/// # Errors
///
/// Never in practice: text in memory takes all.
pub async fn exposition(
    board: &StatusBoard,
    calls: &Arc<CallRecorder>,
    sizes: ViewSizes,
    form: MetricsForm,
) -> Result<String, fmt::Error> {
    let usage = board.resource_usage().await;
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ServiceMetrics { status: board.status(), usage }));
    registry.register_collector(Box::new(ActivityMetrics {
        pool: Arc::clone(board.pool()),
        sessions: Arc::clone(board.sessions()),
        calls: Arc::clone(calls),
        costs: calls.costs().comparisons(sizes),
    }));
    registry.register_collector(Box::new(Arc::clone(calls.metrics())));
    let mut text = String::new();
    match form {
        MetricsForm::Prometheus => prometheus_text::encode(&mut text, &registry)?,
        MetricsForm::OpenMetrics => text::encode(&mut text, &registry)?,
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_asks_for_it_gets_the_open_form() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5";
        assert_eq!(MetricsForm::accepted(Some(prometheus)), MetricsForm::OpenMetrics);
        for accept in [None, Some("*/*"), Some("text/plain")] {
            assert_eq!(MetricsForm::accepted(accept), MetricsForm::Prometheus);
        }
    }
}
