//! `metamcp auth`: the credentials that the service sends to servers.

use serde_json::json;

use super::{
    Failed, output,
    service_target::OutputArgs,
    text_table::{CellColour, TableCell, TextTable},
};

/// Show how the service authenticates itself to servers
///
/// No secret is shown, only whether each secret that a server needs is present.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only this server
    server: Option<String>,
    #[command(flatten)]
    reader: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server });
    let status = args.reader.target.ask("auth/status", &params)?;
    args.reader.print(&status, |status| {
        let mut table = TextTable::headed(["SERVER", "BY", "SECRETS"]);
        for item in status.as_array().into_iter().flatten() {
            let auth = &item["auth"];
            let by = output::word(&auth["type"]);
            let there: TableCell = match (by.as_str(), auth["hasTokens"] == true) {
                ("none", _) => TableCell::from("-").colour(CellColour::Dim),
                (_, true) => TableCell::from("there").colour(CellColour::Green),
                (_, false) => TableCell::from("missing").colour(CellColour::Red),
            };
            table.row([output::word(&item["server"]).into(), by.into(), there]);
        }
        output::table_or(&table, "No server is declared.\n");
        Ok(())
    })
}
