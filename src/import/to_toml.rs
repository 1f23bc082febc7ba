//! The output of an import as a configuration file.
//!
//! Pure.

use toml::Value;

use super::{
    plan::{ImportPlan, ImportState, ImportedServer},
    report::{self, ReportTarget},
    server_conversion::ServerSetting,
};
use crate::server_name::ServerName;

impl ImportPlan {
    /// Returns a configuration file with all servers; unused servers become comments.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for line in report::head(self, ReportTarget::File) {
            comment(&mut text, &line);
        }
        for server in &self.servers {
            text.push('\n');
            for line in report::about(self, server) {
                comment(&mut text, &line);
            }
            write(&mut text, server);
        }
        text
    }
}

fn write(text: &mut String, server: &ImportedServer) {
    let table = table(&server.name, &server.converted.settings);
    match &server.state {
        ImportState::Active => text.push_str(&table),
        // A server without known settings leaves nothing to correct.
        ImportState::Refused(_) if server.converted.settings.is_empty() => {}
        ImportState::Disabled | ImportState::Refused(_) => {
            table.lines().for_each(|line| comment(text, line));
        }
    }
}

/// Returns the table of one server.
pub(super) fn table(name: &ServerName, settings: &[(&'static str, ServerSetting)]) -> String {
    let mut text = format!("[servers.{name}]\n");
    for (key, setting) in settings {
        let value = Value::try_from(setting).expect("texts, lists and tables are TOML");
        text.push_str(&format!("{key} = {value}\n"));
    }
    text
}

/// Adds a comment of one line; control characters become spaces.
fn comment(text: &mut String, line: &str) {
    text.push_str("# ");
    text.push_str(&report::one_line(line));
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}
