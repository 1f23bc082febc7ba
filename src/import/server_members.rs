//! The members of one server's table, removed one by one, so that unknown members remain.
//!
//! Pure.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value};

use super::{
    declaration_origin::{DeclarationOrigin, ImportContext, SourceFile},
    foreign_server::{ForeignServer, ForeignTransport, ImportedEndpoint},
    mcp_remote,
    variable_syntax::{ForeignText, VariableSyntax},
};
use crate::config::LifecycleConfig;

/// The members that need no counterpart.
const HARMLESS: [&str; 8] =
    ["type", "transport", "transportType", "description", "gallery", "version", "icon", "source"];

/// The remaining members of one server's table.
pub(super) struct ImportEntry<'a> {
    rest: Map<String, Value>,
    syntax: VariableSyntax,
    context: &'a ImportContext,
    /// The time limit for its start, set by the parser.
    pub(super) start_timeout_ms: Option<u64>,
    /// The parts of members without a counterpart.
    pub(super) ignored: Vec<String>,
}

impl SourceFile {
    /// Returns the servers of `mcpServers`, a table that Claude Desktop, Cursor, Windsurf and Claude
    /// Code have in common. Source: examples in their documentation.
    pub(super) fn mcp_servers(&self, servers: &Value) -> Vec<ForeignServer> {
        let servers = servers.as_object().into_iter().flatten();
        self.servers(servers, VariableSyntax::Dollar, ImportEntry::take_transport)
    }

    /// Returns the server of each table. `take_transport` removes the members of its transport.
    pub(super) fn servers<'a, 'v>(
        &'a self,
        tables: impl Iterator<Item = (&'v String, &'v Value)>,
        syntax: VariableSyntax,
        take_transport: impl Fn(&mut ImportEntry<'a>) -> Result<ForeignTransport, String>,
    ) -> Vec<ForeignServer> {
        let read = |(name, table): (&String, &Value)| {
            let mut rest = table.as_object().cloned().unwrap_or_default();
            rest.retain(|_, value| !value.is_null());
            let context = &self.context;
            let mut entry =
                ImportEntry { rest, syntax, context, start_timeout_ms: None, ignored: Vec::new() };
            let transport = match table.is_object() {
                true => take_transport(&mut entry),
                false => Err("it is not a table".to_owned()),
            };
            entry.finish(name, &self.origin, transport)
        };
        tables.map(read).collect()
    }
}

impl ImportEntry<'_> {
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.rest.remove(key)
    }

    /// Removes and returns the member if it is as wanted.
    pub(super) fn take_if(&mut self, key: &str, is_wanted: fn(&Value) -> bool) -> Option<Value> {
        if self.rest.get(key).is_some_and(is_wanted) { self.take(key) } else { None }
    }

    /// Adds a member under the key of other clients.
    pub(super) fn put(&mut self, key: &str, value: Value) {
        self.rest.insert(key.to_owned(), value);
    }

    pub(super) fn read(&self, text: &str) -> ForeignText {
        ForeignText::read(text, self.syntax, self.context)
    }

    /// Removes and returns the first text under one of `keys`.
    pub(super) fn text(&mut self, keys: &[&str]) -> Result<Option<ForeignText>, String> {
        for key in keys {
            match self.take(key) {
                None => {}
                Some(Value::String(text)) => return Ok(Some(self.read(&text))),
                Some(_) => return Err(format!("its `{key}` is not a text")),
            }
        }
        Ok(None)
    }

    /// Removes and returns a list of texts.
    pub(super) fn list(&mut self, key: &str) -> Result<Vec<ForeignText>, String> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let read = |item: &Value| scalar(item).map(|text| self.read(&text));
                let items: Option<Vec<ForeignText>> = items.iter().map(read).collect();
                items.ok_or_else(|| format!("its `{key}` is not a list of texts"))
            }
            Some(_) => Err(format!("its `{key}` is not a list")),
        }
    }

    /// Removes and returns the first table of texts under one of `keys`.
    pub(super) fn table(&mut self, keys: &[&str]) -> Result<BTreeMap<String, ForeignText>, String> {
        for key in keys {
            let Some(found) = self.take(key) else { continue };
            let Value::Object(members) = found else {
                return Err(format!("its `{key}` is not a table"));
            };
            // A null member counts as not set.
            let members = members.iter().filter(|(_, value)| !value.is_null());
            let read =
                |(name, value): (&String, &Value)| Some((name.clone(), self.read(&scalar(value)?)));
            let members: Option<BTreeMap<String, ForeignText>> = members.map(read).collect();
            return members.ok_or_else(|| format!("its `{key}` is not a table of texts"));
        }
        Ok(BTreeMap::new())
    }

    /// Removes a boolean; another type counts as `false`.
    pub(super) fn is_on(&mut self, key: &str) -> bool {
        self.take(key) == Some(Value::Bool(true))
    }

    /// Removes the transport, in the form that most clients use.
    pub(super) fn take_transport(&mut self) -> Result<ForeignTransport, String> {
        let url = self.text(&["httpUrl", "url", "serverUrl", "baseUrl"])?;
        let command = self.text(&["command"])?;
        match (command, url) {
            (Some(command), None) => self.program(command),
            (None, Some(url)) => self.endpoint(url).map(ForeignTransport::Endpoint),
            (Some(_), Some(_)) => Err("it has both a `command` and a `url`".to_owned()),
            (None, None) => Err("it has neither a `command` nor a `url`".to_owned()),
        }
    }

    /// Removes what belongs to the endpoint at `url`.
    pub(super) fn endpoint(&mut self, url: ForeignText) -> Result<ImportedEndpoint, String> {
        let mut headers = self.table(&["headers"])?;
        if let Some(token) = self.text(&["bearerToken"])? {
            headers.entry("Authorization".to_owned()).or_insert_with(|| bearer(token));
        }
        Ok(ImportedEndpoint { url, headers, login: self.login(), ..ImportedEndpoint::default() })
    }

    fn program(&mut self, command: ForeignText) -> Result<ForeignTransport, String> {
        let args = self.list("args")?;
        let env = self.table(&["env"])?;
        let cwd = self.text(&["cwd"])?;
        Ok(ForeignTransport::Program { command, args, env, cwd })
    }

    /// Removes the lifecycle: a word, or a table with the word and a time.
    fn lifecycle(&mut self) -> Option<LifecycleConfig> {
        let found = self.take("lifecycle")?;
        let mode = found.as_str().or_else(|| found["mode"].as_str())?;
        let idle_timeout = found["idleTimeoutMs"].as_u64().map(Duration::from_millis);
        match mode {
            "keep-alive" => Some(LifecycleConfig::KeepAlive { idle_timeout }),
            "ephemeral" => Some(LifecycleConfig::Ephemeral),
            _ => None,
        }
    }

    /// Returns the server, with the names of the remaining members.
    fn finish(
        mut self,
        name: &str,
        origin: &DeclarationOrigin,
        transport: Result<ForeignTransport, String>,
    ) -> ForeignServer {
        let is_disabled =
            self.is_on("disabled") || self.take("enabled") == Some(Value::Bool(false));
        let lifecycle = self.lifecycle();
        for harmless in HARMLESS {
            self.rest.remove(harmless);
        }
        // All tools are offered, as without a list.
        if self.rest.get("tools").and_then(Value::as_array).is_some_and(|tools| tools == &["*"]) {
            self.rest.remove("tools");
        }
        let mut ignored: Vec<String> = self.rest.keys().map(|key| shown(key)).collect();
        ignored.append(&mut self.ignored);
        let bridged = match &transport {
            Ok(ForeignTransport::Program { command, args, env, .. }) => {
                mcp_remote::unwrapped(command, args, env)
            }
            Ok(ForeignTransport::Endpoint(_)) | Err(_) => None,
        };
        let is_unwrapped = bridged.is_some();
        let transport = match bridged {
            Some(bridged) => {
                ignored.extend(bridged.ignored);
                Ok(ForeignTransport::Endpoint(bridged.endpoint))
            }
            None => transport,
        };
        ForeignServer {
            name: name.to_owned(),
            origin: origin.clone(),
            transport,
            is_unwrapped,
            is_disabled,
            start_timeout_ms: self.start_timeout_ms,
            lifecycle,
            inputs: BTreeMap::new(),
            ignored,
        }
    }
}

/// Returns the `Authorization` header for a token.
pub(super) fn bearer(token: ForeignText) -> ForeignText {
    let mut header = ForeignText::plain("Bearer ");
    token.0.into_iter().for_each(|piece| header.push(piece));
    header
}

/// Returns a key for display: a word, or a placeholder if it may contain a secret.
pub(super) fn shown(key: &str) -> String {
    let is_word = key.len() <= 40
        && key.chars().all(|found| found.is_ascii_alphabetic() || matches!(found, '_' | '-'));
    if is_word { format!("`{key}`") } else { "a key with an unusual name".to_owned() }
}

/// Returns a text, a number or a boolean as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
