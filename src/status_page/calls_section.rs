//! The last calls.

use serde_json::Value;

use super::html::Html;

/// Returns the section: the newest call first.
pub(super) fn calls(calls: &Value) -> Html {
    let mut html = Html::default();
    let calls = calls["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    if calls.is_empty() {
        html.markup("<p>No call has ended yet.</p>");
        return html;
    }
    html.markup("<div class=\"wide\"><table><thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Tool</th><th scope=\"col\">Client</th><th scope=\"col\">Outcome</th><th scope=\"col\">Duration</th></tr></thead><tbody>");
    for call in calls.iter().rev() {
        let text = |name: &str| call[name].as_str().unwrap_or_default();
        let class = match text("outcome") {
            "ok" => "good",
            "cancelled" => "quiet",
            _ => "bad",
        };
        html.markup("<tr><td><time>").text(text("time")).markup("</time></td><td>");
        if !text("server").is_empty() {
            html.text(text("server")).markup(" / ");
        }
        let item = if text("tool").is_empty() { text("method") } else { text("tool") };
        html.text(item).markup("</td><td>").text(text("client"));
        html.markup(" <small>")
            .text(text("clientVersion"))
            .markup("</small></td><td><span class=\"");
        html.markup(class).markup("\">").text(text("outcome")).markup("</span>");
        if !text("cause").is_empty() {
            html.markup("<p class=\"cause\">").text(text("cause")).markup("</p>");
        }
        match &call["error"] {
            Value::Null => {}
            Value::String(code) => {
                html.markup(" <code>").text(code).markup("</code>");
            }
            code => {
                html.markup(" <code>").number(code).markup("</code>");
            }
        }
        let ms = call["durationMs"].as_f64().unwrap_or_default();
        html.markup("</td><td class=\"n\">").number(format_args!("{ms:.1} ms"));
        html.markup("</td></tr>");
    }
    html.markup("</tbody></table></div>");
    html
}
