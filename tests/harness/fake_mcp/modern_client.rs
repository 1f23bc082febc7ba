//! The client of a modern request, and the checks of that request.

use std::collections::BTreeMap;

use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::{
    era::{MODERN, key},
    fake::Fake,
    message::{Members, Message, RpcError},
    methods, mirrored_headers,
    session::Level,
    tasks, tools,
};

/// A client, as described by one of its requests.
#[derive(Debug)]
pub(crate) struct ModernClient {
    capabilities: Value,
    info: Option<Value>,
    level: Option<Level>,
    /// The names of all metadata.
    meta: Vec<String>,
    /// The headers that mirror the body; `None` on a pipe.
    headers: Option<BTreeMap<String, String>>,
}

/// A refused request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: RpcError,
}

impl ModernClient {
    /// Reads the client of a request, or refuses a request that violates the revision.
    pub(crate) fn admit(
        fake: &Fake,
        message: &Message<'_>,
        headers: Option<&HeaderMap>,
    ) -> Result<Self, Refusal> {
        let bad = |error| Refusal { status: StatusCode::BAD_REQUEST, error };
        let method = message.method.as_deref().unwrap_or_default();
        let params = Members::read(message.params.map(|params| params.get()));
        if headers.is_none() && method == "initialize" {
            let version: Option<String> = params.optional("protocolVersion").ok().flatten();
            return Err(bad(unsupported(&version.unwrap_or_default())));
        }
        if let Some(headers) = headers {
            mirrored_headers::check_presence(headers).map_err(bad)?;
        }
        let (client, version) = Self::read(message, headers).map_err(bad)?;
        if let Some(headers) = headers {
            mirrored_headers::check(fake, headers, &version, method, &params).map_err(bad)?;
        }
        if version != MODERN {
            return Err(bad(unsupported(&version)));
        }
        if !methods::is_modern(fake, method) {
            let error = RpcError::new(-32601, "Method not found");
            return Err(Refusal { status: StatusCode::NOT_FOUND, error });
        }
        tasks::admit(fake, &client, method, &params).map_err(bad)?;
        match tools::capabilities_of(method, &params) {
            Some(needed) if !client.has(&needed) => Err(bad(undeclared(&needed))),
            _ => Ok(client),
        }
    }

    fn read(
        message: &Message<'_>,
        headers: Option<&HeaderMap>,
    ) -> Result<(Self, String), RpcError> {
        let meta = message.meta();
        let version: String = meta.required(&key("protocolVersion"))?;
        let capabilities: Value = meta.required(&key("clientCapabilities"))?;
        if !capabilities.is_object() {
            return Err(RpcError::invalid("the client capabilities are not an object"));
        }
        let client = Self {
            capabilities,
            info: meta.optional(&key("clientInfo"))?,
            level: meta.optional(&key("logLevel"))?,
            meta: meta.names(),
            headers: headers.map(mirrored_headers::mirrored),
        };
        Ok((client, version))
    }

    /// Returns whether each request has its own connection.
    pub(crate) fn is_http(&self) -> bool {
        self.headers.is_some()
    }

    /// Returns whether the client wants log messages of this level.
    pub(crate) fn wants(&self, level: Level) -> bool {
        self.level.is_some_and(|least| least <= level)
    }

    /// Returns whether the client declares an extension.
    pub(crate) fn has_extension(&self, name: &str) -> bool {
        self.capabilities["extensions"][name].is_object()
    }

    /// Returns whether the client declares the capabilities.
    fn has(&self, needed: &[&str]) -> bool {
        needed.iter().all(|name| self.capabilities.get(name).is_some())
    }

    /// Returns all properties, for the tool that reports them.
    pub(crate) fn report(&self) -> Value {
        json!({
            "clientCapabilities": self.capabilities,
            "clientInfo": self.info,
            "logLevel": self.level,
            "metaKeys": self.meta,
            "headers": self.headers,
        })
    }
}

/// Returns the error for an unsupported version.
fn unsupported(requested: &str) -> RpcError {
    RpcError {
        code: -32022,
        message: format!("Unsupported protocol version; this server speaks {MODERN}"),
        data: Some(json!({ "supported": [MODERN], "requested": requested }).to_string()),
    }
}

/// Returns the error for a missing capability of the client.
fn undeclared(needed: &[&str]) -> RpcError {
    let needed: BTreeMap<&str, Value> = needed.iter().map(|name| (*name, json!({}))).collect();
    RpcError {
        code: -32021,
        message: "The client does not declare a required capability".to_owned(),
        data: Some(json!({ "requiredCapabilities": needed }).to_string()),
    }
}
