//! Secrets from standard input: typed without echo, or from a pipe.

use std::io::{self, IsTerminal as _, Read as _, stdin};

use rustix::termios::{self, LocalModes, OptionalActions, Termios};

use super::{CANCELLED, FAILED, Failed, USAGE, output, quantity};
use crate::config::defaults;

/// The secrets that a command needs.
pub(super) struct SecretInput {
    /// The lines of a pipe that are not used yet; `None` at a terminal.
    lines: Option<std::vec::IntoIter<String>>,
}

impl SecretInput {
    /// Returns the input for `n_secrets` secrets. A pipe has one line for each; a single secret may
    /// have several lines.
    ///
    /// # Errors
    ///
    /// [`Failed`] if a pipe cannot be read.
    pub(super) fn open(n_secrets: usize) -> Result<Self, Failed> {
        if n_secrets == 0 || stdin().is_terminal() {
            return Ok(Self { lines: None });
        }
        let mut text = String::new();
        let most = defaults::CREDENTIAL_BYTES_MAX + 1;
        let read = stdin().take(most).read_to_string(&mut text);
        let failed = |error| Failed::new(FAILED, format!("cannot read standard input: {error}"));
        if read.map_err(failed)? as u64 == most {
            return Err(Failed::new(USAGE, "standard input is too long for a secret"));
        }
        let lines: Vec<String> = match n_secrets {
            1 => vec![text.trim_end_matches(['\n', '\r']).to_owned()],
            _ => text.lines().map(str::to_owned).collect(),
        };
        if lines.len() > n_secrets {
            let credentials = quantity::count(n_secrets, "credential");
            let text = format!("standard input has {} lines for {credentials}", lines.len());
            return Err(Failed::usage(
                text,
                "Pipe one line for each, in the order of the options.",
            ));
        }
        Ok(Self { lines: Some(lines.into_iter()) })
    }

    /// Returns the value of the credential `name`, which `key` refers to.
    ///
    /// # Errors
    ///
    /// [`Failed`] if there is none, or the user cancels.
    pub(super) fn read(&mut self, name: &str, key: &str) -> Result<String, Failed> {
        let value = match &mut self.lines {
            Some(lines) => lines.next().unwrap_or_default(),
            None => typed(&format!("Value of `{key}`, for the credential `{name}`: "))?,
        };
        if value.trim().is_empty() {
            let text = format!("standard input has no value for the credential `{name}`");
            return Err(Failed::usage(
                text,
                "Type it at the prompt, or pipe it in: `metamcp add … <FILE`, one line for each credential.",
            ));
        }
        if key.eq_ignore_ascii_case("authorization") && !value.contains(' ') {
            output::eprint(&format!(
                "warning: the value of `{key}` has no scheme, such as `Bearer` and a space before a token\n"
            ));
        }
        Ok(value)
    }
}

/// The settings of the terminal, restored when dropped.
struct QuietTerminal(Termios);

impl QuietTerminal {
    /// Turns off echo, lines and signals.
    fn new() -> io::Result<Self> {
        let before = termios::tcgetattr(stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        termios::tcsetattr(stdin(), OptionalActions::Now, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for QuietTerminal {
    fn drop(&mut self) {
        let _terminal_gone = termios::tcsetattr(stdin(), OptionalActions::Now, &self.0);
        output::eprint("\n");
    }
}

/// Reads a line from the terminal without echo.
fn typed(prompt: &str) -> Result<String, Failed> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    let failed = |error: io::Error| Failed::new(FAILED, format!("cannot read a secret: {error}"));
    let terminal = QuietTerminal::new().map_err(failed)?;
    output::eprint(prompt);
    let mut bytes = Vec::new();
    let mut byte = [0];
    while bytes.len() as u64 <= defaults::CREDENTIAL_BYTES_MAX {
        if stdin().lock().read(&mut byte).map_err(failed)? == 0 {
            break;
        }
        match byte[0] {
            b'\r' | b'\n' | CTRL_D => break,
            CTRL_C => return Err(Failed::new(CANCELLED, "cancelled: nothing is changed")),
            // Backspace and delete.
            8 | 127 => {
                bytes.pop();
            }
            other => bytes.push(other),
        }
    }
    drop(terminal);
    String::from_utf8(bytes).map_err(|_| Failed::new(FAILED, "the secret is not UTF-8"))
}
