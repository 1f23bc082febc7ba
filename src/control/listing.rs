//! Lists over several servers, as operators see them.

use serde_json::json;

use super::{ControlRequest, MethodResult, to_text};
use crate::{
    protocol::{
        ObjectMembers,
        list_page::{ListItem, ListKind},
    },
    server_name::ServerName,
    view::operator::OperatorList,
};

/// Answers `servers/list`.
pub(super) async fn servers(request: &ControlRequest<'_>) -> MethodResult {
    let parts = &request.service.parts;
    let config = parts.operators.config();
    let mut servers = match request.params.optional::<String>("server")? {
        None => parts.board.server_states(&config.disabled, &parts.board.census()),
        Some(name) => match parts.board.server_state_of(&name, &config.disabled) {
            Some(state) => vec![state],
            None => {
                parts.operators.check_declared(&name)?;
                Vec::new()
            }
        },
    };
    if request.params.flag("memory")? {
        parts.board.measure(&mut servers).await;
    }
    Ok(to_text(&servers))
}

/// Answers a request for a list with unchanged entries, each as the member `name`.
pub(super) async fn list_result(
    request: &ControlRequest<'_>,
    list: ListKind,
    name: &str,
) -> MethodResult {
    let server: Option<String> = request.params.optional("server")?;
    let is_reported = request.params.flag("report")?;
    let listed = request.service.parts.operators.list(list, server.as_deref()).await?;
    let entries: Vec<String> =
        each(&listed).map(|(server, item)| entry(server, name, item.json())).collect();
    Ok(rendered(&entries, is_reported.then(|| unavailable(&listed)), None))
}

pub(super) fn each(listed: &OperatorList) -> impl Iterator<Item = (&ServerName, &ListItem)> {
    let listings = listed.listings.iter();
    listings.flat_map(|(server, listing)| listing.iter().map(move |item| (server, item)))
}

/// Returns an entry as JSON text: its server, and the item as the member `name`.
pub(super) fn entry(server: &ServerName, name: &str, item: &str) -> String {
    let mut entry = ObjectMembers::default();
    entry.set("server", json!(server).to_string());
    entry.set(name, item);
    entry.to_string()
}

/// Returns the servers without a known list, as JSON text of an array.
pub(super) fn unavailable(listed: &OperatorList) -> String {
    let servers = listed.unavailable.iter();
    let servers = servers.map(|(server, reason)| json!({ "server": server, "reason": reason }));
    serde_json::Value::from_iter(servers).to_string()
}

/// Returns a list as JSON text: the entries alone, or, with the `unavailable` servers, an object of
/// both and of whether there are more entries.
pub(super) fn rendered(
    entries: &[String],
    unavailable: Option<String>,
    has_more: Option<bool>,
) -> String {
    let entries = format!("[{}]", entries.join(","));
    let Some(unavailable) = unavailable else { return entries };
    let mut report = ObjectMembers::default();
    report.set("items", entries);
    if let Some(has_more) = has_more {
        report.set("hasMore", has_more.to_string());
    }
    report.set("unavailable", unavailable);
    report.to_string()
}
