//! The document of a client's file, by its language.

use super::{
    client_document::{ClientDocument, DocumentError},
    json_document::JsonDocument,
    toml_document::TomlDocument,
    yaml_document::YamlDocument,
};
use crate::import::{FileLanguage, KnownClient};

/// Opens the text of a client's file; an empty text is an empty document.
pub(super) fn open(
    client: KnownClient,
    text: &str,
) -> Result<Box<dyn ClientDocument>, DocumentError> {
    let profile = client.profile();
    Ok(match profile.language {
        FileLanguage::Json => Box::new(JsonDocument::open(text, profile.tables)?),
        FileLanguage::Toml => Box::new(TomlDocument::open(text, profile.tables[0][0])?),
        FileLanguage::Yaml => Box::new(YamlDocument::open(text, profile.tables[0][0])?),
    })
}
