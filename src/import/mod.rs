//! The conversion of other clients' declarations to a metamcp configuration.
//!
//! Pure: texts in, a text out. A secret in them is never printed: it becomes a reference, with a
//! description of the value to store there. `client_profile` describes each client once; clients
//! with a form of their own have a file that finds the servers. `plan` combines them.

mod claude_code;
mod client_files;
mod client_profile;
mod codex;
mod credentials;
mod declaration_origin;
mod endpoint_conversion;
mod file_syntax;
mod foreign_server;
mod gemini;
mod goose;
mod known_client;
mod login_members;
mod mcp_remote;
mod new_server;
mod opencode;
mod own_endpoints;
mod plan;
mod report;
mod secret_detection;
mod served;
mod server_conversion;
mod server_members;
mod shell_arguments;
mod shown_secrets;
mod to_nix;
mod to_toml;
mod variable_syntax;
mod vscode;
mod yaml_block;
mod yaml_inline;
mod zed;

use std::path::Path;

pub use client_files::{FileRoots, context_of, places};
pub use client_profile::{
    ClientFile, ClientProfile, EndpointForm, EntrySwitch, FileLanguage, FileRoot, FixedValue,
    MovedDirectory, TokenForm,
};
pub use credentials::ServerCredential;
use declaration_origin::SourceFile;
pub use declaration_origin::{DeclarationOrigin, ImportContext};
pub use file_syntax::{ImportReadError, JSON_OPTIONS};
pub use foreign_server::ForeignServer;
pub use known_client::KnownClient;
pub use new_server::{NewCredential, NewServer, NewServerError};
pub use own_endpoints::OwnEndpoints;
pub use plan::{ImportNote, ImportNoteKind, ImportPlan, ImportState, ImportedServer, import};
pub use shown_secrets::secrets;
pub(crate) use to_nix::name as nix_name;
pub(crate) use yaml_block::{YamlMember, read as yaml_file, split_key as yaml_key};
pub(crate) use yaml_inline::without_comment as yaml_without_comment;

use crate::config::defaults;

/// Returns the servers that a file declares.
///
/// Its content and the name of the file at `path` decide which client it belongs to, unless
/// `client` is given. The file itself is not accessed.
///
/// # Errors
///
/// [`ImportReadError`] when the text cannot be parsed; the error never quotes the text.
pub fn read(
    path: &Path,
    text: &str,
    client: Option<KnownClient>,
    context: &ImportContext,
) -> Result<Vec<ForeignServer>, ImportReadError> {
    let (client, document) = file_syntax::read(path, text, client)?;
    let origin = DeclarationOrigin { client, file: path.display().to_string(), project: None };
    let file = SourceFile { origin, context: context.clone() };
    let servers = match client {
        KnownClient::ClaudeCode => claude_code::read(&document, &file),
        KnownClient::VsCode => vscode::read(&document, &file),
        KnownClient::Codex => codex::read(&document, &file),
        KnownClient::Gemini => gemini::read(&document, &file),
        KnownClient::OpenCode => opencode::read(&document, &file),
        KnownClient::Zed => zed::read(&document, &file),
        KnownClient::Goose => goose::read(&document, &file),
        // The other clients have one table in a common form.
        KnownClient::ClaudeDesktop
        | KnownClient::Cursor
        | KnownClient::Windsurf
        | KnownClient::Cline
        | KnownClient::CopilotCli
        | KnownClient::Kiro
        | KnownClient::Amp
        | KnownClient::Roo => file.mcp_servers(&document[client.profile().tables[0][0]]),
    };
    if servers.len() > defaults::IMPORT_SERVERS_MAX {
        return Err(ImportReadError::TooMany);
    }
    Ok(servers)
}

/// Returns a file of `client` as a tree of values.
///
/// # Errors
///
/// [`ImportReadError`] when the text cannot be parsed; the error never quotes the text.
pub fn document(client: KnownClient, text: &str) -> Result<serde_json::Value, ImportReadError> {
    file_syntax::read(Path::new(""), text, Some(client)).map(|(_, document)| document)
}

#[cfg(test)]
mod tests;
