//! The behaviour of the service as a whole: `[service]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    bounded_number::bounded_number,
    defaults,
    diagnostic::ConfigProblem,
    duration::{self, WrittenDuration, WrittenTimeout},
    keyword::NamedValue,
    schema::{DurationOrOff, DurationSchema},
};

/// The behaviour of the service as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// The longest silence of a request. Progress restarts the time.
    pub request_timeout: Duration,
    /// The longest total time of a request, with or without progress.
    pub max_total_timeout: Duration,
    /// The time that running requests may continue after a stop was requested.
    pub shutdown_timeout: Duration,
    /// The silence of a tool after which metamcp sends its client progress; `None` is never.
    pub progress_beat: Option<Duration>,
    /// The time without a client, operator request, call or task after which the service exits;
    /// `Some(None)` is never. `None` is not set: never, unless a command has started the service.
    pub idle_exit: Option<Option<Duration>>,
    /// The log level.
    pub log_level: LogLevel,
    /// The bytes that messages of all clients together may take; `None` is a share of the memory
    /// limit of the service's control group.
    pub memory_max: Option<usize>,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            request_timeout: defaults::REQUEST_TIMEOUT,
            max_total_timeout: defaults::MAX_TOTAL_TIMEOUT,
            shutdown_timeout: defaults::SHUTDOWN_TIMEOUT,
            progress_beat: Some(defaults::PROGRESS_BEAT),
            idle_exit: None,
            log_level: LogLevel::Info,
            memory_max: None,
        }
    }
}

/// The amount of logging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
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

/// [`ServiceConfig`] as written in the file, with the places of keys that other rules check.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct ServiceTable {
    /// The longest silence of a request. Progress restarts the time.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::REQUEST_TIMEOUT)))]
    request_timeout: Option<Spanned<WrittenDuration>>,
    /// The longest total time of a request.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::MAX_TOTAL_TIMEOUT)))]
    max_total_timeout: Option<WrittenDuration>,
    /// The time that running requests may continue after a stop was requested.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::SHUTDOWN_TIMEOUT)))]
    shutdown_timeout: Option<WrittenDuration>,
    /// The silence of a tool after which metamcp itself sends progress to a client that gave a
    /// progress token; "0s" is never.
    #[schemars(with = "DurationOrOff", extend("default" = duration::text(defaults::PROGRESS_BEAT)))]
    progress_beat: Option<WrittenTimeout>,
    /// The time without a client, operator request, call or task after which the service exits;
    /// "0s" is never.
    #[schemars(with = "DurationOrOff", extend("default" = "0s"))]
    idle_exit: Option<WrittenTimeout>,
    /// The log level.
    #[schemars(with = "LogLevel", extend("default" = "info"))]
    log_level: Option<NamedValue<LogLevel>>,
    /// The bytes that messages of all clients together may take: those that wait to be written,
    /// those that are being read, and kept results. Without it, half of the memory limit of the
    /// service's control group, or 256 MiB if there is no limit.
    #[schemars(with = "usize", range(min = defaults::MEMORY_RANGE.0, max = defaults::MEMORY_RANGE.1))]
    memory_max: Option<Spanned<i64>>,
}

impl ServiceTable {
    pub(super) fn checked(self) -> Result<ServiceConfig, ConfigProblem> {
        let defaults = ServiceConfig::default();
        let total = self.max_total_timeout.map_or(defaults.max_total_timeout, |found| found.0);
        let request_timeout = match self.request_timeout {
            Some(silence) if silence.get_ref().0 > total => {
                let message = "`request_timeout` is longer than `max_total_timeout`";
                return Err(ConfigProblem::at(silence.span(), message)
                    .help("lower it, or raise `max_total_timeout`: no request may take longer"));
            }
            Some(silence) => silence.into_inner().0,
            // A short `max_total_timeout` shortens the default of `request_timeout`.
            None => defaults.request_timeout.min(total),
        };
        let (least, most) = defaults::MEMORY_RANGE;
        let memory_max = bounded_number("memory_max", self.memory_max.as_ref(), (least, most))
            .map_err(|problem| problem.help(format!("use {least} to {most}, a number of bytes")))?;
        Ok(ServiceConfig {
            request_timeout,
            max_total_timeout: total,
            shutdown_timeout: self
                .shutdown_timeout
                .map_or(defaults.shutdown_timeout, |found| found.0),
            progress_beat: self.progress_beat.map_or(defaults.progress_beat, |found| found.0),
            idle_exit: self.idle_exit.map(|found| found.0),
            log_level: self.log_level.map_or(defaults.log_level, |found| found.0),
            memory_max,
        })
    }
}
