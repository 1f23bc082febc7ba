//! `metamcp schema`, `completions` and `man`: the texts that metamcp generates about itself.

use std::{fs, path::PathBuf};

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::{Man, generate_to};

use super::{Cli, FAILED, Failed, output};
use crate::config;

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
        Shell::Fish => format!("{script}\n{FISH_NAMES}"),
        _ => script.to_owned(),
    }
}

const BASH_NAMES: &str = include_str!("completions/names.bash");
const ZSH_NAMES: &str = include_str!("completions/names.zsh");
const FISH_NAMES: &str = include_str!("completions/names.fish");

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Write `metamcp.1` and one page for each command into this directory
    directory: Option<PathBuf>,
}

pub(super) fn manual(args: &ManArgs) -> Result<(), Failed> {
    let written = match &args.directory {
        None => {
            let mut page = Vec::new();
            let man = Man::new(Cli::command());
            man.render(&mut page).map(|()| output::bytes(&page))
        }
        Some(directory) => {
            fs::create_dir_all(directory).and_then(|()| generate_to(Cli::command(), directory))
        }
    };
    written.map_err(|error| Failed::new(FAILED, format!("cannot write the manual pages: {error}")))
}
