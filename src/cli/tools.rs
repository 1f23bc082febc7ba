//! `metamcp tools`: the tools of all servers.

use serde_json::{Value, json, value::RawValue};

use super::{
    Failed, output,
    service_target::OutputArgs,
    text_table::{CellColour, TableCell, TextTable},
};

/// List the tools of all servers, or of one
///
/// Servers that do not run are listed by what is known of them. A server whose tools cannot be had is
/// named on standard error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only the tools of this server
    server: Option<String>,
    #[command(flatten)]
    schema: SchemaDetail,
    #[command(flatten)]
    reader: OutputArgs,
}

/// How much is shown of each tool.
#[derive(Debug, clap::Args)]
pub(super) struct SchemaDetail {
    /// With description and input schema, for --json
    #[arg(long, requires = "json")]
    schema: bool,
    /// Down to this depth; by default as deep as all of it stays readable
    #[arg(long, value_name = "N", requires = "schema")]
    depth: Option<u32>,
}

impl SchemaDetail {
    /// Adds it to the parameters of a method.
    pub(super) fn add_to(&self, mut params: Value, reader: &OutputArgs) -> Value {
        if self.schema && reader.json {
            params["includeSchema"] = true.into();
            params["schemaDepth"] = self.depth.into();
        } else if !reader.json {
            // Descriptions come with schemas, of which nothing is shown here.
            params["includeSchema"] = true.into();
            params["schemaDepth"] = 0.into();
        }
        params
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server, "report": true });
    let found = args.reader.target.ask("tools/list", &args.schema.add_to(params, &args.reader))?;
    print(&args.reader, &found, "No server has a tool.\n")
}

/// Prints what `tools/list` or `tools/grep` found.
pub(super) fn print(reader: &OutputArgs, found: &RawValue, nothing: &str) -> Result<(), Failed> {
    let items = items(found)?;
    reader.print(&items, |items| {
        let mut table = TextTable::default();
        for item in items.as_array().into_iter().flatten() {
            let tool = &item["tool"];
            let [server, name] = [&item["server"], &tool["name"]].map(output::word);
            let about = match &tool["description"] {
                Value::Null => &tool["title"],
                description => description,
            };
            table.row([
                format!("{server}/{name}").into(),
                TableCell::from(hints(&tool["annotations"])).colour(CellColour::Dim),
                output::first_line(about).into(),
            ]);
        }
        output::table_or(&table, nothing);
        Ok(())
    })
}

/// Returns what was found of a listing that reports, and names the servers that could not be asked
/// on standard error.
pub(super) fn items(found: &RawValue) -> Result<Box<RawValue>, Failed> {
    #[derive(serde::Deserialize)]
    struct Found<'a> {
        #[serde(borrow)]
        items: &'a RawValue,
        #[serde(default)]
        unavailable: Vec<Value>,
        #[serde(default, rename = "hasMore")]
        has_more: bool,
    }
    let Found { items, unavailable, has_more } =
        serde_json::from_str(found.get()).map_err(|error| {
            Failed::new(super::FAILED, format!("the answer cannot be read: {error}"))
        })?;
    for server in unavailable {
        let [name, reason] = ["server", "reason"].map(|member| output::word(&server[member]));
        output::complain(&format!("not listed: {name}: {reason}\n"));
    }
    if has_more {
        output::complain("There are more: raise --limit.\n");
    }
    Ok(items.to_owned())
}

/// Returns what a tool declares of itself, in words.
pub(super) fn hints(annotations: &Value) -> String {
    let mut hints = Vec::new();
    for (member, value, word) in [
        ("readOnlyHint", true, "read-only"),
        ("destructiveHint", true, "destructive"),
        ("idempotentHint", true, "idempotent"),
        ("openWorldHint", true, "open-world"),
    ] {
        if annotations[member] == value {
            hints.push(word);
        }
    }
    hints.join(" ")
}
