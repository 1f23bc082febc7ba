//! `metamcp call`: one call of a tool of any server.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json, value::RawValue};

use super::{
    FAILED, Failed, USAGE, argument_list::ArgumentList, interruptible_request, output, quantity,
    service_target, service_target::OutputArgs,
};
use crate::{config::defaults, control::socket_client::ControlConnection};

mod argument_keys;
mod command_words;
pub(super) mod result;
pub(super) mod schema;
#[cfg(test)]
mod tests;
pub(super) mod value;

use command_words::ArgumentSource;

/// Call a tool
///
/// TOOL is `server/tool`. Its arguments are one JSON object, `@FILE` or `--file FILE`, `-` for
/// standard input, or `--key value` for each argument. Keys follow the tool's schema: `--flag` and
/// `--no-flag` for switches, a repeated key for a list, `--outer.inner` for a member. `metamcp call
/// TOOL --help` shows them.
///
/// The options below go before or after the tool; `--color` and `--quiet` go before it, as does an
/// option that is also an argument of the tool. `--socket` always belongs to metamcp.
///
/// Text content is printed unchanged. Exits with 1 when the tool reports an error (its result is
/// still printed), when its arguments are invalid or it cannot be reached; with 64 when the command
/// line is invalid, with 69 when no service answers, and with 130 after ctrl-c, which cancels the
/// call at the server.
#[derive(Debug, clap::Args)]
#[command(override_usage = "metamcp call [OPTIONS] TOOL [ARGUMENTS]")]
pub(super) struct Args {
    #[command(flatten)]
    options: Options,
    /// The tool, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "TOOL [ARGUMENTS]")]
    words: Vec<String>,
}

/// The options of metamcp itself.
#[derive(Clone, Debug, Default, clap::Args)]
struct Options {
    /// Validate the arguments against the schema, without calling the tool
    #[arg(long)]
    dry_run: bool,
    /// Print only these parts of the result: `total`, `rows[].name`
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    fields: Vec<String>,
    /// The time limit of the call: 500ms, 30s, 5m; a number without a unit is in seconds
    #[arg(long, value_name = "TIME", value_parser = quantity::time_limit)]
    timeout: Option<Duration>,
    /// Let the service wait for the result: prints a task ID for `metamcp task`
    #[arg(long = "async")]
    is_async: bool,
    /// Read the arguments from a file with one JSON object
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    common: OutputArgs,
}

impl Options {
    /// Rejects options that exclude each other, before or after the tool.
    fn check(&self) -> Result<(), Failed> {
        let (first, second) = match (self.dry_run, self.is_async) {
            (true, true) => ("--dry-run", "--async"),
            (true, false) if self.timeout.is_some() => ("--dry-run", "--timeout"),
            (true, false) if !self.fields.is_empty() => ("--dry-run", "--fields"),
            (false, true) if !self.fields.is_empty() => ("--async", "--fields"),
            (_, _) => return Ok(()),
        };
        let text = format!("`{first}` and `{second}` exclude each other");
        Err(Failed::usage(text, "Leave one of them out."))
    }
}

pub(super) fn run(args: Args) -> Result<(), Failed> {
    let Args { mut options, words } = args;
    let Some((tool, words)) = words.split_first() else { return Ok(()) };
    service_target::run(async {
        let mut known = None;
        if command_words::needs_schema(words) {
            // The connection that reads the tool's schema needs `--socket`.
            if let Some(socket) = socket_in(words) {
                options.common.target.socket = Some(socket);
            }
            known = Some(describe(tool, &options).await?);
        }
        let schema = known.as_ref().map(|(_, info)| info["inputSchema"].clone());
        command_words::check_tool(tool, words)?;
        let wanted = command_words::read(words, &schema.unwrap_or_default(), &mut options);
        let Some(source) = wanted? else {
            // The words `TOOL JSON --help` needed no schema before.
            let (_, info) = match known {
                Some(known) => known,
                None => describe(tool, &options).await?,
            };
            help(tool, &info);
            return Ok(());
        };
        let arguments = read(source)?;
        options.check()?;
        let service = match known {
            Some((service, _)) => service,
            None => options.common.target.connect().await?,
        };
        call(service, tool, &arguments, &options).await
    })
}

/// Connects to the service, and returns the connection with the description of a tool.
async fn describe(tool: &str, options: &Options) -> Result<(ControlConnection, Value), Failed> {
    let mut service = options.common.target.connect().await?;
    let params = json!({ "name": tool });
    let info = service_target::request(&mut service, "tools/info", &params).await?;
    Ok((service, service_target::value(&info)?))
}

/// Sends the call, draws its progress, and prints its result.
async fn call(
    mut service: ControlConnection,
    tool: &str,
    arguments: &RawValue,
    options: &Options,
) -> Result<(), Failed> {
    let name = Value::from(tool);
    let mut params = format!(r#"{{"name":{name},"arguments":{arguments}"#);
    if let Some(timeout_ms) = options.timeout.map(quantity::milliseconds) {
        params.push_str(&format!(r#","timeout":{timeout_ms}"#));
    }
    let method = match (options.dry_run, options.is_async) {
        (true, _) => "tools/validate",
        (_, true) => "tools/call-async",
        _ => {
            if !options.fields.is_empty() {
                params.push_str(&format!(r#","fields":{}"#, json!(options.fields)));
            }
            params.push_str(r#","_meta":{"progressToken":1}"#);
            "tools/call"
        }
    };
    params.push('}');
    let answer =
        interruptible_request::send(&mut service, method, &params, options.timeout).await?;
    let result = answer.map_err(|mut refusal| {
        if let Some(remedy) = refusal.data.suggestion.as_mut().filter(|_| options.timeout.is_some())
        {
            // The option sets the limit in place of the key.
            *remedy = remedy.replace("`request_timeout`", "`--timeout`");
        }
        service_target::refused(&refusal)
    })?;
    match method {
        "tools/validate" => verdict(&result, &options.common),
        "tools/call-async" => options.common.print(&result, |task| {
            output::print(&format!("{}\n", output::word(&task["taskId"])));
        }),
        _ => {
            let value = service_target::value(&result)?;
            match options.common.json {
                true => output::json(result.get()),
                false => result::print(&result::parts(&value)),
            }
            if value["isError"] == true { Err(Failed::printed(FAILED)) } else { Ok(()) }
        }
    }
}

/// Prints the findings of a dry run.
fn verdict(result: &RawValue, common: &OutputArgs) -> Result<(), Failed> {
    let verdict = service_target::value(result)?;
    let is_valid = verdict["valid"] == true;
    common.print(result, |verdict| {
        let line = |line: &Value| output::text(&value::spelled(line));
        for error in output::items(&verdict["errors"]) {
            output::print(&format!("{}\n", line(error)));
        }
        if is_valid {
            let is_unchecked = verdict["unsupported"] == true;
            output::print(if is_unchecked {
                "ok, but the arguments are unchecked\n"
            } else {
                "ok\n"
            });
        }
        for warning in output::items(&verdict["warnings"]) {
            output::eprint(&format!("warning: {}\n", line(warning)));
        }
    })?;
    if is_valid { Ok(()) } else { Err(Failed::printed(FAILED)) }
}

/// Prints the arguments of a tool.
fn help(tool: &str, info: &Value) {
    let description = info["description"].as_str().unwrap_or_default();
    if !description.is_empty() {
        output::print(&format!("{}\n\n", output::text(description.trim_end())));
    }
    output::print(&format!("Usage: metamcp call {} [ARGUMENTS]\n", output::text(tool)));
    let list = ArgumentList::read(&info["inputSchema"], "--");
    match list.is_empty() {
        true => output::print("\nThe tool declares no arguments.\n"),
        false => {
            output::print("\nArguments:\n");
            output::print(&list.shown());
        }
    }
    output::print("\nSee `metamcp call --help` for their syntax and the options of every call.\n");
}

/// Returns the arguments as JSON text of an object.
fn read(source: ArgumentSource) -> Result<Box<RawValue>, Failed> {
    let (text, origin) = match source {
        ArgumentSource::Nothing => ("{}".to_owned(), String::new()),
        ArgumentSource::Keys(values) => (Value::Object(values).to_string(), String::new()),
        ArgumentSource::Json(text) => (text, String::new()),
        ArgumentSource::File(path) => (file(&path)?, format!(" in `{}`", path.display())),
        ArgumentSource::Stdin => {
            let text = bounded(std::io::stdin().lock());
            let text = text.map_err(|error| unreadable("standard input", &error))?;
            (text, " on standard input".into())
        }
    };
    let invalid = |problem: String| {
        Failed::usage(
            format!("the arguments{origin} are {problem}"),
            "Give one JSON object, such as '{\"key\": 1}'.",
        )
    };
    let value: Box<RawValue> =
        serde_json::from_str(&text).map_err(|error| invalid(format!("not JSON: {error}")))?;
    match value.get().starts_with('{') {
        true => Ok(value),
        false => Err(invalid("not a JSON object".to_owned())),
    }
}

fn file(path: &Path) -> Result<String, Failed> {
    let text = std::fs::File::open(path).and_then(bounded);
    text.map_err(|error| unreadable(&format!("`{}`", path.display()), &error))
}

/// Reads at most as many bytes as a request may have.
fn bounded(reader: impl std::io::Read) -> std::io::Result<String> {
    let mut text = String::new();
    reader.take(defaults::CONTROL_LINE_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    if text.len() > defaults::CONTROL_LINE_BYTES_MAX {
        let limit = defaults::CONTROL_LINE_BYTES_MAX;
        return Err(std::io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(text)
}

fn unreadable(source: &str, error: &std::io::Error) -> Failed {
    Failed::new(USAGE, format!("cannot read the arguments from {source}: {error}"))
}

/// Returns the value of `--socket` among the words after the tool.
fn socket_in(words: &[String]) -> Option<PathBuf> {
    let at = words.iter().position(|word| word == "--socket");
    let next = at.and_then(|at| words.get(at + 1));
    let joined = words.iter().find_map(|word| word.strip_prefix("--socket="));
    next.map(String::as_str).or(joined).map(PathBuf::from)
}
