//! The clients with a known file format, and the detection of the client that a file belongs to.

use std::path::Path;

use serde_json::Value;

use super::client_profile::{
    AMP, CLAUDE_CODE, CLAUDE_DESKTOP, CLINE, CODEX, COPILOT_CLI, CURSOR, ClientFile, ClientProfile,
    GEMINI, GOOSE, KIRO, OPENCODE, ROO, VSCODE, WINDSURF, ZED,
};

/// A client with a known file format. Its [`ClientProfile`] describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownClient {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// OpenCode.
    OpenCode,
    /// Windsurf.
    Windsurf,
    /// Zed.
    Zed,
    /// Goose.
    Goose,
    /// Cline.
    Cline,
    /// GitHub Copilot CLI.
    CopilotCli,
    /// Kiro.
    Kiro,
    /// Amp.
    Amp,
    /// Roo Code.
    Roo,
}

impl KnownClient {
    /// All clients.
    pub const ALL: [Self; 15] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::OpenCode,
        Self::Windsurf,
        Self::Zed,
        Self::Goose,
        Self::Cline,
        Self::CopilotCli,
        Self::Kiro,
        Self::Amp,
        Self::Roo,
    ];

    /// Returns the description of the client.
    pub fn profile(self) -> &'static ClientProfile {
        match self {
            Self::ClaudeCode => &CLAUDE_CODE,
            Self::ClaudeDesktop => &CLAUDE_DESKTOP,
            Self::Cursor => &CURSOR,
            Self::VsCode => &VSCODE,
            Self::Codex => &CODEX,
            Self::Gemini => &GEMINI,
            Self::OpenCode => &OPENCODE,
            Self::Windsurf => &WINDSURF,
            Self::Zed => &ZED,
            Self::Goose => &GOOSE,
            Self::Cline => &CLINE,
            Self::CopilotCli => &COPILOT_CLI,
            Self::Kiro => &KIRO,
            Self::Amp => &AMP,
            Self::Roo => &ROO,
        }
    }

    /// Returns the command-line word, also used as a suffix for servers with equal names.
    pub fn word(self) -> &'static str {
        self.profile().word
    }

    /// Returns the display name.
    pub fn title(self) -> &'static str {
        self.profile().title
    }

    /// Returns the client that `word` names.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.word() == word)
    }

    /// Detects the client of a JSON document by its content and its file name.
    pub(super) fn of_document(path: &Path, document: &Value) -> Option<Self> {
        let named = Self::of_path(path);
        // The form of one table is common to many clients, so the file name decides.
        let has_own_table = |client: &Self| document[client.profile().tables[0][0]].is_object();
        if let Some(named) = named.filter(has_own_table) {
            return Some(named);
        }
        if let Some(servers) = document["mcpServers"].as_object() {
            let is_gemini = servers.values().any(|server| server["httpUrl"].is_string());
            return Some(if is_gemini { Self::Gemini } else { Self::ClaudeCode });
        }
        if document["projects"].is_object() {
            return Some(Self::ClaudeCode);
        }
        let own = [("servers", Self::VsCode), ("context_servers", Self::Zed)];
        let own = own.into_iter().chain([("amp.mcpServers", Self::Amp)]);
        if let Some((_, client)) = own.into_iter().find(|(key, _)| document[*key].is_object()) {
            return Some(client);
        }
        if document["mcp"].is_object() && named != Some(Self::VsCode) {
            let has_inputs = document["mcp"]["inputs"].is_array();
            return Some(if has_inputs { Self::VsCode } else { Self::OpenCode });
        }
        named
    }

    /// Returns the client whose usual path `path` ends with, or else whose file name it has alone.
    fn of_path(path: &Path) -> Option<Self> {
        let files = || Self::ALL.into_iter().flat_map(Self::files);
        let found = files().filter(|(_, file)| path.ends_with(file.path));
        let longest = found.max_by_key(|(_, file)| Path::new(file.path).components().count());
        if let Some((client, _)) = longest {
            return Some(client);
        }
        let name = path.file_name()?;
        let is_in_user = path.parent().is_some_and(|directory| directory.ends_with("User"));
        if name == "settings.json" || (name == "mcp.json" && is_in_user) {
            return Some(Self::VsCode);
        }
        let mut same = files().filter(|(_, file)| Path::new(file.path).file_name() == Some(name));
        let (client, _) = same.next()?;
        same.all(|(other, _)| other == client).then_some(client)
    }

    fn files(self) -> impl Iterator<Item = (Self, &'static ClientFile)> {
        self.profile().files.iter().map(move |file| (self, file))
    }
}
