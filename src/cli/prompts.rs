//! `metamcp prompts`: the prompts of all servers.

use serde_json::{Value, json};

use super::{Failed, item_output, output, service_target::OutputArgs};

/// List the prompts of all servers, or of one
///
/// Arguments in brackets are optional.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only the prompts of this server
    server: Option<String>,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server, "report": true });
    let listed = args.common.target.ask("prompts/list", &params)?;
    let texts = ("prompt", "No server has a prompt.\n");
    item_output::print_list(&args.common, &listed, texts, |prompt| {
        let about = item_output::first_line(prompt, &["description", "title"]);
        [output::word(&prompt["name"]), arguments(&prompt["arguments"]), about]
    })
}

fn arguments(arguments: &Value) -> String {
    let name = |argument: &Value| match argument["required"] == true {
        true => output::word(&argument["name"]),
        false => format!("[{}]", output::word(&argument["name"])),
    };
    output::items(arguments).iter().map(name).collect::<Vec<_>>().join(" ")
}
