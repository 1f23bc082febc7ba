//! The calls that continue without their caller: `[tasks]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{
    defaults,
    duration::{BoundedDuration, LONGEST_MS, ms},
};

/// The settings of tasks, the calls that continue without their caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TasksConfig {
    /// The time that metamcp keeps an ended task with its result, at least a minute.
    #[serde(deserialize_with = "expiry", serialize_with = "Expiry::serialize")]
    #[schemars(with = "Expiry")]
    pub expiry: Duration,
}

type Expiry = BoundedDuration<{ ms(defaults::TASK_EXPIRY_MIN) }, LONGEST_MS>;

impl Default for TasksConfig {
    fn default() -> Self {
        Self { expiry: defaults::TASK_EXPIRY }
    }
}

fn expiry<'de, D: Deserializer<'de>>(found: D) -> Result<Duration, D::Error> {
    let help = "use \"1m\" to \"24h\", so that the caller has time to read the result";
    Expiry::read(found, help)
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
        2 | expire = "**"
          | ^^^^^^
          = help: did you mean `expiry`?
        "#);
    }
}
