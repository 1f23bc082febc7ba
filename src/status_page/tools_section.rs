//! The tools: the search, with the reason why each has its place; those of one server; definitions.

use serde_json::Value;

use super::{
    facts::{TEXT_BYTES_MAX, array, text},
    html::Html,
    table::more,
};
use crate::{config::defaults, redact};

/// The share of the tools in the bytes of the page, without the definition.
const TOOLS_BYTES_MAX: usize = 10_000;
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
    /// The number of tools before the first one that is shown.
    pub from: usize,
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
    let is_in_list = !tools.is_empty() && list(&mut html, query, tools, definition.as_ref());
    // A definition that the list does not show is still asked for.
    if let Some(definition) = definition.filter(|_| !is_in_list) {
        html.markup("<h3>").cut(&query.tool, TEXT_BYTES_MAX).markup("</h3>").part(&definition);
    }
    html
}

/// Adds the tools from `query.from` on, as many as fit, and links to the others. Returns whether the
/// definition is among them.
fn list(html: &mut Html, query: &ToolsQuery, tools: &[Value], definition: Option<&Html>) -> bool {
    let from = if query.from < tools.len() { query.from } else { 0 };
    html.markup("<ol class=\"tools\" start=\"").number(from + 1).markup("\">");
    let (mut n_shown, mut n_bytes, mut is_in_list) = (0, 0, false);
    for tool in &tools[from..] {
        let entry = entry(query, from, tool);
        n_bytes += entry.len();
        // The first always fits: each part of an entry is bounded.
        if n_bytes > TOOLS_BYTES_MAX && n_shown > 0 {
            break;
        }
        html.part(&entry);
        if let Some(definition) =
            definition.filter(|_| !is_in_list && full_name(tool) == query.tool)
        {
            html.part(definition);
            is_in_list = true;
        }
        html.markup("</li>");
        n_shown += 1;
    }
    let next = from + n_shown;
    html.markup("</ol>").part(&more(tools.len() - next));
    // Long words stand in one link only. A browser also goes back by itself.
    if from > 0 && query.words.len() <= defaults::PAGE_LINK_WORDS_BYTES_MAX {
        page_link(html, query, 0, "First tools");
    }
    if next < tools.len() {
        page_link(html, query, next, "Next tools");
    }
    is_in_list
}

/// Adds a link to the tools from the number `from` on.
fn page_link(html: &mut Html, query: &ToolsQuery, from: usize, title: &'static str) {
    html.markup("<p><a href=\"/status?");
    match query.words.is_empty() {
        true => html.parameter("server", &query.server),
        false => html.parameter("q", redact::cut(&query.words, defaults::PAGE_WORDS_BYTES_MAX)),
    };
    html.markup("&amp;from=").number(from).markup("#h-tools\">").markup(title).markup("</a></p>");
}

/// Returns the name of a tool by which its definition is asked for.
fn full_name(tool: &Value) -> String {
    format!("{}/{}", text(tool, "server"), text(tool, "tool"))
}

/// Returns an item of the list that begins at the number `from`, without its end.
fn entry(query: &ToolsQuery, from: usize, tool: &Value) -> Html {
    let mut html = Html::default();
    html.markup("<li><h3>").text(text(tool, "server")).markup(" / ");
    html.cut(text(tool, "tool"), TEXT_BYTES_MAX).markup("</h3>");
    let title = text(tool, "title");
    if !title.is_empty() {
        html.markup("<p><strong>").cut(title, TEXT_BYTES_MAX).markup("</strong></p>");
    }
    html.markup("<p>").cut(text(tool, "description"), TEXT_BYTES_MAX).markup("</p>");
    html.part(&explanation(&tool["explanation"]));
    let name = full_name(tool);
    if name.len() > defaults::PAGE_LINK_BYTES_MAX {
        html.markup("<p>The name is too long for a link. <code>metamcp tools ");
        html.text(text(tool, "server")).markup(" --json --schema</code> has the definition.</p>");
        return html;
    }
    html.markup("<p><a href=\"/status?").parameter("tool", &name);
    // Long words would fill the page: without them, the link shows the definition alone.
    match (query.words.as_str(), query.server.as_str()) {
        ("", server) => html.markup("&amp;").parameter("server", server),
        (words, _) if words.len() <= defaults::PAGE_LINK_WORDS_BYTES_MAX => {
            html.markup("&amp;").parameter("q", words)
        }
        _ => &mut html,
    };
    if from > 0 {
        html.markup("&amp;from=").number(from);
    }
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
