//! The whole page.

use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    calls_section::calls,
    clients_section::clients,
    html::Html,
    overview_section::overview,
    servers_section::servers,
    tools_section::{FoundTools, ToolsQuery, tools},
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The data of the page, as the control interface answers.
#[derive(Clone, Debug, Default)]
pub struct PageData {
    /// The answer to `daemon/status`.
    pub status: Value,
    /// The answer to `daemon/top`.
    pub top: Value,
    /// The answer to `daemon/calls`.
    pub calls: Value,
    /// The reason why the service told nothing.
    pub error: Option<String>,
}

impl PageData {
    /// Returns the data of a service that told nothing, for this reason.
    pub fn failed(reason: String) -> Self {
        Self { error: Some(reason), ..Self::default() }
    }
}

/// A section that changes while the page is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The service as a whole.
    Overview,
    /// The servers.
    Servers,
    /// The clients.
    Clients,
    /// The last calls.
    Calls,
}

/// The sections that change while the page is open, in their order.
pub const LIVE_SECTIONS: [Section; 4] =
    [Section::Overview, Section::Servers, Section::Clients, Section::Calls];

impl Section {
    /// Returns the id of its element.
    pub fn id(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Servers => "servers",
            Self::Clients => "clients",
            Self::Calls => "calls",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Overview => "Service",
            Self::Servers => "Servers",
            Self::Clients => "Clients",
            Self::Calls => "Last calls",
        }
    }
}

/// Returns the content of a section.
pub fn section(section: Section, data: &PageData) -> Html {
    if let Some(reason) = &data.error {
        let mut html = Html::default();
        html.markup("<p class=\"cause\">").text(reason).markup("</p>");
        return html;
    }
    match section {
        Section::Overview => overview(&data.status),
        Section::Servers => servers(&data.status, &data.top["history"]),
        Section::Clients => clients(&data.status),
        Section::Calls => calls(&data.calls),
    }
}

/// Returns the page, with the answer to `query`.
pub fn page(data: &PageData, query: &ToolsQuery, found: &FoundTools) -> Html {
    let mut body = Html::default();
    body.markup("<header><h1>metamcp</h1> <p id=\"live\" role=\"status\">This page shows one moment.</p></header><main>");
    for live in LIVE_SECTIONS {
        let (id, title) = (live.id(), live.title());
        body.markup("<section aria-labelledby=\"h-").markup(id).markup("\"><h2 id=\"h-");
        body.markup(id).markup("\">").markup(title).markup("</h2><div id=\"").markup(id);
        body.markup("\">").part(&section(live, data)).markup("</div></section>");
        if live == Section::Servers {
            body.markup("<section aria-labelledby=\"h-tools\"><h2 id=\"h-tools\">Tools</h2>");
            body.part(&tools(query, found)).markup("</section>");
        }
    }
    body.markup("</main>");
    document(&body, true)
}

/// Returns the page that asks for the token.
pub fn login_page(is_wrong: bool) -> Html {
    let mut body = Html::default();
    body.markup("<header><h1>metamcp</h1></header><main><section aria-labelledby=\"h-token\"><h2 id=\"h-token\">Token</h2>");
    if is_wrong {
        body.markup("<p class=\"cause\" role=\"alert\">This is not the token of the service.</p>");
    }
    body.markup("<form method=\"post\" action=\"/status/login\"><label for=\"token\">The token of this service, as <code>listen.token</code> names it</label> <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required> <button>Open</button></form><p>A cookie then opens this page, and nothing else, until the service starts again.</p></section></main>");
    document(&body, false)
}

fn document(body: &Html, is_live: bool) -> Html {
    let mut html = Html::default();
    html.markup("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><title>metamcp</title><link rel=\"icon\" href=\"data:,\"><style>");
    html.markup(STYLE).markup("</style></head><body>").part(body);
    if is_live {
        html.markup("<script>").markup(SCRIPT).markup("</script>");
    }
    html.markup("</body></html>\n");
    html
}

/// Returns the value of `Content-Security-Policy`: only the style and the script of the page itself.
pub fn content_policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
        format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
            hash(STYLE),
            hash(SCRIPT)
        )
    });
    &POLICY
}

#[cfg(test)]
mod tests;
