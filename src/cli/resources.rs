//! `metamcp resources`: the resources of all servers.

use serde_json::json;

use super::{Failed, item_output, output, service_target::OutputArgs};

/// List the resources of all servers, or of one
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only the resources of this server
    server: Option<String>,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server, "report": true });
    let listed = args.common.target.ask("resources/list", &params)?;
    let texts = ("resource", "No server has a resource.\n");
    item_output::print_list(&args.common, &listed, texts, |resource| {
        let about = item_output::first_line(resource, &["description", "title", "name"]);
        [output::word(&resource["uri"]), output::word(&resource["mimeType"]), about]
    })
}
