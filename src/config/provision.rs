//! The servers that may be added while the service runs: `[provision]`.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use hyper::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use toml::Spanned;

use super::{
    ServerConfig, ServerConfigs, defaults,
    diagnostic::ConfigProblem,
    duration::AnyDuration,
    key_places::KeyPlaces,
    refusal::{KEY, Refusal},
    server, server_schema,
    text_visitor::TextVisitor,
    url,
};
use crate::server_name::ServerName;

/// The servers that may be added while the service runs. A client cannot make the service run a
/// program that is declared neither here nor under `[servers]`.
///
/// `Servers` are the checked servers. In the file they are tables, which get defaults from other
/// sections.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProvisionConfig<Servers: Default = BTreeMap<ServerName, Arc<Provisionable>>> {
    /// If `true`, servers may be added on request.
    // An empty table permits it, an absent one does not.
    #[serde(rename = "enabled", default = "enabled")]
    pub is_enabled: bool,
    /// The confidence, from 0 to 1, that a server is the one that was meant. metamcp starts no
    /// server below it.
    #[serde(deserialize_with = "confidence")]
    #[schemars(range(min = 0, max = 1))]
    pub min_confidence: f64,
    /// The namespaces from which metamcp may start servers: one (`internal/github`), or all below
    /// one (`@modelcontextprotocol/*`).
    #[schemars(with = "Vec<String>", length(max = defaults::TRUSTED_MAX), extend("default" = [], "items" = { "title": "namespace, or all below one as in @modelcontextprotocol/*", "type": "string", "pattern": TRUST }))]
    pub trusted: Vec<TrustRule>,
    /// The servers that may be added, by name.
    #[schemars(schema_with = "server_schema::provisionable")]
    pub servers: Servers,
    /// A registry of MCP servers in which metamcp looks for others. It suggests them and never
    /// starts them. Without it, metamcp asks no registry.
    #[schemars(with = "RegistryTable")]
    pub registry: Option<RegistryConfig>,
}

/// `[provision]` as written in the file.
pub(super) type ProvisionTable = ProvisionConfig<BTreeMap<Spanned<String>, server::ServerTable>>;

impl<Servers: Default> Default for ProvisionConfig<Servers> {
    /// Returns the meaning of an absent table: nothing can be provisioned.
    fn default() -> Self {
        Self {
            is_enabled: false,
            min_confidence: defaults::PROVISION_CONFIDENCE_MIN,
            trusted: Vec::new(),
            servers: Servers::default(),
            registry: None,
        }
    }
}

fn enabled() -> bool {
    true
}

/// A server that may be added while the service runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Provisionable {
    /// The settings that every server has.
    pub server: Arc<ServerConfig>,
    /// The owner of the server. No rule trusts a server without one.
    pub namespace: Option<Namespace>,
    /// The purpose of the server.
    pub description: String,
    /// Further words by which the server is found.
    pub keywords: Vec<String>,
}

/// The owner of a server, as in `@modelcontextprotocol/server-git` or `internal/github`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(String);

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A rule that trusts servers by their namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustRule {
    /// All namespaces below a scope, `@scope/*`, without the star.
    Below(String),
    /// One namespace.
    Exactly(String),
}

impl TrustRule {
    /// Returns whether the rule trusts `namespace`. Case matters.
    pub fn covers(&self, namespace: &Namespace) -> bool {
        match self {
            Self::Below(scope) => {
                namespace.0.strip_prefix(scope.as_str()).is_some_and(|rest| !rest.is_empty())
            }
            Self::Exactly(one) => *one == namespace.0,
        }
    }
}

impl<'de> Deserialize<'de> for TrustRule {
    fn deserialize<D: Deserializer<'de>>(found: D) -> Result<Self, D::Error> {
        found.deserialize_str(TextVisitor { expected: "a string", parse: trust_rule })
    }
}

fn trust_rule(text: &str) -> Result<TrustRule, Refusal> {
    match text.strip_suffix("/*") {
        Some(scope) if is_namespace(scope) => Ok(TrustRule::Below(format!("{scope}/"))),
        None if is_namespace(text) => Ok(TrustRule::Exactly(text.to_owned())),
        Some(_) | None => {
            let message = format!("`{}` is not a trust rule", text.escape_debug());
            Err(Refusal::new(message, NAMESPACES))
        }
    }
}

/// A registry of MCP servers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RegistryTable")]
pub struct RegistryConfig {
    /// The part of its URL before `/v0/servers`.
    pub url: Uri,
    /// The time that its answers stay valid.
    pub ttl: Duration,
}

/// The pattern of a trust rule.
const TRUST: &str = "^@?[A-Za-z0-9_.-]+(/@?[A-Za-z0-9_.-]+)*(/\\*)?$";

/// [`RegistryConfig`] as written in the file, because a missing key has its own remedy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["url"]))]
struct RegistryTable {
    /// The part of its URL before `/v0/servers`.
    #[serde(deserialize_with = "registry_url")]
    #[schemars(with = "String", title = url::TITLE, regex(pattern = url::PATTERN))]
    url: Option<Uri>,
    /// The time that its answers stay valid.
    #[serde(with = "AnyDuration")]
    ttl: Duration,
}

impl Default for RegistryTable {
    fn default() -> Self {
        Self { url: None, ttl: defaults::REGISTRY_TTL }
    }
}

/// The name and settings of a server, or the mistake in them.
type Declared = Result<(ServerName, Arc<ServerConfig>), ConfigProblem>;

/// The help that shows how to write a trust rule.
const NAMESPACES: &str = "write a namespace, as in \"internal/github\", or all below one, as in \"@modelcontextprotocol/*\"";

/// The help that shows how to write the URL of a registry.
const EXAMPLE: &str = "write the part before `/v0/servers`, as in `https://HOST`";

impl ProvisionTable {
    /// Checks the table. `declare` checks the name and table of a server, and
    /// `declared` has the servers there.
    pub(super) fn checked(
        self,
        declare: impl Fn(&str, &Spanned<String>, server::ServerTable) -> Declared,
        declared: &ServerConfigs,
        places: &KeyPlaces<'_>,
    ) -> Result<ProvisionConfig, ConfigProblem> {
        let Self { is_enabled, min_confidence, trusted, registry, .. } = self;
        if trusted.len() > defaults::TRUSTED_MAX {
            let place = places.find("provision.trusted").unwrap_or_default();
            let (count, most) = (trusted.len(), defaults::TRUSTED_MAX);
            return Err(ConfigProblem::too_many(place, count, "namespaces are trusted", most));
        }
        if self.servers.len() > defaults::PROVISIONABLE_MAX
            && let Some((name, _)) = self.servers.iter().next_back()
        {
            let (n_servers, most) = (self.servers.len(), defaults::PROVISIONABLE_MAX);
            let things = "servers that may be provisioned";
            return Err(ConfigProblem::too_many(name.span(), n_servers, things, most));
        }
        let mut servers = BTreeMap::new();
        for (found, table) in self.servers {
            let (name, server) = provisionable(&found, table, &declare)?;
            if declared.contains_key(&name) {
                let message = format!("server `{name}` is declared under `[servers]` too");
                return Err(ConfigProblem::at(found.span(), message)
                    .help("rename it, or remove one of the two declarations"));
            }
            servers.insert(name, Arc::new(server));
        }
        Ok(ProvisionConfig { is_enabled, min_confidence, trusted, servers, registry })
    }
}

fn provisionable(
    name: &Spanned<String>,
    mut table: server::ServerTable,
    declare: impl Fn(&str, &Spanned<String>, server::ServerTable) -> Declared,
) -> Result<(ServerName, Provisionable), ConfigProblem> {
    if let Some(start) = table.eager_start_span() {
        return Err(ConfigProblem::at(start, "`start` has no effect under `[provision.servers]`")
            .help("remove it: metamcp connects the server when it provisions it"));
    }
    if let Some(enabled) = &table.enabled {
        let message = "`enabled` has no effect under `[provision.servers]`";
        return Err(ConfigProblem::at(enabled.span(), message)
            .help("remove it, or the declaration of a server that may not be provisioned"));
    }
    let namespace = table.namespace.take().map(namespace).transpose()?;
    let Some(found) = table.description.take() else {
        let message = format!("server `{}` has no `description`", name.get_ref().escape_debug());
        return Err(ConfigProblem::at(name.span(), message)
            .help("add `description = \"…\"` with its purpose, by which metamcp finds it"));
    };
    let description = text("description", found, defaults::DESCRIPTION_BYTES_MAX)?;
    let keywords = table.keywords.take().map(keywords).transpose()?.unwrap_or_default();
    let (name, server) = declare("provision.servers", name, table)?;
    Ok((name, Provisionable { server, namespace, description, keywords }))
}

fn keywords(found: Spanned<Vec<Spanned<String>>>) -> Result<Vec<String>, ConfigProblem> {
    let (count, most) = (found.get_ref().len(), defaults::KEYWORDS_MAX);
    if count > most {
        return Err(ConfigProblem::too_many(found.span(), count, "keywords", most));
    }
    let word = |word| text("keywords", word, defaults::NAMESPACE_BYTES_MAX);
    found.into_inner().into_iter().map(word).collect()
}

/// Checks that a text has a letter or digit, and at most `most` bytes.
fn text(key: &str, found: Spanned<String>, most: usize) -> Result<String, ConfigProblem> {
    let text = found.get_ref();
    if !text.chars().any(char::is_alphanumeric) {
        return Err(ConfigProblem::at(found.span(), format!("`{key}` has no letter and no digit"))
            .help("write words by which metamcp finds the server"));
    }
    if text.len() > most {
        let message = format!("`{key}` has a text of {} bytes", text.len());
        return Err(ConfigProblem::at(found.span(), message).help(format!("use {most} or less")));
    }
    Ok(found.into_inner())
}

fn namespace(found: Spanned<String>) -> Result<Namespace, ConfigProblem> {
    if is_namespace(found.get_ref()) {
        return Ok(Namespace(found.into_inner()));
    }
    let message = format!("`{}` is not a namespace", found.get_ref().escape_debug());
    Err(ConfigProblem::at(found.span(), message)
        .help("write one, as in \"internal/github\" or \"@modelcontextprotocol/server-git\""))
}

/// Returns whether `text` has parts between slashes, none of them empty, `.` or `..`.
fn is_namespace(text: &str) -> bool {
    let is_part = |part: &str| {
        let part = part.strip_prefix('@').unwrap_or(part);
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.chars().all(|found| found.is_ascii_alphanumeric() || "-_.".contains(found))
    };
    text.len() <= defaults::NAMESPACE_BYTES_MAX && text.split('/').all(is_part)
}

fn confidence<'de, D: Deserializer<'de>>(found: D) -> Result<f64, D::Error> {
    let confidence = f64::deserialize(found)?;
    if (0.0..=1.0).contains(&confidence) {
        return Ok(confidence);
    }
    Err(D::Error::custom(Refusal::new(format!("`{KEY}` is {confidence}"), "use 0 to 1")))
}

fn registry_url<'de, D: Deserializer<'de>>(found: D) -> Result<Option<Uri>, D::Error> {
    let text = String::deserialize(found)?;
    let url = url::parse_http(&text, EXAMPLE).map_err(D::Error::custom)?;
    let path = url.path().trim_end_matches('/');
    if url.query().is_some() || path.ends_with("/v0/servers") || path.ends_with("/v0") {
        let shown = url::without_secrets(&text);
        let message = format!("`{shown}` is not the base URL of a registry");
        return Err(D::Error::custom(Refusal::new(message, EXAMPLE)));
    }
    Ok(Some(url))
}

impl TryFrom<RegistryTable> for RegistryConfig {
    type Error = Refusal;

    fn try_from(table: RegistryTable) -> Result<Self, Refusal> {
        let missing =
            || Refusal::new("`provision.registry` has no `url`", format!("add `url`: {EXAMPLE}"));
        Ok(Self { url: table.url.ok_or_else(missing)?, ttl: table.ttl })
    }
}

#[cfg(test)]
mod tests;
