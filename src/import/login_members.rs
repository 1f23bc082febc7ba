//! The members of one server's table that describe its login.
//!
//! Pure. Source: examples in the clients' documentation. `oauth` is a table in Claude Code, VS Code,
//! Codex and OpenCode, and `auth` in Cursor. They spell the same keys differently.

use serde_json::{Map, Value};

use super::{
    foreign_server::ForeignLogin,
    secret_detection,
    server_members::{ImportEntry, shown},
};

impl ImportEntry<'_> {
    /// Removes the login.
    pub(super) fn login(&mut self) -> ForeignLogin {
        let mut login = ForeignLogin::default();
        for key in ["oauth", "auth"] {
            match self.take(key) {
                None | Some(Value::Bool(true)) => {}
                Some(Value::Bool(false)) => login.is_off = true,
                Some(Value::Object(members)) => self.login_members(key, members, &mut login),
                Some(_) => self.ignored.push(shown(key)),
            }
        }
        // Codex has the scopes beside the table.
        if let Some(found) = self.take("scopes")
            && !self.read_scopes(&found, &mut login.scopes)
        {
            self.ignored.push(shown("scopes"));
        }
        login
    }

    fn login_members(
        &mut self,
        table: &str,
        members: Map<String, Value>,
        login: &mut ForeignLogin,
    ) {
        for (key, value) in members {
            let is_read = match (key.to_ascii_lowercase().replace('_', "").as_str(), &value) {
                (_, Value::Null) => true,
                ("clientid", Value::String(text)) => {
                    login.client_id = Some(self.read(text));
                    true
                }
                ("clientsecret", Value::String(text)) => {
                    login.client_secret = Some(self.read(text));
                    true
                }
                ("scope" | "scopes", scopes) => self.read_scopes(scopes, &mut login.scopes),
                _ => false,
            };
            if !is_read {
                self.ignored.push(format!("{} of `{table}`", shown(&key)));
            }
        }
    }

    /// Reads scopes from a text with spaces, or from a list. Returns `false` if it is neither.
    fn read_scopes(&self, found: &Value, scopes: &mut Vec<String>) -> bool {
        let texts = match found {
            Value::String(text) => vec![text.as_str()],
            Value::Array(items) => match items.iter().map(Value::as_str).collect() {
                Some(texts) => texts,
                None => return false,
            },
            _ => return false,
        };
        let words: Vec<&str> = texts.into_iter().flat_map(str::split_whitespace).collect();
        let is_scope = |word: &&str| {
            self.read(word).as_plain().is_some() && !secret_detection::looks_secret(word)
        };
        let is_read = words.iter().all(is_scope);
        if is_read {
            scopes.extend(words.into_iter().map(str::to_owned));
        }
        is_read
    }
}
