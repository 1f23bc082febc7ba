//! The meta-tools that search and list tools: `mcp_discover`, `search_tools` and the lists.

use serde_json::{Value, json};

use super::{
    arguments::{ArgumentError, DiscoverDetail, FieldReader, PageArguments},
    cursor::{CursorError, CursorScope},
    describe::{self, DescribedTool},
    meta_call::{MetaCall, MetaRefusal},
    tool_entries::ToolEntries,
};
use crate::{
    catalog::KnownServer,
    config::defaults,
    forward::RequestOutcome,
    protocol::{ObjectMembers, list_page::ListItem},
    redact,
    tool::{
        ErrorObject, FindQuery, FindResult, FoundTool, RequestedTool, ToolId, summary::summary,
    },
};

/// The arguments of `mcp_discover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoverArguments {
    /// The text to search for; `None` for all.
    pub query: Option<String>,
    /// Only this server.
    pub server: Option<String>,
    /// Only this tool.
    pub tool: Option<RequestedTool>,
    /// The level of detail for each tool.
    pub detail: DiscoverDetail,
    /// The page of the list.
    pub page: PageArguments,
}

impl DiscoverArguments {
    pub(super) fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        let server = fields.text("server")?;
        let tool = fields.text("tool")?;
        Ok(Self {
            query: fields.text("query")?,
            tool: tool.map(|tool| RequestedTool { server: server.clone(), tool }),
            server,
            detail: fields.word("detail", &DiscoverDetail::WORDS)?.unwrap_or_default(),
            page: PageArguments::read(fields)?,
        })
    }
}

/// The steps per unit of a reported score; finer differences mean nothing to a reader.
const SCORE_UNIT: f64 = 1e4;

/// The steps per unit of a reported confidence: two decimals.
const CONFIDENCE_UNIT: f64 = 1e2;

/// The most unavailable servers that an answer names.
const UNAVAILABLE_MAX: usize = 5;

struct ResultPage {
    found: FindResult,
    question: CursorScope,
    /// The position of the first result.
    offset: usize,
    /// The most bytes that its entries may have together; it has at least one entry.
    bytes_max: usize,
}

/// Answers `mcp_discover`.
pub(super) async fn discover_tools(
    call: MetaCall<'_>,
    arguments: &DiscoverArguments,
) -> Result<RequestOutcome, MetaRefusal> {
    let detail = arguments.detail;
    if let Some(tool) = &arguments.tool {
        let bytes_max = call.services.forwarder.peek_config().tools.result_bytes_max;
        let answer = move |tool: &DescribedTool<'_>| {
            let mut entries = ToolEntries::new(bytes_max, detail);
            entries.add(tool, discovered(tool, detail));
            entries.into_answer().to_string()
        };
        let cost = move |n_bytes| ToolEntries::cost(n_bytes, detail);
        return Ok(call.reply.value(&describe::of_tool(call, tool, cost, answer).await?));
    }
    let (query, server) = (arguments.query.as_deref(), arguments.server.as_deref());
    if query.is_none() && server.is_none() {
        return discover_servers(call, &arguments.page).await;
    }
    let subject = ["discover", query.unwrap_or("*"), server.unwrap_or("*"), detail.name()];
    let page = result_page(call, query, server, &arguments.page, &subject).await?;
    let entry =
        move |found: &FoundTool, tool: &DescribedTool<'_>| scored(&discovered(tool, detail), found);
    let message = page.message(query.is_some());
    answer_page(call, page, detail, entry, message).await
}

/// Returns the entry of a tool.
fn discovered(tool: &DescribedTool<'_>, detail: DiscoverDetail) -> String {
    match detail {
        DiscoverDetail::Entry(detail) => tool.discovered(detail),
        DiscoverDetail::Types => tool.discovered_beside_types(),
    }
}

/// Answers with the list of servers.
async fn discover_servers(
    call: MetaCall<'_>,
    page: &PageArguments,
) -> Result<RequestOutcome, MetaRefusal> {
    let known_tools = call.services.directory.known_tools(None).await;
    let snapshot = &known_tools.snapshot;
    let slots = call.services.forwarder.pool().slots();
    let all: Vec<Value> = slots
        .values()
        .map(|slot| {
            let status = slot.status();
            let known = snapshot.server(slot.name().as_str());
            let mut unavailable = known_tools.unavailable();
            let reason = unavailable.find(|(name, _)| *name == slot.name());
            let mut entry = json!({ "name": slot.name(), "state": status.state });
            // The number of tools is unknown until the server has been read.
            if let Some(known) = known {
                entry["toolCount"] = known.tools.len().into();
                entry["source"] = json!(known.source);
                if !known.about.is_empty() {
                    entry["description"] = summary(&known.about).into();
                }
            }
            if let Some((_, reason)) = reason {
                entry["unavailable"] = redact::sanitize(reason).into();
            }
            entry
        })
        .collect();
    let mut answer = list_page("servers", &all, page, snapshot.fingerprint)?;
    answer["message"] =
        "Pass `query` to find tools for a task, or `server` to list its tools.".into();
    Ok(call.reply.value(&answer.to_string()))
}

/// Answers `list_namespaces`.
pub(super) async fn list_namespaces(
    call: MetaCall<'_>,
    page: &PageArguments,
) -> Result<RequestOutcome, MetaRefusal> {
    let snapshot = call.services.directory.known_tools(None).await.snapshot;
    let names: Vec<Value> = snapshot.servers().iter().map(|server| json!(server.name)).collect();
    let answer = list_page("namespaces", &names, page, snapshot.fingerprint)?;
    Ok(call.reply.value(&answer.to_string()))
}

/// Answers `search_tools`, and `list_tools` without a query.
pub(super) async fn summaries(
    call: MetaCall<'_>,
    query: Option<&str>,
    server: Option<&str>,
    paging: &PageArguments,
) -> Result<RequestOutcome, MetaRefusal> {
    let subject = ["summaries", query.unwrap_or("*"), server.unwrap_or("*")];
    let page = result_page(call, query, server, paging, &subject).await?;
    let entry = |_: &FoundTool, tool: &DescribedTool<'_>| tool.listed();
    answer_page(call, page, DiscoverDetail::default(), entry, None).await
}

async fn answer_page(
    call: MetaCall<'_>,
    page: ResultPage,
    detail: DiscoverDetail,
    entry: impl Fn(&FoundTool, &DescribedTool<'_>) -> String + Send + 'static,
    message: Option<String>,
) -> Result<RequestOutcome, MetaRefusal> {
    let bytes = page.found.each().map(|(_, _, item)| item.json().len()).sum();
    let cost = ToolEntries::cost(bytes, detail);
    let work = move || page.answer(detail, entry, message.as_deref());
    let holder = call.session.holder();
    let answer = call.services.forwarder.compute(holder, cost, move |_| work()).await;
    Ok(call.reply.value(&answer.map_err(|error| ErrorObject::too_busy(&error))?))
}

/// Returns one page of the results for a query; `parts` identify the query in cursors.
async fn result_page(
    call: MetaCall<'_>,
    query: Option<&str>,
    server: Option<&str>,
    paging: &PageArguments,
    parts: &[&str],
) -> Result<ResultPage, MetaRefusal> {
    if let Some(server) = server
        && call.services.forwarder.pool().slot(server).is_none()
    {
        return Err(call.services.directory.no_server(server).into());
    }
    let known = call.services.directory.known_tools(server.or(query)).await;
    // Another ranking would have other pages.
    let strategy = format!("{:?}", call.services.forwarder.peek_config().search.strategy);
    let question = CursorScope::new(&[parts, &[&strategy]].concat());
    let of = known.snapshot.fingerprint;
    let offset = match &paging.cursor {
        Some(cursor) => question.offset(of, cursor)?,
        None => 0,
    };
    let request =
        FindQuery { text: query, server, offset, limit: paging.limit, ..FindQuery::default() };
    let found = call.services.directory.find(call.session.holder(), known, &request).await;
    let found = found.map_err(|error| ErrorObject::from(&error))?;
    let bytes_max = call.services.forwarder.peek_config().tools.result_bytes_max;
    Ok(ResultPage { found, question, offset, bytes_max })
}

impl ResultPage {
    /// Returns the answer with an entry, as JSON text, for each tool that fits; the others are on
    /// the next page.
    fn answer(
        &self,
        detail: DiscoverDetail,
        entry: impl Fn(&FoundTool, &DescribedTool<'_>) -> String,
        message: Option<&str>,
    ) -> String {
        let mut entries = ToolEntries::new(self.bytes_max, detail);
        let mut add = |(found, server, item): (&FoundTool, &KnownServer, &ListItem)| {
            let id = ToolId::new(server.name.as_str(), &item.key);
            let tool = DescribedTool::new(id, item.json());
            entries.add(&tool, entry(found, &tool))
        };
        let has_more = !self.found.each().all(&mut add) || self.found.has_more;
        let n_entries = entries.len();
        let mut answer = entries.into_answer();
        let quoted = |text: &str| Value::from(text).to_string();
        if has_more {
            let of = self.found.known.snapshot.fingerprint;
            let next = self.question.cursor(of, self.offset + n_entries);
            answer.set("nextCursor", quoted(&next));
        }
        if let Some(message) = message {
            answer.set("message", quoted(message));
        }
        answer.to_string()
    }

    /// Returns the message that goes with the results.
    fn message(&self, is_search: bool) -> Option<String> {
        let mut message = String::new();
        if self.found.tools.is_empty() {
            message.push_str(match is_search {
                true => "No tool fits: use other words, or call `mcp_provision` to get a server.",
                false => "Its tools are unknown.",
            });
        }
        message.push_str(&self.not_searched());
        let message = redact::sanitize(message.trim());
        (!message.is_empty()).then(|| message.into_owned())
    }

    /// Returns a note about the servers that were not searched and may have better matches.
    fn not_searched(&self) -> String {
        let n_missing = self.found.known.unavailable().count();
        if n_missing == 0 {
            return String::new();
        }
        let n_servers = n_missing + self.found.known.snapshot.servers().len();
        let mut text = format!(
            " {n_missing} of {n_servers} servers could not be searched and may have better tools; \
             search again soon."
        );
        if let Some(longest) =
            self.found.known.still_connecting().map(|(_, read_for)| read_for).max()
        {
            text.push_str(&format!(
                " Still starting: {}, for {} s; until then, no confidence is above {}.",
                self.found.known.still_connecting().count(),
                longest.as_secs(),
                defaults::CONFIDENCE_MAX_UNREAD,
            ));
        }
        for (server, reason) in self.found.known.unavailable().take(UNAVAILABLE_MAX) {
            text.push_str(&format!(" `{server}`: {reason}."));
        }
        match n_missing.saturating_sub(UNAVAILABLE_MAX) {
            0 => {}
            n_more => text.push_str(&format!(" And {n_more} more.")),
        }
        text
    }
}

/// Returns an answer with a page of `all` as the member `name`, and the cursor of the next page.
fn list_page(
    name: &str,
    all: &[Value],
    page: &PageArguments,
    fingerprint: u64,
) -> Result<Value, CursorError> {
    let question = CursorScope::new(&[name]);
    let start = match &page.cursor {
        Some(cursor) => question.offset(fingerprint, cursor)?.min(all.len()),
        None => 0,
    };
    let end = all.len().min(start + page.limit);
    let mut answer = json!({ (name): all[start..end] });
    if end < all.len() {
        answer["nextCursor"] = question.cursor(fingerprint, end).into();
    }
    Ok(answer)
}

/// Returns the entry of a tool with its score and confidence.
fn scored(entry: &str, found: &FoundTool) -> String {
    let mut entry = ObjectMembers::read(entry).unwrap_or_default();
    for (name, value, unit) in
        [("score", found.score, SCORE_UNIT), ("confidence", found.confidence, CONFIDENCE_UNIT)]
    {
        if let Some(value) = value {
            entry.set(name, json!((value * unit).round() / unit).to_string());
        }
    }
    entry.to_string()
}
