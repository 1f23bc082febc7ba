//! The view that operators have of calls: `[telemetry]`.

use hyper::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{
    keyword::NamedValue,
    refusal::{KEY, Refusal},
    reload_effect::ReloadEffect,
    url,
};

/// The help that shows how to write the address of a collector. Source: OTLP, default ports.
const EXAMPLE: &str = "write it as `http://127.0.0.1:4318`";

/// The view that operators have of calls.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// If `false`, the service does not observe calls: there are no records, spans and metrics of
    /// them, and `metamcp calls`, `metamcp top` and the page show none.
    pub enabled: bool,
    /// The calls that have a record in the journal, or without systemd in the file `calls.jsonl` of
    /// the state directory. `metamcp calls` shows the last calls in any case.
    #[serde(deserialize_with = "NamedValue::deserialize")]
    pub calls: RecordedCalls,
    /// The address of an OpenTelemetry collector that gets a span for each call, by OTLP over HTTP
    /// in its JSON form. metamcp adds `/v1/traces`. Without it, no span is made.
    #[serde(deserialize_with = "collector")]
    #[schemars(with = "String", title = url::TITLE, regex(pattern = url::PATTERN), extend("x-reload" = ReloadEffect::Restart))]
    pub otlp: Option<Uri>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { enabled: true, calls: RecordedCalls::All, otlp: None }
    }
}

fn collector<'de, D: Deserializer<'de>>(found: D) -> Result<Option<Uri>, D::Error> {
    let url = url::parse_http(&String::deserialize(found)?, EXAMPLE).map_err(D::Error::custom)?;
    let has_login = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if has_login || url.query().is_some() {
        let message = format!("`{KEY}` has a login or a query, `***`, which no collector gets");
        return Err(D::Error::custom(Refusal::new(message, EXAMPLE)));
    }
    Ok(Some(url))
}

/// The calls that have a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordedCalls {
    /// Every call. Of more than 200 successes in a second, the rest is summed by client and tool.
    All,
    /// Calls that failed or were cancelled.
    Failures,
    /// No call.
    None,
}

/// The part of the arguments and the result that the records of calls to a server have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordedText {
    /// Nothing.
    #[default]
    None,
    /// A salted hash, which tells equal texts from different ones until the service starts again.
    Hash,
    /// The text itself without the secrets of the server, cut at 4 KiB.
    Text,
}
