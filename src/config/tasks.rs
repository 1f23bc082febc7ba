//! The calls that continue without their caller: `[tasks]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{defaults, diagnostic::ConfigProblem, duration, schema::TaskExpiry};

/// The settings of tasks, the calls that continue without their caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TasksConfig {
    /// The time that an ended task is kept with its result: one minute to a day.
    pub expiry: Duration,
}

impl Default for TasksConfig {
    fn default() -> Self {
        Self { expiry: defaults::TASK_EXPIRY }
    }
}

/// [`TasksConfig`] as written in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct TasksTable {
    /// The time that metamcp keeps an ended task with its result, at least a minute.
    #[schemars(with = "TaskExpiry", extend("default" = duration::text(defaults::TASK_EXPIRY)))]
    expiry: Option<Spanned<String>>,
}

impl TasksTable {
    pub(super) fn checked(self) -> Result<TasksConfig, ConfigProblem> {
        Ok(TasksConfig { expiry: self.expiry.map_or(Ok(defaults::TASK_EXPIRY), expiry)? })
    }
}

fn expiry(found: Spanned<String>) -> Result<Duration, ConfigProblem> {
    let message = match duration::parse(found.get_ref()) {
        Ok(expiry) if expiry >= defaults::TASK_EXPIRY_MIN => return Ok(expiry),
        Ok(_) => format!("`expiry` is `{}`", found.get_ref()),
        Err(message) => message,
    };
    let help = "use \"1m\" to \"24h\", so that the caller has time to read the result";
    Err(ConfigProblem::at(found.span(), message).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::{bad, good};

    #[test]
    fn a_task_is_kept_for_an_hour_unless_the_file_sets_another_time() {
        let expiry = |text: &str| good(text).tasks.expiry;
        assert_eq!(expiry(""), Duration::from_secs(3600));
        assert_eq!(expiry("[tasks]\n"), Duration::from_secs(3600));
        assert_eq!(expiry("[tasks]\nexpiry = \"1m\"\n"), Duration::from_secs(60));
        assert_eq!(expiry("[tasks]\nexpiry = \"24h\"\n"), Duration::from_secs(86_400));
    }

    #[test]
    fn a_meaningless_task_setting_is_refused_with_the_remedy() {
        insta::assert_snapshot!(bad("[tasks]\nexpiry = \"59s\"\n"), @r#"
        `expiry` is `59s`
         --> c.toml:2:10
          |
        2 | expiry = "59s"
          |          ^^^^^
          = help: use "1m" to "24h", so that the caller has time to read the result
        "#);
        insta::assert_snapshot!(bad("[tasks]\nexpiry = \"0s\"\n"), @r#"
        `0s` is out of range, expected `1ms` to `24h`
         --> c.toml:2:10
          |
        2 | expiry = "0s"
          |          ^^^^
          = help: use "1m" to "24h", so that the caller has time to read the result
        "#);
        insta::assert_snapshot!(bad("[tasks]\nexpire = \"1h\"\n"), @r#"
        unknown key `expire`
         --> c.toml:2:1
          |
        2 | expire = "1h"
          | ^^^^^^
          = help: did you mean `expiry`?
        "#);
    }
}
