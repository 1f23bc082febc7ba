//! The servers: state, latency, last error, memory.

use serde_json::Value;

use super::{html::Html, overview_section::mebibytes};
use crate::time_format;

/// The height of the picture of a latency, in its own units; its width is one for each slot.
const LINE_HEIGHT: f64 = 20.0;

/// Returns the section. `history` has the calls to each server in slots of 15 s.
pub(super) fn servers(status: &Value, history: &Value) -> Html {
    let mut html = Html::default();
    let servers = status["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    if servers.is_empty() {
        html.markup("<p>No server is declared.</p>");
        return html;
    }
    html.markup("<div class=\"wide\"><table><thead><tr><th scope=\"col\">Server</th><th scope=\"col\">State</th><th scope=\"col\">Version</th><th scope=\"col\">Running calls</th><th scope=\"col\">Last 10 minutes</th><th scope=\"col\">Memory</th></tr></thead><tbody>");
    for server in servers {
        html.part(&row(server, &history[server["name"].as_str().unwrap_or_default()]));
    }
    html.markup("</tbody></table></div>");
    html
}

fn row(server: &Value, history: &Value) -> Html {
    let text = |name: &str| server[name].as_str().unwrap_or_default();
    let state = text("status");
    let class = match state {
        "connected" => "good",
        "error" | "needs login" => "bad",
        _ => "quiet",
    };
    let mut html = Html::default();
    html.markup("<tr><th scope=\"row\">").text(text("name")).markup("</th><td><span class=\"");
    html.markup(class).markup("\">").text(state).markup("</span>");
    html.part(&problem(server));
    html.markup("</td><td>").text(text("protocolVersion"));
    if !text("era").is_empty() {
        html.markup(" <small>").text(text("era")).markup("</small>");
    }
    html.markup("</td><td class=\"n\">").number(server["inFlight"].as_u64().unwrap_or_default());
    html.markup("</td><td>").part(&latency(history));
    html.markup("</td><td class=\"n\">");
    if let Some(bytes) = server["memoryBytes"].as_u64() {
        html.text(&mebibytes(bytes));
    }
    html.markup("</td></tr>");
    html
}

/// Returns the last error with its remedy, the time to the next attempt, and the login needed.
fn problem(server: &Value) -> Html {
    let mut html = Html::default();
    let name = server["name"].as_str().unwrap_or_default();
    let cause = server["cause"].as_str().or(server["error"].as_str());
    if let Some(cause) = cause {
        html.markup("<p class=\"cause\">").text(cause);
        if let Some(time) = server["errorTime"].as_str() {
            html.markup(" <small>at <time>").text(time).markup("</time></small>");
        }
        html.markup("</p>");
    }
    let breaker = &server["breaker"];
    if let Some(wait) = breaker["nextProbeMs"].as_u64().or(breaker["next_probe_ms"].as_u64()) {
        html.markup("<p>Requests are refused; the next attempt is in ");
        html.text(&time_format::in_two_units(wait)).markup(".</p>");
    }
    let remedy = match server["status"].as_str() {
        Some("needs login") => Some(format!("metamcp login {name}")),
        Some("error") => Some(format!("metamcp doctor --server {name}")),
        _ => None,
    };
    if let Some(remedy) = remedy {
        html.markup("<p>Next step: <code>").text(&remedy).markup("</code></p>");
    }
    html
}

/// Returns the latency as a line, with its numbers in words.
fn latency(history: &Value) -> Html {
    let mut html = Html::default();
    let slots = history.as_array().map(Vec::as_slice).unwrap_or_default();
    let part = |slot: &Value, index: usize| slot[index].as_f64().unwrap_or_default();
    let n_calls: f64 = slots.iter().map(|slot| part(slot, 0)).sum();
    if n_calls < 1.0 {
        html.markup("<small>no calls</small>");
        return html;
    }
    let longest = slots.iter().map(|slot| part(slot, 2)).fold(0.0, f64::max).max(0.1);
    let total: f64 = slots.iter().map(|slot| part(slot, 0) * part(slot, 1)).sum();
    html.markup("<svg class=\"line\" role=\"img\" aria-hidden=\"true\" viewBox=\"0 0 ");
    html.number(slots.len()).markup(" 20\" preserveAspectRatio=\"none\"><polyline points=\"");
    for (index, slot) in slots.iter().enumerate() {
        let height = LINE_HEIGHT - part(slot, 1) / longest * (LINE_HEIGHT - 1.0);
        html.number(index).markup(",").number(format_args!("{height:.1}")).markup(" ");
    }
    html.markup("\"/></svg> <small>");
    html.number(n_calls).markup(" calls, ");
    html.number(format_args!("{:.1}", total / n_calls)).markup(" ms on average, ");
    html.number(format_args!("{longest:.1}")).markup(" ms at most</small>");
    html
}
