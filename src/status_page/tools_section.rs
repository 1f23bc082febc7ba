//! The search for tools, with the reason why each has its place, and the definitions of tools.

use serde_json::Value;

use super::html::Html;

/// Returns the search form, and the answer to `query` if there is one.
pub(super) fn tools(query: &str, found: Option<&Result<Value, String>>) -> Html {
    let mut html = Html::default();
    html.markup("<form method=\"get\" action=\"/status\" role=\"search\"><label for=\"q\">Find a tool by what it does</label> <input id=\"q\" name=\"q\" type=\"search\" maxlength=\"500\" value=\"");
    html.text(query).markup("\"> <button>Search</button></form>");
    match found {
        None => {}
        Some(Err(message)) => {
            html.markup("<p class=\"cause\">").text(message).markup("</p>");
        }
        Some(Ok(found)) => {
            html.part(&answer(found));
        }
    }
    html
}

fn answer(found: &Value) -> Html {
    let mut html = Html::default();
    let tools = found["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    if tools.is_empty() {
        html.markup("<p>No tool was found. Use other words for what it does.</p>");
        return html;
    }
    html.markup("<ol class=\"tools\">");
    for tool in tools {
        let text = |name: &str| tool[name].as_str().unwrap_or_default();
        html.markup("<li><h3>").text(text("server")).markup(" / ").text(text("tool"));
        html.markup("</h3><p>").text(text("description")).markup("</p>");
        html.part(&explanation(&tool["explanation"])).part(&definition(&tool["definition"]));
        html.markup("</li>");
    }
    html.markup("</ol>");
    html
}

/// Returns the parts of a score.
fn explanation(explanation: &Value) -> Html {
    let mut html = Html::default();
    let parts = explanation["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if parts.is_empty() {
        return html;
    }
    let score = |value: &Value| value["score"].as_f64().unwrap_or_default();
    html.markup("<details><summary>Why it ranks here: ");
    html.number(format_args!("{:.3}", score(explanation))).markup("</summary><ul>");
    for part in parts {
        html.markup("<li>").number(format_args!("{:.3}", score(part))).markup(" for ");
        html.text(part["name"].as_str().unwrap_or_default()).markup("</li>");
    }
    html.markup("</ul></details>");
    html
}

fn definition(definition: &Value) -> Html {
    let mut html = Html::default();
    if definition.is_null() {
        return html;
    }
    html.markup("<details><summary>Definition</summary><pre tabindex=\"0\">");
    html.text(&format!("{definition:#}")).markup("</pre></details>");
    html
}
