//! `metamcp completions`: the completion script for a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, Failed, output};

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "metamcp", &mut script);
    output::bytes(&script);
    Ok(())
}
