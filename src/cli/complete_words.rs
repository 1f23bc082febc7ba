//! `metamcp complete-words`: the names that complete a command line, for the scripts of shells.
//!
//! It asks the running service, for a short time: a shell waits for it.

use serde_json::{Value, json};
use tokio::time;

use super::{
    Failed, call::schema::SchemaCursor, output, service_target, service_target::ServiceTarget,
};
use crate::{config::defaults, control::socket_client::ControlConnection};

/// Print the names that complete a command line
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The words after `metamcp`; the last one is to be completed
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<String>,
    #[command(flatten)]
    target: ServiceTarget,
}

/// The names that complete a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WantedNames {
    Servers,
    /// `server/name` of the items that a method lists, under this member.
    Items(&'static str, &'static str),
    /// The arguments of a tool, as `--key`.
    ToolArguments(String),
    /// The arguments of a prompt, as `--key`.
    PromptArguments(String),
}

const TOOLS: WantedNames = WantedNames::Items("tools/list", "tool");
const PROMPTS: WantedNames = WantedNames::Items("prompts/list", "prompt");
const RESOURCES: WantedNames = WantedNames::Items("resources/list", "resource");

/// The options whose value is the name of a server.
const SERVER_OPTIONS: [&str; 1] = ["--server"];

/// The options with a value that is not a name.
const VALUE_OPTIONS: [&str; 8] =
    ["--socket", "--timeout", "--fields", "--file", "--color", "--config", "--limit", "--path"];

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let Some((wanted, begin)) = wanted(&args.words) else { return Ok(()) };
    let named = option_value(&args.words, "--socket").map(Into::into);
    let target = ServiceTarget { socket: named.or_else(|| args.target.socket.clone()) };
    let found = service_target::run(async {
        let asking = names(&target, &wanted);
        // A shell has no use for an error.
        Ok(time::timeout(defaults::COMPLETION_TIMEOUT, asking).await.unwrap_or_default())
    })?;
    for name in found.iter().filter(|name| name.starts_with(begin)) {
        output::print(&format!("{name}\n"));
    }
    Ok(())
}

/// Returns the names that the last word wants, and its beginning; `None` if a shell knows them.
fn wanted(words: &[String]) -> Option<(WantedNames, &str)> {
    let (begin, before) = words.split_last()?;
    let (command, rest) = before.split_first()?;
    if rest.last().is_some_and(|last| SERVER_OPTIONS.contains(&last.as_str())) {
        return Some((WantedNames::Servers, begin.as_str()));
    }
    if rest.last().is_some_and(|last| VALUE_OPTIONS.contains(&last.as_str())) {
        return None;
    }
    let names = positionals(rest);
    let is_option = begin.starts_with('-');
    let wanted = match (command.as_str(), &names[..]) {
        ("call", [tool, ..]) if is_option || begin.is_empty() => {
            WantedNames::ToolArguments((*tool).to_owned())
        }
        ("prompt", [prompt, ..]) if is_option || begin.is_empty() => {
            WantedNames::PromptArguments((*prompt).to_owned())
        }
        _ if is_option => return None,
        ("call" | "info", []) => TOOLS,
        ("prompt", []) => PROMPTS,
        ("read", []) => RESOURCES,
        ("complete", ["prompt"]) => PROMPTS,
        (
            "status" | "servers" | "tools" | "resources" | "prompts" | "tasks" | "auth" | "login"
            | "logout" | "remove" | "enable" | "disable",
            [],
        ) => WantedNames::Servers,
        _ => return None,
    };
    Some((wanted, begin.as_str()))
}

/// Returns the words that are neither options nor their values.
fn positionals(words: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_value = false;
    for word in words.iter().map(String::as_str) {
        match word.starts_with('-') {
            true => is_value = VALUE_OPTIONS.contains(&word) || SERVER_OPTIONS.contains(&word),
            false if is_value => is_value = false,
            false => found.push(word),
        }
    }
    found
}

/// Returns the value of an option among the words.
fn option_value<'a>(words: &'a [String], option: &str) -> Option<&'a String> {
    let at = words.iter().position(|word| word == option)?;
    words.get(at + 1)
}

/// Asks the running service for names.
async fn names(target: &ServiceTarget, wanted: &WantedNames) -> Vec<String> {
    let Ok(mut service) = ControlConnection::open(&target.path()).await else { return Vec::new() };
    let (method, params) = match wanted {
        WantedNames::Servers => ("servers/list", json!({})),
        WantedNames::Items(method, _) => (*method, json!({})),
        WantedNames::ToolArguments(tool) => ("tools/info", json!({ "name": tool })),
        WantedNames::PromptArguments(prompt) => {
            let server = prompt.split('/').next().unwrap_or_default();
            ("prompts/list", json!({ "server": server }))
        }
    };
    let params = params.to_string();
    let asking = service.ask(method, &params, defaults::COMPLETION_TIMEOUT);
    let Ok(answer) = asking.await else { return Vec::new() };
    let Ok(answer) = service_target::value(&answer) else { return Vec::new() };
    read_names(&answer, wanted)
}

/// Reads the names in an answer of the service.
fn read_names(answer: &Value, wanted: &WantedNames) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let entries = output::items(answer).iter();
    let found: Vec<String> = match wanted {
        WantedNames::Servers => entries.filter_map(|entry| text(&entry["name"])).collect(),
        WantedNames::Items(_, member) => entries
            .filter_map(|entry| {
                let (server, item) = (entry["server"].as_str()?, &entry[*member]);
                let name = item["uri"].as_str().or(item["name"].as_str())?;
                Some(format!("{server}/{name}"))
            })
            .collect(),
        WantedNames::ToolArguments(_) => SchemaCursor::root(&answer["inputSchema"])
            .properties()
            .into_iter()
            .map(|(name, _)| format!("--{name}"))
            .collect(),
        WantedNames::PromptArguments(prompt) => {
            let name = prompt.split_once('/').map_or("", |(_, name)| name);
            let prompt = entries.map(|entry| &entry["prompt"]).find(|it| it["name"] == name);
            let arguments = prompt.map(|prompt| output::items(&prompt["arguments"]));
            let names = arguments.unwrap_or_default().iter().filter_map(|it| text(&it["name"]));
            names.map(|name| format!("--{name}")).collect()
        }
    };
    // A name with control characters or spaces cannot be typed.
    let is_plain = |name: &String| !name.contains(|it: char| it.is_whitespace() || it.is_control());
    found.into_iter().filter(is_plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted_by(line: &str) -> Option<(WantedNames, String)> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        wanted(&words).map(|(names, begin)| (names, begin.to_owned()))
    }

    #[test]
    fn each_place_of_a_command_line_wants_its_names() {
        let tool = |name: &str| WantedNames::ToolArguments(name.to_owned());
        for (line, expected) in [
            ("call gi", Some((TOOLS, "gi"))),
            ("call --json --socket /s g", Some((TOOLS, "g"))),
            ("call git/log --pa", Some((tool("git/log"), "--pa"))),
            ("call git/log ", Some((tool("git/log"), ""))),
            ("info ", Some((TOOLS, ""))),
            ("tools g", Some((WantedNames::Servers, "g"))),
            ("logs --server g", Some((WantedNames::Servers, "g"))),
            ("read n", Some((RESOURCES, "n"))),
            ("prompt a/b --t", Some((WantedNames::PromptArguments("a/b".into()), "--t"))),
            ("call --ti", None),
            ("call --timeout ", None),
            ("stop ", None),
            ("sta", None),
        ] {
            let expected = expected.map(|(names, begin)| (names, begin.to_owned()));
            assert_eq!(wanted_by(line), expected, "{line}");
        }
    }

    #[test]
    fn names_are_read_from_the_answers_of_the_service() {
        let tools = json!([{ "server": "git", "tool": { "name": "log" } }]);
        assert_eq!(read_names(&tools, &TOOLS), ["git/log"]);
        let servers = json!([{ "name": "git" }, { "name": "a b" }]);
        assert_eq!(read_names(&servers, &WantedNames::Servers), ["git"]);
        let info = json!({ "inputSchema": { "properties": { "path": {}, "limit": {} } } });
        let wanted = WantedNames::ToolArguments("git/log".to_owned());
        assert_eq!(read_names(&info, &wanted), ["--limit", "--path"]);
        let prompts =
            json!([{ "server": "n", "prompt": { "name": "p", "arguments": [{ "name": "t" }] } }]);
        let wanted = WantedNames::PromptArguments("n/p".to_owned());
        assert_eq!(read_names(&prompts, &wanted), ["--t"]);
    }
}
