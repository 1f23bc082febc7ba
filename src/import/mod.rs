//! The conversion of other clients' declarations to a metamcp configuration.
//!
//! Pure: texts in, a text out. Files of other clients are never written. A secret in them is never
//! printed: it becomes a reference, with a description of the value to store there. Each format has
//! a file that finds its servers; `plan` combines them.

mod claude_code;
mod client_files;
mod client_format;
mod codex;
mod credentials;
mod declaration_origin;
mod endpoint_conversion;
mod file_syntax;
mod foreign_server;
mod login_members;
mod mcp_remote;
mod opencode;
mod plan;
mod report;
mod secret_detection;
mod server_conversion;
mod server_members;
mod shell_arguments;
mod to_nix;
mod to_toml;
mod variable_syntax;
mod vscode;

use std::path::Path;

pub use client_files::{ClientFile, FileRoot, context_of, places};
pub use client_format::ImportFormat;
pub use credentials::ServerCredential;
use declaration_origin::SourceFile;
pub use declaration_origin::{DeclarationOrigin, ImportContext};
pub use file_syntax::ImportReadError;
pub use foreign_server::ForeignServer;
pub use plan::{ImportNote, ImportNoteKind, ImportPlan, ImportState, ImportedServer, import};
pub(crate) use to_nix::name as nix_name;

use crate::config::defaults;

/// Returns the servers that a file declares.
///
/// The name of the file at `path` decides its format if the content is ambiguous, unless `format`
/// is given. The file itself is not accessed.
///
/// # Errors
///
/// [`ImportReadError`] when the text cannot be parsed; the error never quotes the text.
pub fn read(
    path: &Path,
    text: &str,
    format: Option<ImportFormat>,
    context: &ImportContext,
) -> Result<Vec<ForeignServer>, ImportReadError> {
    let (format, document) = file_syntax::read(path, text, format)?;
    let origin = DeclarationOrigin { format, file: path.display().to_string(), project: None };
    let file = SourceFile { origin, context: context.clone() };
    let servers = match format {
        ImportFormat::ClaudeCode => claude_code::read(&document, &file),
        ImportFormat::ClaudeDesktop | ImportFormat::Cursor | ImportFormat::Windsurf => {
            file.mcp_servers(&document["mcpServers"])
        }
        ImportFormat::VsCode => vscode::read(&document, &file),
        ImportFormat::Codex => codex::read(&document, &file),
        ImportFormat::OpenCode => opencode::read(&document, &file),
    };
    if servers.len() > defaults::IMPORT_SERVERS_MAX {
        return Err(ImportReadError::TooMany);
    }
    Ok(servers)
}

#[cfg(test)]
mod tests;
