//! `child`: the in-house MCP server over standard input and output.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Write as _},
    path::PathBuf,
    thread,
};

use crate::answer::{self, Reply};

/// Run the in-house server over standard input and output
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List the tools in this file instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

/// Answers one message after the other until standard input ends.
pub(crate) fn run(args: &Args) -> io::Result<()> {
    let tools = match &args.tools {
        Some(file) => fs::read_to_string(file)?,
        None => answer::TOOLS.to_owned(),
    };
    let mut input = BufReader::with_capacity(64 << 10, io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    let mut answers = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        match Reply::to(&line, &tools) {
            Some(Reply::Handshake(answer)) => answers.extend_from_slice(answer.as_bytes()),
            Some(Reply::After(pause, answer)) => {
                thread::sleep(pause);
                answers.extend_from_slice(answer.as_bytes());
            }
            Some(Reply::Nothing) | None => {}
        }
        if !answers.is_empty() && answers.last() != Some(&b'\n') {
            answers.push(b'\n');
        }
        line.clear();
        // Answers to requests that arrived together are written together.
        if input.buffer().is_empty() {
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
    }
    Ok(())
}
