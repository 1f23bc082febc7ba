//! The clients that are connected, and what their tool lists cost.

use serde_json::Value;

use super::{
    facts::{TEXT_BYTES_MAX, array, client, text},
    html::Html,
    table::table,
};
use crate::time_format;

/// The share of each of the two tables in the bytes of the page.
const CLIENTS_BYTES_MAX: usize = 5_000;

/// Returns the section.
pub(super) fn clients(status: &Value) -> Html {
    let mut html = Html::default();
    let clients = array(&status["clientSessions"]);
    if clients.is_empty() {
        html.markup("<p>No client is connected. <code>metamcp connect</code> connects one.</p>");
    } else {
        html.part(&connected(clients));
    }
    html.part(&token_costs(status));
    html
}

fn connected(clients: &[Value]) -> Html {
    let columns = [
        ("Client", false),
        ("Sessions", true),
        ("Transport", false),
        ("Last call", false),
        ("Servers used", false),
    ];
    table(columns, clients, CLIENTS_BYTES_MAX, |found| {
        let last = found["lastCallAgoMs"].as_u64().map_or_else(
            || "never".to_owned(),
            |ago| format!("{} ago", time_format::in_two_units(ago)),
        );
        let servers: Vec<&str> =
            array(&found["servers"]).iter().filter_map(Value::as_str).collect();
        let mut used = Html::default();
        used.cut(&servers.join(", "), TEXT_BYTES_MAX);
        [
            client(text(found, "name"), text(found, "version")),
            Html::of_number(found["sessions"].as_u64().unwrap_or_default()),
            Html::of_text(&format!("{}, {}", text(found, "transport"), text(found, "era"))),
            Html::of_text(&last),
            used,
        ]
    })
}

/// Returns what the tool lists cost each client, and which view would cost less.
fn token_costs(status: &Value) -> Html {
    let mut html = Html::default();
    let costs = array(&status["tokenCosts"]);
    if costs.is_empty() {
        return html;
    }
    let columns = [
        ("Client", false),
        ("View", true),
        ("Tool list", true),
        ("Conversations", true),
        ("Calls", true),
        ("Searches", true),
        ("Read at /direct", true),
        ("Read at /meta", true),
        ("Cheaper", false),
    ];
    html.markup("<h3>Tokens that tool lists cost</h3>");
    html.part(&table(columns, costs, CLIENTS_BYTES_MAX, |cost| {
        let number = |name: &str| cost[name].as_u64().unwrap_or_default();
        let [list, conversations, calls, searches, direct, meta] =
            ["listTokens", "conversations", "calls", "searches", "directTokens", "metaTokens"]
                .map(|name| Html::of_number(number(name)));
        let view = Html::of_text(&format!("/{}", text(cost, "view")));
        let saved = number("directTokens").abs_diff(number("metaTokens"));
        let cheaper = match text(cost, "cheaper") == text(cost, "view") {
            true => "this one: the other costs",
            false => "the other one: this one costs",
        };
        let cheaper = Html::of_text(&format!("{cheaper} {saved} more"));
        let of = client(text(cost, "client"), text(cost, "version"));
        [of, view, list, conversations, calls, searches, direct, meta, cheaper]
    }));
    html.markup("<p><small>At 4.2 bytes for a token. A model reads its list in each turn, and each call is a turn. At /meta the list is short, but each search is a further turn, and its reply stays until the conversation ends. A session that reads the list begins a conversation. A client at /direct is taken to search once for each call.</small></p>");
    html
}
