//! A server's description of itself, as clients of either era see it.

use serde_json::{Map, Value, json};

use super::{
    Era, client_meta,
    payloads::{ServerProfile, ServerProfileError, leave_out_notices},
    task::{self, TaskCapability},
    version,
};

/// The members that only a `server/discover` result has, and not one of `initialize`.
const MODERN_ONLY: [&str; 4] = ["resultType", "ttlMs", "cacheScope", "supportedVersions"];

impl ServerProfile {
    /// Reads the result of `server/discover`, given as JSON text.
    ///
    /// # Errors
    ///
    /// [`ServerProfileError`] if it is invalid, or names no modern version that metamcp speaks.
    pub fn discovered(result: &str) -> Result<Self, ServerProfileError> {
        let result: Map<String, Value> =
            serde_json::from_str(result).map_err(|_| ServerProfileError::NoVersions)?;
        let Some(Value::Array(versions)) = result.get("supportedVersions") else {
            return Err(ServerProfileError::NoVersions);
        };
        if !versions.iter().any(|found| found == version::MODERN) {
            let named = versions.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
            return Err(ServerProfileError::Version(named));
        }
        Ok(Self { protocol_version: version::MODERN.to_owned(), result })
    }

    /// Returns the server's name and version, if it states them.
    pub fn server_info(&self) -> Option<&Value> {
        let meta = || self.result.get("_meta")?.get(client_meta::SERVER_INFO);
        self.result.get("serverInfo").or_else(meta)
    }

    /// Returns whether calls of the server's tools can be tasks.
    pub fn has_tasks(&self) -> bool {
        let Some(capabilities) = self.result.get("capabilities") else { return false };
        match self.era() {
            Era::Legacy => capabilities["tasks"]["requests"]["tools"]["call"].is_object(),
            Era::Modern => capabilities["extensions"][client_meta::TASKS].is_object(),
        }
    }

    /// Returns the `initialize` result for a client that asked for version `requested`.
    ///
    /// If the connection is not standing, nothing can notify the client. Change notices,
    /// subscriptions and log levels are then not declared: a false declaration would be worse than
    /// none. `offer` selects which of the server's task capabilities are declared.
    pub fn for_client(
        &self,
        requested: Option<&str>,
        is_standing: bool,
        offer: TaskCapability,
    ) -> Value {
        let mut result = match self.era() {
            Era::Legacy => self.result.clone(),
            Era::Modern => self.as_initialized(),
        };
        result.insert("protocolVersion".into(), version::negotiate(requested).into());
        if let Some(capabilities) = result.get_mut("capabilities") {
            task::narrow(capabilities, offer);
            if !is_standing {
                leave_out_notices(capabilities);
            }
        }
        Value::Object(result)
    }

    /// Returns the result of `server/discover` for a client of the modern era, which may use any
    /// version that metamcp serves. `is_standing` and `offer` work as in
    /// [`ServerProfile::for_client`].
    pub fn for_modern_client(&self, is_standing: bool, offer: TaskCapability) -> Value {
        let mut result = self.result.clone();
        let mut meta = match result.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        if let Some(info) = self.server_info() {
            meta.insert(client_meta::SERVER_INFO.to_owned(), info.clone());
        }
        result.remove("protocolVersion");
        result.remove("serverInfo");
        result.insert("resultType".to_owned(), "complete".into());
        result.insert("supportedVersions".to_owned(), json!(version::SERVED));
        // A legacy server may describe itself differently on its next connection.
        result.entry("ttlMs").or_insert_with(|| 0.into());
        result.entry("cacheScope").or_insert_with(|| "private".into());
        if !meta.is_empty() {
            result.insert("_meta".to_owned(), meta.into());
        }
        let capabilities = result.entry("capabilities").or_insert_with(|| json!({}));
        if self.era() == Era::Legacy {
            let has_tasks = self.has_tasks();
            task::narrow(capabilities, TaskCapability::Nothing);
            if has_tasks && let Value::Object(capabilities) = capabilities {
                let extensions = capabilities.entry("extensions").or_insert_with(|| json!({}));
                if let Value::Object(extensions) = extensions {
                    extensions.insert(client_meta::TASKS.to_owned(), json!({}));
                }
            }
        }
        task::narrow(capabilities, offer);
        if !is_standing {
            leave_out_notices(capabilities);
        }
        Value::Object(result)
    }

    /// Converts the result of `server/discover` to one of `initialize`, except for the version.
    pub(super) fn as_initialized(&self) -> Map<String, Value> {
        let mut result = self.result.clone();
        for member in MODERN_ONLY {
            result.remove(member);
        }
        // Clients need a name to display.
        let info = self.server_info().cloned();
        let info = info.unwrap_or_else(|| json!({ "name": "unknown", "version": "unknown" }));
        result.insert("serverInfo".to_owned(), info);
        let capabilities = result.entry("capabilities").or_insert_with(|| json!({}));
        task::narrow(capabilities, TaskCapability::Nothing);
        if self.has_tasks() {
            // `list` is not declared: the extension has no request to list tasks.
            capabilities["tasks"] =
                json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        }
        if let Some(Value::Object(meta)) = result.get_mut("_meta") {
            meta.remove(client_meta::SERVER_INFO);
            if meta.is_empty() {
                result.remove("_meta");
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_offered_only_the_capabilities_that_metamcp_carries() {
        let profile = ServerProfile::read(
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"completions":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"i","future":1}"#,
        )
        .expect("a profile");

        assert_eq!(
            profile.for_client(Some("2025-06-18"), false, TaskCapability::ById),
            json!({"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"completions":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"i","future":1})
        );
        let standing = profile.for_client(None, true, TaskCapability::ById);
        assert_eq!(standing["capabilities"], profile.result["capabilities"]);
        assert!(profile.has("tools") && !profile.has("prompts"));
    }

    fn discovered() -> ServerProfile {
        ServerProfile::discovered(
            r#"{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true}},"instructions":"i","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"future":1}"#,
        )
        .expect("a profile")
    }

    #[test]
    fn a_legacy_client_sees_a_modern_server_as_a_legacy_one() {
        let profile = discovered();
        assert_eq!(profile.era(), Era::Modern);
        assert_eq!(
            profile.for_client(Some("2025-06-18"), true, TaskCapability::ById),
            json!({"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"},"instructions":"i","future":1})
        );
        let bare =
            ServerProfile::discovered(r#"{"supportedVersions":["2026-07-28"]}"#).expect("one");
        let seen = bare.for_client(None, false, TaskCapability::ById);
        assert_eq!(seen["serverInfo"]["name"], "unknown");
        assert_eq!(seen["capabilities"], json!({}));
    }

    #[test]
    fn a_modern_client_sees_a_legacy_server_as_a_modern_one() {
        let legacy = ServerProfile::read(
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"},"instructions":"i"}"#,
        )
        .expect("a profile");
        assert_eq!(
            legacy.for_modern_client(false, TaskCapability::ById),
            json!({"resultType":"complete","supportedVersions":version::SERVED,"capabilities":{"tools":{}},"instructions":"i","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}})
        );
        let modern = discovered().for_modern_client(true, TaskCapability::ById);
        assert_eq!((&modern["ttlMs"], &modern["future"]), (&json!(5), &json!(1)));
        assert_eq!(modern["_meta"][client_meta::SERVER_INFO]["name"], "s");
        assert_eq!(modern["capabilities"]["tools"]["listChanged"], true);
    }

    #[test]
    fn tasks_are_declared_in_the_form_of_the_clients_era_as_far_as_they_are_offered() {
        let other = || json!({ "com.example/x": { "a": 1 } });
        let calls = json!({ "tools": { "call": {} } });
        let legacy = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "extensions": other(),
                "tasks": { "list": {}, "cancel": {}, "requests": calls },
            },
        });
        let legacy = ServerProfile::read(&legacy.to_string()).expect("a profile");
        let mut extensions = other();
        extensions[client_meta::TASKS] = json!({});
        let modern = json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "extensions": extensions },
        });
        let modern = ServerProfile::discovered(&modern.to_string()).expect("a profile");
        let seen = |profile: &ServerProfile, offer| {
            let to_legacy = &profile.for_client(None, true, offer)["capabilities"];
            let to_modern = &profile.for_modern_client(true, offer)["capabilities"];
            assert_eq!(to_modern["tasks"], Value::Null);
            (to_legacy.clone(), to_modern["extensions"].clone())
        };
        let all = json!({ "list": {}, "cancel": {}, "requests": calls });
        let by_id = json!({ "cancel": {}, "requests": calls });
        for (profile, offer, tasks) in [
            (&legacy, TaskCapability::All, all),
            (&legacy, TaskCapability::ById, by_id.clone()),
            (&modern, TaskCapability::ById, by_id),
        ] {
            let expected = json!({ "extensions": other(), "tasks": tasks });
            assert_eq!(seen(profile, offer), (expected, extensions.clone()), "{offer:?}");
        }
        for profile in [legacy, modern] {
            let expected = json!({ "extensions": other() });
            assert_eq!(seen(&profile, TaskCapability::Nothing), (expected, other()));
        }
    }

    #[test]
    fn task_capabilities_without_tool_calls_count_as_none() {
        for capabilities in [
            json!({ "tasks": {} }),
            json!({ "tasks": 7, "extensions": 7 }),
            json!({ "tasks": { "requests": { "tools": [] } } }),
            json!(7),
        ] {
            let legacy = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities });
            let legacy = ServerProfile::read(&legacy.to_string()).expect("a profile");
            assert!(!legacy.has_tasks(), "{capabilities}");
            let seen = legacy.for_modern_client(true, TaskCapability::ById)["capabilities"].clone();
            assert_eq!(seen["tasks"], Value::Null, "{seen}");
        }
    }

    #[test]
    fn a_discovered_server_without_the_modern_version_is_refused() {
        for (result, error) in [
            ("{}", ServerProfileError::NoVersions),
            ("[]", ServerProfileError::NoVersions),
            (r#"{"supportedVersions":"2026-07-28"}"#, ServerProfileError::NoVersions),
            (
                r#"{"supportedVersions":["2027-01-01",7]}"#,
                ServerProfileError::Version("2027-01-01".into()),
            ),
        ] {
            assert_eq!(ServerProfile::discovered(result), Err(error), "{result}");
        }
    }
}
