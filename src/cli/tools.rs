//! `metamcp tools`: the tools of all servers.

use serde_json::{Value, json, value::RawValue};

use super::{
    Failed, output,
    service_target::OutputArgs,
    text_table::{CellColour, TableCell, TextTable},
};

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
    reader: OutputArgs,
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
    pub(super) fn add_to(&self, mut params: Value, reader: &OutputArgs) -> Value {
        if self.schema && reader.json {
            params["includeSchema"] = true.into();
            params["schemaDepth"] = self.depth.into();
        } else if !reader.json {
            // The service sends descriptions only with schemas, which are not shown here.
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

/// Prints the result of `tools/list` or `tools/grep`.
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

/// Returns the items of a listing with a report, and names the unavailable servers on standard
/// error.
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

/// Returns the annotations of a tool in words.
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
