//! The operations of a script that run, and their events.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use serde_json::value::RawValue;
use tokio::{sync::mpsc, task::yield_now, time};

use super::{
    driver::EVENTS_MAX,
    operation_runner::{
        OperationAttempt, OperationEnd, OperationEvents, OperationNote, OperationRunner,
    },
};
use crate::sandbox::message::{OperationOutcome, ScriptOperation};

/// The operations that run, and their events.
pub(super) struct RunningOperations {
    runner: Arc<dyn OperationRunner>,
    running: FuturesUnordered<BoxFuture<'static, (u32, OperationEnd)>>,
    sender: mpsc::Sender<(u32, OperationNote)>,
    notes: mpsc::Receiver<(u32, OperationNote)>,
}

impl RunningOperations {
    /// Returns no operations, which `runner` will do.
    pub(super) fn new(runner: Arc<dyn OperationRunner>) -> Self {
        let (sender, notes) = mpsc::channel(EVENTS_MAX);
        Self { runner, running: FuturesUnordered::new(), sender, notes }
    }

    /// Begins an operation.
    pub(super) fn begin(
        &mut self,
        number: u32,
        operation: ScriptOperation,
        attempt: OperationAttempt,
    ) {
        if let ScriptOperation::Sleep(ms) = operation {
            self.running.push(Box::pin(async move {
                // A timer of the runtime takes at least a millisecond.
                match ms < 1.0 {
                    true => yield_now().await,
                    false => time::sleep(Duration::from_secs_f64(ms / 1e3)).await,
                }
                (number, OperationEnd::Settled(OperationOutcome::Value(null())))
            }));
            return;
        }
        let events = OperationEvents { operation: number, events: self.sender.clone() };
        let run = Arc::clone(&self.runner).run(operation, attempt, events);
        self.running.push(Box::pin(async move { (number, run.await) }));
    }

    /// Waits for the next end or event of an operation. Cancel safe.
    pub(super) async fn next(&mut self) -> (u32, OperationStep) {
        tokio::select! {
            // The events of an operation precede its end.
            biased;
            Some((operation, note)) = self.notes.recv() => (operation, OperationStep::Note(note)),
            Some((operation, end)) = self.running.next(), if !self.running.is_empty() => {
                (operation, OperationStep::End(end))
            }
        }
    }
}

/// The next step of an operation.
pub(super) enum OperationStep {
    /// It has ended.
    End(OperationEnd),
    /// It has an event.
    Note(OperationNote),
}

fn null() -> Box<RawValue> {
    RawValue::from_string("null".to_owned()).expect("JSON")
}
