//! The servers: state, version, latency, last error with its remedy, login, memory.

use serde_json::Value;

use super::{
    facts::{TEXT_BYTES_MAX, array, mebibytes, text, time},
    html::Html,
    table::table,
};
use crate::time_format;

/// The share of the servers in the bytes of the page.
const SERVERS_BYTES_MAX: usize = 50_000;

/// The height of the picture of a latency, in its own units; its width is one for each slot.
const LINE_HEIGHT: f64 = 30.0;

/// Returns the section. `history` has the calls to each server in slots of 15 s.
pub(super) fn servers(status: &Value, history: &Value) -> Html {
    let mut html = Html::default();
    let mut servers = array(&status["servers"]).to_vec();
    if servers.is_empty() {
        html.markup("<p>No server is declared. <code>metamcp add</code> adds one.</p>");
        return html;
    }
    // Those in trouble come first, since not all may fit.
    servers.sort_by_key(|server| !has_trouble(server));
    let columns = [
        ("Server", false),
        ("State", false),
        ("Version", false),
        ("Running calls", true),
        ("Last 10 minutes", false),
        ("Memory", true),
    ];
    html.part(&table(columns, &servers, SERVERS_BYTES_MAX, |server| {
        let name = text(server, "name");
        let login = array(&status["logins"]).iter().find(|login| text(login, "server") == name);
        [
            link(name),
            state(server, login),
            version(server),
            Html::of_number(server["inFlight"].as_u64().unwrap_or_default()),
            latency(&history[name]),
            mebibytes(&server["memoryBytes"]),
        ]
    }));
    html
}

fn has_trouble(server: &Value) -> bool {
    matches!(text(server, "status"), "error" | "needs login")
        || server["breaker"]["nextProbeMs"].is_u64()
}

/// Returns the name of a server, which leads to its tools.
fn link(name: &str) -> Html {
    let mut html = Html::default();
    html.markup("<a id=\"server-").text(name).markup("\" href=\"/status?");
    html.parameter("server", name).markup("#h-tools\">").text(name).markup("</a>");
    html
}

/// Returns the version of the server and that of its protocol.
fn version(server: &Value) -> Html {
    let mut html = Html::default();
    let name = text(&server["serverInfo"], "title");
    let name = if name.is_empty() { text(&server["serverInfo"], "name") } else { name };
    html.cut(name, TEXT_BYTES_MAX);
    if let Some(version) = server["serverInfo"]["version"].as_str() {
        html.markup(" ").cut(version, TEXT_BYTES_MAX);
    }
    if let Some(protocol) = server["protocolVersion"].as_str() {
        html.markup(" <small>MCP ").cut(protocol, TEXT_BYTES_MAX).markup(" ");
        html.text(text(server, "era")).markup("</small>");
    }
    html
}

/// Returns the state, the last error with its remedy, the time to the next attempt, and the login.
fn state(server: &Value, login: Option<&Value>) -> Html {
    let state = text(server, "status");
    let class = match state {
        "connected" => "good",
        "error" | "needs login" => "bad",
        _ => "quiet",
    };
    let mut html = Html::default();
    html.markup("<span class=\"").markup(class).markup("\">").text(state).markup("</span>");
    if let Some(cause) = server["cause"].as_str().or(server["error"].as_str()) {
        // A server that works again keeps its last error.
        html.markup(if state == "connected" { "<p>Last error: " } else { "<p class=\"cause\">" });
        html.cut(cause, TEXT_BYTES_MAX);
        if let Some(at) = server["errorTime"].as_str() {
            html.markup(" <small>at ").part(&time(at)).markup(" UTC</small>");
        }
        html.markup("</p>");
        if let Some(remedy) = server["remedy"].as_str().filter(|_| state != "connected") {
            html.markup("<p>").cut(remedy, TEXT_BYTES_MAX).markup("</p>");
        }
    }
    if let Some(wait) = server["breaker"]["nextProbeMs"].as_u64() {
        html.markup("<p>Requests are refused; the next attempt is in <span data-ms=\"");
        html.number(wait).markup("\">").text(&time_format::in_two_units(wait));
        html.markup("</span>.</p>");
    }
    if let Some(login) = login.filter(|login| text(login, "state") == "logged_in") {
        html.markup("<p><small>logged in");
        if let Some(left) = login["expiresInMs"].as_u64() {
            html.markup("; the token expires in ").text(&time_format::in_two_units(left));
        }
        html.markup("</small></p>");
    }
    let command = match state {
        "needs login" => "metamcp login ",
        "error" => "metamcp doctor --server ",
        _ => return html,
    };
    html.markup("<p>Next step: <code>").markup(command).text(text(server, "name"));
    html.markup("</code></p>");
    html
}

/// Returns the latency as a line, with its numbers in words.
fn latency(history: &Value) -> Html {
    let mut html = Html::default();
    let slots = array(history);
    let part = |slot: &Value, index: usize| slot[index].as_f64().unwrap_or_default();
    let n_calls: f64 = slots.iter().map(|slot| part(slot, 0)).sum();
    if n_calls < 1.0 {
        html.markup("<small>no calls</small>");
        return html;
    }
    let used = slots.iter().enumerate().filter(|(_, slot)| part(slot, 0) > 0.0);
    let highest = used.clone().map(|(_, slot)| part(slot, 1)).fold(0.1, f64::max);
    html.markup("<svg class=\"line\" aria-hidden=\"true\" viewBox=\"0 0 ").number(slots.len());
    html.markup(" 30\" preserveAspectRatio=\"none\"><polyline points=\"");
    let n_used = used.clone().count();
    for (index, slot) in used {
        let height = LINE_HEIGHT - part(slot, 1) / highest * (LINE_HEIGHT - 2.0) - 1.0;
        let height = format!("{height:.0}");
        html.number(index).markup(",").text(&height).markup(" ");
        if n_used == 1 {
            // One point is no line.
            html.number(index + 1).markup(",").text(&height);
        }
    }
    let longest = slots.iter().map(|slot| part(slot, 2)).fold(0.0, f64::max);
    let total: f64 = slots.iter().map(|slot| part(slot, 0) * part(slot, 1)).sum();
    html.markup("\"/></svg> <small>").number(n_calls);
    html.markup(if n_calls > 1.0 { " calls, " } else { " call, " });
    html.number(format_args!("{:.1}", total / n_calls)).markup(" ms on average, ");
    html.number(format_args!("{longest:.1}")).markup(" ms at most</small>");
    html
}
