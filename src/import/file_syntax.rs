//! The parsing of a file, JSON, TOML or YAML, into a tree of values.
//!
//! Pure. An error reports the position and never quotes the text, which may contain secrets.

use std::path::Path;

use jsonc_parser::{ParseOptions, errors::ParseError, parse_to_serde_value};
use serde_json::Value;

use super::{client_profile::FileLanguage, known_client::KnownClient, yaml_block};
use crate::config::defaults;

/// The reason why a file could not be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportReadError {
    /// The file is larger than [`defaults::IMPORT_BYTES_MAX`].
    #[error("it is larger than {} bytes", defaults::IMPORT_BYTES_MAX)]
    TooLarge,
    /// It is neither JSON nor JSON with comments.
    #[error("not JSON: line {line}, column {column}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// It is not valid TOML.
    #[error("not TOML: line {line}, column {column}")]
    Toml {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// It is not YAML in the form that the client writes.
    #[error("not YAML in the form that Goose writes: line {line}")]
    Yaml {
        /// The line, from 1.
        line: usize,
    },
    /// It contains no servers in a known form.
    #[error("it declares no MCP servers in a known form")]
    Unknown,
    /// There are more servers than [`defaults::IMPORT_SERVERS_MAX`].
    #[error("more than {} servers are declared", defaults::IMPORT_SERVERS_MAX)]
    TooMany,
}

impl ImportReadError {
    /// Returns advice for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooLarge => "Name a smaller file that declares only the servers.",
            Self::Json { .. } | Self::Toml { .. } | Self::Yaml { .. } => {
                "Correct the file at that place, or name its format with --format."
            }
            Self::Unknown => {
                "Name the format with --format; `metamcp import --help` lists the known formats."
            }
            Self::TooMany => "Import the files one by one.",
        }
    }
}

/// Parses a file of `client`, or of the detected client, and returns that client.
pub(super) fn read(
    path: &Path,
    text: &str,
    client: Option<KnownClient>,
) -> Result<(KnownClient, Value), ImportReadError> {
    if text.len() > defaults::IMPORT_BYTES_MAX {
        return Err(ImportReadError::TooLarge);
    }
    // A byte order mark is ignored.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let client = client.or_else(|| match path.extension()?.to_str()? {
        "toml" => Some(KnownClient::Codex),
        "yaml" | "yml" => Some(KnownClient::Goose),
        _ => None,
    });
    let document = match client.map_or(FileLanguage::Json, |client| client.profile().language) {
        FileLanguage::Toml => toml(text)?,
        FileLanguage::Yaml => yaml(text)?,
        FileLanguage::Json => json(text)?,
    };
    let client = client.or_else(|| KnownClient::of_document(path, &document));
    Ok((client.ok_or(ImportReadError::Unknown)?, document))
}

/// The extensions of JSON that clients accept: comments and trailing commas.
pub const JSON_OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn json(text: &str) -> Result<Value, ImportReadError> {
    parse_to_serde_value(text, &JSON_OPTIONS).map_err(|error: ParseError| ImportReadError::Json {
        line: error.line_display(),
        column: error.column_display(),
    })
}

fn yaml(text: &str) -> Result<Value, ImportReadError> {
    let file = yaml_block::read(text);
    file.map(|file| file.value).map_err(|error| ImportReadError::Yaml { line: error.line })
}

fn toml(text: &str) -> Result<Value, ImportReadError> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ImportReadError::Toml {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    })?;
    Ok(of_toml(toml::Value::Table(table)))
}

/// Converts TOML to JSON. Numbers that JSON lacks do not occur in declarations of servers.
fn of_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(is_true) => Value::Bool(is_true),
        toml::Value::Datetime(moment) => Value::String(moment.to_string()),
        toml::Value::Array(items) => items.into_iter().map(of_toml).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, of_toml(value))).collect()
        }
    }
}
