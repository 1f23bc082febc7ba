//! The reference of all commands, read from the declaration of the command line.

use clap::{Arg, Command};

/// Returns the commands in Markdown: each with its usage, its purpose and its arguments.
pub fn command_reference(command: &Command) -> String {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let mut text = String::new();
    for subcommand in command.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        add_command(subcommand, &mut text);
    }
    text
}

/// Adds the section of one command.
fn add_command(command: &mut Command, text: &mut String) {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    text.push_str(&format!("\n### {}\n\n```text\n{usage}\n```\n", command.get_name()));
    for paragraph in about.trim().split("\n\n") {
        text.push_str(&format!("\n{}\n", sentences(paragraph)));
    }
    let arguments: Vec<String> = command.get_arguments().filter_map(argument).collect();
    if !arguments.is_empty() {
        text.push_str(&format!("\n{}", arguments.concat()));
    }
}

/// Returns the line of one argument, unless it is the same for every command.
fn argument(argument: &Arg) -> Option<String> {
    if argument.is_hide_set() || matches!(argument.get_id().as_str(), "help" | "version") {
        return None;
    }
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    // A list of paragraphs stays one item.
    let help = help.split("\n\n").map(sentences).collect::<Vec<_>>().join(" ");
    let separator = if help.is_empty() { "" } else { ": " };
    Some(format!("- `{}`{separator}{help}\n", form(argument)))
}

/// Returns an argument as it is typed.
fn form(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let values: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    let takes_value = argument.get_num_args().is_none_or(|range| range.takes_values());
    let flags: Vec<String> = argument
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(argument.get_long().map(|long| format!("--{long}")))
        .collect();
    match (flags.is_empty(), takes_value) {
        (true, _) => values.join(" "),
        (false, true) => format!("{} {}", flags.join(", "), values.join(" ")),
        (false, false) => flags.join(", "),
    }
}

/// Returns a paragraph on one line. Markdown would read `<` as the begin of a tag.
fn sentences(paragraph: &str) -> String {
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    for (index, part) in line.split('`').enumerate() {
        if index > 0 {
            text.push('`');
        }
        text.push_str(&if index % 2 == 0 { part.replace('<', "\\<") } else { part.to_owned() });
    }
    text
}
