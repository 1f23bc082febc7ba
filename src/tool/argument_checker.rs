//! The steps before a call: the check of its arguments, at once or in the compute pool, and the
//! request.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use super::{
    error::ErrorObject,
    tool_id::ToolId,
    validation::{ArgumentProblem, ArgumentVerdict, SchemaCache, UncheckedArguments},
};
use crate::{
    capacity_holder::{Account, Holder},
    compute_pool::{ComputePool, StopFlag},
    config::defaults,
    era, memory_budget,
    protocol::{Message, ObjectMembers, list_page::ListItem},
};

/// The checks of arguments against the schemas of their tools.
#[derive(Debug)]
pub struct ArgumentChecker {
    schemas: Arc<SchemaCache>,
    /// The pool for long checks.
    computer: ComputePool,
    /// The digests of tools with a schema for which an unchecked call was already logged.
    warned: Mutex<BTreeSet<u64>>,
    digests: RandomState,
}

impl ArgumentChecker {
    /// Returns the checks; long ones run in `computer`.
    pub fn new(computer: ComputePool) -> Self {
        let (schemas, warned) = (Arc::default(), Mutex::default());
        Self { schemas, computer, warned, digests: RandomState::new() }
    }

    /// Checks arguments, the JSON text of an object, against the schema of a tool: at once if that
    /// is quick, else in the compute pool, in turn with other accounts. Cancel safe.
    pub async fn check(&self, holder: Holder, item: &ListItem, args: &str) -> ArgumentVerdict {
        if let Some(verdict) = self.check_now(holder.account, item, args, None) {
            return verdict;
        }
        let schemas = Arc::clone(&self.schemas);
        let (schema, args) = (schema_of(item).to_owned(), args.to_owned());
        let check = self
            .computer
            .clone()
            .run(holder, move |stop| check_long(&schemas, holder.account, &schema, &args, stop));
        // A panic is a bug, and the server checks the arguments anyway.
        check.await.unwrap_or(ArgumentVerdict::Unchecked(UncheckedArguments::Busy))
    }

    /// Checks arguments like [`ArgumentChecker::check`] on this thread, but takes long only if there
    /// is a flag to `stop` it. `None` means that it would take long.
    pub fn check_now(
        &self,
        account: Account,
        item: &ListItem,
        args: &str,
        stop: Option<&StopFlag>,
    ) -> Option<ArgumentVerdict> {
        let schema = schema_of(item);
        let verdict = self.schemas.check_briefly(account, schema, args);
        verdict.or_else(|| Some(check_long(&self.schemas, account, schema, args, stop?)))
    }

    /// Returns the warning that goes with the result, if any.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] with all problems of the arguments.
    pub fn apply(
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

    /// Records a tool with this schema. Returns whether it was not recorded yet.
    fn note_schema(&self, id: &ToolId, schema: &str) -> bool {
        let digest = self.digests.hash_one((&id.server, &id.tool, schema));
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() >= defaults::VALIDATORS_MAX {
            warned.clear();
        }
        warned.insert(digest)
    }
}

/// Checks arguments against a schema in the compute pool, within the memory budget.
fn check_long(
    schemas: &SchemaCache,
    account: Account,
    schema: &str,
    args: &str,
    stop: &StopFlag,
) -> ArgumentVerdict {
    let bytes = tree_bytes(args) + schemas.bytes_to_compile(schema);
    match memory_budget::reserve(Some(account), bytes) {
        Ok(_memory) => schemas.check(account, schema, args, Some(stop)),
        Err(_) => ArgumentVerdict::Unchecked(UncheckedArguments::TooCostly),
    }
}

/// Returns the most memory that arguments take as a tree of values.
fn tree_bytes(args: &str) -> usize {
    let opens = |byte: &&u8| matches!(**byte, b'{' | b'[' | b',');
    args.len() + args.as_bytes().iter().filter(opens).count() * defaults::VALUE_BYTES
}

fn schema_of(item: &ListItem) -> &str {
    ObjectMembers::one(item.json(), "inputSchema").unwrap_or("{}")
}

/// Returns the call of `tool` that `request` stands for, with its other parameters.
pub fn tool_call(request: &Message, tool: &str, args: &str) -> Message {
    let call = request.with_params(|params| {
        params.set("name", Value::from(tool).to_string());
        params.set("arguments", args.to_owned());
    });
    // The client could not find a task again here.
    era::without_tasks(call)
}
