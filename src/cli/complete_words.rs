//! `metamcp complete-words`: the names that complete a command line, for the scripts of shells.
//!
//! It asks the running service, for a short time: a shell waits for it.

use clap::{Arg, Command};
use serde_json::{Value, json};
use tokio::time;

use super::{
    Failed, call::schema::SchemaCursor, generate, help, output, service_target,
    service_target::ServiceTarget,
};
use crate::{
    config::defaults, control::socket_client::ControlConnection, demo::Demo, import::KnownClient,
};

/// The name of the command, which neither the help nor a shell offers.
pub(super) const NAME: &str = "complete-words";

/// The names that complete a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WantedNames {
    /// These names, which need no service.
    Known(Vec<String>),
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

/// Prints the names that complete a command line. `words` are those after `metamcp`; the last one is
/// to be completed.
pub(super) fn run(words: impl Iterator<Item = String>) -> Result<(), Failed> {
    let words = without_equals_signs(words);
    let mut cli = help::command_line();
    cli.build();
    let Some((wanted, begin)) = wanted(&cli, &words) else { return Ok(()) };
    let named = option_value(&words, "--socket").map(Into::into);
    let of_environment = || std::env::var_os("METAMCP_SOCKET").map(Into::into);
    let target = ServiceTarget { socket: named.or_else(of_environment) };
    let found = service_target::run(async {
        let asking = names(&target, wanted);
        // A shell has no use for an error.
        Ok(time::timeout(defaults::COMPLETION_TIMEOUT, asking).await.unwrap_or_default())
    })?;
    // A shell replaces the whole word, with the option before the value.
    let (option, begin) = match begin.split_once('=') {
        Some((option, begin)) if option.starts_with("--") => (format!("{option}="), begin),
        _ => (String::new(), begin),
    };
    for name in found.iter().filter(|name| name.starts_with(begin)) {
        output::print(&format!("{option}{name}\n"));
    }
    Ok(())
}

/// Returns the words as if a space stood in place of each `=` that is a word: bash splits
/// `--level=warn` into three.
fn without_equals_signs(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_value = false;
    for word in words {
        let is_sign = word == "=" && found.last().is_some_and(|last| last.starts_with("--"));
        if is_value {
            found.pop();
        }
        found.push(if is_sign { String::new() } else { word });
        is_value = is_sign;
    }
    found
}

/// Returns the names that the last word wants, and that word; `None` if a shell knows them.
fn wanted<'a>(cli: &Command, words: &'a [String]) -> Option<(WantedNames, &'a str)> {
    let (begin, before) = words.split_last()?;
    let (command, rest) = match positionals(cli, before).first() {
        Some((at, name)) => (cli.find_subcommand(name)?, &before[at + 1..]),
        None => (cli, before),
    };
    let joined = begin.split_once('=').map(|(option, _)| option);
    let joined = joined.filter(|option| option.starts_with("--"));
    let option = joined.or(rest.last().map(String::as_str));
    match option.and_then(|option| value_option(command, option)) {
        Some(option) => return Some((of_declaration(option)?, begin)),
        None if joined.is_some() => return None,
        None => {}
    }
    let names: Vec<&str> = positionals(command, rest).into_iter().map(|(_, word)| word).collect();
    let is_option = begin.starts_with('-');
    let wanted = match (command.get_name(), &names[..]) {
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
        ("help", []) => {
            let visible = cli.get_subcommands().filter(|it| !it.is_hide_set());
            known(visible.map(Command::get_name).chain(["all"]))
        }
        ("man", []) => WantedNames::Known(generate::page_names()),
        ("demo-server", []) => known(Demo::ALL.iter().map(|demo| demo.name())),
        (_, []) => of_declaration(command.get_positionals().next()?)?,
        _ => return None,
    };
    Some((wanted, begin.as_str()))
}

fn known<'a>(names: impl Iterator<Item = &'a str>) -> WantedNames {
    WantedNames::Known(names.map(str::to_owned).collect())
}

/// Returns the names that an argument takes, as its declaration shows them.
fn of_declaration(argument: &Arg) -> Option<WantedNames> {
    let values = argument.get_possible_values();
    if !values.is_empty() {
        return Some(known(values.iter().map(|value| value.get_name())));
    }
    match argument.get_value_names()?.first()?.as_str() {
        "CLIENT" => Some(known(KnownClient::ALL.iter().map(|client| client.word()))),
        "NAME" if argument.get_long() == Some("server") => Some(WantedNames::Servers),
        _ => None,
    }
}

/// Returns the declaration of the option `word`, if it takes a value.
fn value_option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let is_named = |argument: &&Arg| {
        argument.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long))
            || argument.get_short().is_some_and(|short| word == format!("-{short}"))
    };
    command.get_opts().find(is_named)
}

/// Returns the words that are neither options nor their values, each with its place.
fn positionals<'a>(command: &Command, words: &'a [String]) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let mut is_value = false;
    for (at, word) in words.iter().map(String::as_str).enumerate() {
        match word.starts_with('-') {
            true => is_value = value_option(command, word).is_some(),
            false if is_value => is_value = false,
            false => found.push((at, word)),
        }
    }
    found
}

/// Returns the value of an option among the words.
fn option_value<'a>(words: &'a [String], option: &str) -> Option<&'a String> {
    let at = words.iter().position(|word| word == option)?;
    words.get(at + 1)
}

/// Returns the names; most are those that the running service knows.
async fn names(target: &ServiceTarget, wanted: WantedNames) -> Vec<String> {
    if let WantedNames::Known(names) = wanted {
        return names;
    }
    let Ok(mut service) = ControlConnection::open(&target.path()).await else { return Vec::new() };
    let (method, params) = match &wanted {
        WantedNames::Known(_) => return Vec::new(),
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
    read_names(&answer, &wanted)
}

/// Reads the names in an answer of the service.
fn read_names(answer: &Value, wanted: &WantedNames) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let entries = output::items(answer).iter();
    let found: Vec<String> = match wanted {
        WantedNames::Known(names) => names.clone(),
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
        let words = without_equals_signs(line.split(' ').map(str::to_owned));
        let mut cli = help::command_line();
        cli.build();
        wanted(&cli, &words).map(|(names, begin)| (names, begin.to_owned()))
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
            ("logs --server=g", Some((WantedNames::Servers, "--server=g"))),
            ("logs --server = g", Some((WantedNames::Servers, "g"))),
            ("logs --server =", Some((WantedNames::Servers, ""))),
            ("tools --color never g", Some((WantedNames::Servers, "g"))),
            ("-q status m", Some((WantedNames::Servers, "m"))),
            ("--color never status ", Some((WantedNames::Servers, ""))),
            ("--color = never status ", Some((WantedNames::Servers, ""))),
            ("--color never ", None),
            ("-q sta", None),
            ("call git/log --path=", None),
            ("connect cursor ", None),
            ("logs --since ", None),
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
    fn names_that_need_no_service_are_those_of_the_declarations() {
        for (line, expected) in [
            ("help ", "connect"),
            ("connect ", "cursor"),
            ("disconnect ", "claude-code"),
            ("import --format v", "vscode"),
            ("demo-server ", "patience"),
            ("man ", "metamcp.toml"),
            ("logs --level=w", "warn"),
            ("--color=a", "auto"),
            ("--color = a", "always"),
            ("--color ", "never"),
            ("completions ", "fish"),
        ] {
            let found = wanted_by(line);
            let Some((WantedNames::Known(names), _)) = &found else { panic!("{line}: {found:?}") };
            assert!(names.iter().any(|name| name == expected), "{line}: {names:?}");
            assert!(!names.iter().any(|name| name == NAME), "{line}: {names:?}");
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
