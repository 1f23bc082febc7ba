//! The overview of all commands, and the help of one: `metamcp --help` and `metamcp help`.

use clap::{
    Command, CommandFactory as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{Cli, Failed, USAGE, output};
use crate::similar_names::{did_you_mean, nearest};

/// Show the help of a command, or list all commands
///
/// `metamcp help all` lists every command, also those that are rarely used.
#[derive(Debug, clap::Args)]
pub(super) struct HelpArgs {
    /// The command, or `all`
    command: Option<String>,
}

/// A group of commands in the overview: a title, and each command with its summary.
type CommandGroup = (&'static str, &'static [(&'static str, &'static str)]);

/// The commands by task.
const GROUPS: &[CommandGroup] = &[
    (
        "Start",
        &[
            ("serve", "run the service"),
            ("status", "show what runs"),
            ("doctor", "find what is wrong"),
            ("logs", "show the log"),
            ("calls", "show the last calls"),
            ("top", "watch running calls"),
        ],
    ),
    (
        "Servers",
        &[
            ("add", "declare a server"),
            ("remove", "remove a declaration"),
            ("enable", "serve a server again"),
            ("disable", "serve it no longer"),
            ("servers", "list the servers"),
            ("check", "check a configuration"),
            ("login", "log in at a server"),
            ("logout", "log out there"),
            ("auth", "show the credentials"),
            ("import", "convert client files"),
        ],
    ),
    ("Clients", &[("connect", "set up a client"), ("disconnect", "undo that")]),
    (
        "Tools",
        &[
            ("tools", "list the tools"),
            ("search", "find tools by words"),
            ("info", "describe a tool"),
            ("call", "call a tool"),
            ("run", "run a script"),
            ("grep", "find tools by pattern"),
            ("resources", "list the resources"),
            ("read", "read a resource"),
            ("prompts", "list the prompts"),
            ("prompt", "get a prompt"),
        ],
    ),
    (
        "Operate",
        &[
            ("reload", "read the file again"),
            ("stop", "stop the service"),
            ("tasks", "list background calls"),
            ("task", "show or cancel one"),
        ],
    ),
];

/// The commands that only `metamcp help all` describes.
const LESS_USED: &[&str] =
    &["complete", "typegen", "schema", "completions", "man", "stdio", "demo-server", "help"];

/// An example for the help of a command.
const EXAMPLES: &[(&str, &str)] = &[
    ("serve", "metamcp serve --config metamcp.toml"),
    ("check", "metamcp check /etc/metamcp/metamcp.toml"),
    ("status", "metamcp status --watch"),
    ("servers", "metamcp servers --json"),
    ("tools", "metamcp tools git"),
    ("info", "metamcp info git/log"),
    ("call", "metamcp call git/log --path src --limit 5"),
    ("run", "metamcp run -e 'return (await servers.git.log({ limit: 5 })).length'"),
    ("grep", "metamcp grep '^git/.*branch'"),
    ("search", "metamcp search create an issue"),
    ("resources", "metamcp resources notes"),
    ("read", "metamcp read notes/file:///todo.md"),
    ("prompts", "metamcp prompts"),
    ("prompt", "metamcp prompt notes/review --topic tests"),
    ("complete", "metamcp complete prompt notes/review topic te"),
    ("tasks", "metamcp tasks"),
    ("task", "metamcp task --wait TASK_ID"),
    ("auth", "metamcp auth linear"),
    ("login", "metamcp login linear"),
    ("logout", "metamcp logout linear"),
    ("reload", "metamcp reload"),
    ("stop", "metamcp stop"),
    ("logs", "metamcp logs --server git --follow"),
    ("calls", "metamcp calls --failed --since 10m"),
    ("top", "metamcp top"),
    ("doctor", "metamcp doctor --server git --timeout 30s"),
    ("import", "metamcp import ~/.cursor/mcp.json"),
    ("typegen", "metamcp typegen --output tools.d.ts"),
    ("schema", "metamcp schema > metamcp.schema.json"),
    ("stdio", "metamcp stdio --server git"),
    (
        "completions",
        "metamcp completions bash > ~/.local/share/bash-completion/completions/metamcp",
    ),
    ("man", "metamcp man metamcp-errors | man -l -"),
    ("add", "metamcp add memory -- npx -y @modelcontextprotocol/server-memory"),
    ("remove", "metamcp remove memory"),
    ("enable", "metamcp enable memory"),
    ("disable", "metamcp disable memory"),
    ("connect", "metamcp connect cursor"),
    ("disconnect", "metamcp disconnect cursor"),
];

const INTRODUCTION: &str = "\
Run each MCP server once per host and serve it to every client
Usage: metamcp [OPTIONS] COMMAND
";

const CONCLUSION: &str = "
Options: --color auto|always|never, -q/--quiet, -h/--help, -V/--version
`metamcp help COMMAND` explains a command, `metamcp help all` lists all of them.
Exit: 0 done, 1 failed, 64 usage, 69 no service, 78 configuration, 130 ctrl-c
";

/// Returns the command line with the overview as its help, and with an example for each command.
pub(super) fn command_line() -> Command {
    let with_example = |command: Command| {
        let example = EXAMPLES.iter().find(|(name, _)| *name == command.get_name());
        match example.filter(|_| command.get_after_help().is_none()) {
            Some((_, example)) => command.after_help(format!("Example:\n  {example}")),
            None => command,
        }
    };
    let command = Cli::command().mut_subcommands(with_example);
    let overview = overview(&command);
    command.override_help(overview)
}

/// Reports an invalid command line. clap shows an option that a variable sets as if it were on the
/// command line.
pub(super) fn usage_error(error: &clap::Error) -> Failed {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
    {
        return unknown_command(word);
    }
    let is_socket = |word: std::ffi::OsString| word.as_encoded_bytes().starts_with(b"--socket");
    let text = error.to_string();
    output::eprint(&match std::env::args_os().any(is_socket) {
        true => text,
        false => text.replacen(" --socket <PATH>", "", 1),
    });
    Failed::printed(USAGE)
}

/// Returns the failure for a word that is no command.
fn unknown_command(word: &str) -> Failed {
    let command = Cli::command();
    let known = command.get_subcommands().map(|it| it.get_name().to_owned());
    let hint = did_you_mean(&nearest(word, known), "Run `metamcp help all` to list the commands.");
    Failed::usage(format!("there is no command `{}`", output::text(word)), hint)
}

/// Returns the overview of the commands that exist: two in each line.
fn overview(command: &Command) -> String {
    let exists = |name: &str| command.find_subcommand(name).is_some();
    let mut text = INTRODUCTION.to_owned();
    text.push('\n');
    for (title, commands) in GROUPS {
        let commands: Vec<_> = commands.iter().filter(|(name, _)| exists(name)).collect();
        for (index, row) in commands.chunks(2).enumerate() {
            let title = if index == 0 { *title } else { "" };
            let mut line = format!("{title:<8}");
            for (name, summary) in row {
                line.push_str(&format!(" {name:<10} {summary:<24}"));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    let others: Vec<&str> = LESS_USED.iter().copied().filter(|name| exists(name)).collect();
    text.push_str(&format!("{:<8} {}\n", "Others", others.join(", ")));
    text + CONCLUSION
}

/// Prints the help of a command, the overview, or all commands.
pub(super) fn run(args: &HelpArgs) -> Result<(), Failed> {
    let mut command = command_line();
    command.build();
    match args.command.as_deref() {
        None => output::print(&overview(&command)),
        Some("all") => output::print(&Cli::command().render_long_help().to_string()),
        Some(name) => {
            let found = command.find_subcommand_mut(name).ok_or_else(|| unknown_command(name))?;
            output::print(&found.render_long_help().to_string());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::terminal;

    #[test]
    fn the_overview_fits_a_screen_and_names_every_command_once() {
        let command = Cli::command();
        let overview = overview(&command);
        insta::assert_snapshot!(overview);
        assert!(overview.lines().count() <= 24, "{overview}");
        assert!(overview.lines().all(|line| terminal::width(line) <= 80), "{overview}");
        let grouped = GROUPS.iter().flat_map(|(_, commands)| *commands).map(|(name, _)| *name);
        let listed: Vec<&str> = grouped.chain(LESS_USED.iter().copied()).collect();
        let unique: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(listed.len(), unique.len(), "a command is listed twice");
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
        for command in visible.map(clap::Command::get_name) {
            assert!(unique.contains(command), "`{command}` is in no group");
        }
    }

    #[test]
    fn the_help_of_each_command_has_an_example() {
        for command in command_line().get_subcommands().filter(|it| !it.is_hide_set()) {
            let is_exempt = ["help", "demo-server"].contains(&command.get_name());
            assert!(is_exempt || command.get_after_help().is_some(), "{}", command.get_name());
        }
    }
}
