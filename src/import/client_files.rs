//! The paths of the clients' files.
//!
//! Pure: no path is accessed here. The paths are those on Linux.

use std::path::{Path, PathBuf};

use super::{client_format::ImportFormat, declaration_origin::ImportContext};

/// The base directory of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRoot {
    /// The home of the user.
    Home,
    /// The user's configuration directory: `$XDG_CONFIG_HOME`, or `.config` in the home.
    Config,
    /// The current directory, if it is a project.
    Project,
}

/// The path of one client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFile {
    /// The format of the file.
    pub format: ImportFormat,
    /// The base directory.
    pub root: FileRoot,
    /// The path relative to it.
    pub path: &'static str,
}

/// Returns all paths, those of the user before those of a project.
pub fn places() -> impl Iterator<Item = ClientFile> {
    use FileRoot::{Config, Home, Project};
    use ImportFormat::{ClaudeCode, ClaudeDesktop, Codex, Cursor, OpenCode, VsCode, Windsurf};
    [
        (ClaudeCode, Home, ".claude.json"),
        (ClaudeDesktop, Config, "Claude/claude_desktop_config.json"),
        (Cursor, Home, ".cursor/mcp.json"),
        (VsCode, Config, "Code/User/mcp.json"),
        (VsCode, Config, "Code/User/settings.json"),
        (VsCode, Config, "VSCodium/User/mcp.json"),
        (VsCode, Config, "VSCodium/User/settings.json"),
        (Windsurf, Home, ".codeium/windsurf/mcp_config.json"),
        (Codex, Home, ".codex/config.toml"),
        (OpenCode, Config, "opencode/opencode.json"),
        (OpenCode, Config, "opencode/opencode.jsonc"),
        (ClaudeCode, Project, ".mcp.json"),
        (Cursor, Project, ".cursor/mcp.json"),
        (VsCode, Project, ".vscode/mcp.json"),
        (VsCode, Project, ".vscode/settings.json"),
        (Codex, Project, ".codex/config.toml"),
        (OpenCode, Project, "opencode.json"),
        (OpenCode, Project, "opencode.jsonc"),
        (OpenCode, Project, ".opencode/opencode.json"),
        (OpenCode, Project, ".opencode/opencode.jsonc"),
    ]
    .into_iter()
    .map(|(format, root, path)| ClientFile { format, root, path })
}

/// Returns the user and project that the file at `path`, an absolute path, belongs to.
pub fn context_of(path: &Path, home: Option<&Path>) -> ImportContext {
    let directory = path.parent().unwrap_or(path);
    // The parent of a client's own directory is the project.
    let is_clients = |name: &str| matches!(name, ".cursor" | ".vscode" | ".codex" | ".opencode");
    let name = directory.file_name().and_then(|name| name.to_str());
    let project: PathBuf = match directory.parent() {
        Some(parent) if name.is_some_and(is_clients) => parent.to_owned(),
        _ => directory.to_owned(),
    };
    // A file that applies to all projects of the user belongs to no project.
    let is_users = home
        .is_some_and(|home| project == home || project.starts_with(home.join(".config")))
        || project.ends_with("User")
        || project.ends_with("windsurf")
        || project.ends_with("Claude");
    ImportContext {
        home: home.map(|home| home.display().to_string()),
        project: Some(project.display().to_string()).filter(|_| !is_users),
    }
}
