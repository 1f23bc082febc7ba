//! The scripts that metamcp runs for clients: `[execute]`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, value::StrDeserializer},
};

use super::{
    bounded_number::BoundedNumber,
    defaults,
    duration::{BoundedDuration, ms},
    keyword::NamedValue,
    refusal::Refusal,
};

/// The scripts that metamcp runs for clients, and their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExecuteConfig {
    /// If `true`, clients may have metamcp run scripts. metamcp offers this only where it can
    /// isolate them.
    #[serde(rename = "enabled")]
    pub is_enabled: bool,
    /// The process in which a script runs.
    #[serde(deserialize_with = "profile")]
    pub profile: ExecuteProfile,
    /// The largest script, in bytes.
    #[serde(with = "CodeBytesMax")]
    pub code_bytes_max: usize,
    /// The longest time that a script may take, with the calls that it makes. A caller may set a
    /// shorter one.
    #[serde(deserialize_with = "timeout", serialize_with = "Timeout::serialize")]
    #[schemars(with = "Timeout")]
    pub timeout: Duration,
    /// The longest pause of a script in one `sleep`.
    #[serde(deserialize_with = "sleep_max", serialize_with = "SleepMax::serialize")]
    #[schemars(with = "SleepMax")]
    pub sleep_max: Duration,
    /// The largest output of a script, in bytes: the returned value and the text of its console.
    #[serde(with = "OutputBytesMax")]
    pub output_bytes_max: usize,
    /// The largest number of tool calls in one script, unless its caller asks for another one, up to
    /// 1,000.
    #[serde(with = "BoundedNumber::<1, { defaults::EXECUTE_CALLS_MAX }>")]
    pub max_tool_calls: usize,
    /// The largest number of tool calls that one script makes at the same time.
    #[serde(with = "BoundedNumber::<1, { defaults::EXECUTE_PARALLEL_MAX }>")]
    pub max_parallel: usize,
    /// The largest memory of the engine that runs a script, in bytes.
    #[serde(with = "MemoryBytesMax")]
    pub memory_bytes_max: usize,
}

type CodeBytesMax = BoundedNumber<1, { defaults::EXECUTE_CODE_BYTES_MAX }>;

type Timeout =
    BoundedDuration<{ ms(defaults::EXECUTE_TIMEOUT_MIN) }, { ms(defaults::EXECUTE_TIMEOUT) }>;

type SleepMax = BoundedDuration<1, { ms(defaults::EXECUTE_SLEEP_MAX) }>;

type OutputBytesMax = BoundedNumber<1, { defaults::EXECUTE_OUTPUT_BYTES_MAX }>;

type MemoryBytesMax =
    BoundedNumber<{ defaults::EXECUTE_MEMORY_BYTES_MIN }, { defaults::EXECUTE_MEMORY_BYTES_MAX }>;

/// The process in which a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExecuteProfile {
    /// A process of its own, isolated from the host.
    Standard,
    /// The same process without isolation, only for debugging metamcp.
    Dev,
}

/// The profile that other products of this kind know, and this program does not contain.
const WASM: &str = "wasm";

/// An [`ExecuteProfile`] as written in the file, where [`WASM`] has its own remedy.
struct BuiltProfile(ExecuteProfile);

impl<'de> Deserialize<'de> for BuiltProfile {
    fn deserialize<D: Deserializer<'de>>(found: D) -> Result<Self, D::Error> {
        let word = String::deserialize(found)?;
        if word == WASM {
            let message = format!("profile `{WASM}` is not built into this metamcp");
            return Err(D::Error::custom(Refusal::new(message, "use \"standard\"")));
        }
        ExecuteProfile::deserialize(StrDeserializer::new(&word)).map(Self)
    }
}

impl Default for ExecuteConfig {
    fn default() -> Self {
        Self {
            is_enabled: true,
            profile: ExecuteProfile::Standard,
            code_bytes_max: defaults::EXECUTE_CODE_BYTES_MAX,
            timeout: defaults::EXECUTE_TIMEOUT,
            sleep_max: defaults::EXECUTE_SLEEP_MAX,
            output_bytes_max: defaults::EXECUTE_OUTPUT_BYTES_MAX,
            max_tool_calls: defaults::EXECUTE_CALLS,
            max_parallel: defaults::EXECUTE_PARALLEL_MAX,
            memory_bytes_max: defaults::EXECUTE_MEMORY_BYTES_MAX,
        }
    }
}

fn profile<'de, D: Deserializer<'de>>(found: D) -> Result<ExecuteProfile, D::Error> {
    NamedValue::<BuiltProfile>::deserialize(found).map(|found| found.0)
}

fn timeout<'de, D: Deserializer<'de>>(found: D) -> Result<Duration, D::Error> {
    Timeout::read(found, "use \"1s\" to \"120s\"")
}

fn sleep_max<'de, D: Deserializer<'de>>(found: D) -> Result<Duration, D::Error> {
    SleepMax::read(found, "use \"1ms\" to \"30s\"")
}

impl ExecuteConfig {
    /// Returns the warning for an operator if scripts run without isolation.
    pub fn warning(&self) -> Option<&'static str> {
        let is_unconfined = self.is_enabled && self.profile == ExecuteProfile::Dev;
        is_unconfined.then_some(
            "`execute.profile` is \"dev\": a script of a client runs without isolation and may do all that the service may do. Use \"dev\" only to debug metamcp, else \"standard\".",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::{bad, good};

    #[test]
    fn every_key_of_the_scripts_is_read() {
        assert_eq!(good("").execute, ExecuteConfig::default());
        assert_eq!(good("[execute]\n").execute, ExecuteConfig::default());
        let text = r#"
            [execute]
            enabled = false
            profile = "dev"
            code_bytes_max = 1
            timeout = "1s"
            sleep_max = "1ms"
            output_bytes_max = 1
            max_tool_calls = 1000
            max_parallel = 1
            memory_bytes_max = 8388608
        "#;
        let expected = ExecuteConfig {
            is_enabled: false,
            profile: ExecuteProfile::Dev,
            code_bytes_max: 1,
            timeout: Duration::from_secs(1),
            sleep_max: Duration::from_millis(1),
            output_bytes_max: 1,
            max_tool_calls: 1000,
            max_parallel: 1,
            memory_bytes_max: 8 << 20,
        };
        assert_eq!(good(text).execute, expected);
    }

    #[test]
    fn the_defaults_are_the_largest_limits_except_for_the_number_of_calls() {
        let text = r#"
            [execute]
            enabled = true
            profile = "standard"
            code_bytes_max = 51_200
            timeout = "120s"
            sleep_max = "30s"
            output_bytes_max = 10_485_760
            max_tool_calls = 64
            max_parallel = 16
            memory_bytes_max = 67_108_864
        "#;
        assert_eq!(good(text).execute, ExecuteConfig::default());
        for text in [
            "code_bytes_max = 0",
            "code_bytes_max = 51_201",
            "output_bytes_max = 0",
            "output_bytes_max = 10_485_761",
            "max_tool_calls = 0",
            "max_tool_calls = 1001",
            "max_parallel = 0",
            "max_parallel = 17",
            "memory_bytes_max = 8_388_607",
            "memory_bytes_max = 67_108_865",
            "timeout = \"999ms\"",
            "timeout = \"121s\"",
            "sleep_max = \"0s\"",
            "sleep_max = \"30001ms\"",
        ] {
            assert!(bad(&format!("[execute]\n{text}\n")).contains("help: use "), "{text}");
        }
    }

    #[test]
    // One snapshot for each mistake: a table, however long.
    fn a_meaningless_setting_of_the_scripts_is_refused_with_the_remedy() {
        insta::assert_snapshot!(bad("[execute]\nprofile = \"wasm\"\n"), @r#"
        profile `wasm` is not built into this metamcp
         --> c.toml:2:11
          |
        2 | profile = "wasm"
          |           ^^^^^^
          = help: use "standard"
        "#);
        insta::assert_snapshot!(bad("[execute]\nprofile = \"docker\"\n"), @r#"
        unknown value `docker`
         --> c.toml:2:11
          |
        2 | profile = "docker"
          |           ^^^^^^^^
          = help: known here: standard, dev
        "#);
        insta::assert_snapshot!(bad("[execute]\nprofile = 1\n"), @r#"
        invalid type: integer `1`, expected a word
         --> c.toml:2:11
          |
        2 | profile = 1
          |           ^
          = help: write one of these, in quotes: "standard", "dev"
        "#);
        insta::assert_snapshot!(bad("[execute]\nenabled = \"no\"\n"), @r#"
        invalid type: string "no", expected a boolean
         --> c.toml:2:11
          |
        2 | enabled = "no"
          |           ^^^^
          = help: write true or false, without quotes
        "#);
        insta::assert_snapshot!(bad("[execute]\ntimeout = \"3m\"\n"), @r#"
        `timeout` is `3m`
         --> c.toml:2:11
          |
        2 | timeout = "3m"
          |           ^^^^
          = help: use "1s" to "120s"
        "#);
        insta::assert_snapshot!(bad("[execute]\nsleep_max = \"1m\"\n"), @r#"
        `sleep_max` is `1m`
         --> c.toml:2:13
          |
        2 | sleep_max = "1m"
          |             ^^^^
          = help: use "1ms" to "30s"
        "#);
        insta::assert_snapshot!(bad("[execute]\nmemory_bytes_max = 1\n"), @"
        `memory_bytes_max` is 1
         --> c.toml:2:20
          |
        2 | memory_bytes_max = 1
          |                    ^
          = help: use 8388608 to 67108864
        ");
        insta::assert_snapshot!(bad("[execute]\ncode_max = 1\n"), @"
        unknown key `code_max`
         --> c.toml:2:1
          |
        2 | code_max = *
          | ^^^^^^^^
          = help: known here: enabled, profile, code_bytes_max, timeout, sleep_max, output_bytes_max, max_tool_calls, max_parallel, memory_bytes_max
        ");
    }

    #[test]
    fn only_scripts_without_isolation_cause_a_warning() {
        let warning = |text: &str| good(&format!("[execute]\n{text}\n")).execute.warning();
        let warned = warning("profile = \"dev\"").expect("a warning");
        assert!(warned.contains("without isolation"), "{warned}");
        assert_eq!(warning("profile = \"standard\""), None);
        assert_eq!(warning("profile = \"dev\"\nenabled = false"), None);
    }
}
