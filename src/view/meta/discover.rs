//! Tools found by what they do, and listed where nothing is looked for.

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{Reply, Resolved};
use crate::{
    catalog::{KnownServer, Snapshot},
    config::defaults,
    meta::{
        ErrorObject, ToolId,
        arguments::{Detail, Discover, Paging},
        cursor::{Cursor, CursorError},
    },
    name::ServerName,
    protocol::{Members, mcp::Item},
    session::Session,
    view::{
        Outcome, Views,
        find::{Found, FoundTool, Wish, description},
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
    fn of(found: Option<&FoundTool>, server: &'a KnownServer, item: &'a Item, detail: Detail) -> Self {
        Self::new(found, server.name.as_str(), item, detail)
    }

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
        if asked.query.is_none() && asked.server.is_none() {
            return self.discover_servers(reply, &asked.page).await;
        }
        let subject = json!([asked.query, asked.server, asked.detail.name()]).to_string();
        let (query, server) = (asked.query.as_deref(), asked.server.as_deref());
        let found = self.page(query, server, &asked.page, &subject).await?;
        let entries: Vec<Entry<'_>> = found
            .found
            .each()
            .map(|(tool, server, item)| Entry::of(Some(tool), server, item, asked.detail))
            .collect();
        let mut answer = json!({ "tools": entries });
        found.finish(&mut answer);
        if let Some(message) = found.message(entries.is_empty()) {
            answer["message"] = message.into();
        }
        Ok(reply.value(&answer))
    }

    /// Answers what lists servers.
    async fn discover_servers(&self, reply: &Reply, page: &Paging) -> Result<Outcome, Refusal> {
        todo!()
    }
}

fn rounded(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}
