//! `metamcp check`: does a configuration say what it means?

use std::path::{Path, PathBuf};

use super::{CONFIG, Failed, output};
use crate::{
    config::{Config, load},
    report::chain,
    tls::Identity,
};

/// Check a configuration file without starting anything
///
/// Exits with 0 when the file can be served from, and with 78 when it has a mistake: the message
/// then names file, line and column, shows the text, and says what to write instead. The files of a
/// certificate are read; credentials are not, as only the service has them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Leave the files that it names unread, as where it is written for another machine
    #[arg(long)]
    no_files: bool,
    /// The configuration file
    file: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let config = read(&args.file)?;
    if let Some(tls) = config.listen.tls.as_ref().filter(|_| !args.no_files) {
        Identity::check(tls)
            .map_err(|error| Failed::new(CONFIG, chain(&error)).hint(error.hint()))?;
    }
    let n_servers = match config.servers.len() {
        1 => "1 server".to_owned(),
        n_servers => format!("{n_servers} servers"),
    };
    output::print(&format!("{}: ok, {n_servers}\n", args.file.display()));
    Ok(())
}

/// Reads a configuration for any command.
pub(super) fn read(path: &Path) -> Result<Config, Failed> {
    load::file(path).map_err(|error| Failed::new(CONFIG, chain(&error)))
}
