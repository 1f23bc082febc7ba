//! The time that an idle connection is kept: `servers.NAME.lifecycle`.

use std::{fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use toml::Spanned;

use super::{StartPolicy, diagnostic::ConfigProblem, duration::AnyDuration, keyword::NamedValue};

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
pub(super) struct LifecycleValue(LifecycleTable);

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum LifecycleMode {
    /// For ever, or for `idle_timeout`.
    KeepAlive,
    /// Until its last answer.
    Ephemeral,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LifecycleTable {
    /// The kind of lifecycle.
    #[schemars(with = "LifecycleMode")]
    mode: NamedValue<LifecycleMode>,
    /// The time after which an idle `keep-alive` connection is closed; without it, never.
    #[schemars(with = "Option<AnyDuration>")]
    idle_timeout: Option<AnyDuration>,
}

impl<'de> Deserialize<'de> for LifecycleValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LifecycleVisitor;

        impl<'de> Visitor<'de> for LifecycleVisitor {
            type Value = LifecycleValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<LifecycleValue, E> {
                let mode = LifecycleMode::deserialize(de::value::StrDeserializer::new(name))?;
                Ok(LifecycleValue(LifecycleTable { mode: NamedValue(mode), idle_timeout: None }))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<LifecycleValue, A::Error> {
                let table = de::value::MapAccessDeserializer::new(map);
                LifecycleTable::deserialize(table).map(LifecycleValue)
            }
        }

        deserializer.deserialize_any(LifecycleVisitor)
    }
}

pub(super) fn schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [LifecycleMode::json_schema(generator), LifecycleTable::json_schema(generator)],
    })
}

/// Returns the lifecycle of a server with this start policy.
pub(super) fn of(
    found: Option<Spanned<LifecycleValue>>,
    start: StartPolicy,
) -> Result<LifecycleConfig, ConfigProblem> {
    let is_lazy = start == StartPolicy::Lazy;
    let Some(found) = found else {
        // A server that is connected before the first request is meant to stay connected.
        return Ok(match is_lazy {
            true => LifecycleConfig::Pooled,
            false => LifecycleConfig::KeepAlive { idle_timeout: None },
        });
    };
    let problem = |message: &str| ConfigProblem::at(found.span(), message);
    let LifecycleTable { mode, idle_timeout } = &found.get_ref().0;
    match (mode.0, idle_timeout.as_ref().map(|found| found.0)) {
        (LifecycleMode::KeepAlive, idle_timeout) => Ok(LifecycleConfig::KeepAlive { idle_timeout }),
        (LifecycleMode::Ephemeral, Some(_)) => {
            Err(problem("`idle_timeout` has no effect on an ephemeral server")
                .help("remove it: metamcp closes the server after its last answer"))
        }
        (LifecycleMode::Ephemeral, None) if !is_lazy => {
            Err(problem("`lifecycle = \"ephemeral\"` contradicts `start`")
                .help("remove one: metamcp would close the server as soon as it is connected"))
        }
        (LifecycleMode::Ephemeral, None) => Ok(LifecycleConfig::Ephemeral),
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
    fn a_lifecycle_is_a_word_or_a_table() {
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
        `lifecycle = "ephemeral"` contradicts `start`
         --> c.toml:1:13
          |
        1 | lifecycle = "ephemeral"
          |             ^^^^^^^^^^^
          = help: remove one: metamcp would close the server as soon as it is connected
        "#);
        insta::assert_snapshot!(
            bad("lifecycle = { mode = \"ephemeral\", idle_timeout = \"1s\" }\n", StartPolicy::Lazy), @r#"
        `idle_timeout` has no effect on an ephemeral server
         --> c.toml:1:13
          |
        1 | lifecycle = { mode = "ephemeral", idle_timeout = "1s" }
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: remove it: metamcp closes the server after its last answer
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
