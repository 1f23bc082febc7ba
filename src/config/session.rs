//! The meaning and lifetime of session ids: `listen.session` and the keys beside it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{
    SecretValue, ServerConfigs, SharingMode, diagnostic::ConfigProblem, key_places::KeyPlaces,
    refusal::Refusal,
};

/// The meaning and lifetime of the session ids of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// The ids that are required and accepted.
    pub mode: SessionMode,
    /// The credential that signs ids; `None` is metamcp's own key in the state directory.
    pub key: Option<String>,
    /// The time after which a session that has no stream and no request is forgotten.
    pub timeout: Duration,
}

/// The session ids that are required and accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// No id is required, and any id is accepted.
    Lenient,
    /// An id that metamcp issued is required, as in the specification.
    Strict,
    /// There are no sessions.
    Off,
}

impl SessionConfig {
    /// Checks that servers that need sessions have them, and that a key has an effect.
    pub(super) fn check(
        &self,
        servers: &ServerConfigs,
        places: &KeyPlaces<'_>,
    ) -> Result<(), ConfigProblem> {
        if self.mode != SessionMode::Off {
            return Ok(());
        }
        let needs_session = |sharing: SharingMode| matches!(sharing, SharingMode::Session { .. });
        if let Some((name, _)) = servers.iter().find(|(_, server)| needs_session(server.sharing)) {
            let message = format!("server `{name}` has a connection for each session");
            return Err(places
                .problem("listen.session", message)
                .help("set its `sharing` to \"exclusive\", or leave sessions on"));
        }
        if self.key.is_some() {
            let message = "`session_key` has no effect without sessions";
            return Err(places
                .problem("listen.session_key", message)
                .help("remove it, or leave sessions on: it signs their ids"));
        }
        Ok(())
    }
}

/// Reads the name of the credential in `listen.session_key`.
pub(super) fn key<'de, D: Deserializer<'de>>(found: D) -> Result<Option<String>, D::Error> {
    match SecretValue::checked(String::deserialize(found)?).map_err(D::Error::custom)? {
        SecretValue::Credential(name) => Ok(Some(name)),
        // Not shown: it may be the key.
        SecretValue::Literal(_) | SecretValue::Env(_) => Err(D::Error::custom(Refusal::new(
            "`session_key` is not a credential",
            "write \"credential:NAME\", or remove it: metamcp then creates a key",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::{bad, good};

    #[test]
    fn sessions_are_lenient_unless_the_file_sets_another_mode() {
        let rules = |text: &str| good(&format!("[listen]\n{text}\n")).listen.session();
        assert_eq!(rules(""), SessionConfig::default());
        assert_eq!(rules("").timeout, Duration::from_secs(30 * 60));
        for (word, mode) in [
            ("lenient", SessionMode::Lenient),
            ("strict", SessionMode::Strict),
            ("off", SessionMode::Off),
        ] {
            assert_eq!(rules(&format!("session = {word:?}")).mode, mode);
        }
        let keyed = rules("session_key = \"credential:k\"\nsession_timeout = \"2h\"");
        assert_eq!(keyed.key, Some("k".into()));
        assert_eq!(keyed.timeout, Duration::from_secs(7200));
    }

    #[test]
    fn a_meaningless_session_setting_is_refused_with_the_remedy() {
        insta::assert_snapshot!(bad("[listen]\nsession = \"of\"\n"), @r#"
        unknown value `of`
         --> c.toml:2:11
          |
        2 | session = "of"
          |           ^^^^
          = help: did you mean `off`?
        "#);
        insta::assert_snapshot!(bad("[listen]\nsession = \"off\"\n[servers.a]\ncommand = \"x\"\nsharing = \"session\"\n"), @r#"
        server `a` has a connection for each session
         --> c.toml:2:11
          |
        2 | session = "off"
          |           ^^^^^
          = help: set its `sharing` to "exclusive", or leave sessions on
        "#);
        insta::assert_snapshot!(bad("[listen]\nsession = \"off\"\nsession_key = \"credential:k\"\n"), @r#"
        `session_key` has no effect without sessions
         --> c.toml:3:15
          |
        3 | session_key = "************"
          |               ^^^^^^^^^^^^^^
          = help: remove it, or leave sessions on: it signs their ids
        "#);
        insta::assert_snapshot!(bad("[listen]\nsession_key = \"credential:../k\"\n"), @r#"
        the text after `credential:` is not a credential name
         --> c.toml:2:15
          |
        2 | session_key = "***************"
          |               ^^^^^^^^^^^^^^^^^
          = help: write the plain name of a file, as in "credential:NAME"
        "#);
        insta::assert_snapshot!(bad("[listen]\nsession_timeout = \"0s\"\n"), @r#"
        `0s` is out of range, expected `1ms` to `24h`
         --> c.toml:2:19
          |
        2 | session_timeout = "0s"
          |                   ^^^^
          = help: write another duration, or leave the key out for its default
        "#);
    }

    #[test]
    fn a_key_in_the_file_is_refused_and_not_shown() {
        let shown = bad("[listen]\nsession_key = \"0123456789abcdef0123456789abcdef\"\n");
        assert!(shown.contains("`session_key` is not a credential"), "{shown}");
        assert!(!shown.contains("0123456789"), "{shown}");
    }
}
