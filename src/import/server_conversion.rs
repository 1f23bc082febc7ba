//! The conversion of one declared server to a server of the metamcp configuration.
//!
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    credentials::{CredentialIdentity, CredentialNames, ServerCredential},
    foreign_server::{ForeignServer, ForeignTransport},
    secret_detection::{HIDDEN, SCHEMES, is_secret, is_secret_name, looks_secret},
    shell_arguments::{self, ArgumentPart, line_has_secret},
    variable_syntax::{ForeignText, TextPiece},
};
use crate::{
    config::{LifecycleConfig, stateful_servers, variables},
    server_name::ServerName,
    time_format::in_seconds,
};

/// A value of one key of a server's table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum ServerSetting {
    Text(String),
    List(Vec<String>),
    Table(BTreeMap<String, String>),
}

/// The configuration of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConvertedServer {
    /// The keys, in the order of output.
    pub(super) settings: Vec<(&'static str, ServerSetting)>,
    /// The reason why it cannot be used.
    pub(super) refused: Option<String>,
    /// The credentials that it refers to.
    pub(super) credentials: Vec<ServerCredential>,
    /// The environment variables of the service that it refers to.
    pub(super) variables: BTreeSet<String>,
    /// The differences from the declaration, in words.
    pub(super) changes: Vec<String>,
}

/// Converts one server, which gets the name `name`.
pub(super) fn convert(
    foreign: &ForeignServer,
    name: &ServerName,
    names: &mut CredentialNames,
) -> ConvertedServer {
    let mut converter = Converter { foreign, name, names, out: ConvertedServer::default() };
    match &foreign.transport {
        Ok(ForeignTransport::Program { command, args, env, cwd }) => {
            converter.program(command, args, env, cwd.as_ref());
        }
        Ok(ForeignTransport::Endpoint { url, headers }) => converter.endpoint(url, headers),
        Err(reason) => converter.refuse(reason.clone()),
    }
    converter.times();
    converter.out
}

struct Converter<'a> {
    foreign: &'a ForeignServer,
    name: &'a ServerName,
    names: &'a mut CredentialNames,
    out: ConvertedServer,
}

impl Converter<'_> {
    /// Records a reason for refusal; the first one counts.
    fn refuse(&mut self, reason: String) {
        self.out.refused.get_or_insert(reason);
    }

    fn set(&mut self, key: &'static str, setting: ServerSetting) {
        let is_empty = match &setting {
            ServerSetting::Text(_) => false,
            ServerSetting::List(items) => items.is_empty(),
            ServerSetting::Table(members) => members.is_empty(),
        };
        if !is_empty {
            self.out.settings.push((key, setting));
        }
    }

    fn program(
        &mut self,
        command: &ForeignText,
        args: &[ForeignText],
        env: &BTreeMap<String, ForeignText>,
        cwd: Option<&ForeignText>,
    ) {
        let mut variables = BTreeMap::new();
        for (name, value) in env {
            if !is_variable(name) {
                self.out.changes.push("a variable with an invalid name is left out".to_owned());
                continue;
            }
            let value = self.reference(name, value, false);
            variables.insert(name.clone(), value);
        }
        let (command, args) = self.command_line(command, args, &mut variables);
        if let Some(state) = stateful_servers::state_kept_by(&command, &args) {
            self.out.changes.push(format!(
                "all clients share {state}; with `sharing = \"session\"` each has its own"
            ));
        }
        self.set("command", ServerSetting::Text(command));
        self.set("args", ServerSetting::List(args));
        self.set("env", ServerSetting::Table(variables));
        if let Some(cwd) = cwd {
            match cwd.as_plain() {
                Some(path) if looks_secret(path) => {
                    self.refuse("its `cwd` looks like a secret".to_owned());
                }
                Some(path) => self.set("cwd", ServerSetting::Text(path.to_owned())),
                None => self.refuse("its `cwd` contains variables".to_owned()),
            }
        }
    }

    /// Returns the program and its arguments, or a shell command that expands variables in them.
    fn command_line(
        &mut self,
        command: &ForeignText,
        args: &[ForeignText],
        variables: &mut BTreeMap<String, String>,
    ) -> (String, Vec<String>) {
        let mut words = Vec::new();
        let mut flag = None;
        for (index, argument) in std::iter::once(command).chain(args).enumerate() {
            words.push(shell_arguments::parts(flag, argument, index));
            flag = argument.as_plain().filter(|_| index > 0);
        }
        let is_plain = |parts: &Vec<ArgumentPart>| {
            !parts.iter().any(|part| matches!(part, ArgumentPart::Value { .. }))
        };
        if words.iter().all(is_plain) {
            let whole = |text: &ForeignText| text.as_plain().unwrap_or_default().to_owned();
            return (whole(command), args.iter().map(whole).collect());
        }
        let mut line = "exec".to_owned();
        for parts in words {
            line.push(' ');
            if parts.is_empty() {
                line.push_str("''");
            }
            for part in parts {
                match part {
                    ArgumentPart::Text(text) => line.push_str(&shell_arguments::quoted(&text)),
                    ArgumentPart::Value { key, value } => {
                        let name = self.variable(&key, &value, variables);
                        line.push_str(&format!("\"${name}\""));
                    }
                }
            }
        }
        let change = "its arguments contain secrets or variables, so a shell inserts their values";
        self.out.changes.push(change.to_owned());
        ("/bin/sh".to_owned(), vec!["-c".to_owned(), line])
    }

    /// Returns the name of an environment variable of the child that holds `value`.
    fn variable(
        &mut self,
        key: &str,
        value: &ForeignText,
        variables: &mut BTreeMap<String, String>,
    ) -> String {
        let reference = self.reference(key, value, true);
        // The name of the client's own variable is suitable.
        let base = match &value.0[..] {
            [TextPiece::Variable { name, .. }] => name.clone(),
            _ => shell_arguments::variable(key),
        };
        let mut name = base.clone();
        let mut n_tries = 1;
        while variables.get(&name).is_some_and(|known| *known != reference) {
            n_tries += 1;
            name = format!("{base}_{n_tries}");
        }
        variables.insert(name.clone(), reference);
        name
    }

    fn endpoint(&mut self, url: &ForeignText, headers: &BTreeMap<String, ForeignText>) {
        let shown = shown_url(url);
        if url.as_plain().is_none() {
            self.refuse("its `url` contains variables: write their values instead".to_owned());
        } else if url.as_plain() != Some(&shown) {
            self.refuse("its `url` contains a secret: send it in a header instead".to_owned());
        }
        self.set("url", ServerSetting::Text(shown));
        let mut table = BTreeMap::new();
        for (name, value) in headers {
            if !variables::is_header(name) {
                self.out.changes.push("a header that only metamcp may set is left out".to_owned());
                continue;
            }
            let value = self.reference(name, value, false);
            table.insert(name.clone(), value);
        }
        self.set("headers", ServerSetting::Table(table));
    }

    /// Returns a value of `env` or `headers`: a literal, or a reference to a stored value.
    fn reference(&mut self, key: &str, value: &ForeignText, must_be_reference: bool) -> String {
        if let Some(word) = value.foreign() {
            self.refuse(format!("it uses `${{{word}}}`, which only {} understands", self.client()));
            return String::new();
        }
        match &value.0[..] {
            [TextPiece::Variable { name, has_default }] => {
                if *has_default {
                    let client = self.client();
                    self.out.changes.push(format!(
                        "the default of {client} for `{name}` is not imported: set the variable"
                    ));
                }
                self.out.variables.insert(name.clone());
                return format!("env:{name}");
            }
            [TextPiece::Input(id)] => return self.input_reference(key, id),
            [TextPiece::File(path)] => {
                let (holds, file) = match looks_secret(path) {
                    true => ("the content of the file named there".to_owned(), None),
                    false => (format!("the content of {path}"), Some(path.clone())),
                };
                let file = file.filter(|path| path.starts_with('/'));
                return self.credential(CredentialIdentity::File(path.clone()), key, holds, file);
            }
            _ => {}
        }
        let identity = |value: String| CredentialIdentity::Value { key: key.to_owned(), value };
        let Some(text) = value.as_plain() else {
            return self.credential(identity(format!("{value:?}")), key, description(value), None);
        };
        // A literal in the form of a reference would be misread as one.
        let is_misread = text.starts_with("credential:") || text.starts_with("env:");
        if must_be_reference || is_misread || is_secret(key, text) || line_has_secret(text) {
            let holds = match key.strip_prefix(shell_arguments::NAMELESS) {
                Some(index) => format!("the argument number {index}"),
                None => format!("the value of `{key}`"),
            };
            return self.credential(identity(text.to_owned()), key, holds, None);
        }
        text.to_owned()
    }

    /// Returns a reference to a value that the client asks its user for.
    fn input_reference(&mut self, key: &str, id: &str) -> String {
        let prompt = self.foreign.inputs.get(id).filter(|prompt| {
            let has_secret = looks_secret(id) || looks_secret(prompt) || line_has_secret(prompt);
            !prompt.is_empty() && !has_secret
        });
        let prompt = prompt.map(|prompt| format!(": {prompt}")).unwrap_or_default();
        let holds = format!("the value that {} asks for{prompt}", self.client());
        let file = self.foreign.origin.file.clone();
        let identity = CredentialIdentity::Input { file, id: id.to_owned() };
        self.credential(identity, if looks_secret(id) { key } else { id }, holds, None)
    }

    fn client(&self) -> &'static str {
        self.foreign.origin.format.client()
    }

    fn credential(
        &mut self,
        identity: CredentialIdentity,
        key: &str,
        holds: String,
        file: Option<String>,
    ) -> String {
        let name = self.names.name(identity, self.name, key);
        let reference = format!("credential:{name}");
        if !self.out.credentials.iter().any(|known| known.name == name) {
            self.out.credentials.push(ServerCredential { name, holds, file });
        }
        reference
    }

    /// Sets the keys with durations.
    fn times(&mut self) {
        if let Some(ms) = self.foreign.start_timeout_ms {
            self.set("start_timeout", ServerSetting::Text(in_seconds(ms)));
        }
        let lifecycle = match self.foreign.lifecycle {
            None | Some(LifecycleConfig::Pooled) => return,
            Some(LifecycleConfig::KeepAlive { idle_timeout: None }) => {
                ServerSetting::Text("keep-alive".to_owned())
            }
            Some(LifecycleConfig::KeepAlive { idle_timeout: Some(idle) }) => {
                let ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
                let table = [("mode", "keep-alive".to_owned()), ("idle_timeout", in_seconds(ms))];
                ServerSetting::Table(table.map(|(key, value)| (key.to_owned(), value)).into())
            }
            Some(LifecycleConfig::Ephemeral) => ServerSetting::Text("ephemeral".to_owned()),
        };
        self.set("lifecycle", lifecycle);
    }
}

/// Returns `true` for names that every shell accepts; a secret in place of a name is rejected.
fn is_variable(name: &str) -> bool {
    let is_part = |found: char| found.is_ascii_alphanumeric() || found == '_';
    name.chars().all(is_part) && name.starts_with(|found: char| !found.is_ascii_digit())
}

/// Describes the parts of a composite value; literal text is omitted, except a scheme.
fn description(value: &ForeignText) -> String {
    let describe = |piece: &TextPiece| match piece {
        TextPiece::Text(text) if SCHEMES.contains(&text.as_str()) => format!("`{text}`"),
        TextPiece::Text(_) => "the text there".to_owned(),
        TextPiece::Variable { name, .. } => format!("the value of ${name}"),
        TextPiece::Input(_) => "the value that is asked for".to_owned(),
        TextPiece::File(_) => "the content of the file there".to_owned(),
        TextPiece::Foreign(word) => format!("`{word}`"),
    };
    let parts: Vec<String> = value.0.iter().map(describe).collect();
    format!("{}, joined", parts.join(" and "))
}

/// Returns a URL for display: with the names of variables, and without secrets.
fn shown_url(url: &ForeignText) -> String {
    let show = |piece: &TextPiece| match piece {
        TextPiece::Text(text) => text.clone(),
        TextPiece::Variable { name, .. } => format!("${{{name}}}"),
        TextPiece::Input(_) | TextPiece::File(_) | TextPiece::Foreign(_) => HIDDEN.to_owned(),
    };
    let whole: String = url.0.iter().map(show).collect();
    let (scheme, rest) = whole.split_once("://").unwrap_or(("", &whole));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (mut authority, rest) = (rest[..end].to_owned(), &rest[end..]);
    // A password may contain a slash; then the rest is not a path.
    let mut rest = rest.to_owned();
    if let Some(at) = rest.rfind('@')
        && looks_secret(&whole)
        && authority.contains(':')
        && !authority.contains('@')
    {
        (authority, rest) = (HIDDEN.to_owned(), rest[at..].to_owned());
    }
    if let Some((_, host)) = authority.rsplit_once('@') {
        authority = format!("{HIDDEN}@{host}");
    }
    let mut shown = match scheme {
        "" => authority,
        scheme => format!("{scheme}://{authority}"),
    };
    for part in rest.split_inclusive(['/', '?', '#', '&']) {
        let border = part.find(['/', '?', '#', '&']).unwrap_or(part.len());
        let (word, border) = part.split_at(border);
        match word.split_once('=') {
            Some((name, value))
                if !value.is_empty() && (is_secret_name(name) || looks_secret(value)) =>
            {
                shown.push_str(&format!("{name}={HIDDEN}"));
            }
            _ if looks_secret(word) => shown.push_str(HIDDEN),
            _ => shown.push_str(word),
        }
        shown.push_str(border);
    }
    // If a secret remains, nothing of the URL is shown.
    match looks_secret(&shown) {
        true => HIDDEN.to_owned(),
        false => shown,
    }
}
