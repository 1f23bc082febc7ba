//! `metamcp info`: the full description of a tool.

use serde_json::{Value, json};

use super::{
    Failed, arguments, output, service_target::OutputArgs, terminal, text_table::CellColour, tools,
};

/// Show a tool: what it does, and its arguments
///
/// With --path, shows only a part of its input schema, such as `filter.name`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
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

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "name": args.tool, "path": args.path, "schemaDepth": args.depth });
    let info = args.common.target.ask("tools/info", &params)?;
    if args.path.is_some() {
        // A part of a schema is shown as JSON.
        let show_part = |tool: &Value| output::json(&tool["inputSchema"].to_string());
        return args.common.print(&info, show_part);
    }
    args.common.print(&info, show)
}

fn show(tool: &Value) {
    let [server, name, title] =
        ["server", "name", "title"].map(|member| output::word(&tool[member]));
    let heading = |text: &str| match terminal::is_coloured() {
        true => CellColour::Bold.paint(text),
        false => text.to_owned(),
    };
    output::print(&heading(&format!("{server}/{name}")));
    output::print(&if title.is_empty() { "\n".to_owned() } else { format!("  {title}\n") });
    let hints = tools::hints(&tool["annotations"]);
    if !hints.is_empty() {
        output::print(&format!("{hints}\n"));
    }
    if let Some(description) = tool["description"].as_str().filter(|text| !text.is_empty()) {
        output::print(&format!("\n{}\n", output::text(description.trim_end())));
    }
    for (title, table) in [
        ("Arguments", arguments::table(&tool["inputSchema"])),
        ("Result", arguments::members(&tool["outputSchema"])),
    ] {
        if !table.is_empty() {
            output::print(&format!("\n{}\n", heading(&format!("{title}:"))));
            output::table(&table);
        }
    }
}
