//! Continuations of a request: a new answer made from its outcome, or another request.
//!
//! A tool of metamcp may call several servers in sequence. For the client, these calls are one
//! exchange: it cancels them together, and gets their notifications.
//!
//! ```text
//!            ╭──── another request ────┬──────────╮
//!            ▼                         │          │
//!  start ─▶ waiting ──▶ outcome ───────┤          │
//!                         │            ├──▶ answer or error, after the notices
//!                         ╰──▶ computing ── failed ──▶ over
//! ```

use std::{collections::VecDeque, sync::Arc};

use futures_util::future::BoxFuture;

use super::{Attempts, CallError};
use crate::{
    compute_pool::{ComputeError, ComputePool, StopFlag},
    config::defaults,
    connection::{CallEvent, RequestFailure, SideMessage},
    memory_budget::{MemoryExhausted, MemoryReservation},
    pool::ServerSlot,
    protocol::{Message, payloads::method},
    server_name::ServerName,
};

/// The logic that decides what follows the outcome of a request.
pub trait CallContinuation: Send + Sync {
    /// Returns the notifications for the client before the request is sent.
    fn start(&mut self) -> Vec<Message> {
        Vec::new()
    }

    /// Records a server's progress notification. Returns whether to forward it to the client.
    fn forwards_progress(&mut self, progress: &Message) -> bool {
        let _ = progress;
        true
    }

    /// Returns the action for `outcome`: the server's answer in the client's era, or the error. A
    /// large answer is processed outside the event loops. `stop` is set once the client has left.
    fn on_outcome(
        &mut self,
        outcome: Result<Message, CallError>,
        stop: &StopFlag,
    ) -> AttemptOutcome;

    /// Continues after [`NextAction::Compute`], outside the event loops and until `stop` is set.
    fn resume(&mut self, stop: &StopFlag) -> AttemptOutcome {
        let _ = stop;
        AttemptOutcome { notices: Vec::new(), action: NextAction::Compute }
    }

    /// Returns whether another request may follow.
    fn may_continue(&self) -> bool;
}

/// The action for an outcome.
pub struct AttemptOutcome {
    /// The notifications to send to the client first.
    pub notices: Vec<Message>,
    /// The action after the notifications.
    pub action: NextAction,
}

/// The next action.
pub enum NextAction {
    /// The client gets this answer.
    Answer(Message),
    /// The client gets this error.
    Error(CallError),
    /// Another request of the same client, which is sent like any other.
    Request(Arc<ServerSlot>, Message),
    /// The rest takes too long for an event loop: see [`CallContinuation::resume`].
    Compute,
}

/// A continuation, with the notifications and the memory of its exchange.
pub(super) struct ContinuationDriver {
    stage: Stage,
    /// The pool for long computations.
    compute_pool: ComputePool,
    /// The notifications to send to the client before anything else, and an answer after them.
    events: VecDeque<CallEvent>,
    /// The memory for the answers in progress.
    pub(super) memory: MemoryReservation,
    /// The size of the answers that the continuation may keep: those of the steps of a chain.
    n_kept: usize,
}

/// The stage of a continuation.
enum Stage {
    /// It waits for the outcome of a request.
    Waiting(Box<dyn CallContinuation>),
    /// It processes an outcome outside the event loops.
    Computing(BoxFuture<'static, Computed>),
    /// Nothing follows.
    Over,
}

/// The result of a computation, with its continuation and memory.
type Computed =
    Result<(MemoryReservation, Box<dyn CallContinuation>, AttemptOutcome), ComputeError>;

impl ContinuationDriver {
    /// Starts `continuation` before the request of `attempts` is sent.
    pub(super) fn new(
        mut continuation: Box<dyn CallContinuation>,
        compute_pool: ComputePool,
        attempts: &Attempts,
    ) -> Self {
        Self {
            events: continuation.start().into_iter().map(notification).collect(),
            stage: Stage::Waiting(continuation),
            compute_pool,
            memory: MemoryReservation::of(Some(attempts.holder.account)),
            n_kept: 0,
        }
    }

    /// Returns the next event for the client, or `None` if the outcome of a request comes first.
    /// Waits for a computation. Cancel safe: the next call continues.
    pub(super) async fn next(
        &mut self,
        attempts: &mut Attempts,
    ) -> Option<Result<CallEvent, CallError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            let Stage::Computing(computing) = &mut self.stage else { return None };
            let computed = computing.await;
            self.stage = Stage::Over;
            let outcome = match computed {
                Ok((memory, continuation, attempt)) => {
                    (self.memory, self.stage) = (memory, Stage::Waiting(continuation));
                    self.apply(attempt, attempts)
                }
                Err(source) => {
                    let server = attempts.slot.name().clone();
                    Some(Err(CallError::NotComputed(server, source)))
                }
            };
            if let Some(outcome) = outcome {
                return Some(outcome.map(CallEvent::Answer));
            }
        }
    }

    /// Processes the outcome of a request. Returns the outcome for the client, or `None` if another
    /// step comes first.
    pub(super) fn resolve(
        &mut self,
        outcome: Result<Message, CallError>,
        attempts: &mut Attempts,
    ) -> Option<Result<Message, CallError>> {
        let Some(mut continuation) = self.take_waiting() else { return Some(outcome) };
        let length = outcome.as_ref().map_or(0, |answer| answer.bytes().len());
        if length > defaults::INLINE_BYTES_MAX {
            self.compute(continuation, length, attempts, |continuation, room, stop| {
                // The continuation gets the error instead of the answer.
                continuation.on_outcome(room.and(outcome), stop)
            });
            return None;
        }
        let room = self.make_room(length, attempts.slot.name());
        let attempt = continuation.on_outcome(room.and(outcome), &StopFlag::default());
        self.stage = Stage::Waiting(continuation);
        self.apply(attempt, attempts)
    }

    /// Takes the action of the continuation. Returns the outcome for the client, or `None` if
    /// another step comes first.
    fn apply(
        &mut self,
        attempt: AttemptOutcome,
        attempts: &mut Attempts,
    ) -> Option<Result<Message, CallError>> {
        let AttemptOutcome { notices, action } = attempt;
        self.events.extend(notices.into_iter().map(notification));
        match action {
            NextAction::Answer(answer) if !self.events.is_empty() => {
                self.events.push_back(CallEvent::Answer(answer));
            }
            NextAction::Answer(answer) => return Some(Ok(answer)),
            NextAction::Error(error) => return Some(Err(error)),
            NextAction::Request(slot, request) => attempts.begin(slot, request),
            NextAction::Compute => {
                let continuation = self.take_waiting()?;
                let work = |rest: &mut dyn CallContinuation, _, stop: &_| rest.resume(stop);
                self.compute(continuation, 0, attempts, work);
            }
        }
        None
    }

    fn take_waiting(&mut self) -> Option<Box<dyn CallContinuation>> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Waiting(continuation) => Some(continuation),
            Stage::Computing(_) | Stage::Over => None,
        }
    }

    /// Runs `continuation` on an answer of `length` bytes outside the event loops, once there is
    /// memory for it. [`Self::next`] waits for the result.
    fn compute(
        &mut self,
        mut continuation: Box<dyn CallContinuation>,
        length: usize,
        attempts: &Attempts,
        work: impl FnOnce(&mut dyn CallContinuation, Result<(), CallError>, &StopFlag) -> AttemptOutcome
        + Send
        + 'static,
    ) {
        let wanted = (length > 0).then(|| self.reservation_for(length));
        let (holder, server) = (attempts.holder, attempts.slot.name().clone());
        let (pool, mut memory) = (self.compute_pool.clone(), std::mem::take(&mut self.memory));
        self.stage = Stage::Computing(Box::pin(async move {
            let room = match wanted {
                Some(wanted) => memory.wait_for(wanted, length).await,
                None => Ok(()),
            };
            let room = room.map_err(|exhausted| out_of_memory(&server, exhausted));
            let computing = pool.run_on_answer(holder, move |stop| {
                let attempt = work(&mut *continuation, room, stop);
                (continuation, attempt)
            });
            let (continuation, attempt) = computing.await?;
            Ok((memory, continuation, attempt))
        }));
    }

    /// Reserves memory to process an answer of `length` bytes, and to keep it. A large answer
    /// reserves its memory when it is computed.
    fn make_room(&mut self, length: usize, server: &ServerName) -> Result<(), CallError> {
        if length < defaults::MEMORY_COUNTED_MIN {
            return Ok(());
        }
        let wanted = self.reservation_for(length);
        self.memory.grow_to(wanted).map_err(|exhausted| out_of_memory(server, exhausted))
    }

    /// Returns the memory needed to process an answer of `length` bytes. Counts it as kept.
    fn reservation_for(&mut self, length: usize) -> usize {
        self.memory.shrink_to(self.n_kept);
        let wanted = self.n_kept + defaults::RESULT_WORK_FACTOR * length;
        self.n_kept += length;
        wanted
    }

    /// Returns whether `aside` is progress that the client does not get.
    pub(super) fn suppresses(&mut self, aside: &CallEvent) -> bool {
        let Stage::Waiting(continuation) = &mut self.stage else { return false };
        let CallEvent::Message(SideMessage::Notification(notice)) = aside else { return false };
        notice.method() == Some(method::PROGRESS) && !continuation.forwards_progress(notice)
    }

    /// Returns whether no other request can follow.
    pub(super) fn is_last(&self) -> bool {
        matches!(&self.stage, Stage::Waiting(continuation) if !continuation.may_continue())
    }
}

fn notification(notice: Message) -> CallEvent {
    CallEvent::Message(SideMessage::Notification(notice))
}

pub(super) fn out_of_memory(server: &ServerName, exhausted: MemoryExhausted) -> CallError {
    CallError::Failed(server.clone(), RequestFailure::NoMemory(exhausted))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        call::Exchange,
        capacity_holder::Holder,
        config::Config,
        connection::{
            ConnectionLimits,
            in_process::{InProcessLauncher, ServerBehaviour, declared},
        },
        era::ClientEra,
        pool::Pool,
        protocol::jsonrpc::MessagePart,
        server_name::ServerName,
    };

    /// A continuation that calls each tool with the previous result, and answers with all results.
    struct Relay {
        left: Vec<(Arc<ServerSlot>, &'static str)>,
        seen: Vec<String>,
    }

    fn call(tool: &str, value: &str) -> Message {
        let params = json!({ "name": tool, "arguments": { "v": value } });
        Message::request("tools/call", Some(&params.to_string()))
    }

    fn notice(n: usize) -> Message {
        let params = json!({ "progressToken": "t", "progress": n });
        let text =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        Message::parse(text.to_string().into()).expect("a message")
    }

    impl CallContinuation for Relay {
        fn start(&mut self) -> Vec<Message> {
            vec![notice(0)]
        }

        fn on_outcome(
            &mut self,
            outcome: Result<Message, CallError>,
            _: &StopFlag,
        ) -> AttemptOutcome {
            self.seen.push(match outcome {
                Ok(answer) => answer.part(MessagePart::Result).unwrap_or("an error").to_owned(),
                Err(error) => error.code().to_owned(),
            });
            let notices = vec![notice(self.seen.len())];
            let action = match self.left.pop() {
                Some((slot, tool)) => {
                    NextAction::Request(slot, call(tool, &self.seen.len().to_string()))
                }
                None => {
                    let answer = Message::response("7", &json!(self.seen).to_string());
                    NextAction::Answer(Message::parse(answer).expect("a message"))
                }
            };
            AttemptOutcome { notices, action }
        }

        fn may_continue(&self) -> bool {
            true
        }
    }

    fn pool(servers: &Arc<InProcessLauncher>) -> Pool {
        let (dialer, _announced) = servers.dialer();
        let server = |name| (ServerName::new(name).expect("a name"), Arc::new(declared(name)));
        let config = Config { servers: ["a", "b"].map(server).into(), ..Config::default() };
        Pool::new(dialer, &config)
    }

    fn relay(pool: &Pool, first: &Message, left: &[(&str, &'static str)]) -> Exchange {
        let slot = |name: &str| pool.slot(name).expect("declared");
        let left = left.iter().rev().map(|(server, tool)| (slot(server), *tool)).collect();
        let limits =
            ConnectionLimits { silence: Duration::from_secs(5), total: Duration::from_secs(5) };
        Exchange::new(slot("a"), None, ClientEra::Metamcp, Holder::SERVICE, first.clone(), limits)
            .with_continuation(Box::new(Relay { left, seen: Vec::new() }), ComputePool::default())
            .with_progress_token("\"t\"")
    }

    #[tokio::test(start_paused = true)]
    async fn a_continuation_sends_requests_in_sequence_and_the_client_gets_progress_of_each() {
        let pool = pool(&InProcessLauncher::new());
        let mut exchange = relay(&pool, &call("echo", "0"), &[("b", "echo"), ("a", "echo")]);

        let mut progress = Vec::new();
        let answer = loop {
            match exchange.next().await.expect("an answer") {
                CallEvent::Message(SideMessage::Notification(notice)) => {
                    assert!(exchange.wants_progress());
                    progress
                        .push(notice.part(MessagePart::Progress).unwrap_or_default().to_owned());
                }
                CallEvent::Answer(answer) => break answer,
                other => panic!("{other:?}"),
            }
        };

        assert_eq!(progress, ["0", "1", "2", "3"]);
        let seen: Vec<String> =
            serde_json::from_str(answer.part(MessagePart::Result).expect("a result"))
                .expect("texts");
        let values: Vec<Value> =
            seen.iter().map(|seen| serde_json::from_str(seen).expect("JSON")).collect();
        assert_eq!(values.len(), 3, "{values:?}");
        assert!(!exchange.can_be_held());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_request_may_also_lead_to_another_request() {
        let servers = InProcessLauncher::new();
        servers.of("a").set_behaviour(ServerBehaviour::Missing);
        let pool = pool(&servers);

        let answer = relay(&pool, &call("echo", "0"), &[("b", "echo")]).finish().await;

        let answer = answer.expect("an answer");
        let seen: Vec<String> =
            serde_json::from_str(answer.part(MessagePart::Result).expect("a result"))
                .expect("texts");
        assert_eq!(seen[0], "SERVER_NOT_STARTED");
        assert!(seen[1].contains("content"), "{seen:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_of_a_sequence_has_the_whole_timeout() {
        let servers = InProcessLauncher::new();
        let pool = pool(&servers);
        let answer =
            relay(&pool, &call("wait", "0"), &[("b", "wait"), ("a", "echo")]).finish().await;

        let answer = answer.expect("an answer");
        let seen = answer.part(MessagePart::Result).expect("a result");
        assert_eq!(seen.matches("TIMEOUT").count(), 2, "{seen}");
    }
}
