//! The words after the tool on the command line: its arguments, and options of metamcp. Pure.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{
    Options,
    argument_keys::{ParsedArguments, is_key, missing_value},
};
use crate::{
    cli::{Failed, quantity::time_limit},
    tool::ToolId,
};

/// The source of the arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ArgumentSource {
    /// No arguments.
    Nothing,
    /// JSON on the command line.
    Json(String),
    /// The path of a JSON file.
    File(PathBuf),
    /// JSON on standard input.
    Stdin,
    /// Words of the form `--key value`.
    Keys(Map<String, Value>),
}

/// The options of metamcp without and with a value.
const SWITCHES: [&str; 4] = ["json", "dry-run", "async", "help"];
const VALUES: [&str; 4] = ["fields", "timeout", "file", "socket"];

/// Returns `true` if the words can be understood only with the schema of the tool.
pub(super) fn needs_schema(words: &[String]) -> bool {
    words.first().is_some_and(|first| first.starts_with('-') && first != "-")
}

/// Refuses a server and its tool in two words.
///
/// # Errors
///
/// [`Failed`] with the tool's name in one word.
pub(super) fn check_tool(server: &str, words: &[String]) -> Result<(), Failed> {
    let is_name =
        |word: &&String| word.chars().all(|one| one.is_alphanumeric() || "_-.".contains(one));
    match words.first().filter(is_name) {
        Some(word) if !word.starts_with('-') && ToolId::parse(server).is_err() => {
            let text = format!("`{server}` names no tool, and `{word}` is not a JSON object");
            Err(Failed::usage(text, format!("Did you mean `metamcp call {server}/{word}`?")))
        }
        Some(_) | None => Ok(()),
    }
}

/// Reads the words; `None` asks for help on the arguments of the tool. `options` already holds the options before the tool; a key that the tool
/// declares as an argument belongs to the tool.
///
/// # Errors
///
/// [`Failed`] when a word cannot be parsed.
pub(super) fn read(
    words: &[String],
    schema: &Value,
    options: &mut Options,
) -> Result<Option<ArgumentSource>, Failed> {
    let mut arguments = ParsedArguments::new(schema);
    let mut source = None;
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "-h" {
            return Ok(None);
        }
        let Some(name) = word.strip_prefix("--").filter(|_| is_key(word)) else {
            let read = positional(word)?;
            if source.replace(read).is_some() {
                let text = format!("unexpected word `{word}` after the arguments");
                let hint =
                    "Give one JSON object, `@FILE`, `-`, or `--key value` for each argument.";
                return Err(Failed::usage(text, hint));
            }
            continue;
        };
        let (key, given) =
            name.split_once('=').map_or((name, None), |(key, value)| (key, Some(value)));
        // A key that the tool permits but does not declare is an option of metamcp.
        let is_option = SWITCHES.contains(&key) || VALUES.contains(&key);
        // Keys cannot be combined with JSON. The socket is needed before the schema is known.
        let is_open = source.is_none() && key != "socket";
        let found = if is_open { arguments.find(key) } else { None };
        if source.is_some() && !is_option {
            return Err(conflicting_sources());
        }
        if let Some(found) = found.filter(|found| found.is_named || !is_option) {
            arguments.read_value(key, &found, given, &mut words)?;
        } else if SWITCHES.contains(&key) {
            options.switch_on(key, given)?;
            if key == "help" {
                return Ok(None);
            }
        } else if VALUES.contains(&key) {
            let text = given.or_else(|| words.next()).ok_or_else(|| missing_value(key))?;
            options.set(key, text)?;
        } else {
            let off = key.strip_prefix("no-").filter(|_| given.is_none());
            match off.and_then(|key| Some((key, arguments.find(key)?))) {
                Some((key, found)) => arguments.switch(key, &found, false)?,
                None => return Err(arguments.unknown(key, &[&SWITCHES[..], &VALUES].concat())),
            }
        }
    }
    let file = options.file.take().map(ArgumentSource::File);
    let values = Some(arguments.into_values()).filter(|values| !values.is_empty());
    let mut given = [source, file, values.map(ArgumentSource::Keys)].into_iter().flatten();
    let first = given.next().unwrap_or(ArgumentSource::Nothing);
    if given.next().is_some() {
        return Err(conflicting_sources());
    }
    Ok(Some(first))
}

impl Options {
    /// Sets one of [`SWITCHES`], except `help`, which is not an option of a call.
    fn switch_on(&mut self, key: &str, given: Option<&str>) -> Result<(), Failed> {
        if given.is_some() {
            let text = format!("`--{key}` takes no value");
            return Err(Failed::usage(text, "Leave the value out."));
        }
        match key {
            "json" => self.common.json = true,
            "dry-run" => self.dry_run = true,
            "async" => self.is_async = true,
            _ => {}
        }
        Ok(())
    }

    /// Sets one of [`VALUES`].
    fn set(&mut self, key: &str, text: &str) -> Result<(), Failed> {
        match key {
            "fields" => self.fields.extend(text.split(',').map(str::to_owned)),
            "timeout" => {
                let invalid = |error| {
                    Failed::usage(format!("invalid `--timeout`: {error}"), "Write `--timeout 30s`.")
                };
                self.timeout = Some(time_limit(text).map_err(invalid)?);
            }
            "file" => self.file = Some(text.into()),
            _ => self.common.target.socket = Some(text.into()),
        }
        Ok(())
    }
}

fn positional(word: &str) -> Result<ArgumentSource, Failed> {
    let hint = "Give the arguments as one JSON object, as `@FILE`, `-` for standard input, or as `--key value`.";
    match word {
        "-" => Ok(ArgumentSource::Stdin),
        word if word.starts_with('@') => Ok(ArgumentSource::File(word[1..].into())),
        word if word.trim_start().starts_with('{') => Ok(ArgumentSource::Json(word.to_owned())),
        word => Err(Failed::usage(format!("`{word}` is not a JSON object"), hint)),
    }
}

fn conflicting_sources() -> Failed {
    let hint = "Give one JSON object, a file, or `--key value` for each argument.";
    Failed::usage("the arguments are given in two ways", hint)
}
