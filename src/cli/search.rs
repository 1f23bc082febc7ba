//! `metamcp search`: tools of all servers, found by a description.

use serde_json::{Value, json};

use super::{Failed, item_output, output, service_target::OutputArgs};
use crate::config::defaults;

/// Find tools of all servers by what they do
///
/// Servers that are not running are searched in the catalog. Exits with 69 when no service answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A description of the tool in plain words
    #[arg(required = true)]
    query: Vec<String>,
    /// Find only tools of this server
    #[arg(long)]
    server: Option<String>,
    /// The ranking of tools: keyword, bm25 or hybrid; default: as configured
    #[arg(long, value_parser = ["keyword", "bm25", "hybrid"])]
    strategy: Option<String>,
    /// Show the parts of each score
    #[arg(long)]
    explain: bool,
    /// The largest number of tools: 1 to 100
    #[arg(long, default_value_t = defaults::DISCOVER_LIMIT, value_parser = limit)]
    limit: usize,
    #[command(flatten)]
    common: OutputArgs,
}

/// Parses the number of tools.
pub(super) fn limit(text: &str) -> Result<usize, String> {
    let most = defaults::DISCOVER_LIMIT_MAX;
    let limit = text.parse().ok().filter(|limit| (1..=most).contains(limit));
    limit.ok_or_else(|| format!("use 1 to {most}"))
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({
        "query": args.query.join(" "), "server": args.server, "strategy": args.strategy,
        "limit": args.limit, "explain": args.explain,
    });
    let found = args.common.target.ask("tools/search", &params)?;
    args.common.print(&found, show)
}

fn show(found: &Value) {
    let tools = output::items(&found["tools"]);
    if tools.is_empty() {
        output::print("No tool matches.\n");
    }
    for tool in tools {
        output::print(&line(tool));
        for part in output::items(&tool["explanation"]["parts"]) {
            let score = part["score"].as_f64().unwrap_or_default();
            output::print(&format!("  {score:>9.4}  {}\n", output::word(&part["name"])));
        }
    }
    if found["hasMore"] == true {
        output::print(
            "There are more tools: raise --limit, or describe the tool in more detail.\n",
        );
    }
    item_output::print_unavailable("not searched", output::items(&found["unavailable"]));
}

/// Returns one line for a tool, with its score.
fn line(tool: &Value) -> String {
    let [server, name, description] =
        ["server", "tool", "description"].map(|member| output::word(&tool[member]));
    let score = match (tool["score"].as_f64(), tool["confidence"].as_f64()) {
        (Some(score), Some(confidence)) => format!("{score:>9.4}  {confidence:.2}  "),
        _ => String::new(),
    };
    format!("{score}{server}/{name}  {description}\n")
}
