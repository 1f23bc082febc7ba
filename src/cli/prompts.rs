//! `metamcp prompts`: the prompts of all servers.

use serde_json::{Value, json};

use super::{
    Failed, output,
    service_target::OutputArgs,
    text_table::{CellColour, TableCell, TextTable},
    tools,
};

/// List the prompts of all servers, or of one
///
/// Arguments in brackets are optional.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only the prompts of this server
    server: Option<String>,
    #[command(flatten)]
    reader: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server, "report": true });
    let found = args.reader.target.ask("prompts/list", &params)?;
    args.reader.print(&tools::items(&found)?, |items| {
        let mut table = TextTable::default();
        for item in items.as_array().into_iter().flatten() {
            let prompt = &item["prompt"];
            let [server, name] = [&item["server"], &prompt["name"]].map(output::word);
            let about = ["description", "title"].map(|member| &prompt[member]);
            let about = about.into_iter().find(|about| about.is_string());
            table.row([
                format!("{server}/{name}").into(),
                TableCell::from(arguments(&prompt["arguments"])).colour(CellColour::Dim),
                output::first_line(about.unwrap_or(&Value::Null)).into(),
            ]);
        }
        output::table_or(&table, "No server has a prompt.\n");
        Ok(())
    })
}

fn arguments(arguments: &Value) -> String {
    let name = |argument: &Value| match argument["required"] == true {
        true => output::word(&argument["name"]),
        false => format!("[{}]", output::word(&argument["name"])),
    };
    let names = arguments.as_array().into_iter().flatten().map(name);
    names.collect::<Vec<_>>().join(" ")
}
