//! The `scratch` server: short texts in memory, as tools, resources and a prompt.
//!
//! Nothing is written to disk: the store lives as long as the process. The number of entries and
//! the size of each are limited. Keys consist of characters that need no escaping, so that each
//! resource `scratch:///KEY` has exactly one spelling.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ErrorData, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Prompt, PromptArgument,
        PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities,
        ServerConfig, Tool, ToolAnnotations,
    },
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Demo,
    tool::{self, DemoArguments, DemoContext, ListCursor, Reply, failed, succeeded},
};

/// The largest number of entries.
const ENTRIES_MAX: usize = 1_000;

/// The largest size of a value, in bytes of UTF-8.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// The largest length of a key, in characters.
const KEY_BYTES_MAX: usize = 128;

/// The prefix of an entry's URI, before the key.
const URI_PREFIX: &str = "scratch:///";

/// The media type of every entry.
const MIME_TYPE: &str = "text/plain";

/// The name of the only prompt.
const PROMPT: &str = "summarise";

#[derive(Debug)]
pub(super) struct ScratchServer {
    tools: Vec<Tool>,
    entries: Mutex<BTreeMap<String, String>>,
    closing: CancellationToken,
}

impl ScratchServer {
    /// Returns an empty store; `closing` is cancelled when the client has disconnected.
    pub(super) fn new(closing: CancellationToken) -> Self {
        Self { tools: tools(), entries: Mutex::default(), closing }
    }

    async fn put(
        &self,
        mut arguments: DemoArguments,
        context: &DemoContext,
    ) -> Reply<CallToolResult> {
        let key = key(&mut arguments)?;
        let value = arguments.text("value")?;
        let n_bytes = value.len();
        if n_bytes > VALUE_BYTES_MAX {
            return Ok(failed(format!(
                "value of `{key}` has {n_bytes} bytes: at most {VALUE_BYTES_MAX} fit"
            )));
        }
        let is_replaced = {
            let mut entries = self.entries();
            if entries.len() >= ENTRIES_MAX && !entries.contains_key(&key) {
                return Ok(failed(format!(
                    "cannot put `{key}`: the store holds {ENTRIES_MAX} entries, delete one first"
                )));
            }
            entries.insert(key.clone(), value).is_some()
        };
        if !is_replaced {
            self.announce_change(context).await;
        }
        let data = json!({ "key": key, "bytes": n_bytes, "replaced": is_replaced });
        Ok(CallToolResult::structured(data))
    }

    fn get(&self, mut arguments: DemoArguments) -> Reply<CallToolResult> {
        let key = key(&mut arguments)?;
        let Some(value) = self.entries().get(&key).cloned() else {
            return Ok(failed(format!("there is no entry `{key}`: tool `keys` lists all entries")));
        };
        let data = json!({ "key": key, "value": value });
        Ok(succeeded(value, data))
    }

    async fn delete(
        &self,
        mut arguments: DemoArguments,
        context: &DemoContext,
    ) -> Reply<CallToolResult> {
        let key = key(&mut arguments)?;
        let is_deleted = self.entries().remove(&key).is_some();
        if is_deleted {
            self.announce_change(context).await;
        }
        Ok(CallToolResult::structured(json!({ "key": key, "deleted": is_deleted })))
    }

    fn keys(&self) -> CallToolResult {
        let keys: Vec<String> = self.entries().keys().cloned().collect();
        CallToolResult::structured(json!({ "keys": keys }))
    }

    /// Notifies the client that the list of resources has changed.
    ///
    /// Only for legacy clients: since 2026-07-28 such notifications need a subscription.
    async fn announce_change(&self, context: &DemoContext) {
        if context.protocol_version().as_ref().is_none_or(ProtocolVersion::has_initialize) {
            let announced = context.peer.notify_resource_list_changed();
            if let Some(Err(error)) = self.closing.run_until_cancelled(announced).await {
                tracing::debug!(error = %error, "cannot announce changed resources: {error}");
            }
        }
    }

    /// Locks the store. No panic can leave it inconsistent.
    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHandler for ScratchServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_prompts()
            .build();
        let instructions = "Keeps short texts in memory until the server stops.";
        tool::config(Demo::Scratch, capabilities, instructions)
    }

    async fn list_tools(&self, _: ListCursor, _: DemoContext) -> Reply<ListToolsResult> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: DemoContext,
    ) -> Reply<CallToolResponse> {
        let (tool, arguments) = tool::accept(&self.tools, call)?;
        let result = match tool {
            "put" => self.put(arguments, &context).await?,
            "get" => self.get(arguments)?,
            "delete" => self.delete(arguments, &context).await?,
            _ => self.keys(),
        };
        Ok(result.into())
    }

    async fn list_resources(&self, _: ListCursor, _: DemoContext) -> Reply<ListResourcesResult> {
        let entries = self.entries();
        let resources = entries.iter().map(|(key, value)| {
            Resource::new(format!("{URI_PREFIX}{key}"), key)
                .with_mime_type(MIME_TYPE)
                .with_size(u64::try_from(value.len()).unwrap_or(u64::MAX))
        });
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: ListCursor,
        _: DemoContext,
    ) -> Reply<ListResourceTemplatesResult> {
        let template = ResourceTemplate::new(format!("{URI_PREFIX}{{key}}"), "entry")
            .with_title("Entry of the scratch store")
            .with_description("The text that was put under a key.")
            .with_mime_type(MIME_TYPE);
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: DemoContext,
    ) -> Reply<ReadResourceResponse> {
        let value =
            request.uri.strip_prefix(URI_PREFIX).and_then(|key| self.entries().get(key).cloned());
        let Some(value) = value else {
            return Err(ErrorData::resource_not_found(
                format!("there is no resource `{}`: see `resources/list`", request.uri),
                Some(json!({ "uri": request.uri })),
            ));
        };
        let contents = ResourceContents::text(value, request.uri).with_mime_type(MIME_TYPE);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(&self, _: ListCursor, _: DemoContext) -> Reply<ListPromptsResult> {
        let key = PromptArgument::new("key")
            .with_description("The key of the entry to summarise.")
            .with_required(true);
        let prompt = Prompt::new(PROMPT, Some("Asks for a summary of one entry."), Some(vec![key]))
            .with_title("Summarise an entry");
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: DemoContext,
    ) -> Reply<GetPromptResponse> {
        if request.name != PROMPT {
            let message = format!("no prompt is called `{}`: use `{PROMPT}`", request.name);
            return Err(tool::invalid(message));
        }
        let arguments = request.arguments.unwrap_or_default();
        let Some(key) = arguments.get("key").and_then(Value::as_str) else {
            return Err(tool::invalid(format!(
                "argument `key` of prompt `{PROMPT}` is missing: pass the key of an entry"
            )));
        };
        let Some(value) = self.entries().get(key).cloned() else {
            return Err(tool::invalid(format!(
                "argument `key` names no entry `{key}`: tool `keys` lists all entries"
            )));
        };
        let text = format!("Summarise the following text in one sentence.\n\n{value}");
        let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
            .with_description(format!("Summary of entry `{key}`"));
        Ok(result.into())
    }

    async fn on_custom_request(&self, other: CustomRequest, _: DemoContext) -> Reply<CustomResult> {
        Err(tool::unreadable(&other))
    }
}

/// Returns the descriptions of the four tools.
fn tools() -> Vec<Tool> {
    let key = json!({
        "type": "string",
        "pattern": format!("^[A-Za-z0-9_][A-Za-z0-9._-]{{0,{}}}$", KEY_BYTES_MAX - 1),
        "description": "Name of the entry.",
    });
    let value = json!({
        "type": "string",
        "maxLength": VALUE_BYTES_MAX,
        "description": format!("Text to keep, at most {VALUE_BYTES_MAX} bytes of UTF-8."),
    });
    let text = json!({ "type": "string" });
    let flag = json!({ "type": "boolean" });
    let hints = || ToolAnnotations::new().open_world(false);
    vec![
        tool::describe(
            "put",
            "Put an entry",
            format!("Keeps a text under a key, replacing any other; {ENTRIES_MAX} entries fit."),
            json!({ "key": key, "value": value }),
            &["key", "value"],
            json!({
                "key": text,
                "bytes": { "type": "integer", "minimum": 0 },
                "replaced": flag,
            }),
        )
        .with_annotations(hints().read_only(false).destructive(true).idempotent(true)),
        tool::describe(
            "get",
            "Get an entry",
            "Returns the text that was put under a key.",
            json!({ "key": key }),
            &["key"],
            json!({ "key": text, "value": text }),
        )
        .with_annotations(hints().read_only(true)),
        tool::describe(
            "delete",
            "Delete an entry",
            "Deletes the entry under a key, and returns whether there was one.",
            json!({ "key": key }),
            &["key"],
            json!({ "key": text, "deleted": flag }),
        )
        .with_annotations(hints().read_only(false).destructive(true).idempotent(true)),
        tool::describe(
            "keys",
            "List keys",
            "Returns the keys of all entries in alphabetical order.",
            json!({}),
            &[],
            json!({ "keys": { "type": "array", "items": text } }),
        )
        .with_annotations(hints().read_only(true)),
    ]
}

fn key(arguments: &mut DemoArguments) -> Reply<String> {
    let key = arguments.text("key")?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_valid = key.len() <= KEY_BYTES_MAX
        && key.bytes().next().is_some_and(is_word)
        && key.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    match is_valid {
        true => Ok(key),
        false => Err(tool::invalid(format!(
            "argument `key` is invalid: pass 1 to {KEY_BYTES_MAX} ASCII letters, digits, `_`, \
             `.` or `-`, the first one a letter, digit or `_`"
        ))),
    }
}

#[cfg(test)]
mod tests;
