//! `child`: the in-house MCP server over standard input and output.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    thread,
};

use crate::answer::Reply;

/// Answers one message after the other until standard input ends.
pub(crate) fn run() -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut line = Vec::new();
    let mut answers = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        match Reply::to(&line) {
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
        // Answers to what has come at once leave at once.
        if input.buffer().is_empty() {
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
    }
    Ok(())
}
