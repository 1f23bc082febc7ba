//! The options for the change of a client's file, and the question before it.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
};

use super::{FAILED, Failed, output, service_target::ServiceTarget};

/// The options for the change of a client's file.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    /// The file that is changed: that of the user, or that of the project in the current directory
    #[arg(long, default_value = "user", value_parser = ["user", "project"])]
    pub(super) scope: String,
    /// The client's file, if it is elsewhere
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Write without asking
    #[arg(long, short)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) target: ServiceTarget,
    /// Show the difference and write nothing
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
}

impl ChangeArgs {
    /// Asks whether a change is to be made. Without a terminal, only `--yes` agrees.
    ///
    /// # Errors
    ///
    /// [`Failed`] without a terminal, or if the answer cannot be read.
    pub(super) fn is_agreed(&self, question: &str) -> Result<bool, Failed> {
        if self.dry_run {
            return Ok(false);
        }
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() {
            return Err(Failed::new(
                FAILED,
                "nothing is written, because there is no terminal to ask",
            )
            .hint("Add --yes to write without asking, or --dry-run to only see the difference."));
        }
        let mut stderr = io::stderr();
        let _reader_gone = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        read.map_err(|error| Failed::new(FAILED, format!("cannot read the answer: {error}")))?;
        let is_agreed = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
        if !is_agreed {
            output::eprint("Nothing is written.\n");
        }
        Ok(is_agreed)
    }
}
