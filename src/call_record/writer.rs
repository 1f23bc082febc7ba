//! The task that writes the records of calls, as far behind the calls as the journal is slow.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::{task, time};
use tokio_util::sync::CancellationToken;

use super::{
    CallEntry, CallLog, CallRecorder, call_log::WriteOutcome, success_summary::SuccessSummary,
};
use crate::{config::defaults, time_format};

/// The writer of records.
#[derive(Debug)]
pub struct CallWriter {
    recorder: Arc<CallRecorder>,
    /// Locked only while entries are written: one write at a time.
    log: Arc<Mutex<CallLog>>,
    summary: SuccessSummary,
    /// The entries that the journal has not taken in time. Further records wait in the ring, which
    /// drops the oldest ones.
    waiting: Vec<CallEntry>,
    /// The number of the last record that was read.
    read: u64,
    /// The number of calls whose entries were not written, until an entry says so.
    n_lost: u64,
    /// The time of the last warning.
    warned: Option<time::Instant>,
}

impl CallWriter {
    /// Returns the writer of all records from now on.
    pub fn new(recorder: Arc<CallRecorder>, log: CallLog) -> Self {
        let (log, summary) = (Arc::new(Mutex::new(log)), SuccessSummary::default());
        Self { recorder, log, summary, waiting: Vec::new(), read: 0, n_lost: 0, warned: None }
    }

    /// Writes records until `stop`, and then the last ones. Not cancel safe: records may be lost.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = self.recorder.ring().wait_after(self.read) => {}
                () = time::sleep(defaults::CALL_SUM_PERIOD), if self.has_more() => {}
                () = stop.cancelled() => break,
            }
            // Several records are written together.
            tokio::select! {
                () = time::sleep(defaults::CALL_WRITE_PERIOD) => {}
                () = stop.cancelled() => break,
            }
            self.write(time_format::now_ms()).await;
        }
        // All seconds are over. The first write may be of what has waited.
        self.write(u64::MAX).await;
        if self.waiting.is_empty() {
            self.write(u64::MAX).await;
        }
    }

    /// Returns whether there is something to write without a further call.
    fn has_more(&self) -> bool {
        self.summary.is_pending() || !self.waiting.is_empty()
    }

    /// Writes what waits, or else the records since the last time and the sums of the seconds before
    /// `now_ms`.
    async fn write(&mut self, now_ms: u64) {
        let entries = match self.waiting.is_empty() {
            true => self.next_entries(now_ms),
            false => std::mem::take(&mut self.waiting),
        };
        let (log, calls) = (Arc::clone(&self.log), self.recorder.recorded());
        let written = task::spawn_blocking(move || {
            log.lock().unwrap_or_else(PoisonError::into_inner).write(entries, calls)
        });
        let WriteOutcome { n_lost, n_newly_lost, waiting, error } =
            written.await.unwrap_or_default();
        self.n_lost += n_lost;
        self.recorder.note_dropped(n_newly_lost);
        self.waiting = waiting;
        if let Some(error) = error
            && self.warned.is_none_or(|warned| warned.elapsed() > defaults::CALL_WARNING_PERIOD)
        {
            self.warned = Some(time::Instant::now());
            let n_waiting = self.waiting.len();
            tracing::warn!(%error, n_lost, n_waiting, "records of calls are not written ({n_lost} are lost, {n_waiting} wait): {error}");
        }
    }

    fn next_entries(&mut self, now_ms: u64) -> Vec<CallEntry> {
        let Self { recorder, summary, .. } = self;
        let mut entries = Vec::new();
        let (read, n_lost) =
            recorder.ring().visit_after(self.read, |call| summary.add(call, now_ms, &mut entries));
        summary.flush(now_ms, &mut entries);
        recorder.note_dropped(n_lost);
        self.read = read;
        self.n_lost += n_lost;
        if self.n_lost > 0 {
            entries.insert(0, CallEntry::Dropped(std::mem::take(&mut self.n_lost)));
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_record::record::tests::record;

    #[tokio::test]
    async fn records_that_are_not_written_in_time_are_counted() {
        let recorder = Arc::<CallRecorder>::default();
        let state = tempfile::tempdir().expect("a directory");
        let log = CallLog::of_service(Some(state.path())).expect("a file");
        let mut writer = CallWriter::new(Arc::clone(&recorder), log);
        for _ in 0..defaults::CALL_RING_RECORDS + 3 {
            recorder.record(record("git", "log"), time::Instant::now());
        }

        writer.write(u64::MAX).await;

        assert_eq!(recorder.n_dropped(), 3);
    }
}
