//! The methods of the protocol, without the tools.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    call::Call,
    era,
    fake::Fake,
    listen_requests,
    message::{Members, RpcError},
    state::PingMode,
    tasks, tools,
};

/// The instructions for clients.
const INSTRUCTIONS: &str = "Call `seen` to learn what arrived.";

/// The interval at which a closed gate is checked.
pub(crate) const GATE_INTERVAL: Duration = Duration::from_millis(2);

/// The unconditional methods of the modern era.
const MODERN: [&str; 10] = [
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// The methods of the modern era with a cache lifetime in their result.
const CACHEABLE: [&str; 6] = [
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "server/discover",
    "tools/list",
];

/// Returns whether the modern era has a method.
pub(crate) fn is_modern(fake: &Fake, method: &str) -> bool {
    MODERN.contains(&method) || fake.options.tasks && tasks::MODERN.contains(&method)
}

/// Answers one request.
pub(crate) async fn run(call: Call, method: String, params: Option<String>) {
    let params = Members::read(params.as_deref());
    match (method.as_str(), &call.client) {
        ("tools/call", _) => return tools::run(call, &params).await,
        ("subscriptions/listen", Some(_)) => return listen_requests::open(call, &params).await,
        (name, _) if call.fake.options.tasks && name.starts_with("tasks/") => {
            return tasks::run(call, name, &params).await;
        }
        _ => {}
    }
    let fake = &call.fake;
    let outcome = match (method.as_str(), &call.client) {
        ("server/discover", Some(_)) => discover(&call).await,
        ("initialize", None) => initialize(&call, &params).await,
        ("logging/setLevel", None) if fake.options.logging => {
            call.set_level(&params).map(|()| json!({}))
        }
        ("ping", None) if !matches!(fake.state().pings, PingMode::Answer) => return,
        ("ping", None) => Ok(json!({})),
        ("tools/list", _) => page(fake, &params, "tools", tools::list(fake, call.client.is_some())),
        ("resources/list", _) => page(fake, &params, "resources", resources(fake)),
        ("resources/templates/list", _) => page(fake, &params, "resourceTemplates", templates()),
        ("resources/read", _) => read(&call, &params),
        ("resources/subscribe" | "resources/unsubscribe", None) if fake.options.subscribe => {
            call.subscribe(&params, method == "resources/subscribe").map(|()| json!({}))
        }
        ("prompts/list", _) => page(fake, &params, "prompts", prompts(fake)),
        ("prompts/get", _) => prompt(&params),
        ("completion/complete", _) => complete(&params),
        _ => Err(RpcError::new(-32601, "Method not found")),
    };
    match outcome {
        Ok(mut result) => {
            if call.client.is_some() && CACHEABLE.contains(&method.as_str()) {
                let is_private = method == "resources/read";
                result["ttlMs"] = json!(fake.options.ttl);
                result["cacheScope"] = json!(if is_private { "private" } else { "public" });
            }
            call.result(&result.to_string()).await;
        }
        Err(error) => call.error(&error).await,
    }
}

async fn discover(call: &Call) -> Result<Value, RpcError> {
    let fake = &call.fake;
    fake.count("discovers");
    fake.log("discover", "");
    wait_for_start(fake).await;
    let mut capabilities = capabilities(fake);
    capabilities["prompts"]["listChanged"] = json!(true);
    capabilities["resources"]["listChanged"] = json!(true);
    tasks::declare(fake, &mut capabilities, true);
    Ok(json!({
        "supportedVersions": [era::MODERN],
        "capabilities": capabilities,
        "instructions": INSTRUCTIONS,
    }))
}

async fn initialize(call: &Call, params: &Members) -> Result<Value, RpcError> {
    let fake = &call.fake;
    let declared = params.optional("capabilities")?.unwrap_or_default();
    fake.state().seen.capabilities.push(declared);
    fake.count("initializes");
    fake.log("initialize", "");
    wait_for_start(fake).await;
    let mut capabilities = capabilities(fake);
    tasks::declare(fake, &mut capabilities, false);
    Ok(json!({
        "protocolVersion": fake.options.protocol,
        "capabilities": capabilities,
        "serverInfo": { "name": "fake_mcp", "version": "1.0.0" },
        "instructions": INSTRUCTIONS,
    }))
}

/// Waits until the test opens the start gate.
async fn wait_for_start(fake: &Fake) {
    while fake.options.start_gate.as_ref().is_some_and(|gate| !gate.exists()) {
        tokio::time::sleep(GATE_INTERVAL).await;
    }
}

fn capabilities(fake: &Fake) -> Value {
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
    capabilities
}

/// Returns a page of `items`; a cursor is the index of its first item.
pub(crate) fn page(
    fake: &Fake,
    params: &Members,
    name: &str,
    items: Vec<Value>,
) -> Result<Value, RpcError> {
    let start = match params.optional::<String>("cursor")? {
        None => 0,
        Some(cursor) => cursor
            .strip_prefix("from-")
            .and_then(|start| start.parse().ok())
            .filter(|start| *start < items.len())
            .ok_or_else(|| RpcError::invalid(format!("unknown cursor `{cursor}`")))?,
    };
    let end = fake.options.page.map_or(items.len(), |n_items| (start + n_items).min(items.len()));
    let mut result = json!({ name: items[start..end] });
    if end < items.len() {
        result["nextCursor"] = json!(format!("from-{end}"));
    }
    Ok(result)
}

fn resources(fake: &Fake) -> Vec<Value> {
    let resource = |name: &str| json!({ "uri": format!("fake:///{name}"), "name": name, "mimeType": "text/plain" });
    let added = 1..=fake.state().n_extra_resources;
    let added = added.map(|number| resource(&format!("extra_{number}")));
    ["one", "two"].map(resource).into_iter().chain(added).collect()
}

fn templates() -> Vec<Value> {
    vec![json!({ "uriTemplate": "fake:///item/{name}", "name": "item", "mimeType": "text/plain" })]
}

fn read(call: &Call, params: &Members) -> Result<Value, RpcError> {
    let uri: String = params.required("uri")?;
    let text = match uri.strip_prefix("fake:///") {
        Some("one") => "the first",
        Some("two") => "the second",
        Some(path) if path.starts_with("item/") => &path["item/".len()..],
        Some(path) if path.starts_with("extra_") => path,
        _ => {
            let code = if call.client.is_some() { -32602 } else { -32002 };
            return Err(RpcError::new(code, format!("Resource not found: {uri}")));
        }
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text }] }))
}

fn prompts(fake: &Fake) -> Vec<Value> {
    let subject = json!({ "name": "subject", "description": "Whom to greet.", "required": true });
    let greet = json!({ "name": "greet", "description": "Greets.", "arguments": [subject] });
    let added = 1..=fake.state().n_extra_prompts;
    let added = added.map(|number| json!({ "name": format!("extra_{number}") }));
    std::iter::once(greet).chain(added).collect()
}

fn prompt(params: &Members) -> Result<Value, RpcError> {
    let name: String = params.required("name")?;
    if name != "greet" {
        return Err(RpcError::invalid(format!("Unknown prompt: {name}")));
    }
    let subject: String = Members::read(params.raw("arguments")).required("subject")?;
    let text = format!("Say hello to {subject}.");
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": "A greeting", "messages": [message] }))
}

fn complete(params: &Members) -> Result<Value, RpcError> {
    let prefix: String = Members::read(params.raw("argument")).required("value")?;
    let mut values = vec!["Ada", "Alan", "Grace"];
    values.retain(|value| value.starts_with(&prefix));
    Ok(json!({ "completion": { "total": values.len(), "values": values, "hasMore": false } }))
}
