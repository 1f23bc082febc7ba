//! A call of one tool, through a tool of ours.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{task, time::Instant};

use super::{Caller, Desk, Refusal, Reply, Resolved};
use crate::{
    call::{CallError, Sequel, Then, Turn, Unanswered},
    connection::Limits,
    era::{self, Untranslatable},
    meta::{
        self, Backend, ErrorObject, Progress, Telling, ToolId, Validators, Verdict, Wanted,
        arguments::{Call, Run},
        fields::Fields,
    },
    protocol::{
        Members, Message, RpcError,
        error::{CAPABILITY_REQUIRED, URL_ELICITATION_REQUIRED},
        jsonrpc::Part,
        mcp::Item,
    },
    view::{Outcome, Views},
};

/// What becomes of the result of the tool.
enum Form {
    /// The client gets it as it is, as far as it has asked for it.
    AsItIs(Fields),
    /// It is part of an object, with what else was asked for.
    Wrapped(Box<Run>),
}

/// How long a call may take.
#[derive(Clone, Copy)]
struct Bounds {
    limits: Limits,
    /// What its client has given it, where that is less than the service would.
    given: Option<Duration>,
}

impl Bounds {
    /// Returns the error with the remedy of who set the bound.
    fn told(&self, error: ErrorObject) -> ErrorObject {
        match self.given {
            Some(given) => error.in_time_given(given),
            None => error,
        }
    }
}

/// Makes the answer to the client of what the server has said.
struct Finish {
    desk: Arc<Desk>,
    reply: Reply,
    id: ToolId,
    item: Item,
    form: Form,
    bounds: Bounds,
    /// How the client is told how far it is, if it wants to know.
    telling: Option<Telling>,
    bytes_max: usize,
    since: Instant,
}

/// The structured value of `run_tool`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ran<'a> {
    structured: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<Backend<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_result: Option<Box<RawValue>>,
    duration_ms: u64,
}

impl Views {
    /// Answers `mcp_call`.
    pub(super) async fn call_tool(
        &self,
        caller: Caller<'_>,
        asked: Call,
    ) -> Result<Outcome, Refusal> {
        if let Some(cursor) = &asked.cursor {
            return self.read_on(caller.reply, &asked.tool, cursor);
        }
        let bounds = self.bounds_of(asked.timeout);
        let resolved = self
            .resolve(caller.session, &asked.tool, bounds.limits)
            .await
            .map_err(|error| bounds.told(error))?;
        self.run(caller, resolved, &asked.args, Form::AsItIs(asked.fields), bounds).await
    }

    /// Answers `run_tool`.
    pub(super) async fn run_tool(
        &self,
        caller: Caller<'_>,
        asked: Run,
    ) -> Result<Outcome, Refusal> {
        if asked.is_stream {
            return Err(ErrorObject::no_stream().into());
        }
        if asked.is_overridden {
            return Err(ErrorObject::no_override().into());
        }
        if let Some(cursor) = &asked.cursor {
            return self.read_on(caller.reply, &asked.tool, cursor);
        }
        let bounds = self.bounds_of(None);
        let resolved = self.resolve(caller.session, &asked.tool, bounds.limits).await?;
        let args = asked.args.clone();
        self.run(caller, resolved, &args, Form::Wrapped(Box::new(asked)), bounds).await
    }

    async fn run(
        &self,
        caller: Caller<'_>,
        resolved: Resolved,
        args: &str,
        form: Form,
        bounds: Bounds,
    ) -> Result<Outcome, Refusal> {
        let Resolved { slot, id, item } = resolved;
        understand(&self.desk.validators, &item).await;
        check(&self.desk.validators, &id, &item, args)?;
        let call = call_of(caller.request, &item.key, args);
        let finish = Finish {
            desk: Arc::clone(&self.desk),
            reply: caller.reply.clone(),
            id: id.clone(),
            item,
            form,
            bounds,
            telling: caller.token().map(Telling::to),
            bytes_max: self.config.load().tools.result_bytes_max,
            since: Instant::now(),
        };
        self.exchange_with(slot, caller.session, call, bounds.limits, Some(Box::new(finish)))
            .await
            .map_err(|error| ErrorObject::from(&error).about(&id).into())
    }

    /// Returns the next page of a result that is there already.
    fn read_on(&self, reply: &Reply, wanted: &Wanted, cursor: &str) -> Result<Outcome, Refusal> {
        let bytes_max = self.config.load().tools.result_bytes_max;
        let mut refused = None;
        for id in wanted.readings().map_err(|error| ErrorObject::bad_id(&error))? {
            match self.desk.page(reply.tool, &id, cursor, bytes_max) {
                Ok(page) => return Ok(reply.result(&page)),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or(meta::cursor::CursorError::Broken).into())
    }

    /// Returns the bounds of a call that its client gives so much time; never more than the service
    /// does in all.
    fn bounds_of(&self, timeout: Option<Duration>) -> Bounds {
        let limits = self.limits();
        let Some(timeout) = timeout else { return Bounds { limits, given: None } };
        let (total, given) = match timeout < limits.total {
            true => (timeout, Some(timeout)),
            false => (limits.total, None),
        };
        Bounds { limits: Limits { silence: total, total }, given }
    }
}

/// Has the schema of a tool understood if it never was, so that [`check`] is quick. Patterns can take
/// a second and more, so this holds up no other request.
pub(super) async fn understand(validators: &Arc<Validators>, item: &Item) {
    let schema = schema_of(item);
    if validators.knows(schema) {
        return;
    }
    let (validators, schema) = (Arc::clone(validators), schema.to_owned());
    let learning = task::spawn_blocking(move || validators.learn(&schema));
    // One that is not understood is understood when it is needed.
    let _panicked = learning.await;
}

fn schema_of(item: &Item) -> &str {
    Members::one(item.json(), "inputSchema").unwrap_or("{}")
}

/// Holds arguments against the schema of a tool.
///
/// # Errors
///
/// [`ErrorObject`] with all that is wrong with them.
pub(super) fn check(
    validators: &Validators,
    id: &ToolId,
    item: &Item,
    args: &str,
) -> Result<(), Box<ErrorObject>> {
    match validators.check(schema_of(item), args) {
        Verdict::Fits => Ok(()),
        Verdict::Wrong(misfit) => Err(Box::new(misfit.to_error(id))),
        Verdict::Unchecked(reason) => {
            let (server, tool) = (&id.server, &id.tool);
            tracing::debug!(mcp_server = server, mcp_tool = tool, %reason, "arguments not checked");
            Ok(())
        }
    }
}

/// Returns the call of `tool` that a call of ours stands for. What is not about the tool of ours stays.
pub(super) fn call_of(request: &Message, tool: &str, args: &str) -> Message {
    let call = request.with_params(|params| {
        params.set("name", Value::from(tool).to_string());
        params.set("arguments", args.to_owned());
    });
    // Nobody would know here whose a task is.
    era::without_tasks(call)
}

/// Tells whether a client of the protocol must see an error as it is: it can do something about it
/// that a model cannot.
pub(super) fn is_for_client(error: &str) -> bool {
    let code = RpcError::code_of(error);
    matches!(code, Some(CAPABILITY_REQUIRED | URL_ELICITATION_REQUIRED))
}

/// Tells whether a result is none yet: the server wants to know something first.
pub(super) fn is_question(result: &str) -> bool {
    let kind = Members::read(result).and_then(|result| result.string("resultType"));
    kind.is_some_and(|kind| kind != "complete")
}

/// Returns how a tool has ended whose result this is; nothing where it has not.
fn end_of(result: &str) -> Option<Progress> {
    if is_question(result) {
        return None;
    }
    let is_good = Members::read(result).is_some_and(|found| found.get("isError") != Some("true"));
    Some(if is_good { Progress::COMPLETED } else { Progress::FAILED })
}

/// Returns why a call of a tool got no answer; of one that may have run, also what to mind before it is
/// called again.
pub(super) fn lost(error: &CallError, item: &Item) -> ErrorObject {
    let told = ErrorObject::from(error);
    match error {
        CallError::Failed { source, .. } if !source.is_unexecuted() => {
            told.warned(&meta::warnings(item.json()))
        }
        _ => told,
    }
}

/// Tells whether it is the client that lacks something.
pub(super) fn is_of_client(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Unanswered { source: Unanswered::NoVisits | Unanswered::Undeclared { .. }, .. }
            | CallError::Untranslatable { source: Untranslatable::TaskRequired, .. }
    )
}

impl Sequel for Finish {
    fn start(&mut self) -> Vec<Message> {
        self.telling.iter().map(Telling::start).collect()
    }

    fn hears(&mut self, progress: &Message) -> bool {
        self.telling.as_mut().is_none_or(|telling| telling.hears(progress))
    }

    fn turn(&mut self, outcome: Result<Message, CallError>) -> Turn {
        let mut end = Some(Progress::FAILED);
        let then = match outcome {
            Ok(answer) => match (answer.part(Part::Result), answer.part(Part::Error)) {
                (Some(result), _) => {
                    if self.telling.is_some() {
                        end = end_of(result);
                    }
                    let result = self.result(result);
                    self.answer(&result)
                }
                (None, Some(error)) if is_for_client(error) => Then::Answer(answer),
                (None, error) => {
                    self.failed(ErrorObject::of_server(&self.id.server, error.unwrap_or("null")))
                }
            },
            Err(error) if is_of_client(&error) => Then::Error(error),
            Err(error) => self.failed(self.bounds.told(lost(&error, &self.item))),
        };
        let told = self.telling.as_ref().zip(end).and_then(|(telling, end)| telling.end(end));
        Turn { notices: told.into_iter().collect(), then }
    }

    fn may_go_on(&self) -> bool {
        false
    }
}

impl Finish {
    /// Returns the result of the tool as the client gets it.
    fn result(&self, result: &str) -> String {
        if is_question(result) {
            return result.to_owned();
        }
        let result = match &self.form {
            Form::AsItIs(_) if Members::read(result).is_none() => {
                let error = ErrorObject::no_result(&self.id.server);
                return error.about(&self.id).during(self.reply.tool).to_result();
            }
            Form::AsItIs(fields) => fields.apply(result),
            Form::Wrapped(run) => match self.wrapped(result, run) {
                Ok(wrapped) => wrapped,
                Err(error) => {
                    return error.about(&self.id).during(self.reply.tool).to_result();
                }
            },
        };
        self.desk.shown(self.reply.tool, &self.id, result, self.bytes_max)
    }

    /// Returns the result as part of an object.
    fn wrapped(&self, result: &str, run: &Run) -> Result<String, Box<ErrorObject>> {
        let structured = match meta::Outcome::read(&self.id.server, result) {
            meta::Outcome::Value(value) => value,
            meta::Outcome::Failed(error) => return Err(error),
        };
        let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
        let null = || RawValue::from_string("null".to_owned()).expect("null is JSON");
        let ran = Ran {
            structured: raw(&structured).unwrap_or_else(null),
            tool: if run.include_tool { raw(self.item.json()) } else { None },
            backend: run.include_backend.then(|| Backend::of(&self.id.server)),
            mcp_result: if run.include_mcp_result { raw(result) } else { None },
            duration_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        let ran = serde_json::to_string(&ran).expect("our own values have string keys");
        // What is no text is shown as it is.
        let mut blocks = vec![json!({ "type": "text", "text": ran }).to_string()];
        blocks.extend(meta::outcome::other_blocks(result));
        Ok(format!(r#"{{"content":[{}],"structuredContent":{ran}}}"#, blocks.join(",")))
    }

    fn answer(&self, result: &str) -> Then {
        match Message::parse(self.reply.render(result)) {
            Ok(answer) => Then::Answer(answer),
            Err(_) => self.failed(ErrorObject::no_result(&self.id.server)),
        }
    }

    fn failed(&self, error: ErrorObject) -> Then {
        let result = error.about(&self.id).during(self.reply.tool).to_result();
        Then::Answer(self.reply.message(&result))
    }
}
