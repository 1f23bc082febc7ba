//! All sources of the configuration: defaults, the file, variables and flags, in rising order.
//!
//! Variables and flags become lines of TOML that are parsed after the file. So one parser, one set
//! of checks and one wording serve all sources. The place of a line identifies its source.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config, Diagnostic, defaults,
    diagnostic::{ConfigProblem, SettingOrigin},
    effective::{self, EffectiveValue},
    environment,
    key_paths::{self, ValueKind},
    load::{self, LoadError},
    toml_messages::from_syntax,
};

/// One setting from a variable or flag. Its value is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SourcedSetting {
    /// The variable or flag.
    pub origin: SettingOrigin,
    /// The key that it sets.
    pub target: SettingTarget,
    /// The value, as given.
    pub value: String,
}

/// The target of a [`SourcedSetting`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingTarget {
    /// The key at this path.
    Key(Vec<String>),
    /// The key as written, with dots between its parts.
    Written(String),
    /// The host of `listen.http`.
    Host,
    /// The port of `listen.http`.
    Port,
}

impl fmt::Debug for SourcedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourcedSetting").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// All sources of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ConfigSources {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// The text in place of the file if there is no file.
    pub without_file: String,
    /// The variables that may set keys, from [`environment::of_process`].
    pub variables: Vec<environment::EnvironmentVariable>,
    /// The flags, in the order given.
    pub flags: Vec<SourcedSetting>,
}

/// The result of all sources together.
#[derive(Debug)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// The source of each value that is not a default.
    pub configured: Vec<EffectiveValue>,
    /// Variables that begin with `METAMCP_` and name no key.
    pub unknown_variables: Vec<String>,
}

impl ConfigSources {
    /// Returns the sources with one file only.
    pub fn of_file(path: &Path) -> Self {
        Self { file: Some(path.to_owned()), ..Self::default() }
    }

    /// Reads the file as it is now, and checks all sources.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if the file cannot be read, or a source has a mistake.
    pub fn load(&self) -> Result<LoadedConfig, LoadError> {
        match &self.file {
            Some(path) => self.load_over(load::text(path)?),
            None => self.load_over(self.without_file.clone()),
        }
    }

    /// Checks all sources, with `bytes` as the content of the file at `path`.
    ///
    /// # Errors
    ///
    /// [`LoadError::Content`] if a source has a mistake.
    pub fn load_read(&self, path: &Path, bytes: &[u8]) -> Result<LoadedConfig, LoadError> {
        let sources = Self { file: Some(path.to_owned()), ..self.clone() };
        sources.load_over(load::decoded(path, bytes)?)
    }

    /// Checks all sources, with `base` as the text of the file.
    fn load_over(&self, base: String) -> Result<LoadedConfig, LoadError> {
        let mut layers = Layers::new(self.file.clone(), base);
        let (names, mut http) = layers.names().map_err(|problem| layers.error(problem))?;
        let found = environment::settings(&self.variables, &names).map_err(LoadError::Content)?;
        for setting in found.settings.iter().chain(&self.flags) {
            layers.add(setting, &mut http)?;
        }
        let (config, configured) = layers.read().map_err(|problem| layers.error(problem))?;
        let token = config.listen.token.as_ref();
        let is_token = |name: &String| token.is_some_and(|token| token.is_variable(name));
        let mut unknown_variables = found.unknown;
        unknown_variables.retain(|name| !is_token(name));
        Ok(LoadedConfig { config, configured, unknown_variables })
    }
}

/// The help that shows how to write lists and tables.
const VALUES: &str =
    "write it as in the file: a list as [\"one\", \"two\"], a table as { NAME = \"value\" }";

/// The names of the declared and the provisionable servers.
#[derive(Debug, Default)]
pub(super) struct ServerNames {
    pub(super) declared: Vec<String>,
    pub(super) provisionable: Vec<String>,
}

/// The text of the file, and of the lines after it.
struct Layers {
    path: PathBuf,
    text: String,
    lines: Vec<Line>,
    file_ends: usize,
}

/// One line after the file, or several if a value has line breaks.
struct Line {
    start: usize,
    origin: SettingOrigin,
    /// The number of parts of the key.
    depth: usize,
}

impl Layers {
    fn new(path: Option<PathBuf>, text: String) -> Self {
        let path = path.unwrap_or_else(|| PathBuf::from("the demonstration"));
        let file_ends = text.len();
        Self { path, text, lines: Vec::new(), file_ends }
    }

    /// Returns the names of the servers in the file, and its listen address.
    fn names(&self) -> Result<(ServerNames, String), ConfigProblem> {
        let root = parsed(&self.text, 0)?.into_inner();
        let names = |table: Option<&DeTable<'_>>| {
            let names = table.into_iter().flatten();
            names.map(|(name, _)| name.get_ref().to_string()).collect()
        };
        let declared = names(table(&root, "servers"));
        let provisionable = table(&root, "provision").and_then(|found| table(found, "servers"));
        let http = table(&root, "listen")
            .and_then(|listen| Some(listen.get("http")?.get_ref().as_str()?.to_owned()))
            .unwrap_or_else(|| defaults::HTTP_ADDRESS.to_string());
        Ok((ServerNames { declared, provisionable: names(provisionable) }, http))
    }

    /// Adds the line of one setting; `http` is the listen address so far.
    fn add(&mut self, setting: &SourcedSetting, http: &mut String) -> Result<(), LoadError> {
        let SourcedSetting { origin, target, value } = setting;
        let listen = || vec!["listen".to_owned(), "http".to_owned()];
        let (path, value) = match target {
            SettingTarget::Key(path) => (path.clone(), value.clone()),
            SettingTarget::Written(key) => {
                (path_of(key, origin).map_err(LoadError::Content)?, value.clone())
            }
            SettingTarget::Host => (listen(), with_host(http, value)),
            SettingTarget::Port => (listen(), with_port(http, value)),
        };
        if path == listen() {
            http.clone_from(&value);
        }
        let kind = key_paths::find(&path).map(|key| key.kind);
        self.text.push('\n');
        let start = self.text.len();
        let value = written(&value, kind);
        self.text.push_str(&format!("{} = {value}", dotted(&path)));
        self.lines.push(Line { start, origin: origin.clone(), depth: path.len() });
        // A value must not add other keys.
        if let Err(error) = DeValue::parse(&value) {
            let at = self.text.len() - value.len();
            return Err(
                self.error(from_syntax(&error, &value).shifted(at).with_default_help(VALUES))
            );
        }
        Ok(())
    }

    /// Parses the file and all lines, and checks the result.
    fn read(&self) -> Result<(Config, Vec<EffectiveValue>), ConfigProblem> {
        let ends = self.lines.iter().skip(1).map(|line| line.start - 1);
        let ends: Vec<usize> = ends.chain([self.text.len()]).collect();
        // Blanks before each line keep the offsets of the whole text.
        let texts: Vec<String> = self
            .lines
            .iter()
            .zip(&ends)
            .map(|(line, end)| {
                format!("{}{}", " ".repeat(line.start), &self.text[line.start..*end])
            })
            .collect();
        let mut root = parsed(&self.text[..self.file_ends], 0)?.into_inner();
        for (line, text) in self.lines.iter().zip(&texts) {
            merge(&mut root, parsed(text, 0)?.into_inner(), line.depth);
        }
        let configured = effective::values(&root, &self.text, |offset| self.origin(offset));
        let root = Spanned::new(0..self.text.len(), root);
        Ok((load::read(root, &self.text)?, configured))
    }

    /// Returns the source of the text at `offset`, and for the file the line.
    fn origin(&self, offset: usize) -> (SettingOrigin, usize) {
        match self.line_at(offset) {
            Some(line) => (line.origin.clone(), 0),
            None => {
                let before = self.text.get(..offset).unwrap_or_default();
                (SettingOrigin::File(self.path.clone()), before.matches('\n').count() + 1)
            }
        }
    }

    fn line_at(&self, offset: usize) -> Option<&Line> {
        self.lines.iter().rev().find(|line| line.start <= offset)
    }

    fn error(&self, problem: ConfigProblem) -> LoadError {
        let diagnostic = match self.line_at(problem.start()) {
            Some(line) => {
                let next = self.lines.iter().find(|other| other.start > line.start);
                let end = next.map_or(self.text.len(), |next| next.start - 1);
                problem.locate_in(line.origin.clone(), &self.text, line.start..end)
            }
            None => problem.locate(&self.path, &self.text[..self.file_ends]),
        };
        LoadError::Content(Box::new(diagnostic))
    }
}

fn parsed(text: &str, at: usize) -> Result<Spanned<DeTable<'_>>, ConfigProblem> {
    DeTable::parse(text).map_err(|error| from_syntax(&error, text).shifted(at))
}

fn table<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<&'a DeTable<'i>> {
    table.get(key)?.get_ref().as_table()
}

/// Merges `over` into `base`, down to tables that are `depth` levels deep.
fn merge<'i>(base: &mut DeTable<'i>, over: DeTable<'i>, depth: usize) {
    for (key, value) in over {
        let known = base.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut);
        let place = value.span();
        match (known, value.into_inner()) {
            (Some(DeValue::Table(below)), DeValue::Table(over)) if depth > 1 => {
                merge(below, over, depth - 1);
            }
            (_, value) => {
                // Removed first, because a map keeps its old key, and with it the old place.
                base.remove(key.get_ref().as_ref());
                base.insert(key, Spanned::new(place, value));
            }
        }
    }
}

/// Parses a key with dots between its parts, as TOML does.
fn path_of(key: &str, origin: &SettingOrigin) -> Result<Vec<String>, Box<Diagnostic>> {
    let wrong = |message: &str| {
        Diagnostic::of(origin.clone(), message).helped("write it as in `--set pool.size=30`")
    };
    let text = format!("{key} = 0");
    let Ok(root) = DeTable::parse(&text) else {
        return Err(wrong(&format!("`{}` is not a key", key.escape_debug())));
    };
    let mut path = Vec::new();
    let mut table = root.into_inner();
    while let Some((name, value)) = table.into_iter().next() {
        path.push(name.into_inner().into_owned());
        match value.into_inner() {
            DeValue::Table(below) => table = below,
            _ => break,
        }
    }
    if path.len() < 2 {
        return Err(wrong(&format!("`{}` is a section and not a key", key.escape_debug())));
    }
    Ok(path)
}

/// Writes a path as TOML does.
pub(crate) fn dotted(path: &[String]) -> String {
    path.iter().map(|name| key_text(name)).collect::<Vec<_>>().join(".")
}

/// Writes one part of a key, in quotes if it needs them.
fn key_text(name: &str) -> String {
    let is_bare = |found: char| found.is_ascii_alphanumeric() || "_-".contains(found);
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

/// Writes a text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Writes a value as TOML; texts need no quotes.
fn written(value: &str, kind: Option<ValueKind>) -> String {
    let value = value.trim();
    let is_toml = || DeValue::parse(value).is_ok();
    let is_compound = value.starts_with(['[', '{']);
    let is_quoted = value.len() > 1
        && ['"', '\''].into_iter().any(|quote| value.starts_with(quote) && value.ends_with(quote));
    let is_unchanged = match kind {
        Some(ValueKind::Text) => is_quoted && is_toml(),
        Some(ValueKind::Plain) => is_toml(),
        Some(ValueKind::Compound) => is_compound || is_quoted && is_toml(),
        Some(ValueKind::Either) => value.starts_with('{') || is_quoted && is_toml(),
        None => is_compound || is_toml(),
    };
    if is_unchanged { value.to_owned() } else { quoted(value) }
}

fn with_host(http: &str, host: &str) -> String {
    let host = if host.eq_ignore_ascii_case("localhost") { "127.0.0.1" } else { host };
    let port = http.parse::<SocketAddr>().map_or(defaults::HTTP_ADDRESS.port(), |old| old.port());
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port).to_string(),
        Err(_) => format!("{host}:{port}"),
    }
}

fn with_port(http: &str, port: &str) -> String {
    let ip = http.parse::<SocketAddr>().unwrap_or(defaults::HTTP_ADDRESS).ip();
    port.parse()
        .map_or_else(|_| format!("{ip}:{port}"), |port| SocketAddr::new(ip, port).to_string())
}

#[cfg(test)]
mod tests;
