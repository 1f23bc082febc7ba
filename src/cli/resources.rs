//! `metamcp resources`: the resources of all servers.

use serde_json::{Value, json};

use super::{
    Failed, output,
    service_target::OutputArgs,
    text_table::{CellColour, TableCell, TextTable},
    tools,
};

/// List the resources of all servers, or of one
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only the resources of this server
    server: Option<String>,
    #[command(flatten)]
    reader: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server, "report": true });
    let found = args.reader.target.ask("resources/list", &params)?;
    args.reader.print(&tools::items(&found)?, |items| {
        let mut table = TextTable::default();
        for item in items.as_array().into_iter().flatten() {
            let resource = &item["resource"];
            let [server, uri, kind] =
                [&item["server"], &resource["uri"], &resource["mimeType"]].map(output::word);
            let about = ["description", "title", "name"]
                .map(|member| &resource[member])
                .into_iter()
                .find(|about| about.is_string());
            table.row([
                format!("{server}/{uri}").into(),
                TableCell::from(kind).colour(CellColour::Dim),
                output::first_line(about.unwrap_or(&Value::Null)).into(),
            ]);
        }
        output::table_or(&table, "No server has a resource.\n");
        Ok(())
    })
}
