//! The clients with a supported file format.

use std::path::Path;

use serde_json::Value;

/// A client with a supported file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportFormat {
    /// `.mcp.json` of a project, or the user's `.claude.json` with the servers of each project.
    ClaudeCode,
    /// `claude_desktop_config.json`.
    ClaudeDesktop,
    /// `.cursor/mcp.json`.
    Cursor,
    /// `.vscode/mcp.json`, or the part `mcp` of `settings.json`.
    VsCode,
    /// `mcp_config.json`.
    Windsurf,
    /// `config.toml`.
    Codex,
    /// `opencode.json`.
    OpenCode,
}

impl ImportFormat {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Codex,
        Self::OpenCode,
    ];

    /// Returns the command-line word, also used as a suffix for servers with equal names.
    pub fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the display name of the client.
    pub fn client(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Codex => "Codex",
            Self::OpenCode => "OpenCode",
        }
    }

    /// Returns the format that `word` names.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }

    /// Detects the format of a JSON document by its content and its file name.
    pub(super) fn of_document(path: &Path, document: &Value) -> Option<Self> {
        let named = Self::of_path(path);
        if document["mcpServers"].is_object() {
            // Four clients use the same form, so the file name decides.
            return Some(match named {
                Some(named @ (Self::ClaudeDesktop | Self::Cursor | Self::Windsurf)) => named,
                _ => Self::ClaudeCode,
            });
        }
        if document["projects"].is_object() {
            return Some(Self::ClaudeCode);
        }
        if document["servers"].is_object() {
            return Some(Self::VsCode);
        }
        if document["mcp"].is_object() && named != Some(Self::VsCode) {
            let has_inputs = document["mcp"]["inputs"].is_array();
            return Some(if has_inputs { Self::VsCode } else { Self::OpenCode });
        }
        named
    }

    /// Returns the format of files with this name.
    fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let directory = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        match (name, directory) {
            (".mcp.json" | ".claude.json", _) => Some(Self::ClaudeCode),
            ("claude_desktop_config.json", _) => Some(Self::ClaudeDesktop),
            ("mcp_config.json", _) => Some(Self::Windsurf),
            ("mcp.json", Some(".cursor")) => Some(Self::Cursor),
            ("mcp.json", Some(".vscode" | "User")) | ("settings.json", _) => Some(Self::VsCode),
            ("opencode.json" | "opencode.jsonc", _) => Some(Self::OpenCode),
            _ => None,
        }
    }
}
