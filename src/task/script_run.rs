//! A script of a task, from its start or from its record to its end.

use tokio::sync::mpsc;

use super::{TaskDriver, TaskEnd, TaskEvent, TaskSubject, driver::TaskCommand};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    meta::operator_exchange,
    protocol::RpcError,
    script::{PreparedScript, ScriptStep},
    view::operator,
};

impl TaskDriver {
    /// Runs a script to its end. If the service stops before, the record stays, and the script goes
    /// on after the restart.
    pub(super) async fn run_script(
        &self,
        id: &str,
        mut script: PreparedScript,
        mut commands: mpsc::Receiver<TaskCommand>,
    ) {
        script.set_admission_timeout(defaults::TASK_TIMEOUT);
        let mut exchange = operator_exchange(script);
        loop {
            tokio::select! {
                step = exchange.next() => match step {
                    ScriptStep::Answer(answer) => {
                        return self.end(id, TaskEnd::of_script(answer)).await;
                    }
                    ScriptStep::Event(event) => {
                        if let Some(progress) = operator::script_progress(*event) {
                            self.record_event(id, TaskEvent::Progress(progress)).await;
                        }
                    }
                },
                Some(command) = commands.recv() => match command {
                    TaskCommand::Poll(reply) => drop(reply),
                    TaskCommand::Cancel(reply) => {
                        // Ends its calls, too.
                        drop(exchange);
                        self.discard_record(id).await;
                        return self.end_cancelled(id, reply).await;
                    }
                },
                () = self.abort.cancelled() => return,
            }
        }
    }

    /// Goes on with a script of an earlier process.
    pub(super) async fn resume_script(
        &self,
        id: &str,
        state: &str,
        commands: mpsc::Receiver<TaskCommand>,
    ) {
        match self.operators.scripts().resume(state, Holder::SERVICE).await {
            Ok(script) => self.run_script(id, script, commands).await,
            Err(error) => {
                let message = format!(
                    "the service was restarted while the script ran, and the script cannot go on: {}",
                    error.failure()
                );
                self.discard_record(id).await;
                self.end(id, TaskEnd::Unknown(message)).await;
            }
        }
    }

    /// Removes the record of a script that does not go on.
    async fn discard_record(&self, id: &str) {
        if let Some(TaskSubject::Script { state, .. }) = self.get(id).map(|task| task.subject) {
            self.operators.scripts().discard(&state).await;
        }
    }
}

impl TaskEnd {
    /// Returns the end that the answer of a script means.
    fn of_script(answer: Result<String, Box<RpcError>>) -> Self {
        match answer {
            Ok(result) => Self::Result(result),
            Err(error) => {
                let place = ["line", "column"].map(|name| error.context[name].as_u64());
                let message = match place {
                    [Some(line), Some(column)] => {
                        format!("line {line}, column {column}: {}", error.message)
                    }
                    _ => error.message.clone(),
                };
                Self::Error { error: error.complete().object(), message }
            }
        }
    }
}
