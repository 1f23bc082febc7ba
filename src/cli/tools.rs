//! `metamcp tools`, `grep`, `search` and `info`: the tools of all servers.

use serde_json::{Value, json};

use super::{
    Failed, argument_list::ArgumentList, item_output, output, service_target::OutputArgs, terminal,
    text_table::CellColour,
};
use crate::config::defaults;

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
struct SchemaDetail {
    /// Include description and input schema, for --json
    #[arg(long, requires = "json")]
    schema: bool,
    /// The depth of the schema; default: as deep as it stays readable
    #[arg(long, value_name = "N", requires = "schema")]
    depth: Option<u32>,
}

impl SchemaDetail {
    /// Adds the options to the parameters of a method.
    fn add_to(&self, mut params: Value, common: &OutputArgs) -> Value {
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
    let params = args.schema.add_to(params, &args.common);
    print(&args.common, ("tools/list", &params), "No server has a tool.\n")
}

/// Prints the tools that `list`, a method and its parameters, returns.
fn print(common: &OutputArgs, list: (&str, &Value), empty: &str) -> Result<(), Failed> {
    item_output::print_list(common, list, ("tool", empty), |tool| {
        let about = item_output::first_line(tool, &["description", "title"]);
        [output::word(&tool["name"]), hints(&tool["annotations"]), about]
    })
}

/// Returns the annotations of a tool in words.
fn hints(annotations: &Value) -> String {
    let words = [
        ("readOnlyHint", "read-only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "open-world"),
    ];
    let hints = words.into_iter().filter(|(member, _)| annotations[*member] == true);
    hints.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

/// Find tools of all servers by a regular expression
///
/// Searches `server/tool`, title and description, ignoring case. Exits with 69 when no service
/// answers.
#[derive(Debug, clap::Args)]
pub(super) struct GrepArgs {
    /// The regular expression
    pattern: String,
    /// The largest number of tools: 1 to 100
    #[arg(long, value_parser = limit)]
    limit: Option<usize>,
    #[command(flatten)]
    schema: SchemaDetail,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn grep(args: &GrepArgs) -> Result<(), Failed> {
    let params = json!({ "pattern": args.pattern, "limit": args.limit, "report": true });
    let params = args.schema.add_to(params, &args.common);
    print(&args.common, ("tools/grep", &params), "No tool matches.\n")
}

/// Find tools of all servers by what they do
///
/// Servers that are not running are searched in the catalog. Exits with 69 when no service answers.
#[derive(Debug, clap::Args)]
pub(super) struct SearchArgs {
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
fn limit(text: &str) -> Result<usize, String> {
    let most = defaults::DISCOVER_LIMIT_MAX;
    let limit = text.parse().ok().filter(|limit| (1..=most).contains(limit));
    limit.ok_or_else(|| format!("use 1 to {most}"))
}

pub(super) fn search(args: &SearchArgs) -> Result<(), Failed> {
    let params = json!({
        "query": args.query.join(" "), "server": args.server, "strategy": args.strategy,
        "limit": args.limit, "explain": args.explain,
    });
    let found = args.common.target.ask("tools/search", &params)?;
    args.common.print(&found, show_found)
}

fn show_found(found: &Value) {
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

/// Show a tool: what it does, and its arguments
///
/// With --path, shows only a part of its input schema, such as `filter.name`.
#[derive(Debug, clap::Args)]
pub(super) struct InfoArgs {
    /// The tool: `server/tool`
    tool: String,
    /// Show only this part of its input schema
    #[arg(long)]
    path: Option<String>,
    /// The depth of the schema to show; default: all of it
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn info(args: &InfoArgs) -> Result<(), Failed> {
    let params = json!({ "name": args.tool, "path": args.path, "schemaDepth": args.depth });
    let info = args.common.target.ask("tools/info", &params)?;
    if args.path.is_some() {
        // A part of a schema is shown as JSON.
        let show_part = |tool: &Value| output::json(&tool["inputSchema"].to_string());
        return args.common.print(&info, show_part);
    }
    args.common.print(&info, show_tool)
}

fn show_tool(tool: &Value) {
    let [server, name, title] =
        ["server", "name", "title"].map(|member| output::word(&tool[member]));
    let heading = |text: &str| match terminal::is_coloured() {
        true => CellColour::Bold.paint(text),
        false => text.to_owned(),
    };
    output::print(&heading(&format!("{server}/{name}")));
    output::print(&if title.is_empty() { "\n".to_owned() } else { format!("  {title}\n") });
    let hints = hints(&tool["annotations"]);
    if !hints.is_empty() {
        output::print(&format!("{hints}\n"));
    }
    if let Some(description) = tool["description"].as_str().filter(|text| !text.is_empty()) {
        output::print(&format!("\n{}\n", output::text(description.trim_end())));
    }
    for (title, list) in [
        ("Arguments", ArgumentList::read(&tool["inputSchema"], "--")),
        ("Result", ArgumentList::read(&tool["outputSchema"], "")),
    ] {
        if !list.is_empty() {
            output::print(&format!("\n{}\n", heading(&format!("{title}:"))));
            output::print(&list.shown());
        }
    }
}
