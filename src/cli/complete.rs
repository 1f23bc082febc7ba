//! `metamcp complete`: the values that a server suggests.

use serde_json::json;

use super::{Failed, item_output, output, service_target::OutputArgs};

/// Ask a server for values of an argument
///
/// Works for an argument of a prompt, and for a variable in the URI template of a resource.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The kind of the item that has the argument
    #[arg(value_parser = ["prompt", "resource"])]
    kind: String,
    /// The prompt, or the URI template: `SERVER/NAME`
    #[arg(value_name = "SERVER/NAME")]
    item: String,
    /// The name of the argument
    argument: String,
    /// The beginning of its value
    #[arg(default_value = "", hide_default_value = true)]
    value: String,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let (server, name) = item_output::split(&args.item, &args.kind)?;
    let reference = match args.kind.as_str() {
        "prompt" => json!({ "type": "ref/prompt", "name": name }),
        _ => json!({ "type": "ref/resource", "uri": name }),
    };
    let params = json!({
        "server": server, "ref": reference,
        "argument": { "name": args.argument, "value": args.value },
    });
    let completed = args.common.target.ask("completions/complete", &params)?;
    args.common.print(&completed, |completed| {
        let completion = &completed["completion"];
        for value in output::items(&completion["values"]) {
            output::print(&format!("{}\n", output::word(value)));
        }
        if completion["hasMore"] == true {
            output::hint("There are more values: type more of the value.\n");
        }
    })
}
