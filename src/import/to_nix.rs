//! The output of an import as a NixOS module.
//!
//! Pure. The layout follows `nixfmt`, so the module needs no reformatting.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    credentials::ServerCredential,
    plan::{ImportPlan, ImportState, ImportedServer},
    report::{self, ReportTarget},
    server_conversion::ServerSetting,
};
use crate::config::secret::SECRET_TABLES;

/// The reserved words. Source: the Nix manual.
const KEYWORDS: [&str; 10] =
    ["assert", "else", "if", "in", "inherit", "let", "or", "rec", "then", "with"];

impl ImportPlan {
    /// Returns a module that sets `services.metamcp.servers`, and `services.metamcp.credentials`
    /// for the credentials that a server's table cannot declare. Unused servers become comments.
    pub fn to_nix(&self) -> String {
        let mut out = Writer::default();
        for line in report::head(self, ReportTarget::Module) {
            out.comment(&line);
        }
        out.open("{");
        out.open("services.metamcp = {");
        if !self.servers.is_empty() {
            out.open("servers = {");
            for (index, server) in self.servers.iter().enumerate() {
                if index > 0 {
                    out.blank();
                }
                for line in report::about(self, server) {
                    out.comment(&line);
                }
                write(&mut out, server);
            }
            out.close("};");
        }
        let shared: BTreeSet<String> =
            self.active().flat_map(|server| ModuleServer::of(server).shared).collect();
        if !shared.is_empty() {
            out.open("credentials = {");
            for (credential, _) in self.credentials() {
                if shared.contains(&credential.name) {
                    let path = string(&credential.path());
                    out.line(&format!("{} = {path};", name(&credential.name)));
                }
            }
            out.close("};");
        }
        out.close("};");
        out.close("}");
        out.text
    }
}

fn write(out: &mut Writer, server: &ImportedServer) {
    let settings = &server.converted.settings;
    match &server.state {
        ImportState::Active => {}
        ImportState::Disabled => out.comments_from = Some(out.depth),
        ImportState::Refused(_) if settings.is_empty() => return,
        ImportState::Refused(_) => out.comments_from = Some(out.depth),
    }
    out.open(&format!("{} = {{", name(server.name.as_str())));
    let declared = ModuleServer::of(server);
    for (key, setting) in settings {
        match setting {
            ServerSetting::Table(_) if SECRET_TABLES.contains(key) => {
                if !declared.values.is_empty() {
                    table(out, key, &declared.values);
                }
                if !declared.credentials.is_empty() {
                    table(out, "credentials", &declared.credentials);
                }
            }
            setting => assign(out, key, setting),
        }
    }
    if declared.must_spawn {
        out.line("# A separate unit has no variables of the service.");
        out.line("isolation = \"spawn\";");
    } else {
        if declared.keeps_files {
            out.line("# The packages that it fetches are kept below its home.");
            out.line("sandbox.state = true;");
        }
        if declared.is_at_home {
            out.line(
                "# The sandbox hides /home and /root: list the paths that the server needs in",
            );
            out.line("# sandbox.readOnlyPaths or sandbox.writablePaths.");
        }
    }
    out.close("};");
    out.comments_from = None;
}

/// The programs that fetch packages to run, and store them below `$HOME`.
const FETCHING_PROGRAMS: [&str; 10] =
    ["bun", "bunx", "deno", "npm", "npx", "pipx", "pnpm", "uv", "uvx", "yarn"];

/// The parts of a server that the module declares differently from the configuration file.
#[derive(Default)]
struct ModuleServer {
    /// The variables or headers without a credential of the server's own.
    values: BTreeMap<String, String>,
    /// The files with secrets, by variable or header.
    credentials: BTreeMap<String, String>,
    /// The credentials that the values refer to.
    shared: BTreeSet<String>,
    /// The values refer to variables of the service.
    must_spawn: bool,
    /// The server writes below its home, which needs an option.
    keeps_files: bool,
    /// The values refer to files in home directories.
    is_at_home: bool,
}

impl ModuleServer {
    fn of(server: &ImportedServer) -> Self {
        let mut declared = Self::default();
        let known = &server.converted.credentials;
        for (key, setting) in &server.converted.settings {
            match setting {
                ServerSetting::Table(members) if SECRET_TABLES.contains(key) => {
                    members.iter().for_each(|(name, value)| declared.add(name, value, known));
                    declared.is_at_home |= declared.values.values().any(|value| is_at_home(value));
                    declared.must_spawn |= *key == "env"
                        && declared.values.values().any(|value| value.starts_with("env:"));
                }
                ServerSetting::Text(text) => declared.is_at_home |= is_at_home(text),
                ServerSetting::List(items) => {
                    declared.is_at_home |= items.iter().any(|item| is_at_home(item));
                }
                ServerSetting::Keys(keys) => {
                    let texts = keys.values().filter_map(|setting| match setting {
                        ServerSetting::Text(text) => text.strip_prefix("credential:"),
                        _ => None,
                    });
                    declared.shared.extend(texts.map(str::to_owned));
                }
                ServerSetting::Table(_) | ServerSetting::Switch(_) => {}
            }
        }
        let program = report::program(server);
        declared.keeps_files =
            program.is_some_and(|program| FETCHING_PROGRAMS.contains(&program.as_str()));
        declared
    }

    fn add(&mut self, key: &str, value: &str, known: &[ServerCredential]) {
        let credential = value.strip_prefix("credential:");
        // A server's credential is named after its variable or header, which must be a plain name.
        let is_plain = |found: char| found.is_ascii_alphanumeric() || "_-.".contains(found);
        match credential.and_then(|name| known.iter().find(|known| known.name == name)) {
            Some(credential) if key.chars().all(is_plain) => {
                self.credentials.insert(key.to_owned(), credential.path());
                return;
            }
            Some(credential) => {
                self.shared.insert(credential.name.clone());
            }
            None => {}
        }
        self.values.insert(key.to_owned(), value.to_owned());
    }
}

/// Returns `true` if a text contains a path below a home; a URL's path is on another host.
fn is_at_home(text: &str) -> bool {
    !text.contains("://") && ["/home/", "/root/"].iter().any(|place| text.contains(place))
}

/// Writes a key with its value.
fn assign(out: &mut Writer, key: &str, setting: &ServerSetting) {
    match setting {
        ServerSetting::Text(text) => out.line(&format!("{key} = {};", string(text))),
        ServerSetting::Switch(is_on) => out.line(&format!("{key} = {is_on};")),
        ServerSetting::List(items) => list(out, key, items),
        ServerSetting::Table(members) => table(out, key, members),
        ServerSetting::Keys(keys) => {
            out.open(&format!("{key} = {{"));
            keys.iter().for_each(|(key, setting)| assign(out, key, setting));
            out.close("};");
        }
    }
}

fn list(out: &mut Writer, key: &str, items: &[String]) {
    if let [item] = items {
        out.line(&format!("{key} = [ {} ];", string(item)));
        return;
    }
    out.open(&format!("{key} = ["));
    items.iter().for_each(|item| out.line(&string(item)));
    out.close("];");
}

fn table(out: &mut Writer, key: &str, members: &BTreeMap<String, String>) {
    out.open(&format!("{key} = {{"));
    for (member, value) in members {
        out.line(&format!("{} = {};", name(member), string(value)));
    }
    out.close("};");
}

/// Returns an attribute name, in quotes if needed.
pub(crate) fn name(text: &str) -> String {
    let is_part = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '-' | '\'');
    let is_name = text.starts_with(|found: char| found.is_ascii_alphabetic() || found == '_')
        && text.chars().all(is_part)
        && !KEYWORDS.contains(&text);
    if is_name { text.to_owned() } else { string(text) }
}

/// Returns a string literal without interpolation.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for found in text.chars() {
        match found {
            '"' | '\\' => quoted.extend(['\\', found]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // `$` needs the escape only before a brace, but accepts it everywhere.
            '$' => quoted.push_str("\\$"),
            _ => quoted.push(found),
        }
    }
    quoted.push('"');
    quoted
}

/// An indenting writer, which can turn lines into comments.
#[derive(Default)]
struct Writer {
    text: String,
    depth: usize,
    /// The depth at which comment mode began; `None` outside comment mode.
    comments_from: Option<usize>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        let outer = self.comments_from.unwrap_or(self.depth);
        let inner = "  ".repeat(self.depth - outer.min(self.depth));
        match self.comments_from {
            Some(_) => self.put(outer, &format!("# {inner}{}", report::one_line(line))),
            None => self.put(outer, line),
        }
    }

    fn comment(&mut self, line: &str) {
        self.put(self.depth, format!("# {}", report::one_line(line)).trim_end());
    }

    fn put(&mut self, depth: usize, line: &str) {
        self.text.push_str(&format!("{}{line}\n", "  ".repeat(depth)));
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    fn close(&mut self, line: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }
}
