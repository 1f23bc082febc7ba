//! A request that a script answers.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::{
    driver::{EVENTS_MAX, PreparedScript},
    operation_runner::ScriptEvent,
    script_outcome::ScriptOutcome,
};

/// A request that a script answers, with the bytes of a message or another type.
///
/// Dropping it ends the script with all of its operations.
pub struct ScriptExchange<A = Bytes> {
    run: BoxFuture<'static, A>,
    events: mpsc::Receiver<ScriptEvent>,
    /// The answer, while events wait in front of it.
    answer: Option<A>,
    /// The use of the answer before the client gets it.
    on_answer: Option<OnAnswer<A>>,
}

type OnAnswer<A> = Box<dyn FnOnce(&A) + Send + Sync>;

/// The next step of a script.
#[derive(Debug)]
pub enum ScriptStep<A = Bytes> {
    /// An event for the client.
    Event(Box<ScriptEvent>),
    /// The answer to the client's request. Nothing follows.
    Answer(A),
}

impl<A> ScriptExchange<A> {
    /// Returns the exchange of a script. `answer` makes the answer to the client's request.
    pub fn new<F>(
        task: PreparedScript,
        answer: impl FnOnce(ScriptOutcome) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = A> + Send,
    {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let run = Box::pin(async move { answer(task.run(sender).await).await });
        Self { run, events, answer: None, on_answer: None }
    }

    /// Shows the answer to `observer` before the client gets it.
    pub fn on_answer(&mut self, observer: impl FnOnce(&A) + Send + Sync + 'static) {
        self.on_answer = Some(Box::new(observer));
    }

    /// Returns the next step. Events precede the answer. Cancel safe.
    pub async fn next(&mut self) -> ScriptStep<A> {
        loop {
            if let Ok(event) = self.events.try_recv() {
                return ScriptStep::Event(Box::new(event));
            }
            if let Some(answer) = self.answer.take() {
                if let Some(on_answer) = self.on_answer.take() {
                    on_answer(&answer);
                }
                return ScriptStep::Answer(answer);
            }
            tokio::select! {
                Some(event) = self.events.recv() => return ScriptStep::Event(Box::new(event)),
                // It may have sent events just before it ended.
                answer = &mut self.run => self.answer = Some(answer),
            }
        }
    }
}
