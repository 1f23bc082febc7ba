//! The record of a connected client, from which it is disconnected exactly.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::client_entry::ClientLink;

/// The changes of one client's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionRecord {
    /// The word of the client.
    pub client: String,
    /// The file, without links.
    pub file: PathBuf,
    /// The entries of metamcp, each with the way that it has.
    pub entries: BTreeMap<String, ClientLink>,
    /// The entries that were switched off.
    pub switched: Vec<SwitchedEntry>,
    /// The number of tables that were made.
    pub n_tables_made: usize,
    /// The directories that were made for the file, the innermost first.
    pub directories: Vec<PathBuf>,
    /// The file did not exist before.
    pub was_made: bool,
    /// The digest of the file before all changes, if it can be restored.
    pub before: Option<String>,
    /// The copy of the file as it was before the last change of a file that others had changed.
    pub backup: Option<PathBuf>,
    /// The digest of the file after them.
    pub after: String,
}

/// An entry that was switched off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedEntry {
    /// Its name.
    pub name: String,
    /// The way in which it was switched off.
    pub how: SwitchedHow,
}

/// The way in which an entry was switched off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchedHow {
    /// By the client's own flag.
    Flag {
        /// Its former value; `None` if there was none.
        before: Option<bool>,
    },
    /// Removed, since the client has no flag.
    Removed {
        /// The declaration.
        declaration: String,
    },
}

impl ConnectionRecord {
    /// Returns the digest of a file.
    pub fn digest(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the name of the file with the record.
    pub fn file_name(&self) -> String {
        let digest = Self::digest(self.file.as_os_str().as_encoded_bytes());
        format!("{}-{}.json", self.client, &digest[..16])
    }
}
