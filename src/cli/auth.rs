//! `metamcp auth`: the credentials that the service sends to servers, and its logins.

use serde_json::{Value, json};

use super::{
    Failed, output,
    service_target::OutputArgs,
    text_table::{CellColour, TableCell, TextTable},
};
use crate::time_format::in_two_units;

/// Show how the service authenticates itself to servers
///
/// No secret is shown, only whether each secret that a server needs is present. For a login, its
/// issuer, scopes and expiry are shown, its last refresh, and its last error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this server
    server: Option<String>,
    /// Print the document that describes metamcp to authorization servers: to serve at
    /// `auth.client_metadata_url` of this server, or to register metamcp by hand
    #[arg(long, requires = "server")]
    document: bool,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server });
    if args.document {
        let document = args.common.target.ask("auth/document", &params)?;
        output::json(document.get());
        return Ok(());
    }
    let status = args.common.target.ask("auth/status", &params)?;
    args.common.print(&status, |status| {
        let items = output::items(status);
        // Most installations have no logins.
        let has_logins = items.iter().any(|item| item["auth"]["type"] == "oauth");
        let headings = ["SERVER", "SOURCE", "SECRETS", "ISSUER", "SCOPES", "EXPIRES", "REFRESHED"];
        let n_columns = if has_logins { headings.len() } else { 3 };
        let mut table = TextTable::headed(headings.into_iter().take(n_columns));
        let mut errors = String::new();
        for item in items {
            let (server, auth) = (output::word(&item["server"]), &item["auth"]);
            let row: [TableCell; 7] = [
                server.clone().into(),
                output::word(&auth["type"]).into(),
                secrets(auth),
                or_dash(output::word(&auth["issuer"])),
                or_dash(scopes(auth)),
                or_dash(expiry(auth)),
                or_dash(age(auth)),
            ];
            table.row(row.into_iter().take(n_columns));
            if let Some(error) = auth["error"].as_str() {
                errors.push_str(&format!("{server}: {}\n", output::text(error)));
            }
        }
        output::table_or(&table, "No server is declared.\n");
        output::print(&errors);
    })
}

/// Returns whether metamcp has what it needs to authenticate itself.
fn secrets(auth: &Value) -> TableCell {
    let (text, colour) = match (auth["type"].as_str(), auth["hasTokens"] == true) {
        (Some("none"), _) => ("-", CellColour::Dim),
        (_, true) => ("present", CellColour::Green),
        (Some("oauth"), false) => ("needs login", CellColour::Yellow),
        (_, false) => ("missing", CellColour::Red),
    };
    TableCell::from(text).colour(colour)
}

fn scopes(auth: &Value) -> String {
    output::items(&auth["scopes"]).iter().map(output::word).collect::<Vec<_>>().join(" ")
}

/// Returns the time until the access token expires.
fn expiry(auth: &Value) -> String {
    match auth["expiresInMs"].as_u64() {
        Some(0) => "expired".to_owned(),
        Some(ms) => format!("in {}", in_two_units(ms)),
        None => String::new(),
    }
}

/// Returns the time since the last refresh.
fn age(auth: &Value) -> String {
    auth["refreshedAgoMs"]
        .as_u64()
        .map(|ms| format!("{} ago", in_two_units(ms)))
        .unwrap_or_default()
}

fn or_dash(text: String) -> TableCell {
    match text.is_empty() {
        true => TableCell::from("-").colour(CellColour::Dim),
        false => text.into(),
    }
}
