//! The records of calls, written while the service runs.

use std::{path::Path, sync::Arc};

use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use crate::{
    call_record::{CallLog, CallRecorder, CallWriter},
    config::{Config, defaults},
    error_report::chain,
    trace_export::TraceExporter,
};

/// The tasks that write and send the records of calls.
#[derive(Debug)]
pub(super) struct RecordWriting {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl RecordWriting {
    /// Starts to write the calls of `recorder` to the journal, or to a file below `state`.
    pub(super) fn start(
        recorder: &Arc<CallRecorder>,
        config: &Config,
        state: Option<&Path>,
    ) -> Self {
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        if let Some(log) = CallLog::of_service(state) {
            if let Some(file) = log.file() {
                let shown = file.display();
                tracing::info!(file = %shown, "records of calls are written to `{shown}`");
                recorder.is_written_to(file);
            }
            tasks.spawn(CallWriter::new(Arc::clone(recorder), log).run(stop.clone()));
        }
        if let Some(exporter) = exporter(recorder, config) {
            tasks.spawn(exporter.run(stop.clone()));
        }
        Self { stop, tasks }
    }

    /// Writes the last records.
    pub(super) async fn finish(mut self) {
        self.stop.cancel();
        let ends = async { while self.tasks.join_next().await.is_some() {} };
        if time::timeout(defaults::CALL_WRITE_END_TIMEOUT, ends).await.is_err() {
            tracing::warn!("the last records or spans of calls were not written in time");
        }
    }
}

fn exporter(recorder: &Arc<CallRecorder>, config: &Config) -> Option<TraceExporter> {
    let address = config.telemetry.otlp.as_ref()?;
    TraceExporter::new(Arc::clone(recorder), address, &config.service.proxy)
        .inspect_err(|error| {
            let reason = chain(error);
            tracing::warn!(reason, "spans of calls are not sent: {reason}");
        })
        .ok()
}
