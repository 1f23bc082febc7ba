//! The conversion of a tool's result into the answer of a meta-tool.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    super::{
        call_outcome::{ToolOutcome, backend_of, other_blocks},
        kept_results::KeptResults,
        progress::{ProgressReport, ToolProgress},
        reply::MetaReply,
    },
    call_arguments::RunArguments,
};
use crate::{
    call::{AttemptOutcome, CallContinuation, CallError, InputRefusal, NextAction},
    compute_pool::StopFlag,
    connection::ConnectionLimits,
    era::TranslationError,
    protocol::{
        Message, ObjectMembers, RpcError,
        jsonrpc::MessagePart,
        list_page::ListItem,
        rpc_error::{CAPABILITY_REQUIRED, URL_ELICITATION_REQUIRED},
    },
    tool::{ErrorObject, FieldSelection, ToolId, text_block, warnings, with_note},
};

/// The form in which the client receives the result.
pub(in crate::meta) enum ResultForm {
    /// The result as the server sent it, reduced to the requested fields.
    Original(FieldSelection),
    /// A part of an object, with the other requested members.
    Wrapped(Box<RunArguments>),
}

/// The time limits of a call.
#[derive(Clone, Copy)]
pub(in crate::meta) struct CallTimeouts {
    pub(in crate::meta) limits: ConnectionLimits,
    /// The client's own timeout, if it is below that of the service.
    pub(in crate::meta) given: Option<Duration>,
}

impl CallTimeouts {
    /// Returns the error with advice for the party that set the timeout.
    pub(in crate::meta) fn with_timeout_hint(&self, error: ErrorObject) -> ErrorObject {
        match self.given {
            Some(given) => error.with_timeout(given),
            None => error,
        }
    }
}

/// Turns the outcome of a server into the answer to the client.
pub(in crate::meta) struct MetaResponder {
    pub(in crate::meta) results: Arc<KeptResults>,
    pub(in crate::meta) reply: MetaReply,
    pub(in crate::meta) id: ToolId,
    pub(in crate::meta) item: ListItem,
    pub(in crate::meta) form: ResultForm,
    /// The text in front of the result, if any.
    pub(in crate::meta) warning: Option<String>,
    pub(in crate::meta) timeouts: CallTimeouts,
    /// The progress notifications, if the client wants them.
    pub(in crate::meta) progress: Option<ToolProgress>,
    pub(in crate::meta) bytes_max: usize,
    pub(in crate::meta) since: Instant,
}

/// Returns whether a client must receive an error unchanged: it can react to it, and a model
/// cannot.
pub(in crate::meta) fn is_for_client(error: &str) -> bool {
    let code = RpcError::code_of(error);
    matches!(code, Some(CAPABILITY_REQUIRED | URL_ELICITATION_REQUIRED))
}

/// Returns whether a result is a question: the server needs input first.
pub(in crate::meta) fn is_question(result: &ObjectMembers<'_>) -> bool {
    result.string("resultType").is_some_and(|kind| kind != "complete")
}

/// Returns the final progress for this result; `None` if the tool has not ended.
fn end_of(result: Option<&ObjectMembers<'_>>) -> Option<ProgressReport> {
    match result {
        Some(result) if is_question(result) => None,
        Some(result) if result.get("isError") != Some("true") => Some(ProgressReport::COMPLETED),
        Some(_) | None => Some(ProgressReport::FAILED),
    }
}

/// Returns the error for a call without an answer; if the call may have run, with warnings about
/// calling it again.
pub(in crate::meta) fn call_failure(error: &CallError, item: &ListItem) -> ErrorObject {
    let object = ErrorObject::from(error);
    match error {
        CallError::Failed(_, source) if !source.is_unexecuted() => {
            object.with_warnings(&warnings(item.json()))
        }
        _ => object,
    }
}

/// Returns whether the client lacks something that the call needs.
pub(in crate::meta) fn is_client_fault(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Unanswered(_, InputRefusal::UrlNotDeclared | InputRefusal::Undeclared(_))
            | CallError::Untranslatable(_, TranslationError::TaskRequired)
    )
}

impl CallContinuation for MetaResponder {
    fn start(&mut self) -> Vec<Message> {
        self.progress.iter().map(ToolProgress::start).collect()
    }

    fn forwards_progress(&mut self, notice: &Message) -> bool {
        self.progress.as_mut().is_none_or(|progress| progress.observe(notice))
    }

    fn on_outcome(
        &mut self,
        outcome: Result<Message, CallError>,
        stop: &StopFlag,
    ) -> AttemptOutcome {
        let mut end = Some(ProgressReport::FAILED);
        let action = match outcome {
            Ok(answer) => {
                match (answer.part(MessagePart::Result), answer.part(MessagePart::Error)) {
                    (Some(result), _) => {
                        let members = ObjectMembers::read(result);
                        end = end_of(members.as_ref());
                        let result = self.result(result, members.as_ref(), stop);
                        self.answer(&result)
                    }
                    (None, Some(error)) if is_for_client(error) => NextAction::Answer(answer),
                    (None, error) => self
                        .failed(ErrorObject::of_server(&self.id.server, error.unwrap_or("null"))),
                }
            }
            Err(error) if is_client_fault(&error) => NextAction::Error(error),
            Err(error) => {
                self.failed(self.timeouts.with_timeout_hint(call_failure(&error, &self.item)))
            }
        };
        let notice = self.progress.as_ref().zip(end).and_then(|(progress, end)| progress.end(end));
        AttemptOutcome { notices: notice.into_iter().collect(), action }
    }

    fn may_continue(&self) -> bool {
        false
    }
}

impl MetaResponder {
    /// Returns the tool's result, which has these members, in the form for the client.
    fn result(&self, result: &str, members: Option<&ObjectMembers<'_>>, stop: &StopFlag) -> String {
        if members.is_some_and(is_question) {
            return result.to_owned();
        }
        let result = match &self.form {
            ResultForm::Original(_) if members.is_none() => {
                return self.error_result(ErrorObject::no_result(&self.id.server));
            }
            ResultForm::Original(fields) => fields.apply(result, stop),
            ResultForm::Wrapped(run) => match self.wrapped(result, run) {
                Ok(wrapped) => wrapped,
                Err(error) => return self.error_result(*error),
            },
        };
        let shown = self.results.shown(self.reply.tool, &self.id, result, self.bytes_max);
        let warning = self.warning.as_ref();
        let warned = warning.and_then(|warning| with_note(&shown, warning));
        warned.unwrap_or(shown)
    }

    /// Returns the result as part of an object.
    fn wrapped(&self, result: &str, run: &RunArguments) -> Result<String, Box<ErrorObject>> {
        let structured = match ToolOutcome::read(&self.id.server, result) {
            ToolOutcome::Value(value) => value,
            ToolOutcome::Failed(error) => return Err(error),
        };
        let mut members = ObjectMembers::default();
        members.set("structured", structured);
        if run.include_tool {
            members.set("tool", self.item.json());
        }
        if run.include_backend {
            members.set("backend", backend_of(&self.id.server));
        }
        if run.include_mcp_result {
            members.set("mcpResult", result);
        }
        members.set("durationMs", self.since.elapsed().as_millis().to_string());
        let value = members.to_string();
        // Content other than text is passed on unchanged.
        let mut blocks = vec![text_block(&value)];
        blocks.extend(other_blocks(result));
        Ok(format!(r#"{{"content":[{}],"structuredContent":{value}}}"#, blocks.join(",")))
    }

    fn answer(&self, result: &str) -> NextAction {
        match Message::parse_own(self.reply.render(result)) {
            Ok(answer) => NextAction::Answer(answer),
            Err(_) => self.failed(ErrorObject::no_result(&self.id.server)),
        }
    }

    fn failed(&self, error: ErrorObject) -> NextAction {
        NextAction::Answer(self.reply.message(&self.error_result(error)))
    }

    fn error_result(&self, error: ErrorObject) -> String {
        error.about(&self.id).during(self.reply.tool.name()).to_result()
    }
}
