//! The words after the tool on the command line: its arguments, and options of metamcp. Pure.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{
    Options,
    argument_keys::{ArgumentSyntaxError, ParsedArguments, is_key},
};
use crate::config::duration;

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

/// The request that the words make: a call, or help on its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HelpRequest {
    /// Call the tool.
    Call(ArgumentSource),
    /// Show the arguments of the tool.
    Help,
}

/// The options of metamcp without and with a value.
const SWITCHES: [&str; 4] = ["json", "dry-run", "async", "help"];
const VALUES: [&str; 4] = ["fields", "timeout", "file", "socket"];

/// Returns `true` if the words can be understood only with the schema of the tool.
pub(super) fn needs_schema(words: &[String]) -> bool {
    words.first().is_some_and(|first| first.starts_with('-') && first != "-")
}

/// Reads the words. `ours` holds the options before the tool already; a key that the tool declares
/// as an argument belongs to the tool.
///
/// # Errors
///
/// [`ArgumentSyntaxError`] when a word cannot be parsed.
pub(super) fn read(
    words: &[String],
    schema: &Value,
    ours: &mut Options,
) -> Result<HelpRequest, ArgumentSyntaxError> {
    let mut arguments = ParsedArguments::new(schema);
    let (mut source, mut has_keys) = (None, false);
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "-h" {
            return Ok(HelpRequest::Help);
        }
        let Some(name) = word.strip_prefix("--").filter(|_| is_key(word)) else {
            let read = positional(word)?;
            if source.replace(read).is_some() {
                let hint =
                    "Give one JSON object, `@FILE`, `-`, or `--key value` for each argument.";
                return Err(ArgumentSyntaxError::new(
                    format!("`{word}` is one word too many"),
                    hint,
                ));
            }
            continue;
        };
        let (key, given) = match name.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (name, None),
        };
        // A key that the tool permits but does not declare is an option of metamcp.
        let is_ours = SWITCHES.contains(&key) || VALUES.contains(&key);
        // Keys cannot be combined with JSON. The socket is needed before the schema is known.
        let is_open = source.is_none() && key != "socket";
        let found = if is_open { arguments.find(key) } else { None };
        if source.is_some() && !is_ours {
            return Err(twofold());
        }
        if let Some(found) = found.filter(|found| found.is_named || !is_ours) {
            has_keys = true;
            match given {
                Some(text) => arguments.add(key, &found, text)?,
                None if ParsedArguments::is_flag(&found, words.peek().copied()) => {
                    arguments.switch(key, &found, true)?;
                }
                None => {
                    let text = words.next_if(|next| !is_key(next)).ok_or_else(|| lacking(key))?;
                    arguments.add(key, &found, text)?;
                }
            }
        } else if SWITCHES.contains(&key) {
            if given.is_some() {
                return Err(ArgumentSyntaxError::new(
                    format!("`--{key}` takes no value"),
                    "Leave it out.",
                ));
            }
            match key {
                "json" => ours.reader.json = true,
                "dry-run" => ours.dry_run = true,
                "async" => ours.is_async = true,
                _ => return Ok(HelpRequest::Help),
            }
        } else if VALUES.contains(&key) {
            let text = given.or_else(|| words.next()).ok_or_else(|| lacking(key))?;
            match key {
                "fields" => ours.fields.extend(text.split(',').map(str::to_owned)),
                "timeout" => {
                    let hint = "Give one such as 5s, 500ms or 2m.";
                    ours.timeout_ms = Some(
                        milliseconds(text)
                            .map_err(|error| ArgumentSyntaxError::new(error, hint))?,
                    );
                }
                "file" => ours.file = Some(text.into()),
                _ => ours.reader.target.socket = Some(text.into()),
            }
        } else {
            let off = key.strip_prefix("no-").filter(|_| source.is_none() && given.is_none());
            match off.and_then(|key| Some((key, arguments.find(key)?))) {
                Some((key, found)) => {
                    has_keys = true;
                    arguments.switch(key, &found, false)?;
                }
                None => return Err(arguments.unknown(key, &[&SWITCHES[..], &VALUES].concat())),
            }
        }
    }
    let file = ours.file.take().map(ArgumentSource::File);
    let keys = has_keys.then(|| ArgumentSource::Keys(arguments.into_values()));
    let mut given = [source, file, keys].into_iter().flatten();
    let first = given.next().unwrap_or(ArgumentSource::Nothing);
    if given.next().is_some() {
        return Err(twofold());
    }
    Ok(HelpRequest::Call(first))
}

fn positional(word: &str) -> Result<ArgumentSource, ArgumentSyntaxError> {
    let hint = "Give the arguments as one JSON object, as `@FILE`, `-` for standard input, or as `--key value`.";
    match word {
        "-" => Ok(ArgumentSource::Stdin),
        word if word.starts_with('@') => Ok(ArgumentSource::File(word[1..].into())),
        word if word.trim_start().starts_with('{') => Ok(ArgumentSource::Json(word.to_owned())),
        word => Err(ArgumentSyntaxError::new(format!("`{word}` is no JSON object"), hint)),
    }
}

fn twofold() -> ArgumentSyntaxError {
    let hint = "Give one JSON object, a file, or `--key value` for each argument.";
    ArgumentSyntaxError::new("the arguments are given in two ways", hint)
}

fn lacking(key: &str) -> ArgumentSyntaxError {
    let hint = format!("Write it behind the key; one that begins with `--` as `--{key}=VALUE`.");
    ArgumentSyntaxError::new(format!("`--{key}` needs a value"), hint)
}

/// Parses a duration with a unit, or a number of milliseconds.
///
/// # Errors
///
/// A sentence that describes the expected form.
pub(super) fn milliseconds(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse::<u64>() {
        return if number == 0 { Err("0 is no time".to_owned()) } else { Ok(number) };
    }
    let duration = duration::parse(text)?;
    Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
