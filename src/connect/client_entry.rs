//! The entry of metamcp in the form of one client.

use serde::{Deserialize, Serialize};

use super::TOKEN_VARIABLE;
use crate::import::{ClientProfile, FixedValue, TokenForm};

/// The way from a client to metamcp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientLink {
    /// The address of the service.
    Endpoint {
        /// The URL.
        url: String,
        /// The client must send the token.
        has_token: bool,
    },
    /// A program that the client starts.
    Program {
        /// The absolute path of the program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// The members of an entry, in the order of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEntry(pub Vec<(String, EntryValue)>);

/// The value of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryValue {
    /// A text.
    Text(String),
    /// A switch.
    Switch(bool),
    /// A number.
    Number(u32),
    /// A list of texts.
    List(Vec<String>),
    /// A table of texts.
    Table(Vec<(String, String)>),
}

impl ClientEntry {
    /// Returns the entry `name` with `link`, as the client wants it.
    pub fn new(profile: &ClientProfile, name: &str, link: &ClientLink) -> Self {
        let mut members = Vec::new();
        match (link, &profile.endpoint) {
            (ClientLink::Endpoint { url, has_token }, Some(form)) => {
                fix(&mut members, form.before, name);
                members.push((form.url.to_owned(), EntryValue::Text(url.clone())));
                if let Some(token) = form.token.filter(|_| *has_token) {
                    members.extend(token_members(token));
                }
                fix(&mut members, form.after, name);
            }
            (ClientLink::Endpoint { url, .. }, None) => {
                // The client starts programs only; the caller gives it one.
                members.push(("url".to_owned(), EntryValue::Text(url.clone())));
            }
            (ClientLink::Program { command, args }, _) => {
                fix(&mut members, profile.program, name);
                members.push(("command".to_owned(), EntryValue::Text(command.clone())));
                members.push(("args".to_owned(), EntryValue::List(args.clone())));
            }
        }
        Self(members)
    }
}

fn fix(members: &mut Vec<(String, EntryValue)>, fixed: &[(&'static str, FixedValue)], name: &str) {
    for (key, value) in fixed {
        let value = match value {
            FixedValue::Text(text) => EntryValue::Text((*text).to_owned()),
            FixedValue::Switch(is_on) => EntryValue::Switch(*is_on),
            FixedValue::Number(number) => EntryValue::Number(*number),
            FixedValue::List(items) => {
                EntryValue::List(items.iter().map(|item| (*item).to_owned()).collect())
            }
            FixedValue::Name => EntryValue::Text(name.to_owned()),
        };
        members.push(((*key).to_owned(), value));
    }
}

/// Returns the members that refer to the variable with the token.
fn token_members(form: TokenForm) -> Vec<(String, EntryValue)> {
    let header = |open: &str, close: &str| {
        let value = format!("Bearer {open}{TOKEN_VARIABLE}{close}");
        let headers = vec![("Authorization".to_owned(), value)];
        ("headers".to_owned(), EntryValue::Table(headers))
    };
    match form {
        TokenForm::Header(open, close) => vec![header(open, close)],
        TokenForm::VariableKey(key) => {
            vec![(key.to_owned(), EntryValue::Text(TOKEN_VARIABLE.to_owned()))]
        }
        TokenForm::HeaderAndKeys(open, close, keys) => {
            let names = EntryValue::List(vec![TOKEN_VARIABLE.to_owned()]);
            vec![header(open, close), (keys.to_owned(), names)]
        }
    }
}
