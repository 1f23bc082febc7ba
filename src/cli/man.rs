//! `metamcp man`: the manual pages.

use std::{fs, io, path::PathBuf};

use clap::CommandFactory as _;
use clap_mangen::{Man, generate_to};

use super::{Cli, FAILED, Failed, output};

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write `metamcp.1` and one page for each command into this directory
    directory: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let written = match &args.directory {
        None => page().map(|page| output::bytes(&page)),
        Some(directory) => {
            fs::create_dir_all(directory).and_then(|()| generate_to(Cli::command(), directory))
        }
    };
    written.map_err(|error| Failed::new(FAILED, format!("cannot write the manual pages: {error}")))
}

fn page() -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(Cli::command().disable_help_subcommand(true)).render(&mut page)?;
    Ok(page)
}
