//! The names under which secrets will be found, and what somebody has to put there.
//!
//! Pure. No value of a secret is kept beyond telling two of them apart, and none is ever shown.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::ServerName;

/// A credential that a server refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCredential {
    /// Its name.
    pub name: String,
    /// What it has to hold, in words.
    pub holds: String,
    /// The file that holds it already.
    pub file: Option<String>,
}

impl ServerCredential {
    /// Returns the path of the file on a host with secrets in the usual place.
    pub(super) fn path(&self) -> String {
        self.file.clone().unwrap_or_else(|| format!("/run/secrets/{}", self.name))
    }
}

/// What makes two credentials the same one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CredentialIdentity {
    /// A value under a key.
    Value { key: String, value: String },
    /// What a client asks for by an id.
    Input { file: String, id: String },
    /// What is in a file.
    File(String),
}

/// All credentials so far.
#[derive(Default)]
pub(super) struct CredentialNames {
    known: BTreeMap<CredentialIdentity, String>,
    taken: BTreeSet<String>,
}

impl CredentialNames {
    /// Returns the name of a credential of `server` for `key`.
    pub(super) fn name(
        &mut self,
        identity: CredentialIdentity,
        server: &ServerName,
        key: &str,
    ) -> String {
        if let Some(name) = self.known.get(&identity) {
            return name.clone();
        }
        let (server, key) = (kebab(server.as_str()), kebab(key));
        // What begins with the server's name says it already.
        let base = match key == server || key.starts_with(&format!("{server}-")) {
            true => key,
            false => format!("{server}-{key}"),
        };
        let base = base.trim_matches('-');
        let mut name = base.to_owned();
        let mut n_tries = 1;
        while !self.taken.insert(name.clone()) {
            n_tries += 1;
            name = format!("{base}-{n_tries}");
        }
        self.known.insert(identity, name.clone());
        name
    }
}

/// Returns a text in lower case, with one dash for all that is no letter or digit.
fn kebab(text: &str) -> String {
    let words = text.split(|found: char| !found.is_ascii_alphanumeric());
    let words: Vec<String> =
        words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
    let mut joined = words.join("-");
    // Nobody wants to type more; it is told apart by a number where that is not enough.
    joined.truncate(60);
    joined
}
