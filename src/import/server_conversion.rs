//! The conversion of one declared server to a server of the metamcp configuration.
//!
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    credentials::{CredentialIdentity, CredentialNames, ServerCredential},
    foreign_server::{ForeignServer, ForeignTransport},
    secret_detection::{SCHEMES, is_secret, looks_secret},
    shell_arguments::{self, ArgumentPart, line_has_secret},
    variable_syntax::{ForeignText, TextPiece},
};
use crate::{
    config::{LifecycleConfig, stateful_servers},
    server_name::ServerName,
    time_format::in_seconds,
};

/// A value of one key of a server's table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum ServerSetting {
    Text(String),
    Switch(bool),
    List(Vec<String>),
    /// Free names with texts.
    Table(BTreeMap<String, String>),
    /// Keys of a table.
    Keys(BTreeMap<&'static str, ServerSetting>),
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
    if foreign.is_unwrapped {
        let change = "mcp-remote is left out, because metamcp connects to its URL itself";
        converter.out.changes.push(change.to_owned());
    }
    match &foreign.transport {
        Ok(ForeignTransport::Program { command, args, env, cwd }) => {
            converter.program(command, args, env, cwd.as_ref());
        }
        Ok(ForeignTransport::Endpoint(endpoint)) => converter.endpoint(endpoint),
        Err(reason) => converter.refuse(reason.clone()),
    }
    converter.times();
    converter.out
}

/// A conversion in progress.
pub(super) struct Converter<'a> {
    foreign: &'a ForeignServer,
    name: &'a ServerName,
    names: &'a mut CredentialNames,
    pub(super) out: ConvertedServer,
}

impl Converter<'_> {
    /// Records a reason for refusal; the first one counts.
    pub(super) fn refuse(&mut self, reason: String) {
        self.out.refused.get_or_insert(reason);
    }

    pub(super) fn set(&mut self, key: &'static str, setting: ServerSetting) {
        let is_empty = match &setting {
            ServerSetting::Text(_) | ServerSetting::Switch(_) => false,
            ServerSetting::List(items) => items.is_empty(),
            ServerSetting::Table(members) => members.is_empty(),
            ServerSetting::Keys(keys) => keys.is_empty(),
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
                Some(path) if !path.starts_with('/') => {
                    self.refuse(format!(
                        "its `cwd` is relative: `{}`: write an absolute path instead",
                        path.escape_debug()
                    ));
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

    /// Returns a value of `env` or `headers`: a literal, or a reference to a stored value.
    pub(super) fn reference(
        &mut self,
        key: &str,
        value: &ForeignText,
        must_be_reference: bool,
    ) -> String {
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
        self.foreign.origin.client.title()
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
