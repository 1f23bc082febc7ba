//! What other clients have declared, read from their files and written as our configuration.
//!
//! Pure: texts in, a text out. A file of another client is never written, and a secret in it never
//! comes out: it becomes a reference, with words that say what is to be put there. One file for each
//! format says where its servers are; `plan` makes one set of all of them.

mod arguments;
mod claude_code;
mod codex;
mod context;
mod credentials;
mod document;
mod entry;
mod foreign;
mod format;
mod mcp_servers;
mod opencode;
mod place;
mod plan;
mod report;
mod secret;
mod server;
mod to_nix;
mod to_toml;
mod value;
mod vscode;

use std::path::Path;

pub use context::{Context, Origin};
pub use credentials::Credential;
pub use document::ReadError;
pub use foreign::Foreign;
pub use format::Format;
pub use place::{Place, Root, context_of, places};
pub use plan::{Import, Imported, Note, NoteKind, State, import};
pub(crate) use to_nix::name as nix_name;

use crate::config::defaults;

/// Reads the servers that a file declares.
///
/// `path` is where the file is; its name tells whose it is where the content does not, unless `format`
/// says so. The file itself is not touched.
///
/// # Errors
///
/// [`ReadError`] when the text cannot be understood; it never quotes any of it.
pub fn read(
    path: &Path,
    text: &str,
    format: Option<Format>,
    context: &Context,
) -> Result<Vec<Foreign>, ReadError> {
    let (format, document) = document::read(path, text, format)?;
    let origin = Origin { format, file: path.display().to_string(), project: None };
    let servers = match format {
        Format::ClaudeCode => claude_code::read(&document, &origin, context),
        Format::ClaudeDesktop | Format::Cursor | Format::Windsurf => {
            mcp_servers::read(&document["mcpServers"], &origin, context)
        }
        Format::VsCode => vscode::read(&document, &origin, context),
        Format::Codex => codex::read(&document, &origin, context),
        Format::OpenCode => opencode::read(&document, &origin, context),
    };
    if servers.len() > defaults::IMPORT_SERVERS_MAX {
        return Err(ReadError::TooMany);
    }
    Ok(servers)
}

#[cfg(test)]
mod tests;
