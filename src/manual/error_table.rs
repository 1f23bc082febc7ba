//! The table of all errors: each code with its cause and its remedy.
//!
//! `docs/errors.md` and metamcp-errors(7) are made from it. A test finds each code of the program
//! here. Texts are Markdown with code and links; links are relative to `docs/`.

mod calls;
mod connections;
mod operators;
mod requests;

/// The codes of one kind.
#[derive(Clone, Copy, Debug)]
pub struct ErrorGroup {
    /// The name that marks its place in `docs/errors.md`.
    pub key: &'static str,
    /// The heading.
    pub title: &'static str,
    /// The sentences below the heading.
    pub intro: &'static str,
    /// The codes.
    pub entries: &'static [ErrorEntry],
}

/// One code.
#[derive(Clone, Copy, Debug)]
pub struct ErrorEntry {
    /// The code as it is printed.
    pub code: &'static str,
    /// The cause.
    pub cause: &'static str,
    /// The next step.
    pub remedy: &'static str,
}

/// Returns one row of the table.
const fn entry(code: &'static str, cause: &'static str, remedy: &'static str) -> ErrorEntry {
    ErrorEntry { code, cause, remedy }
}

/// All groups, in reading order.
pub const ERROR_GROUPS: [ErrorGroup; 12] = [
    requests::EXIT_CODES,
    requests::HTTP_STATUSES,
    requests::RPC_CODES,
    requests::REQUEST_CODES,
    calls::CALL_CODES,
    connections::CONNECT_CODES,
    connections::LOGIN_CODES,
    calls::QUESTION_CODES,
    operators::CONTROL_CODES,
    operators::MODEL_CODES,
    operators::FAULT_CLASSES,
    operators::CONFIGURATION_MISTAKES,
];

impl ErrorGroup {
    /// Returns the table of the group in Markdown.
    pub fn markdown(&self) -> String {
        let mut table = "| code | cause | remedy |\n|---|---|---|\n".to_owned();
        for ErrorEntry { code, cause, remedy } in self.entries {
            table.push_str(&format!("| `{code}` | {cause} | {remedy} |\n"));
        }
        table
    }
}
