//! `metamcp schema`, `completions` and `man`: the texts that metamcp generates about itself.

use std::{fs, io, path::PathBuf};

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{Cli, FAILED, Failed, output};
use crate::{config, manual};

/// Print the JSON Schema of the configuration file
///
/// Draft 2020-12, generated from the types of the configuration: every key with its meaning,
/// default, range and accepted words. Editors use it to complete and check TOML; only `metamcp
/// check` checks rules over several keys.
#[derive(Debug, clap::Args)]
pub(super) struct SchemaArgs {}

pub(super) fn schema(_: &SchemaArgs) -> Result<(), Failed> {
    output::print(&format!("{:#}\n", config::schema::schema()));
    Ok(())
}

/// Print the completions for a shell
///
/// In bash, zsh and fish, they complete the names of servers, tools, resources and prompts, and the
/// arguments of tools, as the running service knows them.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<(), Failed> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "metamcp", &mut script);
    let script = String::from_utf8_lossy(&script);
    output::print(&with_names(args.shell, &script));
    Ok(())
}

/// Adds the names that `metamcp complete-words` prints to the generated script of a shell.
fn with_names(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{BASH_NAMES}"),
        // The static function gets another name, because the shell loads `_metamcp`.
        Shell::Zsh => {
            let script = script.replacen("_metamcp() {", "_metamcp_static() {", 1);
            match script.rfind("if [ \"$funcstack[1]\"") {
                Some(end) => format!("{}{ZSH_NAMES}\n{}", &script[..end], &script[end..]),
                None => format!("{script}\n{ZSH_NAMES}"),
            }
        }
        Shell::Fish => {
            let is_named = |line: &str| {
                let has_names = line.contains(" -l server ") || line.contains(" -l format ");
                has_names && line.ends_with(" -r")
            };
            let values = |line: &str| match is_named(line) {
                true => format!("{line} -f -a '(__metamcp_values)'\n"),
                false => format!("{line}\n"),
            };
            format!("{}\n{FISH_NAMES}", script.lines().map(values).collect::<String>())
        }
        _ => script.to_owned(),
    }
}

const BASH_NAMES: &str = include_str!("completions/names.bash");
const ZSH_NAMES: &str = include_str!("completions/names.zsh");
const FISH_NAMES: &str = include_str!("completions/names.fish");

/// Print a manual page, or write all of them
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The page: `metamcp`, `metamcp-COMMAND`, `metamcp.toml` or `metamcp-errors`
    #[arg(default_value = "metamcp", conflicts_with = "directory")]
    page: String,
    /// Write all pages into this directory, each as `NAME.SECTION`
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(super) fn manual(args: &ManArgs) -> Result<(), Failed> {
    let pages = manual_pages()
        .map_err(|error| Failed::new(FAILED, format!("cannot make the manual pages: {error}")))?;
    let Some(directory) = &args.directory else {
        let found = pages.into_iter().find(|(name, _)| is_page(name, &args.page));
        return match found {
            Some((_, page)) => {
                output::bytes(&page);
                Ok(())
            }
            None => Err(Failed::usage(
                format!("there is no manual page `{}`", args.page),
                "The pages are `metamcp`, `metamcp-COMMAND`, `metamcp.toml` and \
                 `metamcp-errors`. To write all of them, use `--directory DIR`.",
            )),
        };
    };
    let written = fs::create_dir_all(directory).and_then(|()| {
        pages.iter().try_for_each(|(name, page)| fs::write(directory.join(name), page))
    });
    written.map_err(|error| {
        let place = directory.display();
        Failed::new(FAILED, format!("cannot write the manual pages to `{place}`: {error}"))
    })
}

/// Returns the names of all pages, without their sections.
pub(super) fn page_names() -> Vec<String> {
    let pages = manual_pages().unwrap_or_default();
    let name = |(file, _): (String, _)| file.rsplit_once('.').map(|(name, _)| name.to_owned());
    pages.into_iter().filter_map(name).collect()
}

/// Returns whether the file `name` is the page that the user asked for, with its section or
/// without.
fn is_page(name: &str, asked: &str) -> bool {
    name == asked || name.rsplit_once('.').is_some_and(|(page, _)| page == asked)
}

/// Returns all manual pages, by file name.
fn manual_pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = command();
    command.build();
    let mut pages = vec![("metamcp.1".to_owned(), rendered(command.clone(), "metamcp")?)];
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = format!("metamcp-{}", command.get_name());
        let page = rendered(command.clone().display_name(&name), &name)?;
        pages.push((format!("{name}.1"), page));
    }
    let configuration = manual::configuration_page(&config::schema::schema());
    pages.push(("metamcp.toml.5".to_owned(), configuration.into_bytes()));
    pages.push(("metamcp-errors.7".to_owned(), manual::errors_page().into_bytes()));
    Ok(pages)
}

/// Returns the manual page of a command.
fn rendered(command: Command, name: &str) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command).title(name).date(manual::PAGE_DATE);
    man.source(manual::PAGE_SOURCE).manual("metamcp").render(&mut page)?;
    // mandoc warns of a line break beside an empty line.
    let page = String::from_utf8_lossy(&page).replace("\n.br\n\n.br\n", "\n.sp\n");
    Ok(page.lines().map(|line| with_bold_code(line) + "\n").collect::<String>().into_bytes())
}

/// Returns a line of a page with the code in backticks bold, as in the other pages.
fn with_bold_code(line: &str) -> String {
    let mut bold = String::new();
    let mut rest = line;
    while let Some((before, (code, after))) =
        rest.split_once('`').and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    {
        bold.push_str(&format!(r"{before}\fB{code}\fR"));
        rest = after;
    }
    bold + rest
}

/// Returns the declaration of the command line.
pub fn command() -> Command {
    Cli::command().disable_help_subcommand(true)
}
