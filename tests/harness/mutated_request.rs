//! Mutated requests of both eras.

use serde_json::{Value, json};

use super::{
    client::{Client, MCP_HEADERS},
    modern::Modern,
    random::SeededRandom,
};

/// The size of a body beyond the limit of every server.
const TOO_MANY_BYTES: usize = (4 << 20) + 1;

/// The ratio of bodies that are too large: one in this many.
const TOO_LARGE_ONE_IN: usize = 500;

/// The size of a body that fits in one packet with its head.
const SMALL_BYTES: usize = 4096;

/// A request with random changes, which may be invalid.
#[derive(Clone, Debug)]
pub(crate) struct MutatedRequest {
    pub(crate) method: hyper::Method,
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// The replacements for values, ids and names.
const ODD_VALUES: [&str; 24] = [
    "null",
    "true",
    "0",
    "-1",
    "-0",
    "1.0",
    "1.5",
    "9007199254740993",
    "18446744073709551616",
    "-9223372036854775809",
    "1e308",
    "1e999",
    r#""""#,
    r#""x""#,
    r#""\u0000""#,
    r#""\ud800""#,
    r#""é\"\\\/\n""#,
    r#""-32022""#,
    "[]",
    "[[],{}]",
    "{}",
    r#"{"a":{"a":1,"a":2}}"#,
    r#"{"":null}"#,
    "",
];

/// The odd values for headers.
const ODD_HEADERS: [&[u8]; 16] = [
    b"",
    b" ",
    b"2026-07-28",
    b"2025-03-26",
    b"2025-11-25",
    b"1999-01-01",
    b"2026-07-28, 2026-07-28",
    b"tools/call",
    b"TOOLS/CALL",
    b"=?base64?dG9vbHMvY2FsbA==?=",
    b"=?base64?%%?=",
    b"=?base64??=",
    b"\xff\xfe",
    b"text/plain",
    b"application/json; charset=utf-16",
    b"*/*",
];

/// The headers that get odd values.
const NAMES: [&str; 9] = [
    "accept",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-param-region",
    "mcp-protocol-version",
    "mcp-session-id",
    "x-unknown",
];

const PATHS: [&str; 5] = ["/", "/mcp", "/direct", "/servers/legacy", "/servers/both"];

impl MutatedRequest {
    /// Returns a valid request with a few changes; `n` identifies it.
    ///
    /// The request never makes a server wait, and opens no endless stream.
    pub(crate) fn new(random: &mut SeededRandom, n: usize) -> Self {
        let is_modern = random.below(2) == 0;
        let id = json!(format!("request {n}"));
        let message = valid(random, &id, is_modern);
        let mut headers: Vec<(String, Vec<u8>)> = match is_modern {
            true => client().headers(&message).into_iter().map(|(n, v)| (n, v.into())).collect(),
            false => MCP_HEADERS.map(|(name, value)| (name.into(), value.into())).to_vec(),
        };
        let mut body = message.to_string().into_bytes();
        for _ in 0..random.below(4) {
            change_text(random, &mut body);
        }
        if random.below(3) == 0 {
            change_bytes(random, &mut body);
        }
        let has_odd_headers = random.below(3) == 0;
        if has_odd_headers {
            change_headers(random, &mut headers);
        }
        let methods = [hyper::Method::PUT, hyper::Method::PATCH, hyper::Method::OPTIONS];
        let method = match random.below(50) {
            0 => methods[random.below(methods.len())].clone(),
            _ => hyper::Method::POST,
        };
        // A request refused for its head is answered before its body is read; a client that still
        // writes might miss the answer.
        if has_odd_headers || is_modern || method != hyper::Method::POST {
            body.truncate(SMALL_BYTES);
        } else if random.below(TOO_LARGE_ONE_IN) == 0 {
            body.resize(TOO_MANY_BYTES, b' ');
        }
        Self { method, path: PATHS[random.below(PATHS.len())], headers, body }
    }
}

fn client() -> Modern {
    Modern::new(Client::new(String::new()))
}

/// Returns a valid message.
fn valid(random: &mut SeededRandom, id: &Value, is_modern: bool) -> Value {
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let requests = [
        ("tools/list", json!({})),
        ("tools/list", json!({ "cursor": "from-1" })),
        ("tools/call", call("echo", json!({ "value": { "deep": [1, "two", null] } }))),
        ("tools/call", call("legacy__echo", json!({ "value": 1.0 }))),
        ("tools/call", call("routed", json!({ "region": "here", "count": 42 }))),
        ("tools/call", json!({ "name": "whoami", "_meta": { "progressToken": 7 } })),
        ("resources/read", json!({ "uri": "fake:///one" })),
        ("prompts/get", json!({ "name": "greet", "arguments": { "subject": "you" } })),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/prompt", "name": "greet" },
                "argument": { "name": "subject", "value": "A" },
            }),
        ),
        ("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {} })),
        ("ping", json!({})),
        ("logging/setLevel", json!({ "level": "error" })),
        ("resources/subscribe", json!({ "uri": "fake:///one" })),
        ("server/discover", json!({})),
    ];
    let others = [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "none" },
        }),
        json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": "none", "progress": 1 },
        }),
        json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } }),
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no" } }),
    ];
    let at = random.below(requests.len() + others.len());
    match requests.get(at) {
        None => others[at - requests.len()].clone(),
        Some((method, params)) if is_modern => {
            let mut params = params.clone();
            if *method == "tools/call" && random.below(4) == 0 {
                params["requestState"] = json!("foreign");
                params["inputResponses"] = json!({ "question": { "action": "accept" } });
            }
            client().message(id, method, params)
        }
        Some((method, params)) => {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        }
    }
}

/// Changes a message so that it stays JSON, or nearly so.
fn change_text(random: &mut SeededRandom, body: &mut Vec<u8>) {
    let value = || serde_json::from_slice::<Value>(body).ok();
    match random.below(8) {
        // Drops or replaces a member.
        0..=3 => {
            let Some(mut message) = value() else { return };
            let is_dropped = random.below(2) == 0;
            let found = pick(random, &mut message);
            if is_dropped {
                if let (Some(members), name) = (found.0.as_object_mut(), found.1) {
                    members.remove(&name);
                }
                *body = message.to_string().into_bytes();
                return;
            }
            if let Some(member) = found.0.get_mut(&found.1) {
                *member = json!("\u{1}here\u{1}");
            }
            let odd = odd_value(random);
            let text = message.to_string().replace(r#""\u0001here\u0001""#, &odd);
            *body = text.into_bytes();
        }
        // Duplicates a member.
        4 | 5 => {
            let opening: Vec<usize> = positions(body, b'{');
            if opening.is_empty() {
                return;
            }
            let at = opening[random.below(opening.len())] + 1;
            let names = ["id", "method", "params", "_meta", "jsonrpc", "name", "result", "odd"];
            let member =
                format!(r#""{}":{},"#, names[random.below(names.len())], odd_value(random));
            body.splice(at..at, member.into_bytes());
        }
        // Makes a batch.
        6 => {
            let copies = vec![String::from_utf8_lossy(body).into_owned(); random.below(3)];
            *body = format!("[{}]", copies.join(",")).into_bytes();
        }
        // Adds surrounding space.
        _ => {
            let spaces: [&[u8]; 4] = [b" \t\r\n", b"\xef\xbb\xbf", b"\0", b"\n\n"];
            let space = spaces[random.below(spaces.len())];
            let at = if random.below(2) == 0 { 0 } else { body.len() };
            body.splice(at..at, space.iter().copied());
        }
    }
}

/// Descends to a random object and returns it with the name of one of its members.
fn pick<'a>(random: &mut SeededRandom, value: &'a mut Value) -> (&'a mut Value, String) {
    let names: Vec<String> =
        value.as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default();
    if names.is_empty() {
        return (value, String::new());
    }
    let name = names[random.below(names.len())].clone();
    let goes_on = value[&name].as_object().is_some_and(|members| !members.is_empty());
    if goes_on && random.below(4) > 0 { pick(random, &mut value[&name]) } else { (value, name) }
}

fn odd_value(random: &mut SeededRandom) -> String {
    match random.below(ODD_VALUES.len() + 4) {
        at if at < ODD_VALUES.len() => ODD_VALUES[at].to_owned(),
        at if at == ODD_VALUES.len() => "9".repeat(1 + random.below(2000)),
        at if at == ODD_VALUES.len() + 1 => format!("\"{}\"", "long ".repeat(random.below(5000))),
        at => {
            let depth = [10, 100, 127, 128, 129, 1000, 20_000][random.below(7)];
            let (open, close) = if at % 2 == 0 { ("[", "]") } else { (r#"{"a":"#, "}") };
            format!("{}1{}", open.repeat(depth), close.repeat(depth))
        }
    }
}

/// Changes a few bytes at random.
fn change_bytes(random: &mut SeededRandom, body: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        if body.is_empty() {
            return;
        }
        let at = random.below(body.len());
        let byte = u8::try_from(random.below(256)).unwrap_or_default();
        match random.below(5) {
            0 => body[at] ^= 1 << (byte % 8),
            1 => body.insert(at, byte),
            2 => drop(body.remove(at)),
            3 => body.truncate(at),
            _ => {
                let end = (at + random.below(40)).min(body.len());
                let again = body[at..end].to_vec();
                body.splice(at..at, again);
            }
        }
    }
}

/// Drops, adds or changes a header.
fn change_headers(random: &mut SeededRandom, headers: &mut Vec<(String, Vec<u8>)>) {
    let name = NAMES[random.below(NAMES.len())];
    let value = match random.below(ODD_HEADERS.len() + 1) {
        at if at < ODD_HEADERS.len() => ODD_HEADERS[at].to_vec(),
        _ => vec![b'x'; random.below(4000)],
    };
    let is_added = random.below(4) == 0;
    if !is_added {
        headers.retain(|(other, _)| other != name);
    }
    if is_added || random.below(3) > 0 {
        headers.push((name.to_owned(), value));
    }
}

fn positions(bytes: &[u8], wanted: u8) -> Vec<usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == wanted).map(|(at, _)| at).collect()
}
