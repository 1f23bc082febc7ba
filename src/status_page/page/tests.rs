//! Tests of the whole page, with hostile texts and with much data.

use serde_json::json;

use super::*;

/// Texts that would break out of each place in a page.
const HOSTILE: [&str; 16] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "\" autofocus onfocus=\"alert(1)",
    "</textarea></title></style></script><svg onload=alert(1)>",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script>",
    "javascript:alert(1)",
    "//evil.example/&q=1#<b>",
    "&lt;script&gt;&#60;b&#x3e;",
    "\u{202e}evil\u{0}\u{1b}[2J\u{e0041}",
    "line\n\ndata: {\"id\":\"servers\"}\n\nevent: section\r\rid: 1",
    "\u{2028}\u{2029}\u{85}",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "<iframe srcdoc=\"<script>alert(1)</script>\">",
    "\u{ff1c}script\u{ff1e}＂><base href=//evil>",
];

/// Returns a page on which each text that a server or a client chooses is `text`.
fn data(text: &str, n_items: usize) -> PageData {
    let history = json!([[1, 2.0, 3.0], [0, 0.0, 0.0], [5, 20.0, 30.5]]);
    let history: Vec<_> = history.as_array().into_iter().flatten().cycle().take(40).collect();
    let server = json!({
        "name": "git", "status": "error", "cause": text, "remedy": text,
        "errorTime": "2026-11-27T02:00:00.000Z", "era": "legacy", "protocolVersion": text,
        "serverInfo": { "name": text, "title": text, "version": text }, "inFlight": 3,
        "memoryBytes": 1 << 27, "sharing": "shared", "pid": 7, "connections": 1,
        "clientSessions": 4, "breaker": { "nextProbeMs": 10_000 },
    });
    let client = json!({
        "name": text, "version": text, "transport": "http", "era": "legacy", "sessions": 2,
        "lastCallAgoMs": 1_000, "servers": ["git"],
    });
    let cost = json!({
        "client": text, "version": text, "view": "direct", "cheaper": "meta", "listTokens": 1,
        "calls": 1, "searches": 1, "directTokens": 12, "metaTokens": 3,
    });
    let call = json!({
        "time": "2026-11-27T02:00:00.000Z", "server": "git", "tool": text, "client": text,
        "clientVersion": text, "outcome": "error", "cause": text, "error": text,
        "durationMs": 1.0,
    });
    let many = |item: serde_json::Value| vec![item; n_items];
    PageData {
        status: json!({
            "version": "1.2.3", "uptime": 1000, "sessions": 1,
            "memory": { "ownBytes": 1 << 20, "serversBytes": 2 << 20, "savedBytes": 3 << 20 },
            "servers": many(server), "clientSessions": many(client), "tokenCosts": many(cost),
            "logins": [{ "server": "git", "state": "logged_in", "expiresInMs": 60_000 }],
        }),
        error: None,
        top: json!({ "history": { "git": history } }),
        calls: json!({ "calls": many(call) }),
    }
}

fn found(text: &str, n_tools: usize) -> FoundTools {
    let tool = json!({
        "server": "git", "tool": text, "title": text, "description": text,
        "explanation": { "score": 1.0, "parts": [{ "name": text, "score": 1.0 }] },
    });
    FoundTools { tools: Some(Ok(vec![tool; n_tools])), definition: Some(Ok(json!({ text: text }))) }
}

fn query(text: &str) -> ToolsQuery {
    ToolsQuery {
        words: text.to_owned(),
        server: text.to_owned(),
        tool: format!("git/{text}"),
        from: 0,
    }
}

/// Returns the tools of a server with these names.
fn tools_named(names: impl IntoIterator<Item = String>) -> FoundTools {
    let tool = |name| json!({ "server": "git", "tool": name, "description": "d".repeat(300) });
    let tools = names.into_iter().map(tool).collect();
    FoundTools { tools: Some(Ok(tools)), definition: None }
}

/// Returns the tools with a link to their definition, over all pages that the links reach.
fn reached(mut query: ToolsQuery, found: &FoundTools) -> Vec<String> {
    let mut reached = Vec::new();
    loop {
        let html = page(&data("a", 1), &query, found).into_string();
        assert!(html.len() <= 100_000, "{}", html.len());
        let links = html.split("href=\"/status?tool=git%2F").skip(1);
        reached.extend(links.map(|link| link.split(['&', '#']).next().unwrap().to_owned()));
        let Some((before, _)) = html.split_once("\">Next tools</a>") else { return reached };
        let from = before.rsplit("from=").next().and_then(|it| it.split('#').next()).unwrap();
        let from = from.parse().unwrap();
        assert!(from > query.from, "{from}");
        query.from = from;
    }
}

#[test]
fn links_without_scripts_reach_each_tool_of_a_server() {
    let names: Vec<String> = (0..60).map(|number| format!("tool_{number}")).collect();
    let server = ToolsQuery { server: "git".to_owned(), ..ToolsQuery::default() };
    assert_eq!(reached(server.clone(), &tools_named(names.clone())), names);

    // A link keeps the page, and its definition is in the list.
    let query = ToolsQuery { tool: "git/tool_50".to_owned(), from: 40, ..server };
    let definition = Some(Ok(json!({ "a": 1 })));
    let found = FoundTools { definition, ..tools_named(names) };
    let html = page(&data("a", 1), &query, &found).into_string();
    assert!(html.contains("tool=git%2Ftool_50&amp;server=git&amp;from=40#h-tools"), "{html}");
    assert!(html.contains("<ol class=\"tools\" start=\"41\">") && html.contains("First tools"));
    assert_eq!((html.matches("<pre").count(), html.matches("git / tool_50").count()), (1, 1));
}

#[test]
fn a_tool_with_a_very_long_name_hides_no_other() {
    let server = ToolsQuery { server: "git".to_owned(), ..ToolsQuery::default() };
    for length in [500, 1000, 100_000] {
        let long = "W".repeat(length);
        let found = tools_named(["first".to_owned(), long.clone(), "last".to_owned()]);
        let html = page(&data("a", 1), &server, &found).into_string();
        assert!(html.contains("git / first") && html.contains("git / last"), "{length}");
        let reached = reached(server.clone(), &found);
        assert_eq!(reached.contains(&long), length == 500);
        assert_eq!(html.contains("too long for a link"), length > 500);
    }
}

#[test]
fn a_long_query_hides_no_tool_that_it_finds() {
    let names: Vec<String> = (0..5).map(|number| format!("tool_{number}")).collect();
    for words in ["搜".repeat(490), "a few words".to_owned()] {
        let query = ToolsQuery { words, ..ToolsQuery::default() };
        let html = page(&data("a", 1), &query, &tools_named(names.clone())).into_string();
        assert_eq!(html.matches(">Definition<").count(), 5, "{html}");
        assert!(!html.contains("Next tools"));
    }
}

#[test]
fn a_service_without_telemetry_names_the_key_that_turns_records_on() {
    let mut data = data("a", 0);
    let off = "<code>telemetry.enabled</code> is false";
    let render = |data: &PageData| section(Section::Calls, data).into_string();
    assert!(render(&data).contains("No call has ended yet") && !render(&data).contains(off));
    data.calls["enabled"] = json!(false);
    assert!(render(&data).contains(off) && !render(&data).contains("No call has ended yet"));
}

/// Returns the tags of a page, each as its parts outside of attribute values.
fn tags(html: &str) -> Vec<Vec<&str>> {
    let tags = html.split('<').skip(1).map(|tag| tag.split('>').next().unwrap_or_default());
    tags.map(|tag| tag.split('"').step_by(2).collect()).collect()
}

#[test]
fn hostile_names_and_texts_stay_text() {
    let render = |text: &str| page(&data(text, 1), &query(text), &found(text, 1)).into_string();
    let harmless = render("a");
    for text in HOSTILE {
        let html = render(text);
        // The same elements with the same attributes; only values differ.
        assert_eq!(tags(&html), tags(&harmless), "{text}");
        assert!(!html.contains("href=\"javascript") && !html.contains("href=\"//"), "{text}");
        assert!(!html.chars().any(|found| found != '\n' && crate::redact::is_control(found)));
    }
}

#[test]
fn a_hostile_error_of_the_service_stays_text() {
    for text in HOSTILE {
        let html = page(&PageData::failed(text.to_owned()), &query(text), &FoundTools::default());
        let harmless = page(&PageData::failed("a".to_owned()), &query("a"), &FoundTools::default());
        assert_eq!(tags(html.as_str()), tags(harmless.as_str()), "{text}");
    }
}

#[test]
fn the_page_has_each_fact_of_a_server_and_of_a_client() {
    let html = page(&data("a text", 1), &query("words"), &found("a text", 1)).into_string();
    for part in [
        "<span class=\"bad\">error</span>",
        "next attempt is in <span data-ms=\"10000\">10 s</span>",
        "metamcp doctor --server git",
        "logged in; the token expires in 1 min",
        "MCP a text legacy",
        "128.0 MiB",
        "5.0 MiB if each",
        "2 with metamcp",
        "<polyline points=\"0,",
        "the other one: this one costs 9 more",
        "Why it ranks here",
        "&quot;a text&quot;: &quot;a text&quot;",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn the_page_is_small_however_much_it_shows_and_loads_nothing_from_outside() {
    let usual = page(&data("its process exited with code 1", 40), &query("a"), &found("a", 10));
    assert_eq!(usual.as_str().matches("href=\"/status?server=").count(), 40);
    assert!(usual.len() <= 100_000, "{}", usual.len());
    let long = "<".repeat(100_000);
    for (n_servers, text) in [(1000, "a"), (1000, long.as_str())] {
        let html = page(&data(text, n_servers), &query(text), &found(text, n_servers));
        assert!(html.len() <= 100_000, "{}", html.len());
        assert!(html.as_str().matches(" more</p>").count() >= 5);
        assert!(!html.as_str().contains("http:") && !html.as_str().contains("https:"));
        let later = ToolsQuery { from: 3, ..query(text) };
        let html = page(&data(text, n_servers), &later, &found(text, n_servers));
        assert!(html.len() <= 100_000, "{}", html.len());
    }
}

#[test]
fn the_policy_allows_the_style_and_the_script_of_the_page_alone() {
    let policy = content_policy();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"));
    let html = page(&data("a", 1), &query("a"), &found("a", 1)).into_string();
    assert_eq!((html.matches("<script").count(), html.matches("<style").count()), (1, 1));
    assert!(!html.contains(" style=") && !html.contains(" onclick="));
}
