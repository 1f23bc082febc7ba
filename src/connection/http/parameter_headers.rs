//! The headers that repeat parts of a request's body, and the tool arguments among those parts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::Connection;
use crate::{
    config::defaults,
    connection::ConnectionLimits,
    protocol::{
        Message, ObjectMembers,
        json_array::{LIST_ITEMS_MAX, first_items},
        jsonrpc::MessagePart,
        list_page::ListKind,
        parameter_headers::{self, HeaderParameter},
        payloads::method,
    },
    single_flight::SingleFlight,
};

/// The number of readings of the tools to wait for: the first one may have been in progress before
/// the tool got other marks.
const READINGS: usize = 2;

/// The known tool arguments that are also sent in headers.
#[derive(Debug)]
pub(in super::super) struct ParameterHeaders {
    /// By tool; tools without such arguments are left out.
    known: Mutex<HashMap<String, Vec<HeaderParameter>>>,
    /// The readings of the tools; the outcome says whether they could be read.
    readings: Arc<SingleFlight<bool>>,
}

/// The header marks of one page of tools.
#[derive(Debug, Default, PartialEq, Eq)]
struct HeaderMarks {
    by_tool: HashMap<String, Vec<HeaderParameter>>,
    /// Tools with invalid marks, each with its error.
    refused: Vec<(String, parameter_headers::HeaderMarkError)>,
}

impl Default for ParameterHeaders {
    fn default() -> Self {
        Self { known: Mutex::default(), readings: SingleFlight::new() }
    }
}

impl ParameterHeaders {
    /// Returns the headers that repeat parts of `request`, with their values.
    pub(super) fn headers(&self, request: &Message) -> Vec<(String, String)> {
        let header = |name: &str, value: &str| {
            (name.to_owned(), parameter_headers::encode(value).into_owned())
        };
        let method = request.method().unwrap_or_default();
        let mut found = vec![header(parameter_headers::METHOD, method)];
        let Some((name, _)) = parameter_headers::name_of(request) else { return found };
        found.push(header(parameter_headers::NAME, &name));
        if method == method::TOOLS_CALL
            && let Some(marked) = self.known().get(&name).cloned()
            && let Some(arguments) = parameter_headers::arguments(request)
        {
            let arguments = serde_json::from_str(&arguments).unwrap_or_default();
            for one in marked {
                if let Some(value) = one.value(&arguments) {
                    found.push((one.header, parameter_headers::encode(&value).into_owned()));
                }
            }
        }
        found
    }

    /// Stores the marks of a page; the first page of a list replaces all known marks.
    fn learn(&self, marks: HashMap<String, Vec<HeaderParameter>>, is_first: bool) {
        let mut known = self.known();
        if is_first {
            known.clear();
        }
        known.extend(marks);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Vec<HeaderParameter>>> {
        // Held for single statements on plain data.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Stores which arguments of the tools in an answer to `tools/list` are sent in headers.
    /// Returns the answer without the tools with invalid marks in their schema.
    ///
    /// Source: MCP 2026-07-28, "Schema Extension": a client must leave such tools out.
    pub(in super::super) fn without_invalid_tools(
        &self,
        answer: Message,
        is_first: bool,
    ) -> Message {
        let Some(result) = answer.part(MessagePart::Result) else { return answer };
        let (marks, kept) = HeaderMarks::read(result);
        let server = &self.server;
        for (tool, error) in &marks.refused {
            tracing::warn!(
                mcp_server = %server, tool, reason = %error,
                "tool `{}` of server `{server}` is left out: {}",
                self.quote(tool), self.quote(&error.to_string())
            );
        }
        self.parameter_headers.learn(marks.by_tool, is_first);
        match kept {
            Some(kept) => answer.with(MessagePart::Result, &kept),
            None => answer,
        }
    }

    /// Reads the tools again, once for all callers, because the headers `repeated` of `request`
    /// were refused. Returns whether its headers differ now.
    pub(super) async fn learn_header_marks(
        self: &Arc<Self>,
        tasks: &TaskTracker,
        request: &Message,
        repeated: &[(String, String)],
    ) -> bool {
        let readings = &self.parameter_headers.readings;
        let are_others = || self.parameter_headers.headers(request) != repeated;
        for _ in 0..READINGS {
            let may_be_late = readings.is_running();
            let reading = readings.join(
                tasks,
                || are_others().then_some(true),
                || {
                    let connection = Arc::clone(self);
                    async move { connection.read_marks().await }
                },
            );
            let is_read = reading.outcome().await == Some(true);
            if !is_read || are_others() || !may_be_late {
                break;
            }
        }
        are_others()
    }

    /// Reads the tools for the marks in their schemas; `false` when they cannot be read.
    async fn read_marks(self: &Arc<Self>) -> bool {
        let deadline = Instant::now() + defaults::WARM_UP_TIMEOUT;
        let mut cursor: Option<String> = None;
        for _ in 0..defaults::LIST_PAGES_MAX {
            let total = deadline.saturating_duration_since(Instant::now());
            let params =
                cursor.as_ref().map(|cursor| serde_json::json!({ "cursor": cursor }).to_string());
            let request = Message::request(ListKind::Tools.method(), params.as_deref());
            // Each answer passes [`Connection::without_invalid_tools`], which stores the marks.
            let answer = match Box::pin(self.ask(&request, ConnectionLimits::of_total(total))).await
            {
                Ok(answer) => answer,
                Err(error) => {
                    let server = &self.server;
                    tracing::debug!(
                        mcp_server = %server, %error,
                        "the tools of server `{server}` cannot be read again: {error}"
                    );
                    return false;
                }
            };
            let next = answer.part(MessagePart::Result).and_then(ObjectMembers::read);
            let next = next.and_then(|result| result.string("nextCursor"));
            if next.is_none() || next == cursor {
                return answer.part(MessagePart::Result).is_some();
            }
            cursor = next;
        }
        true
    }
}

impl HeaderMarks {
    /// Reads a page of `tools/list`, given the text of its result. Also returns the page without
    /// the refused tools, if there are any.
    fn read(result: &str) -> (Self, Option<String>) {
        #[derive(Deserialize)]
        struct Tool<'a> {
            name: String,
            #[serde(borrow, rename = "inputSchema")]
            schema: Option<&'a RawValue>,
        }
        let mut marks = Self::default();
        let Some(mut page) = ObjectMembers::read(result) else { return (marks, None) };
        let tools = page.get("tools").unwrap_or("[]").to_owned();
        let (tools, _) = first_items(&tools, LIST_ITEMS_MAX).unwrap_or_default();
        let mut kept = Vec::new();
        for text in tools {
            let Ok(Tool { name, schema: Some(schema) }) = serde_json::from_str(text.get()) else {
                // Other errors in a tool are not checked here.
                kept.push(text.get());
                continue;
            };
            match parameter_headers::header_parameters(schema.get()) {
                Ok(marked) => {
                    if !marked.is_empty() {
                        marks.by_tool.insert(name, marked);
                    }
                    kept.push(text.get());
                }
                Err(error) => marks.refused.push((name, error)),
            }
        }
        if marks.refused.is_empty() {
            return (marks, None);
        }
        page.set("tools", format!("[{}]", kept.join(",")));
        let page = page.to_string();
        (marks, Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}},{"name":"b", "inputSchema":{"type":"object"}},{"name":"c","inputSchema":{"type":"object","properties":{"x":{"type":"number","x-mcp-header":"X"}}}},7],"nextCursor":"2"}"#;

    fn call(params: &str) -> Message {
        Message::request("tools/call", Some(params))
    }

    #[test]
    fn only_the_tool_with_invalid_header_marks_is_removed() {
        let (marks, kept) = HeaderMarks::read(PAGE);
        assert_eq!(marks.refused.len(), 1);
        assert_eq!(marks.refused[0].0, "c");
        assert_eq!(
            kept.expect("another page"),
            r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}},{"name":"b", "inputSchema":{"type":"object"}},7],"nextCursor":"2"}"#
        );
        let (marks, kept) = HeaderMarks::read(r#"{"tools":[{"name":"b","inputSchema":{}}]}"#);
        assert_eq!((marks, kept), (HeaderMarks::default(), None));
        assert_eq!(HeaderMarks::read("[]").1, None);
    }

    #[test]
    fn a_request_repeats_its_method_its_name_and_its_marked_arguments() {
        let known = ParameterHeaders::default();
        known.learn(HeaderMarks::read(PAGE).0.by_tool, true);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let request = call(r#"{"name":"a","arguments":{"region":"Zürich"}}"#);
        assert_eq!(
            known.headers(&request),
            [
                pair("mcp-method", "tools/call"),
                pair("mcp-name", "a"),
                pair("mcp-param-region", "=?base64?WsO8cmljaA==?=")
            ]
        );
        let request = call(r#"{"name":"a","arguments":{"region":null}}"#);
        assert_eq!(known.headers(&request).len(), 2, "no argument is repeated");
        let request = Message::request("resources/read", Some(r#"{"uri":"a:b"}"#));
        assert_eq!(known.headers(&request)[1], pair("mcp-name", "a:b"));
        let request = Message::request("tools/list", None);
        assert_eq!(known.headers(&request), [pair("mcp-method", "tools/list")]);
    }

    #[test]
    fn the_first_page_replaces_the_known_marks_and_later_pages_add_to_them() {
        let known = ParameterHeaders::default();
        let marks = || HeaderMarks::read(PAGE).0.by_tool;
        known.learn(marks(), true);
        known.learn(HashMap::new(), false);
        assert_eq!(known.known().len(), 1);
        known.learn(HashMap::new(), true);
        assert!(known.known().is_empty());
    }
}
