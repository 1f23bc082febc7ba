//! `metamcp tools`: the tools of all servers.

use serde_json::{Value, json, value::RawValue};

use super::{Failed, item_output, output, service_target::OutputArgs};

/// List the tools of all servers, or of one
///
/// Servers that are not running are listed from the catalog. A server whose tools cannot be listed
/// is named on standard error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only the tools of this server
    server: Option<String>,
    #[command(flatten)]
    schema: SchemaDetail,
    #[command(flatten)]
    common: OutputArgs,
}

/// The amount of detail for each tool.
#[derive(Debug, clap::Args)]
pub(super) struct SchemaDetail {
    /// Include description and input schema, for --json
    #[arg(long, requires = "json")]
    schema: bool,
    /// The depth of the schema; default: as deep as it stays readable
    #[arg(long, value_name = "N", requires = "schema")]
    depth: Option<u32>,
}

impl SchemaDetail {
    /// Adds the options to the parameters of a method.
    pub(super) fn add_to(&self, mut params: Value, common: &OutputArgs) -> Value {
        if self.schema || !common.json {
            // The service sends descriptions only with schemas, which only JSON output has.
            params["includeSchema"] = true.into();
            params["schemaDepth"] = if common.json { self.depth.into() } else { 0.into() };
        }
        params
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server, "report": true });
    let found = args.common.target.ask("tools/list", &args.schema.add_to(params, &args.common))?;
    print(&args.common, &found, "No server has a tool.\n")
}

/// Prints the result of `tools/list` or `tools/grep`.
pub(super) fn print(common: &OutputArgs, found: &RawValue, empty: &str) -> Result<(), Failed> {
    item_output::print_list(common, found, ("tool", empty), |tool| {
        let about = item_output::first_line(tool, &["description", "title"]);
        [output::word(&tool["name"]), hints(&tool["annotations"]), about]
    })
}

/// Returns the annotations of a tool in words.
pub(super) fn hints(annotations: &Value) -> String {
    let words = [
        ("readOnlyHint", "read-only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "open-world"),
    ];
    let hints = words.into_iter().filter(|(member, _)| annotations[*member] == true);
    hints.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}
