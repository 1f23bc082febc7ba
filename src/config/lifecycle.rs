//! The time that an idle connection is kept: `servers.NAME.lifecycle`.

use std::{fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use toml::Spanned;

use super::{
    StartPolicy, diagnostic::ConfigProblem, duration, keyword::NamedValue, schema::DurationSchema,
};

/// The expected type in serde's messages about another value.
pub(super) const EXPECTED: &str = "a lifecycle";

/// The help that shows how to write a lifecycle.
pub(super) const EXAMPLES: &str =
    "write \"keep-alive\", \"ephemeral\" or { mode = \"keep-alive\", idle_timeout = \"1h\" }";

/// The time that an idle connection is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LifecycleConfig {
    /// The time of `pool.idle_timeout`.
    #[default]
    Pooled,
    /// For ever, or for a time of its own.
    KeepAlive {
        /// The time; `None` is for ever.
        idle_timeout: Option<Duration>,
    },
    /// No time: the connection is closed after its last answer.
    Ephemeral,
}

/// [`LifecycleConfig`] as written in the file: a word, or a table with the word as `mode`.
pub(super) struct LifecycleValue {
    mode: Mode,
    idle_timeout: Option<Duration>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
enum Mode {
    /// For ever, or for `idle_timeout`.
    KeepAlive,
    /// Until its last answer.
    Ephemeral,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Table {
    /// The kind of lifecycle.
    #[schemars(with = "Mode")]
    mode: NamedValue<Mode>,
    /// The time after which an idle `keep-alive` connection is closed; without it, never.
    #[schemars(with = "DurationSchema")]
    #[serde(default, deserialize_with = "duration::deserialize_some")]
    idle_timeout: Option<Duration>,
}

impl JsonSchema for LifecycleValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Lifecycle".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (word, table) = (Mode::json_schema(generator), Table::json_schema(generator));
        json_schema!({ "anyOf": [word, table] })
    }
}

impl<'de> Deserialize<'de> for LifecycleValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Found;

        impl<'de> Visitor<'de> for Found {
            type Value = self::LifecycleValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<self::LifecycleValue, E> {
                let mode = Mode::deserialize(de::value::StrDeserializer::new(name))?;
                Ok(LifecycleValue { mode, idle_timeout: None })
            }

            fn visit_map<A: de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<self::LifecycleValue, A::Error> {
                let table = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(LifecycleValue { mode: table.mode.0, idle_timeout: table.idle_timeout })
            }
        }

        deserializer.deserialize_any(Found)
    }
}

/// Returns the lifecycle of a server with this start policy.
pub(super) fn of(
    found: Option<Spanned<LifecycleValue>>,
    start: StartPolicy,
) -> Result<LifecycleConfig, ConfigProblem> {
    let Some(found) = found else {
        // A server that is connected before the first request is meant to stay connected.
        return Ok(match start {
            StartPolicy::Lazy => LifecycleConfig::Pooled,
            StartPolicy::Eager | StartPolicy::Prewarm => {
                LifecycleConfig::KeepAlive { idle_timeout: None }
            }
        });
    };
    let problem = |message: &str| ConfigProblem::at(found.span(), message);
    match found.get_ref() {
        LifecycleValue { mode: Mode::KeepAlive, idle_timeout } => {
            Ok(LifecycleConfig::KeepAlive { idle_timeout: *idle_timeout })
        }
        LifecycleValue { mode: Mode::Ephemeral, idle_timeout: Some(_) } => {
            Err(problem("`idle_timeout` of an ephemeral server")
                .help("it is closed after its last answer: remove `idle_timeout`"))
        }
        LifecycleValue { mode: Mode::Ephemeral, idle_timeout: None }
            if start != StartPolicy::Lazy =>
        {
            Err(problem("`lifecycle = \"ephemeral\"` together with `start`")
                .help("it would be closed as soon as it is connected: remove one of them"))
        }
        LifecycleValue { mode: Mode::Ephemeral, idle_timeout: None } => {
            Ok(LifecycleConfig::Ephemeral)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[derive(Deserialize)]
    struct File {
        lifecycle: Option<Spanned<LifecycleValue>>,
    }

    fn parse(text: &str, start: StartPolicy) -> Result<LifecycleConfig, ConfigProblem> {
        let problem = |error: toml::de::Error| {
            ConfigProblem::at(error.span().unwrap_or_default(), error.message().to_owned())
        };
        of(toml::from_str::<File>(text).map_err(problem)?.lifecycle, start)
    }

    #[track_caller]
    fn bad(text: &str, start: StartPolicy) -> String {
        parse(text, start).expect_err("a mistake").locate(Path::new("c.toml"), text).to_string()
    }

    #[test]
    fn a_name_or_a_table_says_how_long() {
        let kept = |idle_timeout| LifecycleConfig::KeepAlive { idle_timeout };
        let hour = Some(Duration::from_secs(3600));
        for (text, start, expected) in [
            ("", StartPolicy::Lazy, LifecycleConfig::Pooled),
            ("", StartPolicy::Eager, kept(None)),
            ("", StartPolicy::Prewarm, kept(None)),
            ("lifecycle = \"keep-alive\"", StartPolicy::Lazy, kept(None)),
            ("lifecycle = \"ephemeral\"", StartPolicy::Lazy, LifecycleConfig::Ephemeral),
            ("lifecycle = { mode = \"keep-alive\" }", StartPolicy::Lazy, kept(None)),
            (
                "lifecycle = { mode = \"keep-alive\", idle_timeout = \"1h\" }",
                StartPolicy::Eager,
                kept(hour),
            ),
        ] {
            assert_eq!(parse(text, start).expect(text), expected, "{text}");
        }
    }

    #[test]
    fn a_meaningless_lifecycle_is_refused_with_the_remedy() {
        insta::assert_snapshot!(bad("lifecycle = \"ephemeral\"\n", StartPolicy::Eager), @r#"
        `lifecycle = "ephemeral"` together with `start`
         --> c.toml:1:13
          |
        1 | lifecycle = "ephemeral"
          |             ^^^^^^^^^^^
          = help: it would be closed as soon as it is connected: remove one of them
        "#);
        insta::assert_snapshot!(
            bad("lifecycle = { mode = \"ephemeral\", idle_timeout = \"1s\" }\n", StartPolicy::Lazy), @r#"
        `idle_timeout` of an ephemeral server
         --> c.toml:1:13
          |
        1 | lifecycle = { mode = "ephemeral", idle_timeout = "1s" }
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: it is closed after its last answer: remove `idle_timeout`
        "#
        );
        insta::assert_snapshot!(bad("lifecycle = \"forever\"\n", StartPolicy::Lazy), @r#"
        unknown variant `forever`, expected `keep-alive` or `ephemeral`
         --> c.toml:1:13
          |
        1 | lifecycle = "forever"
          |             ^^^^^^^^^
        "#);
        insta::assert_snapshot!(bad("lifecycle = 5\n", StartPolicy::Lazy), @r#"
        invalid type: integer `5`, expected a lifecycle
         --> c.toml:1:13
          |
        1 | lifecycle = 5
          |             ^
        "#);
        insta::assert_snapshot!(bad("lifecycle = { mode = \"keep-alive\", idle = \"1s\" }\n", StartPolicy::Lazy), @r#"
        unknown field `idle`, expected `mode` or `idle_timeout`
         --> c.toml:1:36
          |
        1 | lifecycle = { mode = "keep-alive", idle = "1s" }
          |                                    ^^^^
        "#);
    }
}
