//! The last calls.

use serde_json::Value;

use super::{
    facts::{TEXT_BYTES_MAX, array, client, text, time},
    html::Html,
    table::table,
};

/// The share of the calls in the bytes of the page.
const CALLS_BYTES_MAX: usize = 12_000;

/// Returns the section: the newest call first.
pub(super) fn calls(calls: &Value) -> Html {
    let mut html = Html::default();
    let is_off = calls["enabled"] == false;
    let mut calls = array(&calls["calls"]).to_vec();
    if is_off {
        html.markup("<p class=\"cause\">The service observes no calls: <code>telemetry.enabled</code> is false. Set <code>enabled = true</code> under <code>[telemetry]</code> in the configuration, then run <code>metamcp reload</code>.</p>");
    }
    if calls.is_empty() {
        if !is_off {
            html.markup("<p>No call has ended yet.</p>");
        }
        return html;
    }
    calls.reverse();
    let columns = [
        ("Tool", false),
        ("Time (UTC)", false),
        ("Client", false),
        ("Outcome", false),
        ("Duration", true),
    ];
    html.part(&table(columns, &calls, CALLS_BYTES_MAX, |call| {
        let ms = call["durationMs"].as_f64().unwrap_or_default();
        let duration = Html::of_text(&format!("{ms:.1} ms"));
        let of = client(text(call, "client"), text(call, "clientVersion"));
        [tool(call), time(text(call, "time")), of, outcome(call), duration]
    }));
    html
}

fn tool(call: &Value) -> Html {
    let mut html = Html::default();
    if !text(call, "server").is_empty() {
        html.text(text(call, "server")).markup(" / ");
    }
    let item = if text(call, "tool").is_empty() { "method" } else { "tool" };
    html.cut(text(call, item), TEXT_BYTES_MAX);
    html
}

fn outcome(call: &Value) -> Html {
    let class = match text(call, "outcome") {
        "ok" => "good",
        "cancelled" => "quiet",
        _ => "bad",
    };
    let mut html = Html::default();
    html.markup("<span class=\"").markup(class).markup("\">");
    html.text(text(call, "outcome")).markup("</span>");
    match &call["error"] {
        Value::Null => {}
        Value::String(code) => {
            html.markup(" <code>").cut(code, TEXT_BYTES_MAX).markup("</code>");
        }
        code => {
            html.markup(" <code>").number(code).markup("</code>");
        }
    }
    if !text(call, "cause").is_empty() {
        html.markup("<p class=\"cause\">").cut(text(call, "cause"), TEXT_BYTES_MAX).markup("</p>");
    }
    html
}
