//! The descriptions of the clients. Each is declared here once, for `metamcp import`, which reads
//! its files, and for `metamcp connect`, which writes them.
//!
//! Sources: the documentation of each client, as of 2026-11; `tests/clients` has its examples.

use FileRoot::{Config, Home, Project};

/// The description of a client.
#[derive(Debug)]
pub struct ClientProfile {
    /// The command-line word.
    pub word: &'static str,
    /// The display name.
    pub title: &'static str,
    /// The programs that show that it is installed.
    pub programs: &'static [&'static str],
    /// Its files: those of the user before those of a project, the preferred one first.
    pub files: &'static [ClientFile],
    /// The language of its files.
    pub language: FileLanguage,
    /// The keys that lead to the table of servers. The first table that exists is used, or else the
    /// first is made.
    pub tables: &'static [&'static [&'static str]],
    /// The form of an entry with a URL; `None` if the client only starts programs.
    pub endpoint: Option<EndpointForm>,
    /// The members of an entry with a program, besides `command` and `args`.
    pub program: &'static [(&'static str, FixedValue)],
    /// The member that switches an entry off, if there is one.
    pub switch: Option<EntrySwitch>,
}

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
    /// The base directory.
    pub root: FileRoot,
    /// The path relative to it.
    pub path: &'static str,
    /// The directory that the client reads instead, if the user names one.
    pub moved: Option<MovedDirectory>,
    /// The entry of metamcp can be written into it.
    pub is_written: bool,
}

/// The directory of a client that a variable names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedDirectory {
    /// The variable.
    pub variable: &'static str,
    /// The path of the file in that directory.
    pub path: &'static str,
}

/// The language of a client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLanguage {
    /// JSON, with comments and trailing commas where the client allows them.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// The form of an entry with a URL.
#[derive(Debug)]
pub struct EndpointForm {
    /// The key of the URL.
    pub url: &'static str,
    /// The members before the URL.
    pub before: &'static [(&'static str, FixedValue)],
    /// The members after it.
    pub after: &'static [(&'static str, FixedValue)],
    /// The form of the token, if the client can read it from a variable.
    pub token: Option<TokenForm>,
}

/// A value that is the same in every entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedValue {
    /// A text.
    Text(&'static str),
    /// A switch.
    Switch(bool),
    /// A number.
    Number(u32),
    /// A list of texts.
    List(&'static [&'static str]),
    /// The name of the entry.
    Name,
}

/// The form in which an entry refers to the variable with the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenForm {
    /// The header `Authorization` in `headers`, with the variable between two texts.
    Header(&'static str, &'static str),
    /// A key with the name of the variable.
    VariableKey(&'static str),
    /// A header, and a list of the variables that the client reads.
    HeaderAndKeys(&'static str, &'static str, &'static str),
}

/// The member that switches an entry off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntrySwitch {
    /// The key.
    pub key: &'static str,
    /// The value that switches it off.
    pub off: bool,
}

const DISABLED: Option<EntrySwitch> = Some(EntrySwitch { key: "disabled", off: true });
const ENABLED: Option<EntrySwitch> = Some(EntrySwitch { key: "enabled", off: false });

/// The form of most clients.
const URL: EndpointForm = EndpointForm { url: "url", before: &[], after: &[], token: None };

const HTTP: &[(&str, FixedValue)] = &[("type", FixedValue::Text("http"))];

const MCP_SERVERS: &[&[&str]] = &[&["mcpServers"]];

const fn home(path: &'static str) -> ClientFile {
    ClientFile { root: Home, path, moved: None, is_written: true }
}

/// A file below the home, or at `moved` in the directory that `variable` names.
const fn movable(path: &'static str, variable: &'static str, moved: &'static str) -> ClientFile {
    ClientFile { moved: Some(MovedDirectory { variable, path: moved }), ..home(path) }
}

const fn config(path: &'static str) -> ClientFile {
    ClientFile { root: Config, path, moved: None, is_written: true }
}

const fn project(path: &'static str) -> ClientFile {
    ClientFile { root: Project, path, moved: None, is_written: true }
}

/// A file with other tables than the entry of metamcp goes into.
const fn only_read(file: ClientFile) -> ClientFile {
    ClientFile { is_written: false, ..file }
}

pub(super) static CLAUDE_CODE: ClientProfile = ClientProfile {
    word: "claude-code",
    title: "Claude Code",
    programs: &["claude"],
    files: &[movable(".claude.json", "CLAUDE_CONFIG_DIR", ".claude.json"), project(".mcp.json")],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: Some(EndpointForm { before: HTTP, token: Some(TokenForm::Header("${", "}")), ..URL }),
    program: &[],
    switch: None,
};

pub(super) static CLAUDE_DESKTOP: ClientProfile = ClientProfile {
    word: "claude-desktop",
    title: "Claude Desktop",
    programs: &["claude-desktop"],
    files: &[config("Claude/claude_desktop_config.json")],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: None,
    program: &[],
    switch: None,
};

pub(super) static CURSOR: ClientProfile = ClientProfile {
    word: "cursor",
    title: "Cursor",
    programs: &["cursor", "cursor-agent"],
    files: &[home(".cursor/mcp.json"), project(".cursor/mcp.json")],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: Some(EndpointForm { token: Some(TokenForm::Header("${env:", "}")), ..URL }),
    program: &[],
    switch: None,
};

pub(super) static VSCODE: ClientProfile = ClientProfile {
    word: "vscode",
    title: "VS Code",
    programs: &["code", "codium"],
    files: &[
        config("Code/User/mcp.json"),
        only_read(config("Code/User/settings.json")),
        config("VSCodium/User/mcp.json"),
        only_read(config("VSCodium/User/settings.json")),
        project(".vscode/mcp.json"),
        only_read(project(".vscode/settings.json")),
    ],
    language: FileLanguage::Json,
    tables: &[&["servers"]],
    endpoint: Some(EndpointForm {
        before: HTTP,
        token: Some(TokenForm::Header("${env:", "}")),
        ..URL
    }),
    program: &[],
    switch: None,
};

pub(super) static CODEX: ClientProfile = ClientProfile {
    word: "codex",
    title: "Codex",
    programs: &["codex"],
    files: &[
        movable(".codex/config.toml", "CODEX_HOME", "config.toml"),
        project(".codex/config.toml"),
    ],
    language: FileLanguage::Toml,
    tables: &[&["mcp_servers"]],
    endpoint: Some(EndpointForm {
        token: Some(TokenForm::VariableKey("bearer_token_env_var")),
        ..URL
    }),
    program: &[],
    switch: ENABLED,
};

pub(super) static GEMINI: ClientProfile = ClientProfile {
    word: "gemini",
    title: "Gemini CLI",
    programs: &["gemini"],
    files: &[home(".gemini/settings.json"), project(".gemini/settings.json")],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: Some(EndpointForm {
        url: "httpUrl",
        token: Some(TokenForm::Header("${", "}")),
        ..URL
    }),
    program: &[],
    switch: None,
};

pub(super) static OPENCODE: ClientProfile = ClientProfile {
    word: "opencode",
    title: "OpenCode",
    programs: &["opencode"],
    files: &[
        config("opencode/opencode.json"),
        config("opencode/opencode.jsonc"),
        project("opencode.json"),
        project("opencode.jsonc"),
        project(".opencode/opencode.json"),
        project(".opencode/opencode.jsonc"),
    ],
    language: FileLanguage::Json,
    // The second version has a table of its own, and reads the first as well.
    tables: &[&["mcp"], &["mcp", "servers"]],
    endpoint: Some(EndpointForm {
        before: &[("type", FixedValue::Text("remote"))],
        token: Some(TokenForm::Header("{env:", "}")),
        ..URL
    }),
    program: &[],
    switch: ENABLED,
};

pub(super) static WINDSURF: ClientProfile = ClientProfile {
    word: "windsurf",
    title: "Windsurf",
    programs: &["windsurf"],
    files: &[home(".codeium/windsurf/mcp_config.json")],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: Some(EndpointForm {
        url: "serverUrl",
        token: Some(TokenForm::Header("${env:", "}")),
        ..URL
    }),
    program: &[],
    switch: DISABLED,
};

pub(super) static ZED: ClientProfile = ClientProfile {
    word: "zed",
    title: "Zed",
    programs: &["zed", "zeditor"],
    files: &[config("zed/settings.json"), project(".zed/settings.json")],
    language: FileLanguage::Json,
    tables: &[&["context_servers"]],
    endpoint: Some(URL),
    program: &[],
    switch: ENABLED,
};

pub(super) static GOOSE: ClientProfile = ClientProfile {
    word: "goose",
    title: "Goose",
    programs: &["goose"],
    files: &[config("goose/config.yaml")],
    language: FileLanguage::Yaml,
    tables: &[&["extensions"]],
    endpoint: Some(EndpointForm {
        url: "uri",
        before: &[
            ("enabled", FixedValue::Switch(true)),
            ("type", FixedValue::Text("streamable_http")),
            ("name", FixedValue::Name),
            ("description", FixedValue::Text("All MCP servers of this host")),
        ],
        after: &[("timeout", FixedValue::Number(300))],
        token: Some(TokenForm::HeaderAndKeys("${", "}", "env_keys")),
    }),
    program: &[],
    switch: ENABLED,
};

pub(super) static CLINE: ClientProfile = ClientProfile {
    word: "cline",
    title: "Cline",
    programs: &["cline"],
    files: &[
        home(".cline/data/settings/cline_mcp_settings.json"),
        config("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    ],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: Some(EndpointForm { before: &[("type", FixedValue::Text("streamableHttp"))], ..URL }),
    program: &[],
    switch: DISABLED,
};

pub(super) static COPILOT_CLI: ClientProfile = ClientProfile {
    word: "copilot-cli",
    title: "Copilot CLI",
    programs: &["copilot"],
    files: &[home(".copilot/mcp-config.json")],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: Some(EndpointForm {
        before: HTTP,
        after: &[("tools", FixedValue::List(&["*"]))],
        ..URL
    }),
    program: &[("type", FixedValue::Text("local")), ("tools", FixedValue::List(&["*"]))],
    switch: None,
};

pub(super) static KIRO: ClientProfile = ClientProfile {
    word: "kiro",
    title: "Kiro",
    programs: &["kiro", "kiro-cli"],
    files: &[home(".kiro/settings/mcp.json"), project(".kiro/settings/mcp.json")],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: Some(EndpointForm { token: Some(TokenForm::Header("${", "}")), ..URL }),
    program: &[],
    switch: DISABLED,
};

pub(super) static AMP: ClientProfile = ClientProfile {
    word: "amp",
    title: "Amp",
    programs: &["amp"],
    files: &[
        config("amp/settings.json"),
        config("amp/settings.jsonc"),
        project(".amp/settings.json"),
        project(".amp/settings.jsonc"),
    ],
    language: FileLanguage::Json,
    tables: &[&["amp.mcpServers"]],
    endpoint: Some(EndpointForm { token: Some(TokenForm::Header("${", "}")), ..URL }),
    program: &[],
    switch: None,
};

pub(super) static ROO: ClientProfile = ClientProfile {
    word: "roo",
    title: "Roo Code",
    programs: &[],
    files: &[
        config("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        project(".roo/mcp.json"),
    ],
    language: FileLanguage::Json,
    tables: MCP_SERVERS,
    endpoint: Some(EndpointForm {
        before: &[("type", FixedValue::Text("streamable-http"))],
        token: Some(TokenForm::Header("${env:", "}")),
        ..URL
    }),
    program: &[],
    switch: DISABLED,
};
