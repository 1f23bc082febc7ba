//! What `metamcp typegen` prints, for the real compiler.

use std::{fs, path::Path, process::Command};

use metamcp::typegen::{Tool, declarations};
use serde_json::{Value, json};

use crate::{
    Installed,
    harness::daemon::{Daemon, run},
};

/// Calls that are right, and calls of which each is wrong in one way.
const USES: &str = r#"
import type { MetamcpCall, MetamcpTools } from "./tools";

export async function uses(call: MetamcpCall) {
  const echo = await call("everything/echo", { message: "hello" });
  const n: number = echo.content.length;
  await call("everything/get-sum", { a: n, b: 2 });
  await call("git/git_log", { repo_path: "." });
  await call("git/git_log", { repo_path: ".", max_count: 5 });
  await call("filesystem/list_allowed_directories");
  const weather = await call("everything/get-structured-content", { location: "Chicago" });
  const temperature: number | undefined = weather.structuredContent?.temperature;

  // @ts-expect-error there is no such tool
  await call("everything/nothing", {});
  // @ts-expect-error an argument of another type
  await call("everything/echo", { message: 7 });
  // @ts-expect-error an argument that it does not have
  await call("everything/echo", { message: "hello", mesage: "hello" });
  // @ts-expect-error a missing argument
  await call("everything/get-sum", { a: 1 });
  // @ts-expect-error no arguments at all
  await call("everything/echo");
  // @ts-expect-error a value that is none of those
  await call("everything/get-structured-content", { location: "Atlantis" });
  // @ts-expect-error a result of another type
  const text: string | undefined = weather.structuredContent?.temperature;
  return [temperature, text];
}

export type Log = MetamcpTools["git/git_log"]["input"];
"#;

#[test]
fn the_compiler_takes_the_declarations_of_real_servers_and_refuses_wrong_uses() {
    let servers = Installed::find();
    // Connected first: a list of all servers leaves out those that are late.
    let metamcp = Daemon::with(servers.config_with("prewarm")).ready();
    let directory = tempfile::tempdir().expect("a directory");
    let tools = directory.path().join("tools.ts");
    let (socket, file) = (metamcp.control().display().to_string(), tools.display().to_string());
    let (code, _, error) = run(&["typegen", "--socket", &socket, "--output", &file]);
    assert_eq!(code, 0, "{error}");
    fs::write(directory.path().join("uses.ts"), USES).expect("written");
    compile(&servers, directory.path(), "uses.ts").unwrap_or_else(|told| {
        panic!("{told}\n{}", fs::read_to_string(&tools).unwrap_or_default())
    });
    let wrong = USES.replace("// @ts-expect-error", "//");
    fs::write(directory.path().join("wrong.ts"), wrong).expect("written");
    let told = compile(&servers, directory.path(), "wrong.ts").expect_err("it is wrong");
    assert_eq!(told.matches("error TS").count(), 7, "{told}");
}

#[test]
fn the_compiler_takes_whatever_a_schema_says() {
    let servers = Installed::find();
    let nasty = "*/ export const x: number = \"1\"; /*\n\u{2028}\u{202e}\"'`${x}\\ \u{0}";
    let schemas: Vec<Value> = vec![
        json!(true),
        json!(false),
        json!({}),
        json!({ "$ref": "#" }),
        json!({ "anyOf": [{ "$ref": "#" }, { "type": "null" }] }),
        json!({ "type": "array", "items": { "$ref": "#" } }),
        json!({ "type": "array", "prefixItems": [{ "$ref": "#" }, { "type": ["string", "null"] }] }),
        json!({ "type": "object", "additionalProperties": { "$ref": "#" } }),
        json!({
            "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/b" }],
            "$defs": {
                "a": { "allOf": [{ "$ref": "#/$defs/b" }, { "properties": { "x": { "$ref": "#" } } }] },
                "b": { "anyOf": [{ "$ref": "#/$defs/a" }, { "type": "object", "additionalProperties": false }] },
            },
        }),
        json!({
            "properties": {
                nasty: { "description": nasty, "title": nasty, "format": nasty, "enum": [nasty, 1, -1.5, 1e300, null, true, [nasty], { nasty: nasty }] },
                "": { "const": "" }, "0": {}, "-1": {}, "a b": {}, "ä": {}, "constructor": {}, "__proto__": {}, "new": {}, "class": false,
                "default": { "type": "integer", "default": { "*/": "*/" }, "minimum": 0, "deprecated": true },
            },
            "required": ["new", "missing", nasty],
            "patternProperties": { "^x-": { "type": "number" }, "^y-": { "type": ["string", "null"] } },
            "additionalProperties": { "type": "boolean" },
        }),
        json!({ "type": "array", "items": [{ "type": "string" }, false, true], "additionalItems": { "oneOf": [{ "const": 1 }, { "const": "1" }] }, "minItems": 2 }),
        json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        json!({ "$id": "https://example.com/x", "$ref": "https://example.com/x#/definitions/a~1b%20c", "definitions": { "a/b c": { "$anchor": "here", "items": { "$ref": "#here" } } } }),
        json!({ "enum": [] }),
        json!({ "allOf": [{ "type": "string" }, { "type": "number" }], "nullable": true }),
        json!({ "type": ["object", "array", "string"], "properties": { "a": {} }, "items": { "type": "string" } }),
    ];
    let tools: Vec<Tool> = schemas
        .iter()
        .zip(0..)
        .map(|(schema, number)| Tool {
            server: if number % 2 == 0 { "1st".into() } else { "my-server".into() },
            name: if number % 3 == 0 {
                format!("{nasty}{number}")
            } else {
                format!("tool.{number}")
            },
            description: Some(nasty.to_owned()),
            input: schema.clone(),
            output: Some(schema.clone()),
        })
        .collect();
    let directory = tempfile::tempdir().expect("a directory");
    let text = declarations(&tools, "0.0.0");
    fs::write(directory.path().join("tools.ts"), &text).expect("written");
    compile(&servers, directory.path(), "tools.ts").unwrap_or_else(|told| panic!("{told}\n{text}"));
}

/// Has a file compiled, and those that it imports.
fn compile(servers: &Installed, directory: &Path, file: &str) -> Result<(), String> {
    let compiled = Command::new(servers.path("node"))
        .arg(servers.path("npm/node_modules/typescript/bin/tsc"))
        .args(["--strict", "--noEmit", "--target", "es2022", "--module", "esnext"])
        .args(["--moduleResolution", "bundler", "--pretty", "false", file])
        .current_dir(directory)
        .output()
        .expect("the compiler starts");
    match compiled.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&compiled.stdout).into_owned()),
    }
}
