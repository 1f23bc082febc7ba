//! The steps before a tool call is sent: the check of its arguments, and the request.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{Views, meta::MetaState, total_limit};
use crate::{
    capacity_holder::{Account, Holder},
    compute_pool::StopFlag,
    config::defaults,
    connection::ConnectionLimits,
    era, memory_budget,
    protocol::{Message, ObjectMembers, list_page::ListItem},
    tool::{
        ArgumentVerdict, ErrorObject, SchemaCache, ToolId,
        validation::{ArgumentProblem, UncheckedArguments},
    },
};

impl Views {
    /// Returns the limits of a call with this timeout, at most those of the service.
    pub(super) fn limits_within(&self, timeout: Option<Duration>) -> ConnectionLimits {
        let limits = self.limits();
        timeout.map_or(limits, |timeout| total_limit(timeout.min(limits.total)))
    }
}

impl MetaState {
    /// Checks arguments against the schema of a tool: at once if that is quick, else in the compute
    /// pool, in turn with other accounts.
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
        let check = self.computer.clone().run(holder, move |stop| {
            check_in_pool(&validators, holder.account, &schema, &args, stop)
        });
        // A panic is a bug, and the server checks the arguments anyway.
        check.await.unwrap_or(ArgumentVerdict::Unchecked(UncheckedArguments::Busy))
    }

    /// Returns the warning that goes with the result, if any.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] with all problems of the arguments.
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
                return Ok(Some(format!("`{id}` was called. {}", doubts.join(" "))));
            }
            ArgumentVerdict::Wrong(mismatch) => return Err(Box::new(mismatch.to_error(id))),
            ArgumentVerdict::Unchecked(reason) => reason,
        };
        let (server, tool) = (&id.server, &id.tool);
        if !reason.should_report() {
            tracing::debug!(
                mcp_server = server,
                mcp_tool = tool,
                %reason,
                "arguments of {tool:?} of server `{server}` are not checked: {reason}"
            );
            return Ok(None);
        }
        if self.note_schema(id, schema_of(item)) {
            tracing::warn!(
                mcp_server = server,
                mcp_tool = tool,
                "calls of {tool:?} of server `{server}` are sent with unchecked arguments: {reason}"
            );
        }
        Ok(Some(format!("The arguments were sent to `{id}` unchecked: {reason}.")))
    }
}

/// Checks arguments against a schema in the compute pool, within the memory budget.
pub(super) fn check_in_pool(
    validators: &SchemaCache,
    account: Account,
    schema: &str,
    args: &str,
    stop: &StopFlag,
) -> ArgumentVerdict {
    match memory_budget::reserve(
        Some(account),
        tree_bytes(args) + validators.bytes_to_compile(schema),
    ) {
        Ok(_memory) => validators.check(account, schema, args, Some(stop)),
        Err(_) => ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly),
    }
}

/// Returns the most memory that arguments take as a tree of values.
fn tree_bytes(args: &str) -> usize {
    let opens = |byte: &&u8| matches!(**byte, b'{' | b'[' | b',');
    args.len() + args.as_bytes().iter().filter(opens).count() * defaults::VALUE_BYTES
}

pub(super) fn schema_of(item: &ListItem) -> &str {
    ObjectMembers::one(item.json(), "inputSchema").unwrap_or("{}")
}

/// Returns the call of `tool` that a meta-tool call stands for, with its other parameters.
pub(super) fn inner_call(request: &Message, tool: &str, args: &str) -> Message {
    let call = request.with_params(|params| {
        params.set("name", Value::from(tool).to_string());
        params.set("arguments", args.to_owned());
    });
    // The client could not find a task again here.
    era::without_tasks(call)
}
