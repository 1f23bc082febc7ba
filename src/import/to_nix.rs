//! What was read, as a module for NixOS.
//!
//! Pure. Written as `nixfmt` does, so that it can be kept as it is.

use std::collections::BTreeMap;

use super::{
    plan::{Import, Imported, State},
    report::{self, Place},
    server::Setting,
};

/// Words that cannot be names. Source: the manual of Nix.
const KEYWORDS: [&str; 10] =
    ["assert", "else", "if", "in", "inherit", "let", "or", "rec", "then", "with"];

impl Import {
    /// Returns a module that sets `services.metamcp.settings.servers` and
    /// `services.metamcp.credentials`; servers that are not used stand in comments.
    pub fn to_nix(&self) -> String {
        let mut out = Writer::default();
        for line in report::head(self, Place::Module) {
            out.comment(&line);
        }
        out.open("{");
        out.open("services.metamcp = {");
        if !self.servers.is_empty() {
            out.open("settings.servers = {");
            for (index, server) in self.servers.iter().enumerate() {
                if index > 0 {
                    out.blank();
                }
                for line in report::about(self, server) {
                    out.comment(&line);
                }
                write(&mut out, server);
            }
            out.close("};");
        }
        let credentials = self.credentials();
        if !credentials.is_empty() {
            out.open("credentials = {");
            for (credential, _) in credentials {
                let path = match &credential.file {
                    Some(path) => path.clone(),
                    None => format!("/run/secrets/{}", credential.name),
                };
                out.line(&format!("{} = {};", name(&credential.name), string(&path)));
            }
            out.close("};");
        }
        out.close("};");
        out.close("}");
        out.text
    }
}

fn write(out: &mut Writer, server: &Imported) {
    let settings = &server.converted.settings;
    match &server.state {
        State::Active => {}
        State::Disabled => out.comments_from = Some(out.depth),
        State::Refused(_) if settings.is_empty() => return,
        State::Refused(_) => out.comments_from = Some(out.depth),
    }
    out.open(&format!("{} = {{", name(server.name.as_str())));
    for (key, setting) in settings {
        match setting {
            Setting::Text(text) => out.line(&format!("{key} = {};", string(text))),
            Setting::List(items) => list(out, key, items),
            Setting::Table(members) => table(out, key, members),
        }
    }
    out.close("};");
    out.comments_from = None;
}

fn list(out: &mut Writer, key: &str, items: &[String]) {
    if let [item] = items {
        out.line(&format!("{key} = [ {} ];", string(item)));
        return;
    }
    out.open(&format!("{key} = ["));
    items.iter().for_each(|item| out.line(&string(item)));
    out.close("];");
}

fn table(out: &mut Writer, key: &str, members: &BTreeMap<String, String>) {
    out.open(&format!("{key} = {{"));
    for (member, value) in members {
        out.line(&format!("{} = {};", name(member), string(value)));
    }
    out.close("};");
}

/// Returns a name of an attribute.
fn name(text: &str) -> String {
    let is_part = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '-' | '\'');
    let is_name = text.starts_with(|found: char| found.is_ascii_alphabetic() || found == '_')
        && text.chars().all(is_part)
        && !KEYWORDS.contains(&text);
    if is_name { text.to_owned() } else { string(text) }
}

/// Returns a string, in which nothing is looked up.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for found in text.chars() {
        match found {
            '"' | '\\' => quoted.extend(['\\', found]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // Only before a brace it would begin something.
            '$' => quoted.push_str("\\$"),
            _ => quoted.push(found),
        }
    }
    quoted.push('"');
    quoted
}

/// Lines with an indentation, in comments or not.
#[derive(Default)]
struct Writer {
    text: String,
    depth: usize,
    /// The depth at which comments began; none while there are none.
    comments_from: Option<usize>,
}

impl Writer {
    fn line(&mut self, line: &str) {
        let outer = self.comments_from.unwrap_or(self.depth);
        let inner = "  ".repeat(self.depth - outer.min(self.depth));
        match self.comments_from {
            Some(_) => self.put(outer, &format!("# {inner}{}", report::tame(line))),
            None => self.put(outer, line),
        }
    }

    fn comment(&mut self, line: &str) {
        self.put(self.depth, format!("# {}", report::tame(line)).trim_end());
    }

    fn put(&mut self, depth: usize, line: &str) {
        self.text.push_str(&format!("{}{line}\n", "  ".repeat(depth)));
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    fn close(&mut self, line: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }
}
