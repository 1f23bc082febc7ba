//! A client that connects to a server as Claude Code does.
//!
//! Source: measured with 2.1.329. It sends a probe; if that is refused, it performs the handshake
//! and opens the GET stream. Its ids start at 0 in every process.

use serde_json::{Value, json};

use super::{
    client::{Client, Reply},
    modern::Modern,
    stream::EventStream,
};

/// A connected client, in the era that the server chose.
pub(crate) enum ClaudeCode {
    Modern {
        client: Box<Modern>,
        /// The subscription, if the server declares that a list may change.
        listen: Option<EventStream>,
        n_requests: u64,
    },
    Legacy {
        client: Client,
        get: EventStream,
        n_requests: u64,
    },
}

impl ClaudeCode {
    /// Probes the server and connects in the era that it supports.
    pub(crate) async fn connect(http: Client) -> Self {
        let client = Modern::new(http.clone()).named("claude-code").capabilities(capabilities());
        let probe = json!("server-discover-probe-1");
        let probed = client.request(probe.clone(), "server/discover", json!({})).await;
        if probed.status.is_success() && probed.answer()["result"].is_object() {
            let answer = probed.answer();
            assert_eq!(answer["id"], probe);
            let listen = Self::listen(&client, &answer["result"]["capabilities"]).await;
            return Self::Modern { client: Box::new(client), listen, n_requests: 0 };
        }
        Self::connect_legacy(http).await
    }

    /// Connects as Claude Code does after a refused probe.
    pub(crate) async fn connect_legacy(http: Client) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities(),
            "clientInfo": { "name": "claude-code", "version": "2.1.329" },
        });
        let reply = http.request(json!(0), "initialize", params).await;
        let version = reply.answer()["result"]["protocolVersion"].clone();
        let mut client = http.header("mcp-protocol-version", version.as_str().expect("a version"));
        if let Some(session) = reply.headers.get("mcp-session-id") {
            client = client.header("mcp-session-id", session.to_str().expect("visible ASCII"));
        }
        client.notify("notifications/initialized", json!({})).await;
        let get = client.listen().await;
        Self::Legacy { client, get, n_requests: 1 }
    }

    /// Subscribes to all lists if any of them may change.
    async fn listen(client: &Modern, capabilities: &Value) -> Option<EventStream> {
        let lists = ["tools", "prompts", "resources"];
        if !lists.iter().any(|list| capabilities[list]["listChanged"] == true) {
            return None;
        }
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        });
        let mut stream = client.listen(json!("listen:0"), filter).await;
        let first = stream.message().await;
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        Some(stream)
    }

    /// Sends a request under the next id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Reply {
        match self {
            Self::Modern { client, n_requests, .. } => {
                *n_requests += 1;
                client.request(json!(*n_requests - 1), method, params).await
            }
            Self::Legacy { client, n_requests, .. } => {
                *n_requests += 1;
                client.request(json!(*n_requests - 1), method, params).await
            }
        }
    }

    /// Returns the stream for notices.
    pub(crate) fn notices(&mut self) -> &mut EventStream {
        match self {
            Self::Modern { listen, .. } => listen.as_mut().expect("a list may change"),
            Self::Legacy { get, .. } => get,
        }
    }

    /// Returns whether it uses the modern era.
    pub(crate) fn is_modern(&self) -> bool {
        matches!(self, Self::Modern { .. })
    }
}

/// Returns the capabilities that Claude Code declares.
fn capabilities() -> Value {
    json!({ "roots": { "listChanged": true }, "elicitation": { "form": {}, "url": {} } })
}
