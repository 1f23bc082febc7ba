//! `metamcp typegen`: TypeScript types for all tools.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    FAILED, Failed, item_output, output, quantity,
    service_target::{self, ServiceTarget},
};
use crate::{
    config::defaults,
    files,
    typegen::{Tool, declarations},
};

/// Print the types of all tools as TypeScript declarations
///
/// Prints the argument and result types of each tool, and the type of a function that calls one.
/// Servers that are not running are declared from the catalog. Exits with 69 when no service
/// answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Declare only tools of this server
    #[arg(long)]
    server: Option<String>,
    /// Write to this file, and only if its content changes
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: ServiceTarget,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({
        "server": args.server, "includeSchema": true,
        "schemaDepth": defaults::TYPEGEN_DEPTH_MAX, "report": true,
    });
    let found = service_target::value(&args.target.ask("tools/list", &params)?)?;
    let tools: Vec<Tool> = output::items(&found["items"]).iter().filter_map(tool).collect();
    item_output::print_unavailable("left out", output::items(&found["unavailable"]));
    let text = declarations(&tools);
    match &args.output {
        Some(path) => write(path, &text, tools.len()),
        None => {
            output::print(&text);
            Ok(())
        }
    }
}

/// Parses one entry of the answer.
fn tool(entry: &Value) -> Option<Tool> {
    let tool = &entry["tool"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let schema = |name: &str| tool.get(name).filter(|schema| !schema.is_null()).cloned();
    Some(Tool {
        server: text(&entry["server"])?,
        name: text(&tool["name"])?,
        description: text(&tool["description"]).or_else(|| text(&tool["title"])),
        input: schema("inputSchema"),
        output: schema("outputSchema"),
    })
}

/// Writes `text` to a file, unless it is unchanged, so that file watchers are not triggered.
fn write(path: &Path, text: &str, n_tools: usize) -> Result<(), Failed> {
    let tools = quantity::count(n_tools, "tool");
    let name = path.display();
    if files::bounded(path, text.len() as u64).is_ok_and(|found| found == text.as_bytes()) {
        output::print(&format!("{name}: unchanged, {tools}\n"));
        return Ok(());
    }
    files::publish(path, text.as_bytes()).map_err(|error| {
        Failed::new(FAILED, format!("cannot write `{name}`: {error}"))
            .hint("Name a file in an existing directory that you may write to.")
    })?;
    output::print(&format!("{name}: written, {tools}\n"));
    Ok(())
}
