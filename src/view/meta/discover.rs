//! Tools found by what they do, and listed where nothing is looked for.

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{Refusal, Reply, Resolved};
use crate::{
    config::defaults,
    meta::{
        ErrorObject, ToolId,
        arguments::{Detail, Discover, Paging},
        cursor::{CursorError, Question},
    },
    protocol::{Members, mcp::Item},
    redact,
    session::Session,
    view::{
        Outcome, Views,
        find::{Found, FoundTool, KnownTools, Wish, description, one_line},
    },
};

/// A tool as a search shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    tool: &'a str,
    server: &'a str,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<Box<RawValue>>,
}

/// A tool as the other set has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    id: String,
    name: &'a str,
    namespace: &'a str,
    short_description: String,
}

impl<'a> Entry<'a> {
    fn new(found: Option<&FoundTool>, server: &'a str, item: &'a Item, detail: Detail) -> Self {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
        let schema = || raw(Members::one(item.json(), "inputSchema")?);
        let bytes_max = match detail {
            Detail::Summary => defaults::SUMMARY_BYTES_MAX,
            Detail::Schema | Detail::Full => defaults::NOTES_BYTES_MAX,
        };
        Self {
            tool: &item.key,
            server,
            description: description(item, bytes_max),
            score: found.and_then(|found| found.score).map(|score| rounded(score, 1e4)),
            confidence: found.and_then(|found| found.confidence).map(|part| rounded(part, 1e2)),
            input_schema: if detail == Detail::Schema { schema() } else { None },
            definition: if detail == Detail::Full { raw(item.json()) } else { None },
        }
    }
}

/// One page of what was found.
struct Page {
    found: Found,
    /// The cursor of the next one.
    next: Option<String>,
}

impl Views {
    /// Answers `mcp_discover`.
    pub(super) async fn discover_tools(
        &self,
        session: &Session,
        reply: &Reply,
        asked: &Discover,
    ) -> Result<Outcome, Refusal> {
        if let Some(wanted) = &asked.tool {
            let Resolved { id, item, .. } = self.resolve(session, wanted, self.limits()).await?;
            let entry = Entry::new(None, &id.server, &item, asked.detail);
            return Ok(reply.value(&json!({ "tools": [entry] })));
        }
        let (query, server) = (asked.query.as_deref(), asked.server.as_deref());
        if query.is_none() && server.is_none() {
            return self.discover_servers(reply, &asked.page).await;
        }
        let subject =
            ["discover", query.unwrap_or("*"), server.unwrap_or("*"), asked.detail.name()];
        let page = self.page(query, server, &asked.page, &subject).await?;
        let entries: Vec<Entry<'_>> = page
            .found
            .each()
            .map(|(tool, server, item)| {
                Entry::new(Some(tool), server.name.as_str(), item, asked.detail)
            })
            .collect();
        let mut answer = json!({ "tools": entries });
        page.finish(&mut answer);
        if let Some(message) = page.message(query.is_some()) {
            answer["message"] = message.into();
        }
        Ok(reply.value(&answer))
    }

    /// Answers what lists the servers.
    async fn discover_servers(&self, reply: &Reply, page: &Paging) -> Result<Outcome, Refusal> {
        let KnownTools { snapshot, unavailable } = self.known_tools().await;
        let slots = self.pool.slots();
        let all: Vec<Value> = slots
            .values()
            .map(|slot| {
                let status = slot.status();
                let known = snapshot.server(slot.name().as_str());
                let reason =
                    unavailable.iter().find(|(name, _)| name == slot.name()).map(|(_, why)| why);
                let mut entry = json!({
                    "name": slot.name(), "state": status.state,
                    "toolCount": known.map_or(0, |known| known.tools.len()),
                });
                if let Some(known) = known {
                    entry["source"] = json!(known.source);
                    if !known.about.is_empty() {
                        let about = one_line(&known.about, defaults::SUMMARY_BYTES_MAX);
                        entry["description"] = about.into();
                    }
                }
                if let Some(reason) = reason {
                    entry["unavailable"] = reason.as_str().into();
                }
                entry
            })
            .collect();
        let question = Question::new(&["servers"]);
        let (part, next) = part_of(&all, page, question, snapshot.fingerprint)?;
        let mut answer = json!({ "servers": part });
        if let Some(next) = next {
            answer["nextCursor"] = next.into();
        }
        answer["message"] =
            "Say with `query` what you want to do, or with `server` whose tools you \
                             want to see."
                .into();
        Ok(reply.value(&answer))
    }

    /// Answers `list_namespaces`.
    pub(super) async fn list_namespaces(
        &self,
        reply: &Reply,
        page: &Paging,
    ) -> Result<Outcome, Refusal> {
        let KnownTools { snapshot, .. } = self.known_tools().await;
        let names: Vec<Value> =
            snapshot.servers().iter().map(|server| json!(server.name)).collect();
        let question = Question::new(&["namespaces"]);
        let (part, next) = part_of(&names, page, question, snapshot.fingerprint)?;
        let mut answer = json!({ "namespaces": part });
        if let Some(next) = next {
            answer["nextCursor"] = next.into();
        }
        Ok(reply.value(&answer))
    }

    /// Answers `search_tools`, and `list_tools` where nothing is looked for.
    pub(super) async fn summaries(
        &self,
        reply: &Reply,
        query: Option<&str>,
        server: Option<&str>,
        paging: &Paging,
    ) -> Result<Outcome, Refusal> {
        let subject = ["summaries", query.unwrap_or("*"), server.unwrap_or("*")];
        let page = self.page(query, server, paging, &subject).await?;
        let tools: Vec<Summary<'_>> = page
            .found
            .each()
            .map(|(_, server, item)| Summary {
                id: ToolId::new(server.name.as_str(), &item.key).to_string(),
                name: &item.key,
                namespace: server.name.as_str(),
                short_description: description(item, defaults::SUMMARY_BYTES_MAX),
            })
            .collect();
        let mut answer = json!({ "tools": tools });
        page.finish(&mut answer);
        Ok(reply.value(&answer))
    }

    /// Returns one page of what is found for a question with these parts.
    async fn page(
        &self,
        query: Option<&str>,
        server: Option<&str>,
        paging: &Paging,
        parts: &[&str],
    ) -> Result<Page, Refusal> {
        if let Some(server) = server
            && self.pool.slot(server).is_none()
        {
            return Err(self.no_server(server).into());
        }
        let known = self.known_tools().await;
        let (question, of) = (Question::new(parts), known.snapshot.fingerprint);
        let offset = match &paging.cursor {
            Some(cursor) => question.offset(of, cursor)?,
            None => 0,
        };
        let wish = Wish { text: query, server, offset, limit: paging.limit, ..Wish::default() };
        let found = self
            .find(known, &wish)
            .await
            .map_err(|error| Refusal::from(ErrorObject::from(&error)))?;
        let next = found.has_more.then(|| question.cursor(of, offset + paging.limit));
        Ok(Page { found, next })
    }
}

impl Page {
    /// Adds to an answer what belongs to every page.
    fn finish(&self, answer: &mut Value) {
        if let Some(next) = &self.next {
            answer["nextCursor"] = next.as_str().into();
        }
    }

    /// Returns what is to be said of what was found.
    fn message(&self, is_search: bool) -> Option<String> {
        let mut message = String::new();
        if self.found.tools.is_empty() {
            message.push_str(match is_search {
                true => "Nothing fits: say it in other words, or ask `mcp_provision` for a server.",
                false => "Nothing is known of its tools.",
            });
        }
        for (server, reason) in self.found.known.unavailable.iter().take(UNAVAILABLE_MAX) {
            let reason = redact::cut(reason, defaults::QUOTE_BYTES_MAX);
            message.push_str(&format!(" Not searched: `{server}`: {reason}."));
        }
        let message = message.trim();
        (!message.is_empty()).then(|| message.to_owned())
    }
}

/// How many servers that cannot be searched an answer names. Ours.
const UNAVAILABLE_MAX: usize = 5;

/// Returns the part of `all` that a page has, and the cursor of the next one.
fn part_of<'a>(
    all: &'a [Value],
    page: &Paging,
    question: Question,
    of: u64,
) -> Result<(&'a [Value], Option<String>), CursorError> {
    let start = match &page.cursor {
        Some(cursor) => question.offset(of, cursor)?.min(all.len()),
        None => 0,
    };
    let end = all.len().min(start + page.limit);
    let next = (end < all.len()).then(|| question.cursor(of, end));
    Ok((&all[start..end], next))
}

fn rounded(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}
