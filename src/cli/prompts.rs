//! `metamcp prompts` and `metamcp prompt`: the prompts of all servers, and one of them filled in.

use serde_json::{Map, Value, json};

use super::{Failed, call::result, item_output, output, service_target::OutputArgs};

/// List the prompts of all servers, or of one
///
/// Arguments in brackets are optional.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only the prompts of this server
    server: Option<String>,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let list = ("prompts/list", &json!({ "server": args.server, "report": true }));
    let texts = ("prompt", "No server has a prompt.\n");
    item_output::print_list(&args.common, list, texts, |prompt| {
        let about = item_output::first_line(prompt, &["description", "title"]);
        [output::word(&prompt["name"]), arguments(&prompt["arguments"]), about]
    })
}

fn arguments(arguments: &Value) -> String {
    let name = |argument: &Value| match argument["required"] == true {
        true => output::word(&argument["name"]),
        false => format!("[{}]", output::word(&argument["name"])),
    };
    output::items(arguments).iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Get a prompt
///
/// Its arguments are one JSON object, or `--key value` for each argument; all values are strings.
#[derive(Debug, clap::Args)]
#[command(override_usage = "metamcp prompt [OPTIONS] SERVER/NAME [ARGUMENTS]")]
pub(super) struct PromptArgs {
    #[command(flatten)]
    common: OutputArgs,
    /// The prompt, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "SERVER/NAME [ARGUMENTS]")]
    words: Vec<String>,
}

pub(super) fn get(args: PromptArgs) -> Result<(), Failed> {
    let PromptArgs { mut common, words } = args;
    let Some((prompt, words)) = words.split_first() else { return Ok(()) };
    let (server, name) = item_output::split(prompt, "prompt")?;
    let arguments = read(words, &mut common)?;
    let params = json!({ "server": server, "name": name, "arguments": arguments });
    let got = common.target.ask("prompts/get", &params)?;
    common.print(&got, |got| {
        for message in output::items(&got["messages"]) {
            output::print(&format!("{}:\n", output::word(&message["role"])));
            result::print(&[result::block(&message["content"])]);
        }
    })
}

/// Reads the words after the prompt: its arguments, and options of metamcp.
fn read(words: &[String], common: &mut OutputArgs) -> Result<Map<String, Value>, Failed> {
    let invalid = |text: String| {
        Failed::usage(text, "Give the arguments as one JSON object, or as `--key value`.")
    };
    let mut arguments = Map::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(key) = word.strip_prefix("--") else {
            let read: Map<String, Value> = serde_json::from_str(word)
                .map_err(|error| invalid(format!("`{word}` is not a JSON object: {error}")))?;
            arguments.extend(read);
            continue;
        };
        if key == "json" {
            common.json = true;
            continue;
        }
        let (key, value) = match key.split_once('=') {
            Some((key, value)) => (key, value.to_owned()),
            None => {
                let value = words.next();
                (key, value.ok_or_else(|| invalid(format!("`--{key}` needs a value")))?.clone())
            }
        };
        match key {
            "socket" => common.target.socket = Some(value.into()),
            key if arguments.contains_key(key) => {
                return Err(invalid(format!("`--{key}` is given twice")));
            }
            key => drop(arguments.insert(key.to_owned(), value.into())),
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(words: &[&str]) -> Result<(Value, bool), String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut common = OutputArgs::default();
        let arguments = read(&words, &mut common).map_err(|failed| failed.text)?;
        Ok((Value::Object(arguments), common.json))
    }

    #[test]
    fn prompt_arguments_are_always_strings() {
        let read = read_all(&["--n", "5", "--a=b=c", "--json", "--socket", "/s"]);
        assert_eq!(read, Ok((json!({ "n": "5", "a": "b=c" }), true)));
        assert_eq!(read_all(&[r#"{"a":"b"}"#]), Ok((json!({ "a": "b" }), false)));
    }

    #[test]
    fn an_invalid_prompt_argument_is_named() {
        assert_eq!(read_all(&["--a"]), Err("`--a` needs a value".to_owned()));
        assert_eq!(read_all(&["--a", "1", "--a=2"]), Err("`--a` is given twice".to_owned()));
        assert!(read_all(&["x"]).unwrap_err().starts_with("`x` is not a JSON object: "));
    }
}
