//! JSON-RPC messages whose ids and values stay unchanged byte for byte.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// Any message from the client.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

impl Message<'_> {
    /// Returns the progress token of a request in its original form.
    pub(crate) fn progress_token(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Option<Meta<'a>>,
        }
        #[derive(Deserialize)]
        struct Meta<'a> {
            #[serde(borrow, rename = "progressToken")]
            token: Option<&'a RawValue>,
        }
        let params: Params<'_> = serde_json::from_str(self.params?.get()).ok()?;
        params.meta?.token.map(|token| token.get().to_owned())
    }
}

/// The members of a JSON object in their original form.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Members(BTreeMap<String, Box<RawValue>>);

impl Members {
    /// Reads an object; anything else has no members.
    pub(crate) fn read(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Returns the text of a member.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.get())
    }

    /// Returns the object as text.
    pub(crate) fn text(&self) -> String {
        let members = self.0.iter().map(|(name, value)| format!("{}:{value}", quoted(name)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }

    /// Returns the names of all members.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Returns a member, or `None` if it is absent or null.
    pub(crate) fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RpcError> {
        let Some(text) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(text)
            .map_err(|error| RpcError::invalid(format!("argument `{name}`: {error}")))
    }

    /// Returns a member.
    pub(crate) fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, RpcError> {
        self.optional(name)?
            .ok_or_else(|| RpcError::invalid(format!("argument `{name}` is missing")))
    }
}

/// A JSON-RPC error.
#[derive(Debug)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// The JSON text of `data`.
    pub(crate) data: Option<String>,
}

impl RpcError {
    /// Returns an error without data.
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Returns an invalid-params error.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// Returns the error for a header that contradicts the body.
    pub(crate) fn mismatch(message: impl std::fmt::Display) -> Self {
        Self::new(-32020, format!("Header mismatch: {message}"))
    }

    /// Returns the whole message for the request `id`.
    pub(crate) fn answer(&self, id: &str) -> String {
        let data = self.data.as_ref().map_or(String::new(), |data| format!(r#","data":{data}"#));
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{},"message":{}{data}}}}}"#,
            self.code,
            quoted(&self.message)
        )
    }
}

/// Returns the nesting depth of arrays and objects in JSON text.
pub(crate) fn depth(json: &[u8]) -> usize {
    let (mut now, mut deepest, mut is_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => now += 1,
            b']' | b'}' if !is_text => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
}

/// Returns `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns raw values as a JSON array.
pub(crate) fn array(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

/// Returns a tool result with both text and data.
pub(crate) fn structured(text: &str, data: &str) -> String {
    format!(
        r#"{{"content":[{{"type":"text","text":{}}}],"structuredContent":{data}}}"#,
        quoted(text)
    )
}

/// Returns a tool result that has its data also as text.
pub(crate) fn data_result(data: &str) -> String {
    structured(data, data)
}
