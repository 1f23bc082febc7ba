//! The tools: the search, with the reason why each has its place; those of one server; definitions.

use serde_json::Value;

use super::{
    facts::{TEXT_BYTES_MAX, array, text},
    html::Html,
    table::more,
};

/// The share of the tools in the bytes of the page, without the definition.
const TOOLS_BYTES_MAX: usize = 11_000;
/// The share of the definition.
const DEFINITION_BYTES_MAX: usize = 7_000;

/// The largest number of reasons for the place of a tool.
const PARTS_SHOWN_MAX: usize = 12;

/// The tools that a reader asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsQuery {
    /// The words of a search.
    pub words: String,
    /// The server whose tools are listed, where there are no words.
    pub server: String,
    /// The tool whose definition is shown: `server/tool`.
    pub tool: String,
}

/// The answer to a [`ToolsQuery`].
#[derive(Clone, Debug, Default)]
pub struct FoundTools {
    /// The tools, each with `server`, `tool` and `description`, or the reason why there are none.
    pub tools: Option<Result<Vec<Value>, String>>,
    /// The definition.
    pub definition: Option<Result<Value, String>>,
}

/// Returns the search form, and the answer to `query`.
pub(super) fn tools(query: &ToolsQuery, found: &FoundTools) -> Html {
    let mut html = Html::default();
    html.markup("<form method=\"get\" action=\"/status#h-tools\" role=\"search\"><label for=\"q\">Find a tool by what it does</label> <input id=\"q\" name=\"q\" type=\"search\" maxlength=\"500\" value=\"");
    html.cut(&query.words, TEXT_BYTES_MAX).markup("\"> <button>Search</button></form>");
    if query.words.is_empty() && !query.server.is_empty() {
        html.markup("<p>The tools of <strong>").cut(&query.server, TEXT_BYTES_MAX);
        html.markup("</strong>:</p>");
    }
    let definition = found.definition.as_ref().map(definition);
    let tools = match &found.tools {
        None => &[][..],
        Some(Err(message)) => {
            html.markup("<p class=\"cause\">").cut(message, TEXT_BYTES_MAX).markup("</p>");
            &[]
        }
        Some(Ok(tools)) if tools.is_empty() => {
            html.markup("<p>No tool was found. Use other words for what it does.</p>");
            &[]
        }
        Some(Ok(tools)) => tools,
    };
    let is_shown = |tool: &Value| full_name(tool) == query.tool;
    if !tools.is_empty() {
        html.markup("<ol class=\"tools\">");
        let start = html.len();
        let mut n_shown = 0;
        for tool in tools {
            let entry = entry(query, tool);
            if html.len() + entry.len() > start + TOOLS_BYTES_MAX {
                break;
            }
            html.part(&entry);
            if let Some(definition) = definition.as_ref().filter(|_| is_shown(tool)) {
                html.part(definition);
            }
            html.markup("</li>");
            n_shown += 1;
        }
        html.markup("</ol>").part(&more(tools.len() - n_shown));
    }
    // A definition that no list has, or that did not fit, is still asked for.
    if let Some(definition) = definition.filter(|_| !tools.iter().any(is_shown)) {
        html.markup("<h3>").cut(&query.tool, TEXT_BYTES_MAX).markup("</h3>").part(&definition);
    }
    html
}

/// Returns the name of a tool by which its definition is asked for.
fn full_name(tool: &Value) -> String {
    format!("{}/{}", text(tool, "server"), text(tool, "tool"))
}

/// Returns an item of the list, without its end.
fn entry(query: &ToolsQuery, tool: &Value) -> Html {
    let mut html = Html::default();
    html.markup("<li><h3>").text(text(tool, "server")).markup(" / ");
    html.cut(text(tool, "tool"), TEXT_BYTES_MAX).markup("</h3>");
    let title = text(tool, "title");
    if !title.is_empty() {
        html.markup("<p><strong>").cut(title, TEXT_BYTES_MAX).markup("</strong></p>");
    }
    html.markup("<p>").cut(text(tool, "description"), TEXT_BYTES_MAX).markup("</p>");
    html.part(&explanation(&tool["explanation"]));
    html.markup("<p><a href=\"/status?");
    match query.words.is_empty() {
        true => html.parameter("server", &query.server),
        false => html.parameter("q", &query.words),
    };
    html.markup("&amp;").parameter("tool", &full_name(tool));
    html.markup("#h-tools\">Definition<span class=\"hidden\"> of ");
    html.cut(text(tool, "tool"), TEXT_BYTES_MAX).markup("</span></a></p>");
    html
}

/// Returns the parts of a score.
fn explanation(explanation: &Value) -> Html {
    let mut html = Html::default();
    let parts = array(&explanation["parts"]);
    if parts.is_empty() {
        return html;
    }
    let score = |value: &Value| value["score"].as_f64().unwrap_or_default();
    html.markup("<details><summary>Why it ranks here: ");
    html.number(format_args!("{:.3}", score(explanation))).markup("</summary><ul>");
    for part in parts.iter().take(PARTS_SHOWN_MAX) {
        html.markup("<li>").number(format_args!("{:.3}", score(part))).markup(" for ");
        html.cut(text(part, "name"), TEXT_BYTES_MAX).markup("</li>");
    }
    html.markup("</ul>").part(&more(parts.len().saturating_sub(PARTS_SHOWN_MAX)));
    html.markup("</details>");
    html
}

fn definition(definition: &Result<Value, String>) -> Html {
    let mut html = Html::default();
    match definition {
        Err(message) => {
            html.markup("<p class=\"cause\">").cut(message, TEXT_BYTES_MAX).markup("</p>");
        }
        Ok(definition) => {
            html.markup("<pre tabindex=\"0\" role=\"region\" aria-label=\"Definition\">");
            html.cut(&format!("{definition:#}"), DEFINITION_BYTES_MAX).markup("</pre>");
            if html.as_str().ends_with("…</pre>") {
                html.markup("<p>All of it: <code>metamcp info</code></p>");
            }
        }
    }
    html
}
