//! The decision whether a server may be started on request: its namespace must be trusted, and the
//! match must be certain enough. Pure.

use std::fmt;

use crate::config::{Namespace, ProvisionConfig, Provisionable};

/// The decision about a server, with the reasons if it may not be started.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustVerdict {
    /// `Ok` if the namespace is trusted, else the reason why not.
    pub trust: Result<(), UntrustedNamespace>,
    /// The confidence of the match.
    confidence: f64,
    /// The confidence that is required.
    least: f64,
}

/// The reason why a namespace is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UntrustedNamespace {
    /// The server declares no namespace.
    Missing,
    /// No rule covers the namespace.
    Unlisted(Namespace),
}

impl TrustVerdict {
    /// Judges a server that matches with `confidence`.
    pub fn of(server: &Provisionable, rules: &ProvisionConfig, confidence: f64) -> Self {
        let trust = match &server.namespace {
            None => Err(UntrustedNamespace::Missing),
            Some(namespace) if rules.trusted.iter().any(|rule| rule.covers(namespace)) => Ok(()),
            Some(namespace) => Err(UntrustedNamespace::Unlisted(namespace.clone())),
        };
        Self { trust, confidence, least: rules.min_confidence }
    }

    /// Returns whether the server may be started.
    pub fn is_allowed(&self) -> bool {
        self.trust.is_ok() && !self.is_doubtful()
    }

    fn is_doubtful(&self) -> bool {
        self.confidence < self.least
    }
}

impl fmt::Display for TrustVerdict {
    /// Writes the reasons, and advice for the operator or the caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.trust {
            Ok(()) if !self.is_doubtful() => f.write_str("it may be started")?,
            Ok(()) => {}
            Err(UntrustedNamespace::Missing) => f.write_str(
                "it declares no namespace that could be trusted: the operator can declare its `namespace` and add that to `provision.trusted`",
            )?,
            Err(UntrustedNamespace::Unlisted(namespace)) => write!(
                f,
                "its namespace `{namespace}` is not trusted: the operator can add it to `provision.trusted`"
            )?,
        }
        if self.is_doubtful() {
            let Self { trust, confidence, least } = self;
            let and = if trust.is_ok() { "" } else { "; and " };
            write!(
                f,
                "{and}the confidence {confidence:.2} is below `provision.min_confidence`, {least:.2}: name in `intent` what the server is for"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::parsed;

    fn verdict(namespace: &str, confidence: f64) -> TrustVerdict {
        let text = format!(
            "[provision]\ntrusted = [\"@scope/*\", \"internal/git\"]\nmin_confidence = 0.5\n\
             [provision.servers.a]\ncommand = \"x\"\ndescription = \"does\"\n{namespace}\n"
        );
        let rules = parsed(&text).provision;
        TrustVerdict::of(&rules.servers["a"], &rules, confidence)
    }

    #[test]
    fn a_server_may_be_started_if_it_is_trusted_and_the_match_is_certain() {
        for (namespace, confidence, is_allowed) in [
            ("namespace = \"@scope/git\"", 0.5, true),
            ("namespace = \"internal/git\"", 1.0, true),
            ("namespace = \"internal/git\"", 0.49, false),
            ("namespace = \"internal/github\"", 1.0, false),
            ("namespace = \"@scoped/git\"", 1.0, false),
            ("", 1.0, false),
            ("", 0.0, false),
        ] {
            let verdict = verdict(namespace, confidence);
            assert_eq!(verdict.is_allowed(), is_allowed, "{namespace} {confidence}");
        }
    }

    #[test]
    fn a_refusal_names_the_missing_condition_and_the_remedy() {
        let says = |namespace: &str, confidence| verdict(namespace, confidence).to_string();
        assert_eq!(says("namespace = \"@scope/git\"", 1.0), "it may be started");
        insta::assert_snapshot!(says("namespace = \"other/git\"", 1.0), @"its namespace `other/git` is not trusted: the operator can add it to `provision.trusted`");
        insta::assert_snapshot!(says("namespace = \"@scope/git\"", 0.25), @"the confidence 0.25 is below `provision.min_confidence`, 0.50: name in `intent` what the server is for");
        insta::assert_snapshot!(says("", 0.25), @"it declares no namespace that could be trusted: the operator can declare its `namespace` and add that to `provision.trusted`; and the confidence 0.25 is below `provision.min_confidence`, 0.50: name in `intent` what the server is for");
    }
}
