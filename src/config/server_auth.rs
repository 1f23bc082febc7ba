//! The login at one server: `servers.NAME.auth`.

use std::fmt;

use hyper::Uri;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Visitor},
};

use super::{
    SecretReference, defaults, keyword::NamedValue, refusal::Refusal, secret, secret_reference, url,
};

/// The expected type in serde's messages about another value.
pub(super) const EXPECTED: &str = "a login";

/// The help that shows how to write a login.
pub(super) const EXAMPLES: &str = "write \"auto\", \"none\" or { client_id = \"ID\", client_secret = \"credential:NAME\", scopes = [\"SCOPE\"] }";

/// The login at one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ServerAuth {
    /// With OAuth, if the server asks for it and `headers` has no `Authorization`.
    #[default]
    Auto,
    /// None.
    None,
    /// With OAuth, by these settings.
    OAuth(OAuthConfig),
}

/// The settings of OAuth for one server.
#[derive(Clone, Debug, PartialEq)]
pub struct OAuthConfig {
    /// The id of metamcp at the authorization server, if an operator has registered it.
    pub client_id: Option<String>,
    /// The secret that belongs to `client_id`.
    pub client_secret: Option<SecretReference>,
    /// The scopes to request; empty: those that the server asks for.
    pub scopes: Vec<String>,
    /// The URL of a document that describes metamcp, which is then its id.
    pub client_metadata_url: Option<Uri>,
    /// If `true`, requests for tokens name the server that they are for (RFC 8707).
    pub sends_resource: bool,
    /// The grant by which metamcp gets tokens.
    pub grant: OAuthGrant,
}

impl Default for OAuthConfig {
    fn default() -> Self {
        Self {
            client_id: None,
            client_secret: None,
            scopes: Vec::new(),
            client_metadata_url: None,
            sends_resource: true,
            grant: OAuthGrant::AuthorizationCode,
        }
    }
}

/// The grant by which metamcp gets tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OAuthGrant {
    /// A person logs in with a browser.
    #[default]
    AuthorizationCode,
    /// metamcp logs in by itself, with `client_id` and `client_secret`.
    ClientCredentials,
}

/// The login as a word.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AuthMode {
    /// With OAuth, if the server asks for it and `headers` has no `Authorization`.
    Auto,
    /// No login, even if the server asks for one.
    None,
}

/// [`OAuthConfig`] as written in the file, because some keys need others.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend(
    "dependentRequired" = { "client_secret": ["client_id"] },
    "not" = { "required": ["client_id", "client_metadata_url"] },
    "if" = { "required": ["grant"], "properties": { "grant": { "const": "client_credentials" } } },
    "then" = { "required": ["client_secret"] }
))]
pub(super) struct OAuthTable {
    /// The id of metamcp at the authorization server. Without it, metamcp registers itself.
    #[schemars(with = "String", length(min = 1))]
    client_id: Option<String>,
    /// `credential:NAME` or `env:NAME` with the secret that belongs to `client_id`.
    #[schemars(with = "String", title = secret::REFERENCE, regex(pattern = secret_reference::PATTERN))]
    client_secret: Option<SecretReference>,
    /// The scopes to request. Without them, those that the server asks for.
    #[schemars(length(max = defaults::SCOPES_MAX), extend("items" = { "title": "scope", "type": "string", "pattern": "^(?:[!#-Z^-~]|\\[|\\])+$" }))]
    scopes: Vec<String>,
    /// The https URL of a document that describes metamcp, which `metamcp auth NAME --document`
    /// prints. It takes the place of a registration where the authorization server supports it.
    #[serde(deserialize_with = "metadata_url")]
    #[schemars(
        with = "String",
        title = "URL that starts with https://",
        regex(pattern = "^https://.+/.+")
    )]
    client_metadata_url: Option<Uri>,
    /// If `true`, requests for tokens name the server that they are for. Some authorization servers
    /// refuse that.
    resource: bool,
    /// The grant by which metamcp gets tokens.
    #[serde(deserialize_with = "NamedValue::deserialize")]
    grant: OAuthGrant,
}

impl Default for OAuthTable {
    fn default() -> Self {
        let OAuthConfig {
            client_id,
            client_secret,
            scopes,
            client_metadata_url,
            sends_resource,
            grant,
        } = OAuthConfig::default();
        Self {
            client_id,
            client_secret,
            scopes,
            client_metadata_url,
            resource: sends_resource,
            grant,
        }
    }
}

/// The help that shows how to write the URL of a client's document.
const EXAMPLE: &str =
    "write it as `https://HOST/PATH`, the address at which the document is served";

fn metadata_url<'de, D: Deserializer<'de>>(found: D) -> Result<Option<Uri>, D::Error> {
    let text = String::deserialize(found)?;
    let url = url::parse_http(&text, EXAMPLE).map_err(de::Error::custom)?;
    // Source: the draft "OAuth Client ID Metadata Document", section 3.
    match url.scheme_str() == Some("https") && url.path().len() > 1 {
        true => Ok(Some(url)),
        false => {
            let message = format!("`{}` has no https and path", url::without_secrets(&text));
            Err(de::Error::custom(Refusal::new(message, EXAMPLE)))
        }
    }
}

/// Returns whether a text is one scope. Source: RFC 6749, section 3.3.
pub fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~'))
}

impl TryFrom<OAuthTable> for OAuthConfig {
    type Error = Refusal;

    fn try_from(table: OAuthTable) -> Result<Self, Refusal> {
        let OAuthTable { client_id, client_secret, scopes, client_metadata_url, resource, grant } =
            table;
        let refused = |message: &str, help: &str| Err(Refusal::new(message, help));
        if client_id.as_ref().is_some_and(String::is_empty) {
            return refused("`client_id` is empty", "remove it, and metamcp registers itself");
        }
        if client_secret.is_some() && client_id.is_none() {
            return refused(
                "`auth` has no `client_id`",
                "add the id that `client_secret` belongs to",
            );
        }
        if client_id.is_some() && client_metadata_url.is_some() {
            return refused(
                "`auth` has both `client_id` and `client_metadata_url`",
                "remove one of the two: each is the id of metamcp",
            );
        }
        if grant == OAuthGrant::ClientCredentials && client_secret.is_none() {
            return refused(
                "`auth` has no `client_secret`",
                "add `client_id` and `client_secret`, with which metamcp logs in by itself",
            );
        }
        if scopes.len() > defaults::SCOPES_MAX {
            let message = format!("`auth` has {} scopes", scopes.len());
            return refused(&message, &format!("use {} or less", defaults::SCOPES_MAX));
        }
        if let Some(scope) = scopes.iter().find(|scope| !is_scope(scope)) {
            let message = format!("`{}` is not a scope", scope.escape_debug());
            return refused(&message, "write each scope as a text of its own, without spaces");
        }
        Ok(Self {
            client_id,
            client_secret,
            scopes,
            client_metadata_url,
            sends_resource: resource,
            grant,
        })
    }
}

impl<'de> Deserialize<'de> for ServerAuth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AuthVisitor;

        impl<'de> Visitor<'de> for AuthVisitor {
            type Value = ServerAuth;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<ServerAuth, E> {
                let mode = AuthMode::deserialize(de::value::StrDeserializer::new(name))?;
                Ok(match mode {
                    AuthMode::Auto => ServerAuth::Auto,
                    AuthMode::None => ServerAuth::None,
                })
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<ServerAuth, A::Error> {
                let table = OAuthTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
                OAuthConfig::try_from(table).map(ServerAuth::OAuth).map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(AuthVisitor)
    }
}

pub(super) fn schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [AuthMode::json_schema(generator), OAuthTable::json_schema(generator)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        TransportConfig,
        load::tests::{bad, good},
    };

    fn server(auth: &str) -> String {
        format!("[servers.a]\nurl = \"https://h/mcp\"\nauth = {auth}\n")
    }

    fn read(auth: &str) -> ServerAuth {
        match &good(&server(auth)).servers["a"].transport {
            TransportConfig::Http(http) => http.auth.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_login_is_a_word_or_the_settings_of_oauth() {
        assert_eq!(read("\"auto\""), ServerAuth::Auto);
        assert_eq!(read("\"none\""), ServerAuth::None);
        assert_eq!(read("{}"), ServerAuth::OAuth(OAuthConfig::default()));
        let full = r#"{ client_id = "shop", client_secret = "credential:shop", scopes = ["a:r", "w"], resource = false, grant = "client_credentials" }"#;
        let ServerAuth::OAuth(oauth) = read(full) else { panic!("a table") };
        assert_eq!(oauth.client_id.as_deref(), Some("shop"));
        let secret = oauth.client_secret.as_ref().map(ToString::to_string);
        assert_eq!(secret.as_deref(), Some("credential:shop"));
        assert_eq!(oauth.scopes, ["a:r", "w"]);
        assert!(!oauth.sends_resource);
        assert_eq!(oauth.grant, OAuthGrant::ClientCredentials);
        let document = read("{ client_metadata_url = \"https://me.example/metamcp.json\" }");
        let ServerAuth::OAuth(oauth) = document else { panic!("a table") };
        assert_eq!(oauth.client_metadata_url.expect("a URL"), "https://me.example/metamcp.json");
    }

    #[test]
    fn a_client_secret_is_a_reference_and_a_literal_is_not_shown() {
        for secret in ["hunter2", "env:", "credential:../x"] {
            let shown =
                bad(&server(&format!("{{ client_id = \"a\", client_secret = {secret:?} }}")));
            assert!(!shown.contains("hunter2") && shown.contains("= help: "), "{shown}");
        }
        let text = "[servers.a]\nurl = \"https://h/\"\n[servers.a.auth]\nclient_id = \"a\"\nclient_secret = \"hunter2\"\n";
        insta::assert_snapshot!(bad(text), @r#"
        `client_secret` is not a reference
         --> c.toml:5:17
          |
        5 | client_secret = "*******"
          |                 ^^^^^^^^^
          = help: write "credential:NAME" or "env:NAME", because other users may read the file
        "#);
    }

    #[test]
    fn a_setting_of_oauth_that_cannot_work_is_refused_with_the_remedy() {
        insta::assert_snapshot!(bad(&server("\"oauth\"")), @r#"
        unknown value `oauth`
         --> c.toml:3:8
          |
        3 | auth = "oauth"
          |        ^^^^^^^
          = help: known here: auto, none
        "#);
        insta::assert_snapshot!(bad(&server("5")), @r#"
        invalid type: integer `5`, expected a login
         --> c.toml:3:8
          |
        3 | auth = 5
          |        ^
          = help: write "auto", "none" or { client_id = "ID", client_secret = "credential:NAME", scopes = ["SCOPE"] }
        "#);
        insta::assert_snapshot!(bad(&server("{ client_id = \"\" }")), @r#"
        `client_id` is empty
         --> c.toml:3:8
          |
        3 | auth = { client_id = "" }
          |        ^^^^^^^^^^^^^^^^^^
          = help: remove it, and metamcp registers itself
        "#);
        insta::assert_snapshot!(bad(&server("{ client_secret = \"env:A\" }")), @r#"
        `auth` has no `client_id`
         --> c.toml:3:8
          |
        3 | auth = { client_secret = "*****" }
          |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: add the id that `client_secret` belongs to
        "#);
        insta::assert_snapshot!(bad(&server("{ client_id = \"a\", client_metadata_url = \"https://h/x\" }")), @r#"
        `auth` has both `client_id` and `client_metadata_url`
         --> c.toml:3:8
          |
        3 | auth = { client_id = "a", client_metadata_url = "https://h/x" }
          |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: remove one of the two: each is the id of metamcp
        "#);
        insta::assert_snapshot!(bad(&server("{ grant = \"client_credentials\" }")), @r#"
        `auth` has no `client_secret`
         --> c.toml:3:8
          |
        3 | auth = { grant = "client_credentials" }
          |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: add `client_id` and `client_secret`, with which metamcp logs in by itself
        "#);
        insta::assert_snapshot!(bad(&server("{ grant = \"password\" }")), @r#"
        unknown value `password`
         --> c.toml:3:18
          |
        3 | auth = { grant = "password" }
          |                  ^^^^^^^^^^
          = help: known here: authorization_code, client_credentials
        "#);
        insta::assert_snapshot!(bad(&server("{ scopes = [\"a b\"] }")), @r#"
        `a b` is not a scope
         --> c.toml:3:8
          |
        3 | auth = { scopes = ["a b"] }
          |        ^^^^^^^^^^^^^^^^^^^^
          = help: write each scope as a text of its own, without spaces
        "#);
        insta::assert_snapshot!(bad(&server("{ client_metadata_url = \"https://h\" }")), @r#"
        `https://h` has no https and path
         --> c.toml:3:32
          |
        3 | auth = { client_metadata_url = "https://h" }
          |                                ^^^^^^^^^^^
          = help: write it as `https://HOST/PATH`, the address at which the document is served
        "#);
        insta::assert_snapshot!(bad(&server("{ clientId = \"a\" }")), @r#"
        unknown key `clientId`
         --> c.toml:3:10
          |
        3 | auth = { clientId = "*" }
          |          ^^^^^^^^
          = help: did you mean `client_id`?
        "#);
        let many = vec!["a"; defaults::SCOPES_MAX + 1];
        assert!(bad(&server(&format!("{{ scopes = {many:?} }}"))).contains("`auth` has 65 scopes"));
    }
}
