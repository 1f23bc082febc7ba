//! What a call of a tool takes before it is sent, whoever wants it: its arguments held against the
//! schema, and the request that it becomes.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{Views, meta::MetaState};
use crate::{
    budget,
    compute_pool::StopFlag,
    config::defaults,
    connection::ConnectionLimits,
    era,
    holder::{Account, Holder},
    meta::{
        ArgumentVerdict, ErrorObject, SchemaCache, ToolId,
        validation::{ArgumentProblem, UncheckedArguments},
    },
    protocol::{Message, ObjectMembers, list_page::ListItem},
};

impl Views {
    /// Returns the bounds of a call that is given so much time; never more than the service gives it.
    pub(super) fn limits_within(&self, timeout: Option<Duration>) -> ConnectionLimits {
        let limits = self.limits();
        let Some(timeout) = timeout else { return limits };
        let total = timeout.min(limits.total);
        ConnectionLimits { silence: total, total }
    }
}

impl MetaState {
    /// Holds arguments against the schema of a tool: at once where that takes no time, else beside the
    /// event loops, in turn with what others want.
    pub(super) async fn verdict(
        &self,
        holder: Holder,
        item: &ListItem,
        args: &str,
    ) -> ArgumentVerdict {
        let schema = schema_of(item);
        if let Some(verdict) = self.validators.check_briefly(holder.account, schema, args) {
            return verdict;
        }
        let validators = Arc::clone(&self.validators);
        let (schema, args) = (schema.to_owned(), args.to_owned());
        let checking = self.computer.clone().run(holder, move |stop| {
            check_in_pool(&validators, holder.account, &schema, &args, stop)
        });
        // One that has panicked is a bug, and its server checks them all the same.
        checking.await.unwrap_or(ArgumentVerdict::Unchecked(UncheckedArguments::Busy))
    }

    /// Returns what a verdict comes to: the words that go with the result, if the caller is told any.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] with all that is wrong with the arguments.
    pub(super) fn apply_verdict(
        &self,
        verdict: ArgumentVerdict,
        id: &ToolId,
        item: &ListItem,
    ) -> Result<Option<String>, Box<ErrorObject>> {
        let reason = match verdict {
            ArgumentVerdict::Fits => return Ok(None),
            ArgumentVerdict::Doubtful(doubts) => {
                let doubts: Vec<String> = doubts.iter().map(ArgumentProblem::to_string).collect();
                let words = format!("`{id}` was called. {}", doubts.join(" "));
                return Ok(Some(words));
            }
            ArgumentVerdict::Wrong(misfit) => return Err(Box::new(misfit.to_error(id))),
            ArgumentVerdict::Unchecked(reason) => reason,
        };
        let (server, tool) = (&id.server, &id.tool);
        if !reason.should_report() {
            tracing::debug!(mcp_server = server, mcp_tool = tool, %reason, "arguments not checked");
            return Ok(None);
        }
        if self.note_schema(id, schema_of(item)) {
            tracing::warn!(
                mcp_server = server,
                mcp_tool = tool,
                "calls of `{tool}` of server `{server}` are passed on with unchecked arguments: {reason}"
            );
        }
        Ok(Some(format!("The arguments were passed on to `{id}` unchecked: {reason}.")))
    }
}

/// Holds arguments against a schema beside the event loops, within the memory budget.
pub(super) fn check_in_pool(
    validators: &SchemaCache,
    account: Account,
    schema: &str,
    args: &str,
    stop: &StopFlag,
) -> ArgumentVerdict {
    match budget::reserve(Some(account), tree_bytes(args) + validators.bytes_to_compile(schema)) {
        Ok(_memory) => validators.check(account, schema, args, Some(stop)),
        Err(_) => ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly),
    }
}

/// Returns the memory that arguments take as a tree of values, at most.
fn tree_bytes(args: &str) -> usize {
    let opens = |byte: &&u8| matches!(**byte, b'{' | b'[' | b',');
    args.len() + args.as_bytes().iter().filter(opens).count() * defaults::VALUE_BYTES
}

pub(super) fn schema_of(item: &ListItem) -> &str {
    ObjectMembers::one(item.json(), "inputSchema").unwrap_or("{}")
}

/// Returns the call of `tool` that a call of ours stands for. What is not about the tool of ours stays.
pub(super) fn inner_call(request: &Message, tool: &str, args: &str) -> Message {
    let call = request.with_params(|params| {
        params.set("name", Value::from(tool).to_string());
        params.set("arguments", args.to_owned());
    });
    // Nobody would know here whose a task is.
    era::without_tasks(call)
}
