use hyper::header::{HeaderName, HeaderValue};
use serde_json::json;

use super::*;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header");
        (HeaderName::from_static(name), value)
    });
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value);
    }
    headers
}

fn request(method: &str, params: &str) -> Message {
    Message::request(method, Some(params))
}

#[test]
fn the_era_of_a_request_follows_from_its_body_and_headers() {
    let modern = format!("{{{META}}}");
    let version = |version| (VERSION_HEADER, version);
    let method = (parameter_headers::METHOD, "tools/list");
    for (sent, method_name, params, expected) in [
        (vec![], "tools/list", "{}", false),
        (vec![version("2025-11-25")], "tools/list", "{}", false),
        (vec![version("2025-11-25"), method], "tools/list", "{}", false),
        (vec![version("2026-07-28")], "tools/list", "{}", true),
        (vec![version("2027-01-01")], "tools/list", "{}", true),
        (vec![version("nonsense")], "tools/list", "{}", true),
        (vec![method], "tools/list", "{}", true),
        (vec![], "tools/list", &modern, true),
        (vec![version("2025-11-25")], "tools/list", &modern, true),
        (vec![], "initialize", "{}", false),
        (vec![version("2025-06-18")], "initialize", &modern, false),
        (vec![version("2026-07-28")], "initialize", &modern, true),
    ] {
        let sent_headers = headers(&sent);
        let version = sent_headers.get(&VERSION);
        let found = is_modern(&sent_headers, version, &request(method_name, params));
        assert_eq!(found, expected, "{sent:?} {method_name} {params}");
    }
}

/// Returns a short name of the defect of a request.
fn fault(sent: &[(&'static str, &str)], method_name: &str, params: &str) -> String {
    match check_headers(&headers(sent), &request(method_name, params)) {
        Ok(()) => "none".to_owned(),
        Err(IngressError::HeaderMismatch(HeaderMismatch::Missing(header))) => {
            format!("no {header}")
        }
        Err(IngressError::HeaderMismatch(HeaderMismatch::Unreadable(header))) => {
            format!("bad {header}")
        }
        Err(IngressError::HeaderMismatch(HeaderMismatch::Differs { header, .. })) => {
            format!("other {header}")
        }
        Err(IngressError::UnsupportedVersion(version)) => format!("version {version}"),
        Err(other) => other.to_string(),
    }
}

#[test]
fn a_request_whose_headers_contradict_its_body_is_refused() {
    let modern = format!("{{{META}}}");
    let named = |name: &str| format!(r#"{{"name":{},{META}}}"#, json!(name));
    let version = (VERSION_HEADER, "2026-07-28");
    let method = |method| (parameter_headers::METHOD, method);
    let name = |name| (parameter_headers::NAME, name);
    for (sent, method_name, params, expected) in [
        (vec![version, method("tools/list")], "tools/list", modern.clone(), "none"),
        (vec![method("tools/list")], "tools/list", modern.clone(), "no mcp-protocol-version"),
        (
            vec![(VERSION_HEADER, "2027-01-01"), method("tools/list")],
            "tools/list",
            modern.clone(),
            "other mcp-protocol-version",
        ),
        (vec![(VERSION_HEADER, "2027-01-01")], "tools/list", "{}".into(), "version 2027-01-01"),
        (vec![version, version], "tools/list", modern.clone(), "bad mcp-protocol-version"),
        (vec![version], "tools/list", modern.clone(), "no mcp-method"),
        (vec![version, method("TOOLS/LIST")], "tools/list", modern.clone(), "other mcp-method"),
        (vec![version, method("tools/list"), name("x")], "tools/list", modern.clone(), "none"),
        (vec![version, method("tools/call")], "tools/call", named("a"), "no mcp-name"),
        (vec![version, method("tools/call")], "tools/call", modern.clone(), "none"),
        (vec![version, method("tools/call"), name(" a ")], "tools/call", named("a"), "none"),
        (
            vec![version, method("tools/call"), name("=?base64?w6Q=?=")],
            "tools/call",
            named("ä"),
            "none",
        ),
        (
            vec![version, method("prompts/get"), name("=?base64?w6Q?=")],
            "prompts/get",
            named("ä"),
            "bad mcp-name",
        ),
        (vec![version, method("tools/call"), name("ä")], "tools/call", named("ä"), "bad mcp-name"),
        (
            vec![version, method("resources/read"), name("a:2")],
            "resources/read",
            format!(r#"{{"uri":"a:1",{META}}}"#),
            "other mcp-name",
        ),
    ] {
        assert_eq!(fault(&sent, method_name, &params), expected, "{sent:?} {method_name} {params}");
    }
}
