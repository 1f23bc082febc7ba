//! `metamcp search` and `metamcp grep`: the tools of all servers.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Failed, output, service};
use crate::config::defaults;

/// Find tools of all servers by what they do
///
/// Servers that do not run are searched by what is known of them. Exits with 69 when no service
/// answers.
#[derive(Debug, clap::Args)]
pub(super) struct SearchArgs {
    /// What the tool should do, in plain words
    #[arg(required = true)]
    query: Vec<String>,
    /// Only tools of this server
    #[arg(long)]
    server: Option<String>,
    /// How tools are ranked: keyword, bm25 or hybrid; by default as is configured
    #[arg(long, value_parser = ["keyword", "bm25", "hybrid"])]
    strategy: Option<String>,
    /// Show what each score is made of
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    common: Common,
}

/// Find tools of all servers by a regular expression
///
/// It is looked for in `server/tool`, title and description, and does not care about case. Exits with
/// 69 when no service answers.
#[derive(Debug, clap::Args)]
pub(super) struct GrepArgs {
    /// The regular expression
    pattern: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// How many tools at most: 1 to 100
    #[arg(long, default_value_t = defaults::DISCOVER_LIMIT, value_parser = limit)]
    limit: usize,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// The control socket; by default that of the system, or else that of this user
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

fn limit(text: &str) -> Result<usize, String> {
    let most = defaults::DISCOVER_LIMIT_MAX;
    let limit = text.parse().ok().filter(|limit| (1..=most).contains(limit));
    limit.ok_or_else(|| format!("use 1 to {most}"))
}

pub(super) fn search(args: &SearchArgs) -> Result<(), Failed> {
    let params = json!({
        "query": args.query.join(" "), "server": args.server, "strategy": args.strategy,
        "limit": args.common.limit, "explain": args.explain,
    });
    ask("tools/search", &params, &args.common)
}

pub(super) fn grep(args: &GrepArgs) -> Result<(), Failed> {
    let params = json!({
        "pattern": args.pattern, "limit": args.common.limit, "report": true,
        "includeSchema": true, "schemaDepth": 0,
    });
    ask("tools/grep", &params, &args.common)
}

fn ask(method: &str, params: &Value, common: &Common) -> Result<(), Failed> {
    let found = service::ask(common.socket.as_deref(), method, Some(&params.to_string()))?
        .map_err(service::failed)?;
    if common.json {
        output::print(&format!("{found:#}\n"));
    } else {
        show(&found);
    }
    Ok(())
}

fn show(found: &Value) {
    let all = |member: &str| found[member].as_array().cloned().unwrap_or_default();
    let mut tools = all("tools");
    for found in all("items") {
        let tool = &found["tool"];
        tools.push(json!({
            "server": found["server"], "tool": tool["name"], "description": tool["description"],
        }));
    }
    if tools.is_empty() {
        output::print("Nothing fits.\n");
    }
    for tool in &tools {
        output::print(&line(tool));
        for part in tool["explanation"]["parts"].as_array().into_iter().flatten() {
            let score = part["score"].as_f64().unwrap_or_default();
            output::print(&format!("  {score:>9.4}  {}\n", output::word(&part["name"])));
        }
    }
    if found["hasMore"] == true {
        output::print("There are more: raise --limit, or say more of what you look for.\n");
    }
    for server in all("unavailable") {
        let [name, reason] = ["server", "reason"].map(|member| output::word(&server[member]));
        output::complain(&format!("not searched: {name}: {reason}\n"));
    }
}

/// Returns a tool on one line, with its score where there is one.
fn line(tool: &Value) -> String {
    let [server, name, description] =
        ["server", "tool", "description"].map(|member| output::word(&tool[member]));
    let score = match (tool["score"].as_f64(), tool["confidence"].as_f64()) {
        (Some(score), Some(confidence)) => format!("{score:>9.4}  {confidence:.2}  "),
        _ => String::new(),
    };
    format!("{score}{server}/{name}  {description}\n")
}
