//! `metamcp run`: a script that calls tools.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::value_parser;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    FAILED, Failed, USAGE, interruptible_request, output, quantity, service_target,
    service_target::OutputArgs,
};
use crate::{config::defaults, control::socket_client::ServiceError};

/// Run a script that calls tools
///
/// SCRIPT is a file with JavaScript or TypeScript, the body of an async function: it calls
/// `await servers.NAME.TOOL({ … })` and returns a value. It runs in the service, in a sandbox
/// without network and files, exactly as a script of the tool `mcp_execute`. The words after `--`
/// are its constant `args`, a list of strings.
///
/// A returned text is printed unchanged, and any other value as JSON; `null` and `undefined` are not
/// printed. The console output of the script goes to standard error. A failure is printed as
/// FILE:LINE:COLUMN: MESSAGE. With --json, the result or the error is printed to standard output.
///
/// Exits with 1 when the script fails, with 64 when the command line is invalid, the script cannot
/// be read or is larger than `execute.code_bytes_max`, with 69 when no service answers, and with 130
/// after ctrl-c, which ends the script and cancels its calls.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The file with the script; `-` is standard input
    #[arg(value_name = "SCRIPT", required_unless_present = "code")]
    file: Option<PathBuf>,
    /// The script itself
    #[arg(
        short = 'e',
        long = "eval",
        value_name = "CODE",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    code: Option<String>,
    /// The time limit of the script, at most `execute.timeout`: 500ms, 30s, 5m; a number without a
    /// unit is in seconds
    #[arg(long, value_name = "TIME", value_parser = quantity::time_limit)]
    timeout: Option<Duration>,
    /// The maximum number of tool calls, up to 1000; default: `execute.max_tool_calls`
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=CALLS_MAX))]
    max_tool_calls: Option<u16>,
    /// Let the service run the script by itself: prints a task ID for `metamcp task`
    #[arg(long = "async")]
    is_async: bool,
    /// The words of the constant `args`
    #[arg(last = true, value_name = "ARGUMENTS")]
    args: Vec<String>,
    #[command(flatten)]
    common: OutputArgs,
}

const CALLS_MAX: i64 = defaults::EXECUTE_CALLS_MAX as i64;

/// The result of a script.
#[derive(Deserialize)]
struct ScriptResult<'a> {
    /// The value; `None` if it is null.
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    output: String,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let (name, code) = read(args)?;
    let mut params = json!({
        "code": code,
        "args": args.args,
        "timeout": args.timeout.map(quantity::milliseconds),
        "maxToolCalls": args.max_tool_calls,
    });
    let method = match args.is_async {
        true => {
            params["name"] = json!(name);
            "scripts/run-async"
        }
        false => {
            params["_meta"] = json!({ "progressToken": 1 });
            "scripts/run"
        }
    };
    let answer = service_target::run(async {
        let mut service = args.common.target.connect().await?;
        interruptible_request::send(&mut service, method, &params.to_string(), None).await
    })?;
    let result = answer.map_err(|refusal| failure(&name, &refusal, args.common.json))?;
    match (args.common.json, args.is_async) {
        (false, false) => print_result(&result),
        (_, _) => args.common.print(&result, |task| {
            output::print(&format!("{}\n", output::word(&task["taskId"])));
        }),
    }
}

/// Prints the console output and the value of a script.
///
/// # Errors
///
/// [`Failed`] if `result` is not a result of a script.
pub(super) fn print_result(result: &RawValue) -> Result<(), Failed> {
    let result: ScriptResult<'_> = serde_json::from_str(result.get()).map_err(|error| {
        Failed::new(FAILED, format!("the service's answer is invalid: {error}"))
    })?;
    output::console(&result.output);
    if let Some(value) = result.value {
        match serde_json::from_str::<String>(value.get()) {
            Ok(text) => output::content(&text),
            Err(_) => output::json(value.get()),
        }
    }
    Ok(())
}

/// Prints the output and the error of the script `name`, and returns the failure with its details.
/// With `is_json`, prints all of it as JSON instead.
pub(super) fn failure(name: &str, refusal: &ServiceError, is_json: bool) -> Failed {
    // It has the place in the script.
    let context = &refusal.data.context;
    let mut failed = service_target::refused(refusal);
    if context["limit"] == "code" {
        failed.code = USAGE;
    }
    if is_json {
        let ServiceError { message, data } = refusal;
        let error = json!({
            "code": data.code,
            "message": message,
            "suggestion": data.suggestion,
            "context": context,
        });
        output::json(&json!({ "error": error }).to_string());
        return Failed::printed(failed.code);
    }
    output::console(context["output"].as_str().unwrap_or_default());
    let (Some(line), Some(column)) = (context["line"].as_u64(), context["column"].as_u64()) else {
        return failed;
    };
    // Without the word `error` in front, so that editors find the place.
    output::eprint(&format!("{name}:{line}:{column}: {}\n", std::mem::take(&mut failed.text)));
    for frame in output::items(&context["stack"]).iter().skip(1).filter_map(Value::as_str) {
        failed = failed.detail(output::text(&with_name(frame, name)));
    }
    failed
}

/// Returns a line of a trace, such as `at f (2:7)`, with the name of the script.
fn with_name(frame: &str, name: &str) -> String {
    match frame.rsplit_once('(') {
        Some((function, place)) => format!("{function}({name}:{place}"),
        None => frame.to_owned(),
    }
}

/// Returns the script with its name for messages.
fn read(args: &Args) -> Result<(String, String), Failed> {
    let (name, code) = match (&args.code, &args.file) {
        (Some(code), _) => ("<code>".to_owned(), Ok(code.clone())),
        (None, Some(path)) if path == Path::new("-") => {
            ("<stdin>".to_owned(), bounded(io::stdin().lock()))
        }
        (None, Some(path)) => (output::text(&path.display().to_string()), file(path)),
        (None, None) => {
            return Err(Failed::usage("there is no script", "Name a file, or use `-e`."));
        }
    };
    let max = defaults::EXECUTE_CODE_BYTES_MAX;
    match code {
        Ok(code) if code.len() > max => {
            let text = format!(
                "{name}: the script has more than {max} bytes, the largest `execute.code_bytes_max`"
            );
            Err(Failed::usage(text, "Shorten it, or split it into several scripts."))
        }
        Ok(code) => Ok((name, code)),
        Err(error) => {
            let text = format!("cannot read the script from {name}: {error}");
            Err(Failed::usage(text, "Name a file with JavaScript or TypeScript in UTF-8."))
        }
    }
}

fn file(path: &Path) -> io::Result<String> {
    bounded(File::open(path)?)
}

/// Reads a script, but not much more than the largest one.
fn bounded(reader: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(defaults::EXECUTE_CODE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    match String::from_utf8(bytes) {
        Ok(code) => Ok(code),
        // The last character may be cut in two.
        Err(error) if error.as_bytes().len() > defaults::EXECUTE_CODE_BYTES_MAX => {
            Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
        }
        Err(error) => Err(io::Error::other(error.utf8_error())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_trace_gets_the_name_of_the_script() {
        assert_eq!(with_name("at f (2:7)", "a(b).ts"), "at f (a(b).ts:2:7)");
        assert_eq!(with_name("at f", "a.ts"), "at f");
    }

    #[test]
    fn a_script_is_read_as_far_as_the_largest_one_and_must_be_text() {
        let max = defaults::EXECUTE_CODE_BYTES_MAX;
        let read = |text: &str| bounded(text.as_bytes()).map(|code| code.len());
        assert_eq!(read("return 'ä'").expect("text"), 11);
        assert_eq!(read(&"a".repeat(max)).expect("text"), max);
        assert!(read(&"ä".repeat(max)).expect("text") > max);
        assert!(bounded(&[0xff][..]).is_err());
    }
}
