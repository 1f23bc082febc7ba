//! The parameters of a method, read one by one, so that an error names the wrong one.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::ControlMethod;
use crate::{
    config::defaults,
    protocol::{ObjectMembers, RpcError, rpc_error::INVALID_PARAMS},
    redact,
    similar_names::nearest,
};

/// The metadata member that every method accepts beside its parameters.
const META: &str = "_meta";

/// The parameters of one request.
#[derive(Debug)]
pub(super) struct ControlParams<'a> {
    pub(super) method: ControlMethod,
    members: ObjectMembers<'a>,
}

/// A type of parameters.
pub(super) trait ParamKind: DeserializeOwned {
    /// Its description, as in "it must be …".
    const WORDS: &'static str;
}

impl ParamKind for String {
    const WORDS: &'static str = "a string";
}

impl ParamKind for bool {
    const WORDS: &'static str = "true or false";
}

impl ParamKind for u64 {
    const WORDS: &'static str = "a whole number of at least 0";
}

impl ParamKind for usize {
    const WORDS: &'static str = "a whole number of at least 0";
}

impl ParamKind for Vec<String> {
    const WORDS: &'static str = "a list of strings";
}

/// Reads the parameters of the method `name`, and returns the error, if any; `None` if there is no
/// such method. For the fuzz targets.
#[doc(hidden)]
pub fn read_params(name: &str, text: Option<&str>) -> Option<Result<(), String>> {
    let read = ControlParams::read(ControlMethod::named(name)?, text);
    Some(read.map(drop).map_err(|error| String::from_utf8_lossy(&error.render(None)).into_owned()))
}

impl<'a> ControlParams<'a> {
    /// Reads the parameters of `method` from `text`, JSON text; without text there are none.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if they are no object, or one of them is unknown or occurs twice.
    pub(super) fn read(
        method: ControlMethod,
        text: Option<&'a str>,
    ) -> Result<Self, Box<RpcError>> {
        let params = Self { method, members: ObjectMembers::default() };
        let Some(members) = ObjectMembers::read(text.unwrap_or("{}")) else {
            return Err(params.refused("the parameters are not an object", json!({})).into());
        };
        for (position, (name, _)) in members.iter().enumerate() {
            let shown = redact::cut(name, defaults::SUGGESTION_BYTES_MAX);
            if members.iter().take(position).any(|(earlier, _)| earlier == name) {
                let message = format!("the parameter `{shown}` occurs twice");
                return Err(params.refused(message, json!({ "parameter": shown })).into());
            }
            if name != META && !method.params().iter().any(|known| bare(known) == name) {
                let known = method.params().iter().map(|known| bare(known).to_owned());
                let similar = nearest(name, known);
                let context = json!({ "parameter": shown, "similar": similar });
                let message = format!("`{}` has no parameter `{shown}`", method.name());
                return Err(params.refused(message, context).into());
            }
        }
        Ok(Self { method, members })
    }

    /// Returns the parameter `name`, if present; `null` counts as absent.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if it has the wrong type.
    pub(super) fn optional<T: ParamKind>(&self, name: &str) -> Result<Option<T>, Box<RpcError>> {
        let value = self.raw(name).map(serde_json::from_str).transpose();
        value.map_err(|_| self.invalid(name, T::WORDS))
    }

    /// Returns the parameter `name`.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if it is missing or has the wrong type.
    pub(super) fn required<T: ParamKind>(&self, name: &'static str) -> Result<T, Box<RpcError>> {
        self.optional(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns whether the parameter `name` is present and true.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if it is neither true nor false.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Box<RpcError>> {
        Ok(self.optional(name)?.unwrap_or(false))
    }

    /// Returns the parameter `timeout`, in milliseconds.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if it is not a number of at least 1.
    pub(super) fn timeout(&self) -> Result<Option<Duration>, Box<RpcError>> {
        match self.optional::<u64>("timeout")? {
            Some(0) => Err(self.invalid("timeout", "at least 1 ms")),
            timeout => Ok(timeout.map(Duration::from_millis)),
        }
    }

    /// Returns the parameter `name` as the JSON text of an object.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if it is not an object.
    pub(super) fn object(&self, name: &str) -> Result<Option<&str>, Box<RpcError>> {
        match self.raw(name) {
            Some(text) if !text.starts_with('{') => Err(self.invalid(name, "an object")),
            text => Ok(text),
        }
    }

    /// Returns the metadata as the JSON text of an object.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if it is not an object.
    pub(super) fn meta(&self) -> Result<Option<&str>, Box<RpcError>> {
        self.object(META)
    }

    /// Returns a parameter as JSON text; `null` counts as absent.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.members.get(name).filter(|text| *text != "null")
    }

    /// Returns the error for a request without the parameter `name`, which may be a path.
    pub(super) fn missing(&self, name: &str) -> Box<RpcError> {
        let message = format!("`{}` lacks `params.{name}`", self.method.name());
        let context = json!({ "method": self.method.name(), "parameter": name });
        RpcError::new(INVALID_PARAMS, "MISSING_PARAMETER", message)
            .suggest(format!("Add `params.{name}`. {}", self.method.usage()))
            .context(context)
            .into()
    }

    /// Returns the error for a request with a wrong value of the parameter `name`.
    pub(super) fn invalid(&self, name: &str, wanted: &str) -> Box<RpcError> {
        let message = format!("the parameter `{name}` must be {wanted}");
        self.refused(message, json!({ "parameter": name })).into()
    }

    fn refused(&self, message: impl Into<String>, context: serde_json::Value) -> RpcError {
        RpcError::new(INVALID_PARAMS, "INVALID_PARAMS", message)
            .suggest(self.method.usage())
            .context(context)
    }
}

/// Returns the name of a parameter without the mark of optional ones.
fn bare(name: &str) -> &str {
    name.strip_suffix('?').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ControlParams<'_>, Box<RpcError>> {
        ControlParams::read(ControlMethod::ToolsSearch, Some(text))
    }

    #[test]
    fn a_missing_unknown_or_wrong_parameter_is_named() {
        let params =
            read(r#"{"query":"x","limit":"many","server":null,"_meta":{}}"#).expect("all known");
        assert_eq!(params.required::<String>("query").ok().as_deref(), Some("x"));
        assert_eq!(params.optional::<String>("server").ok(), Some(None));
        assert!(!params.flag("explain").expect("absent is false"));
        let wrong = params.optional::<usize>("limit").expect_err("a word is no number");
        insta::assert_snapshot!(wrong.message, @"the parameter `limit` must be a whole number of at least 0");
        let missing = read("{}").expect("an object").required::<String>("query").expect_err("no");
        assert_eq!(missing.name, "MISSING_PARAMETER");
        let unknown = read(r#"{"quary":"x"}"#).expect_err("unknown");
        assert_eq!(unknown.context, json!({ "parameter": "quary", "similar": ["query"] }));
        insta::assert_snapshot!(unknown.suggestion.unwrap_or_default(), @"`tools/search` takes `query`, `server?`, `strategy?`, `limit?`, `explain?`.");
        for text in ["[]", "7", r#"{"query":1,"query":2}"#] {
            assert_eq!(read(text).expect_err(text).name, "INVALID_PARAMS");
        }
    }
}
