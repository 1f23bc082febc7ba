//! The few MCP payloads that we read or write ourselves.

use std::{collections::HashSet, ops::Range, sync::LazyLock, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    Era, ObjectMembers, byte_chunks,
    item_check::{ItemScan, RejectedItem},
    json_array::{LIST_ITEMS_MAX, first_items},
    jsonrpc,
    task::{self, TaskCapability},
    version,
};

/// The methods that the gateway itself looks at. Every other one passes.
pub mod method {
    #![expect(missing_docs, reason = "each constant is named like the method it spells")]

    use super::task;

    pub const INITIALIZE: &str = "initialize";
    pub const PING: &str = "ping";
    pub const DISCOVER: &str = "server/discover";
    pub const TOOLS_LIST: &str = "tools/list";
    pub const TOOLS_CALL: &str = "tools/call";
    pub const PROMPTS_LIST: &str = "prompts/list";
    pub const PROMPTS_GET: &str = "prompts/get";
    pub const RESOURCES_LIST: &str = "resources/list";
    pub const RESOURCES_READ: &str = "resources/read";
    pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
    pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
    pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
    pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
    pub const INITIALIZED: &str = "notifications/initialized";
    pub const CANCELLED: &str = "notifications/cancelled";
    pub const PROGRESS: &str = "notifications/progress";
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
    pub const LOG_MESSAGE: &str = "notifications/message";
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
    pub const SAMPLING: &str = "sampling/createMessage";
    pub const ELICITATION: &str = "elicitation/create";
    pub const ROOTS_LIST: &str = "roots/list";
    pub const COMPLETE: &str = "completion/complete";
    pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
    pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

    /// The requests that only read, so that asking twice does no harm.
    pub const READING: [&str; 10] = [
        PING,
        task::GET,
        task::RESULT,
        TOOLS_LIST,
        PROMPTS_LIST,
        PROMPTS_GET,
        RESOURCES_LIST,
        RESOURCES_READ,
        RESOURCE_TEMPLATES_LIST,
        COMPLETE,
    ];

    /// The requests that a server of the modern era may answer with questions.
    /// Source: MCP 2026-07-28, "Multi Round-Trip Requests", "Supported Requests".
    pub const ASKING: [&str; 3] = [TOOLS_CALL, PROMPTS_GET, RESOURCES_READ];

    /// What the modern era has not any more: what it said once is said with every request now.
    /// Source: MCP 2026-07-28, "Key changes".
    pub const NOT_MODERN: [&str; 5] =
        [INITIALIZE, PING, LOGGING_SET_LEVEL, RESOURCES_SUBSCRIBE, RESOURCES_UNSUBSCRIBE];

    /// Returns `name` where it is one of these.
    pub fn known(name: &str) -> Option<&'static str> {
        const ALL: [&str; 28] = [
            TOOLS_CALL,
            PROGRESS,
            INITIALIZE,
            PING,
            DISCOVER,
            TOOLS_LIST,
            PROMPTS_LIST,
            PROMPTS_GET,
            RESOURCES_LIST,
            RESOURCES_READ,
            RESOURCE_TEMPLATES_LIST,
            RESOURCES_SUBSCRIBE,
            RESOURCES_UNSUBSCRIBE,
            LOGGING_SET_LEVEL,
            INITIALIZED,
            CANCELLED,
            TOOLS_CHANGED,
            PROMPTS_CHANGED,
            RESOURCES_CHANGED,
            RESOURCE_UPDATED,
            LOG_MESSAGE,
            ROOTS_CHANGED,
            SAMPLING,
            ELICITATION,
            ROOTS_LIST,
            COMPLETE,
            SUBSCRIPTIONS_LISTEN,
            SUBSCRIPTIONS_ACKNOWLEDGED,
        ];
        ALL.into_iter().find(|known| *known == name)
    }
}

/// The header that names a session, ours at an upstream and a client's at ours.
pub const SESSION_HEADER: &str = "mcp-session-id";
/// The header that names the protocol version of a message.
pub const VERSION_HEADER: &str = "mcp-protocol-version";

/// Our own name and version, as both sides see it.
pub fn implementation() -> Value {
    json!({ "name": "metamcp", "title": "metamcp", "version": env!("CARGO_PKG_VERSION") })
}

/// Returns the same as JSON text, made once: some requests and lists bear it.
pub fn implementation_text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| implementation().to_string());
    &TEXT
}

/// Every capability of a client that a server can make use of.
///
/// Source: MCP 2025-11-25, "Client features", and [`super::apps`].
pub const CLIENT_CAPABILITIES: &str = r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;

/// Returns the parameters of the `initialize` that we send to a server, which offers it the client
/// `capabilities`, JSON text.
pub fn initialize_params(capabilities: &str) -> String {
    let (version, client) = (version::LEGACY_LATEST, implementation());
    format!(
        r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{client}}}"#
    )
}

/// What a server said about itself in its `initialize` result, or in that of `server/discover`.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerProfile {
    /// The protocol version that it is spoken to in.
    pub protocol_version: String,
    /// The whole result, members that we do not know included.
    pub result: Map<String, Value>,
}

/// Why what a server said about itself is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerProfileError {
    /// Not an object with a `protocolVersion`.
    #[error("its `initialize` result has no `protocolVersion`")]
    NoVersion,
    /// Not an object with `supportedVersions`.
    #[error("its `server/discover` result has no `supportedVersions`")]
    NoVersions,
    /// A version without a handshake, or one from the future.
    #[error("it answered with protocol version `{0}`, which is none that we know")]
    Version(String),
}

impl ServerProfile {
    /// Reads the result of `initialize`, as JSON text.
    ///
    /// # Errors
    ///
    /// [`ServerProfileError`] when there is no protocol version that we can speak.
    pub fn read(result: &str) -> Result<Self, ServerProfileError> {
        let result: Map<String, Value> =
            serde_json::from_str(result).map_err(|_| ServerProfileError::NoVersion)?;
        let Some(Value::String(protocol_version)) = result.get("protocolVersion") else {
            return Err(ServerProfileError::NoVersion);
        };
        if !version::is_legacy(protocol_version) {
            return Err(ServerProfileError::Version(protocol_version.clone()));
        }
        Ok(Self { protocol_version: protocol_version.clone(), result })
    }

    /// Returns the era in which the server speaks.
    pub fn era(&self) -> Era {
        Era::of(&self.protocol_version).unwrap_or(Era::Legacy)
    }

    /// Tells whether the server declared `capability`.
    pub fn has(&self, capability: &str) -> bool {
        self.result.get("capabilities").and_then(|all| all.get(capability)).is_some()
    }

    /// Tells whether the server says when a list of `capability` has changed.
    pub fn has_list_changed(&self, capability: &str) -> bool {
        let declared = self.result.get("capabilities").and_then(|all| all.get(capability));
        declared.and_then(|declared| declared.get("listChanged")) == Some(&Value::Bool(true))
    }

    /// Returns the `initialize` result for a client that asked for version `asked`.
    ///
    /// Without a `standing` connection there is nothing that could notify the client, so change
    /// notices, subscriptions and log levels are not declared: declaring them and staying silent
    /// would be worse than leaving them out. Of the server's tasks those on `offer` are declared.
    pub fn for_client(
        &self,
        asked: Option<&str>,
        is_standing: bool,
        offer: TaskCapability,
    ) -> Value {
        let mut result = match self.era() {
            Era::Legacy => self.result.clone(),
            Era::Modern => self.as_initialized(),
        };
        result.insert("protocolVersion".into(), version::negotiate(asked).into());
        if let Some(capabilities) = result.get_mut("capabilities") {
            task::narrow(capabilities, offer);
            if !is_standing {
                leave_out_notices(capabilities);
            }
        }
        Value::Object(result)
    }
}

/// Takes everything out of a server's capabilities that takes a stream to the client, or a memory of
/// what it wants.
pub fn leave_out_notices(capabilities: &mut Value) {
    let Value::Object(capabilities) = capabilities else { return };
    capabilities.remove("logging");
    for capability in capabilities.values_mut().filter_map(Value::as_object_mut) {
        capability.remove("listChanged");
        capability.remove("subscribe");
    }
}

/// A list that servers offer and the `direct` view merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
}

impl ListKind {
    /// Returns the method that asks for it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST,
            Self::Prompts => method::PROMPTS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::ResourceTemplates => method::RESOURCE_TEMPLATES_LIST,
        }
    }

    /// Returns the list that `method` asks for.
    pub fn of_method(method: &str) -> Option<Self> {
        [Self::Tools, Self::Prompts, Self::Resources, Self::ResourceTemplates]
            .into_iter()
            .find(|list| list.method() == method)
    }

    /// Returns the capability that a server with this list declares.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::ResourceTemplates => "resources",
        }
    }

    /// Returns the member of the result that holds the items.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
        }
    }

    /// Returns the notification that says that it has changed.
    pub fn notice(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_CHANGED,
            Self::Prompts => method::PROMPTS_CHANGED,
            Self::Resources | Self::ResourceTemplates => method::RESOURCES_CHANGED,
        }
    }

    /// Returns the lists that the notification `method` is about, the main one first; none for any
    /// other notification.
    pub fn of_notice(method: &str) -> &'static [Self] {
        match method {
            method::TOOLS_CHANGED => &[Self::Tools],
            method::PROMPTS_CHANGED => &[Self::Prompts],
            method::RESOURCES_CHANGED => &[Self::Resources, Self::ResourceTemplates],
            _ => &[],
        }
    }

    /// Tells whether items are called by a name that must be unique over all servers.
    ///
    /// Resources are called by URI, which we do not change but for [`super::apps`].
    pub fn is_named(self) -> bool {
        matches!(self, Self::Tools | Self::Prompts)
    }
}

/// One item of a list: its JSON text and the name or URI that identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// The name, URI or URI template.
    pub key: String,
    json: Box<str>,
    key_span: Range<usize>,
}

/// One page of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The usable items in the order of the server.
    pub items: Vec<ListItem>,
    /// The others, which are kept from clients.
    pub rejected: Vec<RejectedItem>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// For how long it is good, as its server says, in the modern era only.
    pub ttl: Option<Duration>,
}

/// A list result that is not a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its `{}` result has no array `{}`", .0.method(), .0.member())]
pub struct ListResultError(pub ListKind);

impl ListPage {
    /// Reads the result of a list request, as JSON text.
    ///
    /// An item that clients would choke on is rejected alone: one tool without an input schema
    /// makes some clients drop every tool of a server.
    ///
    /// # Errors
    ///
    /// [`ListResultError`] when the result has no such array.
    pub fn read(list: ListKind, result: &str) -> Result<Self, ListResultError> {
        let result = ObjectMembers::read(result).ok_or(ListResultError(list))?;
        let items = result.get(list.member()).ok_or(ListResultError(list))?;
        Ok(Self {
            next: result.get("nextCursor").and_then(|next| serde_json::from_str(next).ok()),
            ttl: result.get("ttlMs").and_then(|ttl| ttl.parse().ok().map(Duration::from_millis)),
            ..Self::of_items(list, items)?
        })
    }

    /// Reads an array of items, as JSON text: the only page there is.
    ///
    /// # Errors
    ///
    /// [`ListResultError`] when it is no array.
    pub fn of_items(list: ListKind, items: &str) -> Result<Self, ListResultError> {
        let (items, _) = first_items(items, LIST_ITEMS_MAX).map_err(|_| ListResultError(list))?;
        let mut page = Self::default();
        let mut keys = HashSet::new();
        for (position, json) in items.iter().enumerate() {
            let item = ListItem::read(list, json.get(), position).and_then(|item| {
                match keys.insert(item.key.clone()) {
                    true => Ok(item),
                    false => Err(RejectedItem { position, item: item.key, reason: TWICE }),
                }
            });
            match item {
                Ok(item) => page.items.push(item),
                Err(rejected) => page.rejected.push(rejected),
            }
        }
        Ok(page)
    }

    /// Returns the text of the list result that this page was read from, without the items that are
    /// kept from clients or `is_hidden` from this one; everything else is as it was.
    pub fn without_rejected(
        &self,
        list: ListKind,
        result: &str,
        is_hidden: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let array = ObjectMembers::one(result, list.member())?;
        let (items, _) = first_items(array, LIST_ITEMS_MAX).ok()?;
        let is_kept =
            |position: usize| self.rejected.iter().all(|found| found.position != position);
        let kept: Vec<&str> = (items.iter().enumerate())
            .filter(|(position, _)| is_kept(*position))
            .map(|(_, item)| item.get())
            .filter(|item| !is_hidden(item))
            .collect();
        let span = jsonrpc::span_in(result, array);
        let (before, after) = (&result[..span.start as usize], &result[span.end as usize..]);
        Some(format!("{before}[{}]{after}", kept.join(",")))
    }
}

/// Tells whether a block of a result, JSON text, is a text.
pub fn is_text_block(block: &str) -> bool {
    ObjectMembers::read(block).and_then(|block| block.string("type")).as_deref() == Some("text")
}

/// What is wrong with an item that is called as one before it.
pub const TWICE: &str = "it is listed twice";

impl ListItem {
    fn read(list: ListKind, json: &str, position: usize) -> Result<Self, RejectedItem> {
        let numbered = || format!("#{}", position + 1);
        let rejected = |item: String, reason| RejectedItem { position, item, reason };
        let peek = ItemScan::read(json).map_err(|reason| rejected(numbered(), reason))?;
        let raw = peek.key(list);
        let key = raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let (Some(raw), Some(key)) = (raw, key) else {
            let reason = match list {
                ListKind::Tools | ListKind::Prompts => "it has no `name`",
                ListKind::Resources => "it has no `uri`",
                ListKind::ResourceTemplates => "it has no `uriTemplate`",
            };
            return Err(rejected(numbered(), reason));
        };
        if let Some(reason) = peek.defect(list, &key) {
            return Err(rejected(if key.is_empty() { numbered() } else { key }, reason));
        }
        let span = jsonrpc::span_in(json, raw.get());
        Ok(Self { key, key_span: span.start as usize..span.end as usize, json: json.into() })
    }

    /// Returns the item's JSON text as the server wrote it.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns the item's JSON text with another key; nothing else changes.
    pub fn renamed(&self, key: &str) -> Bytes {
        let key = Value::from(key).to_string();
        let edit = (self.key_span.clone(), key.as_str());
        byte_chunks::splice(self.json.as_bytes(), std::iter::once(edit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_good_tools_and_says_what_is_wrong_with_the_others() {
        let page = ListPage::read(
            ListKind::Tools,
            r#"{"tools":[{"x":1e400,"name":"a","inputSchema":{"type":"object"}},{"name":"b"},{"name":"c","inputSchema":{"type":"array"}},{"description":"d"},7],"nextCursor":"2"}"#,
        )
        .expect("a list");

        assert_eq!(page.items.len(), 1);
        assert_eq!(
            page.items[0].renamed("s__a"),
            r#"{"x":1e400,"name":"s__a","inputSchema":{"type":"object"}}"#
        );
        assert_eq!(page.next.as_deref(), Some("2"));
        let rejected: Vec<_> =
            page.rejected.iter().map(|found| (found.position, &*found.item)).collect();
        assert_eq!(rejected, [(1, "b"), (2, "c"), (3, "#4"), (4, "#5")]);
    }

    #[test]
    fn what_is_wrong_is_cut_out_and_everything_else_stays_as_it_was() {
        let good = r#"{ "name":"a", "x":1e400, "inputSchema":{"type":"object"}}"#;
        let page = |items: &str| {
            format!(r#"{{"_meta":{{ "tools":[7]}},"tools": {items} ,"nextCursor":"2"}}"#)
        };
        for (items, expected) in [
            (format!("[7, {good}]"), format!("[{good}]")),
            (format!("[ {good} ,{good}]"), format!("[{good}]")),
            (r#"[{"name":""}]"#.to_owned(), "[]".to_owned()),
        ] {
            let result = page(&items);
            let read = ListPage::read(ListKind::Tools, &result).expect("a list");
            assert_eq!(
                read.without_rejected(ListKind::Tools, &result, |_| false),
                Some(page(&expected))
            );
            assert_eq!(read.next.as_deref(), Some("2"));
        }
    }

    #[test]
    fn resources_are_known_by_their_uri() {
        let page =
            ListPage::read(ListKind::Resources, r#"{"resources":[{"name":"n","uri":"a:b"}]}"#)
                .expect("a list");
        assert_eq!(page.items[0].key, "a:b");
        assert_eq!(
            ListPage::read(ListKind::Resources, "{}").expect_err("no list").to_string(),
            "its `resources/list` result has no array `resources`"
        );
    }

    #[test]
    fn a_client_is_told_only_what_we_carry() {
        let profile = ServerProfile::read(
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"completions":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"i","future":1}"#,
        )
        .expect("a profile");

        assert_eq!(
            profile.for_client(Some("2025-06-18"), false, TaskCapability::ById),
            json!({"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"completions":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"i","future":1})
        );
        let standing = profile.for_client(None, true, TaskCapability::ById);
        assert_eq!(standing["capabilities"], profile.result["capabilities"]);
        assert!(profile.has("tools") && !profile.has("prompts"));
    }

    #[test]
    fn a_server_of_an_unknown_version_is_refused() {
        assert_eq!(
            ServerProfile::read(r#"{"protocolVersion":"2026-07-28"}"#),
            Err(ServerProfileError::Version("2026-07-28".into()))
        );
        assert_eq!(ServerProfile::read("[]"), Err(ServerProfileError::NoVersion));
    }
}
