//! TypeScript declarations of tools, made of their JSON Schemas.
//!
//! ```text
//!  schema ──▶ convert::Converter ──▶ types::Type ──▶ print ──▶ text
//! ```
//!
//! A type says what the schema says as far as TypeScript can: what it cannot, as bounds and formats, is
//! in the comments, and what nobody knows is `unknown`. An object that says nothing of further
//! properties has none, so that a misspelled one is found.
//!
//! Pure: tools in, text out, always the same.

use std::fmt::Write as _;

use serde_json::Value;

mod convert;
mod names;
mod print;
mod types;

use convert::Converter;
use names::Names;
use print::{comment, declaration, quoted};

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name of the server.
    pub server: String,
    /// What the server calls it.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The schema of its arguments.
    pub input: Value,
    /// The schema of its structured result, if it says so.
    pub output: Option<Value>,
}

/// What stands at the end of each file: how the tools are called.
const CALL: &str = include_str!("call.txt");

/// The names that [`CALL`] and the interface of all tools have.
const OURS: [&str; 6] = [
    "MetamcpTools",
    "MetamcpToolName",
    "MetamcpInput",
    "MetamcpOutput",
    "MetamcpResult",
    "MetamcpCall",
];

/// Returns the declarations of `tools`, as metamcp of this `version` writes them: the text of a module.
/// Two tools of one name are there once.
pub fn declarations(tools: &[Tool], version: &str) -> String {
    let mut tools: Vec<(String, &Tool)> =
        tools.iter().map(|tool| (format!("{}/{}", tool.server, tool.name), tool)).collect();
    tools.sort_by(|a, b| a.0.cmp(&b.0));
    tools.dedup_by(|a, b| a.0 == b.0);
    let mut names = Names::new(OURS);
    let mut text = String::new();
    let mut interface = String::new();
    let _infallible = writeln!(
        text,
        "// Made by `metamcp typegen` {version}: make it anew instead of changing it.\n"
    );
    for (qualified, tool) in &tools {
        let stem = names::of_tool(&tool.server, &tool.name);
        let (input, output) =
            (names.take(&format!("{stem}Input")), names.take(&format!("{stem}Output")));
        let about =
            comment(tool.description.as_deref(), &[format!("Arguments of `{qualified}`.")], 0);
        text.push_str(&about);
        let types = Converter::new(&tool.input, &input, &mut names).convert();
        types.iter().for_each(|(name, found)| text.push_str(&declaration(name, found)));
        let result = [format!("Structured result of `{qualified}`.")];
        text.push_str(&comment(None, &result, 0));
        match &tool.output {
            Some(schema) => {
                let types = Converter::new(schema, &output, &mut names).convert();
                types.iter().for_each(|(name, found)| text.push_str(&declaration(name, found)));
            }
            None => text.push_str(&declaration(&output, &types::Type::Unknown)),
        }
        interface.push_str(&comment(tool.description.as_deref(), &[], 1));
        let _infallible =
            writeln!(interface, "  {}: {{ input: {input}; output: {output} }};", quoted(qualified));
    }
    let _infallible = write!(
        text,
        "/** Every tool, by its name. */\nexport interface MetamcpTools {{\n{interface}}}\n\n{CALL}"
    );
    text
}

#[cfg(test)]
mod tests;
