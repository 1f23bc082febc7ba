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
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server });
    let status = args.common.target.ask("auth/status", &params)?;
    args.common.print(&status, |status| {
        let mut table = TextTable::headed(["SERVER", "SOURCE", "SECRETS"]);
        for item in output::items(status) {
            let auth = &item["auth"];
            let source = output::word(&auth["type"]);
            let (secrets, colour) = match (source.as_str(), auth["hasTokens"] == true) {
                ("none", _) => ("-", CellColour::Dim),
                (_, true) => ("present", CellColour::Green),
                (_, false) => ("missing", CellColour::Red),
            };
            let secrets = TableCell::from(secrets).colour(colour);
            table.row([output::word(&item["server"]).into(), source.into(), secrets]);
        }
        output::table_or(&table, "No server is declared.\n");
    })
}
