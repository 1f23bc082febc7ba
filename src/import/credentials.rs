//! The names of imported credentials, and a description of each value.
//!
//! Pure. A secret value is kept only to detect equal ones, and is never shown.

use std::collections::{BTreeMap, BTreeSet};

use crate::server_name::ServerName;

/// A credential that a server refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCredential {
    /// Its name.
    pub name: String,
    /// A description of its value.
    pub holds: String,
    /// The file that already contains it.
    pub file: Option<String>,
}

impl ServerCredential {
    /// Returns the path of the file, by default below `/run/secrets`.
    pub(super) fn path(&self) -> String {
        self.file.clone().unwrap_or_else(|| format!("/run/secrets/{}", self.name))
    }
}

/// The criterion for treating two credentials as one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CredentialIdentity {
    /// A value under a key.
    Value { key: String, value: String },
    /// A value that a client asks for, by its id.
    Input { file: String, id: String },
    /// The content of a file.
    File(String),
}

/// All credentials assigned so far.
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
        // A key with the server's name as prefix needs no second one.
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

/// Returns a text in lower case, with one dash for each run of other characters.
fn kebab(text: &str) -> String {
    let words = text.split(|found: char| !found.is_ascii_alphanumeric());
    let words: Vec<String> =
        words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
    let mut joined = words.join("-");
    // A bound on the length; a number distinguishes names that are equal after the cut.
    joined.truncate(60);
    joined
}
