//! From TOML text to [`Config`], or to a diagnostic that points at the offending text.

use std::{
    collections::BTreeMap,
    fmt, io,
    net::SocketAddr,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{
    Config, Listen, LogLevel, RootView, Server, Service, Transport, defaults, duration, server,
};
use crate::name::ServerName;

/// Reads and checks the configuration file at `path`.
///
/// # Errors
///
/// [`LoadError`] when the file cannot be read or says something that is not meant.
pub fn file(path: &Path) -> Result<Config, LoadError> {
    let bytes =
        std::fs::read(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    // Editors may mark the beginning of a file; it means nothing.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let (text, problem) = match std::str::from_utf8(bytes) {
        Ok(text) => match parse(text) {
            Ok(config) => return Ok(config),
            Err(problem) => (text.to_owned(), problem),
        },
        Err(error) => {
            let at = error.valid_up_to();
            let problem = Problem::at(at..at + 1, "not UTF-8").help("save the file as UTF-8");
            (String::from_utf8_lossy(bytes).into_owned(), problem)
        }
    };
    Err(LoadError::Content(Box::new(problem.locate(path, &text))))
}

/// How much of a line is shown, in characters.
const SHOWN_CHARACTERS: usize = 120;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("read configuration `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file says something that is not meant.
    #[error("{0}")]
    Content(Box<Diagnostic>),
}

/// One mistake in a file, with its place and the remedy.
///
/// Prints like a compiler's message: what, where, the line with the text underlined, and help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    text: String,
    width: usize,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, column, message, text, .. } = self;
        // A long line is shown from a little before the place.
        let skipped =
            if text.chars().count() > SHOWN_CHARACTERS { column.saturating_sub(40) } else { 0 };
        let text: String = text.chars().skip(skipped).take(SHOWN_CHARACTERS).collect();
        let width = self.width.min(SHOWN_CHARACTERS);
        let indent = (column - 1).saturating_sub(skipped);
        let margin = " ".repeat(line.to_string().len());
        writeln!(f, "{message}")?;
        writeln!(f, "{margin}--> {}:{line}:{column}", path.display())?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{line} | {text}")?;
        write!(f, "{margin} | {}{}", " ".repeat(indent), "^".repeat(width))?;
        if let Some(help) = &self.help {
            write!(f, "\n{margin} = help: {help}")?;
        }
        Ok(())
    }
}

/// One mistake, by its place in the text.
#[derive(Debug)]
pub(super) struct Problem {
    span: Range<usize>,
    message: String,
    help: Option<String>,
}

impl Problem {
    pub(super) fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn locate(self, path: &Path, text: &str) -> Diagnostic {
        let start = floor_char_boundary(text, self.span.start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = text[line_start..].lines().next().unwrap_or_default();
        let end = floor_char_boundary(text, self.span.end.max(start));
        let on_line = end.min(line_start + line_text.len()).max(start);
        let column = text[line_start..start].chars().count() + 1;
        // A tab would move the underline.
        let mut shown = line_text.replace('\t', " ");
        let mut message = self.message;
        if holds_values(text, line_start, line_text) {
            shown = masked(&shown);
            message = masked(&message);
        }
        Diagnostic {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column,
            message,
            help: self.help,
            text: shown,
            width: text[start..on_line].chars().count().max(1),
        }
    }
}

/// Tells whether a line belongs to the `env` or `headers` of a server, whose values are not shown.
fn holds_values(text: &str, line_start: usize, line: &str) -> bool {
    let is_values = |word: &str| matches!(word, "env" | "headers");
    let words = |text: &str| {
        text.split(|found: char| !found.is_ascii_alphanumeric() && found != '_')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    if words(line).iter().any(|word| is_values(word)) {
        return true;
    }
    // In a table of its own, or in a value that began on an earlier line.
    let before = &text[..line_start];
    let header_start = before.rfind("\n[").map_or(0, |at| at + 1);
    let section = &before[header_start..];
    let header = section.lines().next().unwrap_or_default();
    let is_own_table = header.starts_with('[') && words(header).iter().any(|word| is_values(word));
    is_own_table || words(section).iter().any(|word| is_values(word)) && is_open(section)
}

/// Tells whether a bracket is open at the end of some TOML, strings aside as far as that matters.
fn is_open(text: &str) -> bool {
    let count = |found: char| text.matches(found).count();
    count('{') > count('}') || text.matches("\"\"\"").count() % 2 == 1
}

/// Returns `text` with everything between quotes masked, except the keys of a table.
fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find(['"', '\'']) {
        let quote = &rest[open..=open];
        let (before, inside) = (&rest[..=open], &rest[open + 1..]);
        // A quote that is not closed hides all that follows.
        let close = inside.find(quote).unwrap_or(inside.len());
        let after = inside.get(close + 1..).unwrap_or_default();
        masked.push_str(before);
        if after.trim_start().starts_with('=') {
            masked.push_str(&inside[..close]);
        } else {
            masked.extend(inside[..close].chars().map(|_| '*'));
        }
        masked.push_str(inside.get(close..=close).unwrap_or_default());
        rest = after;
    }
    masked.push_str(rest);
    masked
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    service: ServiceTable,
    listen: ListenTable,
    servers: BTreeMap<Spanned<String>, server::Table>,
}

/// [`Service`] with the places of the keys that other rules look at.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServiceTable {
    request_timeout: Option<Spanned<Span>>,
    max_total_timeout: Option<Span>,
    shutdown_timeout: Option<Span>,
    log_level: Option<LogLevel>,
}

/// A duration as it is written in the file.
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        duration::deserialize(deserializer).map(Self)
    }
}

/// [`Listen`] with the places of the keys that other rules look at.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ListenTable {
    http: Option<Spanned<SocketAddr>>,
    control: Option<Spanned<PathBuf>>,
    root: Option<Spanned<RootView>>,
    allowed_hosts: Vec<Spanned<String>>,
    allowed_origins: Vec<Spanned<String>>,
}

/// Reads and checks the text of a configuration file.
fn parse(text: &str) -> Result<Config, Problem> {
    let file: File = toml::from_str(text).map_err(|error| from_toml(&error, text))?;
    let service = service(file.service)?;
    let http = loopback(file.listen.http.as_ref())?;
    let mut servers = BTreeMap::new();
    for (name, table) in file.servers {
        let span = name.span();
        let name = ServerName::new(name.get_ref()).map_err(|error| {
            Problem::at(span.clone(), error.to_string()).help(format!(
                "use 1 to {} letters, digits, `-` and single `_`",
                ServerName::LENGTH_MAX
            ))
        })?;
        let server = table.into_server(span.clone())?;
        if let Transport::Http { url, .. } = &server.transport
            && is_ourselves(url, http)
        {
            return Err(Problem::at(span, format!("server `{name}` is this service itself"))
                .help("its `url` has the address that `listen.http` has: a call would never end"));
        }
        servers.insert(name, server);
    }
    let root = root(file.listen.root, &servers)?;
    let control = file.listen.control.map(control_path).transpose()?;
    let allowed_hosts = words(file.listen.allowed_hosts, is_host, "a host name without port")?;
    let allowed_origins =
        words(file.listen.allowed_origins, is_origin, "an origin such as `https://name`")?;
    let listen = Listen { http, control, root, allowed_hosts, allowed_origins };
    Ok(Config { service, listen, servers })
}

/// Tells whether a URL leads to our own port, under whatever name of this host.
fn is_ourselves(url: &hyper::Uri, ours: SocketAddr) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_local && url.port_u16().unwrap_or(80) == ours.port()
}

fn service(table: ServiceTable) -> Result<Service, Problem> {
    let defaults = Service::default();
    let in_all = table.max_total_timeout.map_or(defaults.max_total_timeout, |found| found.0);
    let silent = match table.request_timeout {
        Some(silent) if silent.get_ref().0 > in_all => {
            let message = "`request_timeout` is longer than `max_total_timeout`";
            return Err(Problem::at(silent.span(), message).help(
                "a request may not stay silent for longer than it may take: raise the latter",
            ));
        }
        Some(silent) => silent.into_inner().0,
        // A short bound for the whole shortens the default for silence.
        None => defaults.request_timeout.min(in_all),
    };
    Ok(Service {
        request_timeout: silent,
        max_total_timeout: in_all,
        shutdown_timeout: table.shutdown_timeout.map_or(defaults.shutdown_timeout, |found| found.0),
        log_level: table.log_level.unwrap_or(defaults.log_level),
    })
}

fn loopback(address: Option<&Spanned<SocketAddr>>) -> Result<SocketAddr, Problem> {
    let Some(address) = address else { return Ok(defaults::HTTP_ADDRESS) };
    if !address.get_ref().ip().is_loopback() {
        let message = format!("`{}` is not a loopback address", address.get_ref());
        return Err(Problem::at(address.span(), message).help(
            "anyone who reaches the port may run every tool: listen on 127.0.0.1 and put a proxy with TLS and authentication in front",
        ));
    }
    Ok(*address.get_ref())
}

/// The longest path of a Unix socket, in bytes. Source: unix(7), 108 with the final NUL.
const SOCKET_PATH_BYTES_MAX: usize = 107;

fn control_path(path: Spanned<PathBuf>) -> Result<PathBuf, Problem> {
    let span = path.span();
    let path = path.into_inner();
    let length = path.as_os_str().len();
    if !path.is_absolute() || path.file_name().is_none() {
        return Err(Problem::at(span, "`control` is not an absolute path of a socket")
            .help("write one, as in \"/run/metamcp/control.sock\""));
    }
    if length > SOCKET_PATH_BYTES_MAX {
        let message = format!("a path of {length} bytes is longer than a socket's may be");
        return Err(Problem::at(span, message)
            .help(format!("use one of at most {SOCKET_PATH_BYTES_MAX} bytes")));
    }
    Ok(path)
}

fn words(
    words: Vec<Spanned<String>>,
    is_one: fn(&str) -> bool,
    what: &str,
) -> Result<Vec<String>, Problem> {
    let checked = words.into_iter().map(|word| {
        if is_one(word.get_ref()) {
            return Ok(word.into_inner());
        }
        let message = format!("`{}` can never match", word.get_ref());
        Err(Problem::at(word.span(), message).help(format!("write {what}")))
    });
    checked.collect()
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && !text.contains([':', '/', ' '])
        || text.parse::<std::net::Ipv6Addr>().is_ok()
}

fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.contains(['/', ' '])
    })
}

fn root(
    view: Option<Spanned<RootView>>,
    servers: &BTreeMap<ServerName, Arc<Server>>,
) -> Result<RootView, Problem> {
    let Some(view) = view else { return Ok(RootView::Direct) };
    let span = view.span();
    let view = view.into_inner();
    if let RootView::Passthrough(server) = &view
        && !servers.contains_key(server)
    {
        let help = did_you_mean(server.as_str(), servers.keys().map(ServerName::as_str))
            .unwrap_or_else(|| format!("declare `[servers.{server}]`"));
        return Err(Problem::at(span, format!("`passthrough:{server}` names no server")).help(help));
    }
    Ok(view)
}

/// Turns the parser's message into ours, with a suggestion for a word it did not expect.
fn from_toml(error: &toml::de::Error, text: &str) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let message = error.message().trim_end().replace('\n', ", ");
    // serde's wording: "unknown field `comand`, expected one of `command`, `url`".
    let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
    let help = if message.starts_with("unknown field") || message.starts_with("unknown variant") {
        let found = quoted.next().unwrap_or_default();
        let expected: Vec<String> = quoted.collect();
        did_you_mean(&found, expected.iter().map(String::as_str))
            .or_else(|| Some(format!("known here: {}", expected.join(", "))))
    } else if message.contains("expected a duration") {
        Some("write a number and a unit, as in \"250ms\", \"30s\" or \"5m\"".to_owned())
    } else if let Some((_, expected)) = message.split_once(", expected ")
        && message.starts_with("invalid type")
    {
        written_as(expected)
    } else if message.contains("is out of range") {
        Some("leave the key out for its default".to_owned())
    } else if message.contains("is not a view") {
        Some("write \"direct\" or, for one server as it is, \"passthrough:SERVER\"".to_owned())
    } else if message.contains("duplicate key") {
        Some("a name can be declared only once: rename or remove one".to_owned())
    } else if message.contains("invalid socket address") {
        Some("write an address and a port, as in \"127.0.0.1:12011\"".to_owned())
    } else {
        None
    };
    let message = match message.split_once(", expected one of") {
        Some((head, _)) if help.is_some() => {
            head.replace("unknown field", "unknown key").replace("unknown variant", "unknown value")
        }
        _ => message.replace("unknown field", "unknown key"),
    };
    // The parser marks a whole table where a value in it is missing: its first line is enough.
    let end = text[span.start.min(text.len())..]
        .find('\n')
        .map_or(span.end, |newline| span.end.min(span.start + newline));
    Problem { span: span.start..end.max(span.start), message, help }
}

/// Returns how a value of the expected type is written.
fn written_as(expected: &str) -> Option<String> {
    let example = match expected {
        "a string" => "put it in quotes, as in \"text\"",
        "a sequence" => "write a list, as in [\"one\", \"two\"]",
        "a map" => "write a table, as in { NAME = \"value\" }",
        "a boolean" => "write true or false",
        _ if expected.starts_with("struct") => {
            "write a table: its name in brackets on a line of its own"
        }
        _ if expected.contains("socket address") => {
            "write an address and a port, as in \"127.0.0.1:12011\""
        }
        _ => return None,
    };
    Some(example.to_owned())
}

/// Returns a question with the known word nearest to `found`, if one is near.
fn did_you_mean<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let nearest = known
        .map(|known| (strsim::damerau_levenshtein(found, known), known))
        .min_by_key(|(distance, _)| *distance)?;
    (nearest.0 <= 1.max(found.len() / 3)).then(|| format!("did you mean `{}`?", nearest.1))
}

#[cfg(test)]
mod tests;
