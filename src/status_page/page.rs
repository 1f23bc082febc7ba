//! The whole page.

use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    calls_section::calls, clients_section::clients, html::Html, overview_section::overview,
    servers_section::servers, tools_section::tools,
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The content of the page, as the control interface answers.
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

/// Returns the page, with the answer to the search `query` if there is one.
pub fn page(data: &PageData, query: &str, found: Option<&Result<Value, String>>) -> Html {
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
    body.markup("<header><h1>metamcp</h1></header><main><section><h2>Token</h2>");
    if is_wrong {
        body.markup("<p class=\"cause\" role=\"alert\">This is not the token of the service.</p>");
    }
    body.markup("<form method=\"post\" action=\"/status/login\"><label for=\"token\">The token of this service, as <code>listen.token</code> names it</label> <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required> <button>Open</button></form><p>It opens this page only, in this browser, and reads nothing else.</p></section></main>");
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
mod tests {
    use serde_json::json;

    use super::*;

    /// Texts that would break out of each place in a page.
    const HOSTILE: [&str; 8] = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "</textarea></title></style></script><svg onload=alert(1)>",
        "javascript:alert(1)",
        "&lt;script&gt;",
        "\u{202e}evil\u{0}",
        "{{7*7}}${7*7}<%= 7*7 %>",
    ];

    fn hostile(text: &str) -> PageData {
        PageData {
            status: json!({
                "version": text, "uptime": 1000, "sessions": 1,
                "memory": { "ownBytes": 1, "serversBytes": 2, "savedBytes": 3 },
                "servers": [{
                    "name": text, "status": text, "cause": text, "errorTime": text, "era": text,
                    "protocolVersion": text, "inFlight": 0, "breaker": { "nextProbeMs": 10 },
                }],
                "clientSessions": [{
                    "name": text, "version": text, "transport": text, "sessions": 1,
                    "servers": [text],
                }],
            }),
            error: None,
            top: json!({ "history": { text: [[1, 2.0, 3.0]] } }),
            calls: json!({ "calls": [{
                "time": text, "server": text, "tool": text, "client": text, "clientVersion": text,
                "outcome": text, "cause": text, "error": text, "durationMs": 1.0,
            }] }),
        }
    }

    fn tags(html: &str) -> Vec<&str> {
        html.split('<').skip(1).map(|tag| tag.split('>').next().unwrap_or_default()).collect()
    }

    #[test]
    fn hostile_names_and_texts_stay_text() {
        let found = |text: &str| {
            Ok(json!({ "tools": [{
                "server": text, "tool": text, "description": text,
                "explanation": { "score": 1.0, "parts": [{ "name": text, "score": 1.0 }] },
                "definition": { text: text },
            }] }))
        };
        let harmless = page(&hostile("a"), "a", Some(&found("a"))).into_string();
        for text in HOSTILE {
            let html = page(&hostile(text), text, Some(&found(text))).into_string();
            let (expected, found) = (tags(&harmless), tags(&html));
            // The same elements; their attributes may have other values, but no other names.
            assert_eq!(found.len(), expected.len(), "{text}");
            for (expected, found) in expected.iter().zip(found) {
                let names =
                    |tag: &str| tag.split('"').step_by(2).map(str::to_owned).collect::<Vec<_>>();
                assert_eq!(names(expected), names(found), "{text}");
            }
        }
    }

    #[test]
    fn the_page_is_small_and_loads_nothing_from_outside() {
        let html = page(&hostile("a"), "", None).into_string();
        assert!(html.len() < 20_000, "{}", html.len());
        assert!(!html.contains("http:") && !html.contains("https:") && !html.contains("//cdn"));
        assert!(content_policy().starts_with("default-src 'none'"));
    }
}
