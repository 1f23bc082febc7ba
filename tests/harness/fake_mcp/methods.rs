//! The methods of the protocol, except for what the tools do.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    call::Call,
    fake::Fake,
    message::{Fault, Members},
    state::Pings,
    tools,
};

/// How often a closed gate is looked at.
pub(crate) const GATE_INTERVAL: Duration = Duration::from_millis(2);

/// Answers one request.
pub(crate) async fn run(call: Call, method: String, params: Option<String>) {
    let params = Members::read(params.as_deref());
    if method == "tools/call" {
        return tools::run(call, &params).await;
    }
    let outcome = match method.as_str() {
        "initialize" => initialize(&call, &params).await,
        "logging/setLevel" if call.fake.options.logging => {
            call.set_level(&params).map(|()| json!({}))
        }
        "ping" if !matches!(call.fake.state().pings, Pings::Answer) => return,
        "ping" => Ok(json!({})),
        "tools/list" => page(&call.fake, &params, "tools", tools::list(&call.fake)),
        "resources/list" => page(&call.fake, &params, "resources", resources()),
        "resources/templates/list" => page(&call.fake, &params, "resourceTemplates", templates()),
        "resources/read" => read(&params),
        "resources/subscribe" | "resources/unsubscribe" if call.fake.options.subscribe => {
            call.subscribe(&params, method == "resources/subscribe").map(|()| json!({}))
        }
        "prompts/list" => page(&call.fake, &params, "prompts", prompts()),
        "prompts/get" => prompt(&params),
        "completion/complete" => complete(&params),
        _ => Err(Fault::new(-32601, "Method not found")),
    };
    match outcome {
        Ok(result) => call.result(&result.to_string()).await,
        Err(fault) => call.error(&fault).await,
    }
}

async fn initialize(call: &Call, params: &Members) -> Result<Value, Fault> {
    let fake = &call.fake;
    let capabilities = params.optional("capabilities")?.unwrap_or_default();
    fake.state().seen.capabilities.push(capabilities);
    fake.count("initializes");
    fake.log("initialize", "");
    while fake.options.start_gate.as_ref().is_some_and(|gate| !gate.exists()) {
        tokio::time::sleep(GATE_INTERVAL).await;
    }
    let mut capabilities = json!({
        "tools": { "listChanged": true },
        "resources": {},
        "prompts": {},
        "completions": {},
    });
    if fake.options.logging {
        capabilities["logging"] = json!({});
    }
    if fake.options.subscribe {
        capabilities["resources"]["subscribe"] = json!(true);
    }
    Ok(json!({
        "protocolVersion": fake.options.protocol,
        "capabilities": capabilities,
        "serverInfo": { "name": "fake_mcp", "version": "1.0.0" },
        "instructions": "Call `seen` to learn what arrived.",
    }))
}

/// Returns one page of `items`; a cursor is the number of the first item.
fn page(fake: &Fake, params: &Members, name: &str, items: Vec<Value>) -> Result<Value, Fault> {
    let start = match params.optional::<String>("cursor")? {
        None => 0,
        Some(cursor) => cursor
            .strip_prefix("from-")
            .and_then(|start| start.parse().ok())
            .filter(|start| *start < items.len())
            .ok_or_else(|| Fault::invalid(format!("unknown cursor `{cursor}`")))?,
    };
    let end = fake.options.page.map_or(items.len(), |n_items| (start + n_items).min(items.len()));
    let mut result = json!({ name: items[start..end] });
    if end < items.len() {
        result["nextCursor"] = json!(format!("from-{end}"));
    }
    Ok(result)
}

fn resources() -> Vec<Value> {
    vec![
        json!({ "uri": "fake:///one", "name": "one", "mimeType": "text/plain" }),
        json!({ "uri": "fake:///two", "name": "two", "mimeType": "text/plain" }),
    ]
}

fn templates() -> Vec<Value> {
    vec![json!({ "uriTemplate": "fake:///item/{name}", "name": "item", "mimeType": "text/plain" })]
}

fn read(params: &Members) -> Result<Value, Fault> {
    let uri: String = params.required("uri")?;
    let text = match uri.strip_prefix("fake:///") {
        Some("one") => "the first",
        Some("two") => "the second",
        Some(path) if path.starts_with("item/") => &path["item/".len()..],
        _ => return Err(Fault::new(-32002, format!("Resource not found: {uri}"))),
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text }] }))
}

fn prompts() -> Vec<Value> {
    let subject = json!({ "name": "subject", "description": "Whom to greet.", "required": true });
    vec![json!({ "name": "greet", "description": "Greets.", "arguments": [subject] })]
}

fn prompt(params: &Members) -> Result<Value, Fault> {
    let name: String = params.required("name")?;
    if name != "greet" {
        return Err(Fault::invalid(format!("Unknown prompt: {name}")));
    }
    let subject: String = Members::read(params.raw("arguments")).required("subject")?;
    let text = format!("Say hello to {subject}.");
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": "A greeting", "messages": [message] }))
}

fn complete(params: &Members) -> Result<Value, Fault> {
    let prefix: String = Members::read(params.raw("argument")).required("value")?;
    let mut values = vec!["Ada", "Alan", "Grace"];
    values.retain(|value| value.starts_with(&prefix));
    Ok(json!({ "completion": { "total": values.len(), "values": values, "hasMore": false } }))
}
