//! The meta-tools of the view `meta`: `[tools]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    bounded_number::BoundedNumber,
    defaults,
    diagnostic::ConfigProblem,
    duration::{BoundedDuration, ms},
    key_places::KeyPlaces,
    keyword::NamedValue,
    refusal::Refusal,
};

/// The meta-tools of the view `meta`, and the bounds on their results.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// The meta-tools of the view `meta`.
    #[serde(deserialize_with = "sets")]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub sets: Vec<ToolSet>,
    /// If `true`, the meta-tools ask clients that search for tools themselves to keep them in view.
    pub always_load: bool,
    /// If `true`, metamcp notifies clients of the view `meta` when the tools behind it change.
    pub list_changed: bool,
    /// The time that a notice of a changed list or an updated resource waits for more of the same,
    /// in every view; at most a minute.
    #[serde(deserialize_with = "debounce", serialize_with = "Debounce::serialize")]
    #[schemars(with = "Debounce")]
    pub list_changed_debounce: Duration,
    /// The largest result that a meta-tool returns whole, in bytes; of a larger one, a preview.
    #[serde(with = "ResultBytesMax")]
    pub result_bytes_max: usize,
    /// The largest number of steps in a chain.
    #[serde(with = "BoundedNumber::<1, { defaults::CHAIN_STEPS_LIMIT }>")]
    pub max_steps: usize,
}

type Debounce = BoundedDuration<1, { ms(defaults::LIST_CHANGED_DEBOUNCE_MAX) }>;

type ResultBytesMax =
    BoundedNumber<{ defaults::RESULT_BYTES_RANGE.0 }, { defaults::RESULT_BYTES_RANGE.1 }>;

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

fn sets<'de, D: Deserializer<'de>>(found: D) -> Result<Vec<ToolSet>, D::Error> {
    let sets = Vec::<NamedValue<ToolSet>>::deserialize(found)?;
    Ok(sets.into_iter().map(|set| set.0).collect())
}

fn debounce<'de, D: Deserializer<'de>>(found: D) -> Result<Duration, D::Error> {
    Debounce::read(found, "use \"1ms\" to \"60s\", or `list_changed = false` to send no notices")
}

impl ToolsConfig {
    /// Checks that there are sets, and no set twice.
    pub(super) fn check(&self, places: &KeyPlaces<'_>) -> Result<(), ConfigProblem> {
        if self.sets.is_empty() {
            return Err(places.problem("tools.sets", "`sets` is empty").help(
                "write \"core\", \"metatools\" or both, or leave the key out for its default",
            ));
        }
        for (index, set) in self.sets.iter().enumerate() {
            if self.sets[..index].contains(set) {
                let message = format!("`{}` is listed twice", set.name());
                let refusal = Refusal::new(message, "remove one of the two");
                return Err(places.refused("tools.sets", &[index], refusal));
            }
        }
        Ok(())
    }
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
