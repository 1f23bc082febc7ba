//! The clients that are connected.

use serde_json::Value;

use super::html::Html;
use crate::time_format;

/// Returns the section.
pub(super) fn clients(status: &Value) -> Html {
    let mut html = Html::default();
    let clients = status["clientSessions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if clients.is_empty() {
        html.markup("<p>No client is connected. <code>metamcp connect</code> connects one.</p>");
        return html;
    }
    html.markup("<div class=\"wide\"><table><thead><tr><th scope=\"col\">Client</th><th scope=\"col\">Sessions</th><th scope=\"col\">Transport</th><th scope=\"col\">Last call</th><th scope=\"col\">Servers used</th></tr></thead><tbody>");
    for client in clients {
        let text = |name: &str| client[name].as_str().unwrap_or_default();
        let name = if text("name").is_empty() { "a client without a name" } else { text("name") };
        html.markup("<tr><th scope=\"row\">").text(name);
        html.markup(" <small>").text(text("version")).markup("</small></th><td class=\"n\">");
        html.number(client["sessions"].as_u64().unwrap_or_default());
        html.markup("</td><td>").text(text("transport")).markup("</td><td>");
        match client["lastCallAgoMs"].as_u64() {
            Some(ago) => html.text(&time_format::in_two_units(ago)).markup(" ago"),
            None => html.markup("never"),
        };
        html.markup("</td><td>");
        let servers = client["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let servers: Vec<&str> = servers.iter().filter_map(Value::as_str).collect();
        html.text(&servers.join(", ")).markup("</td></tr>");
    }
    html.markup("</tbody></table></div>").part(&token_costs(status));
    html
}

/// Returns what the tool lists cost each client, and which view would cost less.
fn token_costs(status: &Value) -> Html {
    let mut html = Html::default();
    let costs = status["tokenCosts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if costs.is_empty() {
        return html;
    }
    html.markup("<h3>Tokens that tool lists cost</h3><div class=\"wide\"><table><thead><tr><th scope=\"col\">Client</th><th scope=\"col\">View</th><th scope=\"col\">Tool list</th><th scope=\"col\">Calls</th><th scope=\"col\">Read at /direct</th><th scope=\"col\">Read at /meta</th><th scope=\"col\">Cheaper</th></tr></thead><tbody>");
    for cost in costs {
        let text = |name: &str| cost[name].as_str().unwrap_or_default();
        html.markup("<tr><th scope=\"row\">").text(text("client"));
        html.markup(" <small>").text(text("version")).markup("</small></th><td>/");
        html.text(text("view")).markup("</td>");
        for name in ["listTokens", "calls", "directTokens", "metaTokens"] {
            html.markup("<td class=\"n\">");
            html.number(cost[name].as_u64().unwrap_or_default()).markup("</td>");
        }
        html.markup("<td>/").text(text("cheaper")).markup("</td></tr>");
    }
    html.markup("</tbody></table></div><p><small>At 4.2 bytes for a token. A model reads its list in each turn; at /meta each search is a further turn. A client at /direct is taken to search once for each call.</small></p>");
    html
}
