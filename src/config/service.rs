//! The behaviour of the service as a whole: `[service]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    ProxyConfig,
    bounded_number::BoundedNumber,
    defaults,
    diagnostic::ConfigProblem,
    duration::{AnyDuration, DurationOrOff},
    key_places::KeyPlaces,
    keyword::NamedValue,
    proxy,
    refusal::KEY,
    reload_effect::ReloadEffect,
};

/// The behaviour of the service as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceConfig {
    /// The longest silence of a request. Progress restarts the time.
    #[serde(with = "AnyDuration")]
    pub request_timeout: Duration,
    /// The longest total time of a request.
    #[serde(with = "AnyDuration")]
    pub max_total_timeout: Duration,
    /// The time that running requests may continue after a stop was requested.
    #[serde(with = "AnyDuration")]
    pub shutdown_timeout: Duration,
    /// The silence of a tool after which metamcp itself sends progress to a client that gave a
    /// progress token; "0s" is never.
    #[serde(with = "DurationOrOff")]
    pub progress_beat: Option<Duration>,
    /// The time without a client, operator request, call or task after which the service exits;
    /// "0s" is never. systemd starts it again for the next client.
    // `None` is not set: never, unless a command has started the service.
    #[serde(deserialize_with = "idle_exit")]
    #[schemars(with = "DurationOrOff", extend("default" = "0s"))]
    pub idle_exit: Option<Option<Duration>>,
    /// The log level.
    #[serde(deserialize_with = "NamedValue::deserialize")]
    pub log_level: LogLevel,
    /// The proxy for requests to servers, authorization servers, the registry and the embedding
    /// endpoint, except on loopback.
    #[schemars(with = "String", title = proxy::TITLE, regex(pattern = proxy::PATTERN), extend("default" = "none", "x-reload" = ReloadEffect::Reconnect))]
    pub proxy: ProxyConfig,
    /// The bytes that messages of all clients together may take: those that wait to be written,
    /// those that are being read, and kept results. Without it, half of the memory limit of the
    /// service's control group, or 256 MiB if there is no limit.
    #[serde(deserialize_with = "memory_max")]
    #[schemars(with = "MemoryMax")]
    pub memory_max: Option<usize>,
}

type MemoryMax = BoundedNumber<{ defaults::MEMORY_RANGE.0 }, { defaults::MEMORY_RANGE.1 }>;

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            request_timeout: defaults::REQUEST_TIMEOUT,
            max_total_timeout: defaults::MAX_TOTAL_TIMEOUT,
            shutdown_timeout: defaults::SHUTDOWN_TIMEOUT,
            progress_beat: Some(defaults::PROGRESS_BEAT),
            idle_exit: None,
            log_level: LogLevel::Info,
            proxy: ProxyConfig::None,
            memory_max: None,
        }
    }
}

/// The amount of logging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Only failures that require an operator.
    Error,
    /// Also degraded operation.
    Warn,
    /// Also one line per change of a server's state.
    Info,
    /// Also one line per request.
    Debug,
    /// Everything.
    Trace,
}

impl ServiceConfig {
    /// Checks the rules over several keys, and shortens a default that would break one.
    pub(super) fn check(&mut self, places: &KeyPlaces<'_>) -> Result<(), ConfigProblem> {
        if self.request_timeout <= self.max_total_timeout {
            return Ok(());
        }
        if places.find("service.request_timeout").is_none() {
            self.request_timeout = self.max_total_timeout;
            return Ok(());
        }
        let message = "`request_timeout` is longer than `max_total_timeout`";
        Err(places
            .problem("service.request_timeout", message)
            .help("lower it, or raise `max_total_timeout`: no request may take longer"))
    }
}

fn idle_exit<'de, D>(found: D) -> Result<Option<Option<Duration>>, D::Error>
where
    D: Deserializer<'de>,
{
    DurationOrOff::deserialize(found).map(Some)
}

fn memory_max<'de, D: Deserializer<'de>>(found: D) -> Result<Option<usize>, D::Error> {
    let help = || format!("{}, a number of bytes", MemoryMax::help());
    MemoryMax::read::<i64, _, _>(found, KEY, help).map(Some)
}
