//! The choice of scopes. Source: the MCP specification of 2026-07-28, "Scope Selection Strategy".

use serde::{Deserialize, Serialize};

use crate::config::{defaults, is_scope};

/// The scope that asks an authorization server for a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// Scopes in the order of their mention, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScopeSet(Vec<String>);

impl ScopeSet {
    /// Returns the scopes of a text that separates them by spaces.
    pub(super) fn parse(text: &str) -> Self {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }

    /// Returns the scopes as one text for a request.
    pub(super) fn joined(&self) -> String {
        self.0.join(" ")
    }

    /// Returns the scopes one by one.
    pub(super) fn as_slice(&self) -> &[String] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether all of `others` are among these.
    pub(super) fn contains_all(&self, others: &Self) -> bool {
        others.0.iter().all(|scope| self.0.contains(scope))
    }

    /// Returns these scopes and those of `others`.
    pub(super) fn union(&self, others: &Self) -> Self {
        self.0.iter().chain(&others.0).cloned().collect()
    }
}

impl FromIterator<String> for ScopeSet {
    /// Keeps valid scopes only, as many as a configuration may have.
    fn from_iter<I: IntoIterator<Item = String>>(scopes: I) -> Self {
        let mut unique: Vec<String> = Vec::new();
        for scope in scopes.into_iter().filter(|scope| is_scope(scope)) {
            if unique.len() < defaults::SCOPES_MAX && !unique.contains(&scope) {
                unique.push(scope);
            }
        }
        Self(unique)
    }
}

/// The facts that the scopes of a login follow from.
#[derive(Debug, Default)]
pub(super) struct ScopeSelection<'a> {
    /// The scopes that the operator configures; empty if none.
    pub(super) configured: ScopeSet,
    /// The scopes of the challenge.
    pub(super) challenged: Option<&'a ScopeSet>,
    /// `scopes_supported` of the protected resource.
    pub(super) resource: Option<&'a ScopeSet>,
    /// `scopes_supported` of the authorization server.
    pub(super) authorization_server: Option<&'a ScopeSet>,
    /// The scopes that the last login requested.
    pub(super) previous: Option<&'a ScopeSet>,
    /// The scopes that a request lacked, beyond the previous ones.
    pub(super) required: Option<&'a ScopeSet>,
}

impl ScopeSelection<'_> {
    /// Returns the scopes to request; empty to leave the choice to the authorization server.
    pub(super) fn scopes(&self) -> ScopeSet {
        let none = ScopeSet::default();
        let previous = self.previous.unwrap_or(&none);
        match self.required {
            Some(required) => self.configured.union(previous).union(required),
            None if !self.configured.is_empty() => self.configured.clone(),
            None => previous.union(&self.announced()),
        }
    }

    /// Returns the scopes that the server asks for.
    fn announced(&self) -> ScopeSet {
        let none = ScopeSet::default();
        let chosen = self.challenged.or(self.resource).unwrap_or(&none);
        let offline = ScopeSet(vec![OFFLINE_ACCESS.to_owned()]);
        let is_listed =
            self.authorization_server.is_some_and(|listed| listed.contains_all(&offline));
        // Alone, it would replace the scopes that the authorization server grants by default.
        match is_listed && !chosen.is_empty() {
            true => chosen.union(&offline),
            false => chosen.clone(),
        }
    }
}

/// Returns whether the scopes ask for a refresh token.
pub(super) fn wants_offline_access(scopes: &ScopeSet) -> bool {
    scopes.0.iter().any(|scope| scope == OFFLINE_ACCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> ScopeSet {
        ScopeSet::parse(text)
    }

    #[test]
    fn the_challenge_comes_before_the_metadata_and_the_configuration_before_both() {
        let (challenged, resource) = (set("basic"), set("read write"));
        let mut facts = ScopeSelection { resource: Some(&resource), ..ScopeSelection::default() };
        assert_eq!(facts.scopes(), resource);
        facts.challenged = Some(&challenged);
        assert_eq!(facts.scopes(), challenged);
        facts.configured = set("own");
        assert_eq!(facts.scopes(), set("own"));
        assert!(ScopeSelection::default().scopes().is_empty(), "the scope is omitted");
    }

    #[test]
    fn offline_access_is_requested_only_if_the_authorization_server_lists_it() {
        let (resource, listed) = (set("basic"), set("basic offline_access"));
        let facts = |resource, listed| ScopeSelection {
            resource,
            authorization_server: listed,
            ..ScopeSelection::default()
        };
        assert_eq!(facts(Some(&resource), Some(&listed)).scopes(), set("basic offline_access"));
        assert_eq!(facts(Some(&resource), Some(&resource)).scopes(), resource);
        assert_eq!(facts(Some(&resource), None).scopes(), resource);
        assert!(facts(None, Some(&listed)).scopes().is_empty());
    }

    #[test]
    fn a_step_up_requests_the_previous_and_the_required_scopes() {
        let (previous, required) = (set("basic offline_access"), set("write basic"));
        let mut facts = ScopeSelection {
            previous: Some(&previous),
            required: Some(&required),
            ..ScopeSelection::default()
        };
        assert_eq!(facts.scopes(), set("basic offline_access write"));
        facts.configured = set("own");
        assert_eq!(facts.scopes(), set("own basic offline_access write"));
        facts.required = None;
        assert_eq!(facts.scopes(), set("own"));
    }

    #[test]
    fn invalid_and_repeated_scopes_are_dropped() {
        assert_eq!(set("a b\ta  c\"d é").joined(), "a b");
    }
}
