//! The meta-tools of the view `meta`: `[tools]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{
    bounded_number::bounded_number, defaults, diagnostic::ConfigProblem, duration,
    keyword::NamedValue, schema::DebounceSchema,
};

/// The meta-tools of the view `meta`, and the bounds on their results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsConfig {
    /// The sets of meta-tools: at least one, each once.
    pub sets: Vec<ToolSet>,
    /// `true` if the definitions ask clients to keep them in view.
    pub always_load: bool,
    /// `true` if clients are notified when the tools behind the view have changed.
    pub list_changed: bool,
    /// The time that a notice to a client waits for more of the same, in every view.
    pub list_changed_debounce: Duration,
    /// The largest result that is returned whole, in bytes.
    pub result_bytes_max: usize,
    /// The largest number of steps in a chain.
    pub max_steps: usize,
}

/// A set of meta-tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolSet {
    /// `mcp_discover`, `mcp_provision`, `mcp_call`.
    Core,
    /// `search_tools`, `describe_tool`, `run_tool`, `run_chain` and their companions.
    Metatools,
}

impl ToolSet {
    /// Returns the word for the set in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Metatools => "metatools",
        }
    }
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            sets: vec![ToolSet::Core],
            always_load: true,
            list_changed: true,
            list_changed_debounce: defaults::LIST_CHANGED_DEBOUNCE,
            result_bytes_max: defaults::RESULT_BYTES_MAX,
            max_steps: defaults::CHAIN_STEPS_MAX,
        }
    }
}

/// [`ToolsConfig`] as written in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct ToolsTable {
    /// The meta-tools of the view `meta`.
    #[schemars(with = "Vec<ToolSet>", length(min = 1), extend("default" = ["core"], "uniqueItems" = true))]
    sets: Option<Spanned<Vec<Spanned<NamedValue<ToolSet>>>>>,
    /// If `true`, the meta-tools ask clients that search for tools themselves to keep them in view.
    #[schemars(with = "bool", extend("default" = true))]
    always_load: Option<bool>,
    /// If `true`, metamcp notifies clients of the view `meta` when the tools behind it change.
    #[schemars(with = "bool", extend("default" = true))]
    list_changed: Option<bool>,
    /// The time that a notice of a changed list or an updated resource waits for more of the same,
    /// in every view; at most a minute.
    #[schemars(with = "DebounceSchema", extend("default" = duration::text(defaults::LIST_CHANGED_DEBOUNCE)))]
    list_changed_debounce: Option<Spanned<String>>,
    /// The largest result that a meta-tool returns whole, in bytes; of a larger one, a preview.
    #[schemars(with = "usize", range(min = defaults::RESULT_BYTES_RANGE.0, max = defaults::RESULT_BYTES_RANGE.1), extend("default" = defaults::RESULT_BYTES_MAX))]
    result_bytes_max: Option<Spanned<usize>>,
    /// The largest number of steps in a chain.
    #[schemars(with = "usize", range(min = 1, max = defaults::CHAIN_STEPS_LIMIT), extend("default" = defaults::CHAIN_STEPS_MAX))]
    max_steps: Option<Spanned<usize>>,
}

impl ToolsTable {
    pub(super) fn checked(self) -> Result<ToolsConfig, ConfigProblem> {
        let defaults = ToolsConfig::default();
        let sets = self.sets.map(sets).transpose()?;
        let debounce = self.list_changed_debounce.map(debounce).transpose()?;
        let range = defaults::RESULT_BYTES_RANGE;
        let result_bytes_max =
            bounded_number("result_bytes_max", self.result_bytes_max.as_ref(), range)?;
        let range = (1, defaults::CHAIN_STEPS_LIMIT);
        let max_steps = bounded_number("max_steps", self.max_steps.as_ref(), range)?;
        Ok(ToolsConfig {
            sets: sets.unwrap_or(defaults.sets),
            always_load: self.always_load.unwrap_or(defaults.always_load),
            list_changed: self.list_changed.unwrap_or(defaults.list_changed),
            list_changed_debounce: debounce.unwrap_or(defaults.list_changed_debounce),
            result_bytes_max: result_bytes_max.unwrap_or(defaults.result_bytes_max),
            max_steps: max_steps.unwrap_or(defaults.max_steps),
        })
    }
}

fn sets(found: Spanned<Vec<Spanned<NamedValue<ToolSet>>>>) -> Result<Vec<ToolSet>, ConfigProblem> {
    let place = found.span();
    let mut sets = Vec::new();
    for set in found.into_inner() {
        let (place, set) = (set.span(), set.into_inner().0);
        if sets.contains(&set) {
            return Err(ConfigProblem::at(place, format!("`{}` is listed twice", set.name()))
                .help("remove one of the two"));
        }
        sets.push(set);
    }
    if sets.is_empty() {
        return Err(ConfigProblem::at(place, "`sets` is empty")
            .help("write \"core\", \"metatools\" or both, or leave the key out for its default"));
    }
    Ok(sets)
}

fn debounce(found: Spanned<String>) -> Result<Duration, ConfigProblem> {
    let message = match duration::parse(found.get_ref()) {
        Ok(window) if window <= defaults::LIST_CHANGED_DEBOUNCE_MAX => return Ok(window),
        Ok(_) => format!("`list_changed_debounce` is `{}`", found.get_ref()),
        Err(message) => message,
    };
    Err(ConfigProblem::at(found.span(), message)
        .help("use \"1ms\" to \"60s\", or `list_changed = false` to send no notices"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::{bad, good};

    #[test]
    fn every_key_of_the_tools_is_read() {
        assert_eq!(good("").tools, ToolsConfig::default());
        assert_eq!(good("[tools]\n").tools, ToolsConfig::default());
        let text = r#"
            [tools]
            sets = ["metatools", "core"]
            always_load = false
            list_changed = false
            list_changed_debounce = "1s"
            result_bytes_max = 4096
            max_steps = 64
        "#;
        let expected = ToolsConfig {
            sets: vec![ToolSet::Metatools, ToolSet::Core],
            always_load: false,
            list_changed: false,
            list_changed_debounce: Duration::from_secs(1),
            result_bytes_max: 4096,
            max_steps: 64,
        };
        assert_eq!(good(text).tools, expected);
    }

    #[test]
    // One snapshot for each mistake: a table, however long.
    fn a_meaningless_tools_setting_is_refused_with_the_remedy() {
        insta::assert_snapshot!(bad("[tools]\nsets = []\n"), @r#"
        `sets` is empty
         --> c.toml:2:8
          |
        2 | sets = []
          |        ^^
          = help: write "core", "metatools" or both, or leave the key out for its default
        "#);
        insta::assert_snapshot!(bad("[tools]\nsets = [\"core\", \"core\"]\n"), @r#"
        `core` is listed twice
         --> c.toml:2:17
          |
        2 | sets = ["core", "core"]
          |                 ^^^^^^
          = help: remove one of the two
        "#);
        insta::assert_snapshot!(bad("[tools]\nsets = [\"metatool\"]\n"), @r#"
        unknown value `metatool`
         --> c.toml:2:9
          |
        2 | sets = ["metatool"]
          |         ^^^^^^^^^^
          = help: did you mean `metatools`?
        "#);
        insta::assert_snapshot!(bad("[tools]\nlist_changed_debounce = \"0s\"\n"), @r#"
        `0s` is out of range, expected `1ms` to `24h`
         --> c.toml:2:25
          |
        2 | list_changed_debounce = "0s"
          |                         ^^^^
          = help: use "1ms" to "60s", or `list_changed = false` to send no notices
        "#);
        insta::assert_snapshot!(bad("[tools]\nlist_changed_debounce = \"2m\"\n"), @r#"
        `list_changed_debounce` is `2m`
         --> c.toml:2:25
          |
        2 | list_changed_debounce = "2m"
          |                         ^^^^
          = help: use "1ms" to "60s", or `list_changed = false` to send no notices
        "#);
        insta::assert_snapshot!(bad("[tools]\nlist_changed = \"no\"\n"), @r#"
        invalid type: string "no", expected a boolean
         --> c.toml:2:16
          |
        2 | list_changed = "no"
          |                ^^^^
          = help: write true or false, without quotes
        "#);
        insta::assert_snapshot!(bad("[tools]\nresult_bytes_max = 0\n"), @"
        `result_bytes_max` is 0
         --> c.toml:2:20
          |
        2 | result_bytes_max = 0
          |                    ^
          = help: use 1024 to 16777216
        ");
        insta::assert_snapshot!(bad("[tools]\nmax_steps = 65\n"), @"
        `max_steps` is 65
         --> c.toml:2:13
          |
        2 | max_steps = 65
          |             ^^
          = help: use 1 to 64
        ");
        for text in ["max_steps = 0", "result_bytes_max = 1023", "result_bytes_max = 16777217"] {
            assert!(bad(&format!("[tools]\n{text}\n")).contains("help: use "), "{text}");
        }
    }
}
