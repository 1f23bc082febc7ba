//! `metamcp grep`: tools of all servers that match a pattern.

use serde_json::json;

use super::{
    Failed,
    service_target::OutputArgs,
    tools::{self, SchemaDetail},
};

/// Find tools of all servers by a regular expression
///
/// Searches `server/tool`, title and description, ignoring case. Exits with 69 when no service
/// answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The regular expression
    pattern: String,
    /// The largest number of tools: 1 to 100
    #[arg(long, value_parser = super::search::limit)]
    limit: Option<usize>,
    #[command(flatten)]
    schema: SchemaDetail,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "pattern": args.pattern, "limit": args.limit, "report": true });
    let found = args.common.target.ask("tools/grep", &args.schema.add_to(params, &args.common))?;
    tools::print(&args.common, &found, "No tool matches.\n")
}
