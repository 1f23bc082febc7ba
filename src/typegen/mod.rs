//! TypeScript declarations of tools, generated from their schemas.
//!
//! ```text
//!  tools ──▶ schema_reader (schema → TypeShape, and named types) ──▶ writer (TypeShape → text)
//!                  └── type_names: one name for each type
//! ```
//!
//! A schema comes from a server and may contain anything. A part that is missing, meaningless, too
//! large or too deep is `unknown`, and the text always compiles. The same tools give the same text,
//! in any order.
//!
//! Pure.

use serde_json::Value;

use crate::config::defaults;

mod schema_reader;
#[cfg(test)]
mod tests;
mod type_names;
mod type_shape;
mod writer;

use schema_reader::SchemaReader;
use type_names::TypeNames;
use type_shape::NamedType;
use writer::{comment, quoted};

/// A tool whose types are declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name of its server.
    pub server: String,
    /// The name that the server gives it.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input: Option<Value>,
    /// The JSON Schema of its structured result.
    pub output: Option<Value>,
}

/// The beginning of every file, after the version.
const HEAD: &str = include_str!("head.d.ts");

/// Returns a module of declarations: the types of each tool, a map of all of them, and the type of
/// a function that calls one.
pub fn declarations(tools: &[Tool]) -> String {
    let mut tools: Vec<&Tool> = tools.iter().collect();
    tools.sort_by_key(|tool| (&tool.server, &tool.name));
    // A tool that is listed twice is declared once.
    tools.dedup_by_key(|tool| (&tool.server, &tool.name));
    let (mut entries, mut types) = (String::new(), String::new());
    let mut names = TypeNames::default();
    for tool in tools {
        let id = format!("{}/{}", tool.server, tool.name);
        let [input, output] =
            [("Input", &tool.input), ("Output", &tool.output)].map(|(part, schema)| {
                let schema = schema.as_ref()?;
                let name = names.of_tool(&tool.server, &tool.name, part);
                for named in declared(name.clone(), schema, &mut names) {
                    types.push_str(&writer::declaration(&named));
                }
                Some(name)
            });
        entries.push_str(&comment(tool.description.as_deref(), &[], 1));
        let [input, output] =
            [input, output].map(|name| name.unwrap_or_else(|| "unknown".to_owned()));
        entries.push_str(&format!("  {}: {{ input: {input}; output: {output} }};\n", quoted(&id)));
    }
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "// Made by metamcp {version}: do not edit, `metamcp typegen` writes it anew.\n{HEAD}\n\
        /** What each tool takes and gives, by `server/tool`. */\n\
        export interface MetamcpTools {{\n{entries}}}\n{types}"
    )
}

/// Returns the type of a schema, called `name`, and the types that it refers to.
fn declared(name: String, schema: &Value, names: &mut TypeNames) -> Vec<NamedType> {
    let mut reader = SchemaReader::new(name, schema, names, defaults::TYPEGEN_PARTS_MAX);
    reader.read_all();
    reader.into_named()
}
