//! The records of calls, written while the service runs.

use std::{path::Path, sync::Arc};

use futures_util::future::join_all;
use tokio::{task::JoinHandle, time};
use tokio_util::sync::CancellationToken;

use crate::{
    call_record::{CallLog, CallRecorder, CallWriter},
    config::{Config, defaults},
    error_report::chain,
    trace_export::TraceExporter,
};

/// The task that writes the records of calls.
#[derive(Debug)]
pub(super) struct RecordWriting {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    export: Option<JoinHandle<()>>,
}

impl RecordWriting {
    /// Starts to write the calls of `recorder` to the journal, or to a file below `state`.
    pub(super) fn start(
        recorder: &Arc<CallRecorder>,
        config: &Config,
        state: Option<&Path>,
    ) -> Self {
        let stop = CancellationToken::new();
        let task = CallLog::of_service(state).map(|log| {
            if let Some(file) = log.file() {
                let file = file.display();
                tracing::info!(%file, "records of calls are written to `{file}`");
            }
            tokio::spawn(CallWriter::new(Arc::clone(recorder), log).run(stop.clone()))
        });
        let export =
            exporter(recorder, config).map(|exporter| tokio::spawn(exporter.run(stop.clone())));
        Self { stop, task, export }
    }

    /// Writes the last records.
    pub(super) async fn finish(mut self) {
        self.stop.cancel();
        let ends = self.task.iter_mut().chain(&mut self.export);
        if time::timeout(defaults::CALL_WRITE_END_TIMEOUT, join_all(ends)).await.is_err() {
            tracing::warn!("the last records of calls were not written in time");
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
