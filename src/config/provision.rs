//! The servers that may be added while the service runs: `[provision]`.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use hyper::Uri;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    ServerConfig, ServerConfigs,
    bounded_number::bounded_number,
    defaults,
    diagnostic::ConfigProblem,
    duration::{self, WrittenDuration},
    schema::{self, DurationSchema, ProvisionableServers},
    server, url,
};
use crate::server_name::ServerName;

/// The servers that may be added while the service runs. A client cannot make the service run a
/// program that is declared neither here nor under `[servers]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionConfig {
    /// `true` if servers may be added.
    pub is_enabled: bool,
    /// The lowest confidence, from 0 to 1, in a match at which metamcp starts the server.
    pub min_confidence: f64,
    /// The rules for namespaces from which metamcp may start servers.
    pub trusted: Vec<TrustRule>,
    /// The servers: `[provision.servers.NAME]`.
    pub servers: BTreeMap<ServerName, Arc<Provisionable>>,
    /// The registry in which metamcp looks for other servers, to suggest and never to start.
    pub registry: Option<RegistryConfig>,
}

impl Default for ProvisionConfig {
    /// Returns the meaning of an absent table: nothing can be provisioned.
    fn default() -> Self {
        Self {
            is_enabled: false,
            min_confidence: defaults::PROVISION_CONFIDENCE_MIN,
            trusted: Vec::new(),
            servers: BTreeMap::new(),
            registry: None,
        }
    }
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

impl Namespace {
    /// Returns the namespace as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

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

impl fmt::Display for TrustRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(scope) => write!(f, "{scope}*"),
            Self::Exactly(one) => f.write_str(one),
        }
    }
}

/// A registry of MCP servers.
#[derive(Clone, Debug, PartialEq)]
pub struct RegistryConfig {
    /// The part of its URL before `/v0/servers`.
    pub url: Uri,
    /// The time that its answers stay valid.
    pub ttl: Duration,
}

/// [`ProvisionConfig`] as written in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct ProvisionTable {
    /// If `true`, servers may be added on request.
    #[schemars(with = "bool", extend("default" = true))]
    enabled: Option<bool>,
    /// The confidence, from 0 to 1, that a server is the one that was meant. metamcp starts no
    /// server below it.
    #[schemars(with = "f64", range(min = 0, max = 1), extend("default" = defaults::PROVISION_CONFIDENCE_MIN))]
    min_confidence: Option<Spanned<f64>>,
    /// The namespaces from which metamcp may start servers: one (`internal/github`), or all below
    /// one (`@modelcontextprotocol/*`).
    #[schemars(with = "Vec<String>", length(max = defaults::TRUSTED_MAX), inner(regex(pattern = schema::TRUST)), extend("default" = []))]
    trusted: Option<Spanned<Vec<Spanned<String>>>>,
    /// The servers that may be added, by name.
    #[schemars(with = "ProvisionableServers")]
    servers: BTreeMap<Spanned<String>, server::ServerTable>,
    /// A registry of MCP servers in which metamcp looks for others. It suggests them and never
    /// starts them. Without it, metamcp asks no registry.
    #[schemars(with = "RegistryTable")]
    registry: Option<Spanned<RegistryTable>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, extend("required" = ["url"]))]
struct RegistryTable {
    /// The part of its URL before `/v0/servers`.
    #[schemars(with = "Option<String>", regex(pattern = schema::URL))]
    url: Option<Spanned<String>>,
    /// The time that its answers stay valid.
    #[schemars(with = "Option<DurationSchema>", extend("default" = duration::text(defaults::REGISTRY_TTL)))]
    ttl: Option<WrittenDuration>,
}

/// The name and settings of a server, or the mistake in them.
type Declared = Result<(ServerName, Arc<ServerConfig>), ConfigProblem>;

/// The help that shows how to write a trust rule.
const NAMESPACES: &str = "write a namespace, as in \"internal/github\", or all below one, as in \"@modelcontextprotocol/*\"";

/// The help that shows how to write the URL of a registry.
const EXAMPLE: &str = "write the part before `/v0/servers`, as in `https://HOST`";

impl ProvisionTable {
    /// Checks the table. `declare` checks the name and table of a server as under `[servers]`, and
    /// `declared` has the servers there.
    pub(super) fn checked(
        self,
        declare: impl Fn(&Spanned<String>, server::ServerTable) -> Declared,
        declared: &ServerConfigs,
    ) -> Result<ProvisionConfig, ConfigProblem> {
        let defaults = ProvisionConfig::default();
        if self.servers.len() > defaults::PROVISIONABLE_MAX
            && let Some((name, _)) = self.servers.iter().next_back()
        {
            let message = format!("{} servers that may be provisioned", self.servers.len());
            return Err(ConfigProblem::at(name.span(), message)
                .help(format!("use {} or less", defaults::PROVISIONABLE_MAX)));
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
        let confidence =
            bounded_number("min_confidence", self.min_confidence.as_ref(), (0.0, 1.0))?;
        Ok(ProvisionConfig {
            is_enabled: self.enabled.unwrap_or(true),
            min_confidence: confidence.unwrap_or(defaults.min_confidence),
            trusted: self.trusted.map(trusted).transpose()?.unwrap_or_default(),
            servers,
            registry: self.registry.map(registry).transpose()?,
        })
    }
}

/// Refuses keys under `[servers]` that only a server under `[provision.servers]` can have.
pub(super) fn refuse_provision_keys(table: &server::ServerTable) -> Result<(), ConfigProblem> {
    let keys = [
        ("namespace", table.namespace.as_ref().map(Spanned::span)),
        ("description", table.description.as_ref().map(Spanned::span)),
        ("keywords", table.keywords.as_ref().map(Spanned::span)),
    ];
    match keys.into_iter().find_map(|(key, place)| Some((key, place?))) {
        None => Ok(()),
        Some((key, place)) => {
            let message = format!("`{key}` has no effect under `[servers]`");
            Err(ConfigProblem::at(place, message)
                .help("remove it, or declare the server under `[provision.servers]`"))
        }
    }
}

fn provisionable(
    name: &Spanned<String>,
    mut table: server::ServerTable,
    declare: impl Fn(&Spanned<String>, server::ServerTable) -> Declared,
) -> Result<(ServerName, Provisionable), ConfigProblem> {
    if let Some(start) = table.eager_start_span() {
        return Err(ConfigProblem::at(start, "`start` has no effect under `[provision.servers]`")
            .help("remove it: metamcp connects the server when it provisions it"));
    }
    let namespace = table.namespace.take().map(namespace).transpose()?;
    let Some(found) = table.description.take() else {
        let message = format!("server `{}` has no `description`", name.get_ref().escape_debug());
        return Err(ConfigProblem::at(name.span(), message)
            .help("add `description = \"…\"` with its purpose, by which metamcp finds it"));
    };
    let description = text("description", found, defaults::DESCRIPTION_BYTES_MAX)?;
    let keywords = table.keywords.take().map(keywords).transpose()?.unwrap_or_default();
    let (name, server) = declare(name, table)?;
    Ok((name, Provisionable { server, namespace, description, keywords }))
}

fn keywords(found: Spanned<Vec<Spanned<String>>>) -> Result<Vec<String>, ConfigProblem> {
    if found.get_ref().len() > defaults::KEYWORDS_MAX {
        let message = format!("{} keywords", found.get_ref().len());
        return Err(ConfigProblem::at(found.span(), message)
            .help(format!("use {} or less", defaults::KEYWORDS_MAX)));
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

fn trusted(found: Spanned<Vec<Spanned<String>>>) -> Result<Vec<TrustRule>, ConfigProblem> {
    if found.get_ref().len() > defaults::TRUSTED_MAX {
        let message = format!("{} namespaces are trusted", found.get_ref().len());
        return Err(ConfigProblem::at(found.span(), message)
            .help(format!("use {} or less", defaults::TRUSTED_MAX)));
    }
    let rule = |found: Spanned<String>| {
        let text = found.get_ref();
        match text.strip_suffix("/*") {
            Some(scope) if is_namespace(scope) => Ok(TrustRule::Below(format!("{scope}/"))),
            None if is_namespace(text) => Ok(TrustRule::Exactly(text.clone())),
            Some(_) | None => {
                let message = format!("`{}` is not a trust rule", text.escape_debug());
                Err(ConfigProblem::at(found.span(), message).help(NAMESPACES))
            }
        }
    };
    found.into_inner().into_iter().map(rule).collect()
}

fn registry(table: Spanned<RegistryTable>) -> Result<RegistryConfig, ConfigProblem> {
    let place = table.span();
    let RegistryTable { url, ttl } = table.into_inner();
    let Some(text) = url else {
        return Err(ConfigProblem::at(place, "`provision.registry` has no `url`")
            .help(format!("add `url`: {EXAMPLE}")));
    };
    let url = url::parse_http(&text, EXAMPLE)?;
    let path = url.path().trim_end_matches('/');
    if url.query().is_some() || path.ends_with("/v0/servers") || path.ends_with("/v0") {
        let shown = url::without_secrets(text.get_ref());
        let message = format!("`{shown}` is not the base URL of a registry");
        return Err(ConfigProblem::at(text.span(), message).help(EXAMPLE));
    }
    Ok(RegistryConfig { url, ttl: ttl.map_or(defaults::REGISTRY_TTL, |found| found.0) })
}

#[cfg(test)]
mod tests;
