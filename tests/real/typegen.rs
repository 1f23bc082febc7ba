//! The generated declarations of tools, compiled by the real compiler.

use std::{fs, path::Path, process::Command};

use metamcp::typegen::{ScriptTypes, Tool, declarations};
use serde_json::{Value, json};

use crate::{
    Installed,
    harness::daemon::{self, Daemon},
};

/// Compiles files of a directory, and returns the compiler errors.
fn compiler_errors(servers: &Installed, directory: &Path, files: &[&str]) -> Vec<String> {
    // Without the library of a browser, which a script does not have.
    let mut tsc = Command::new(servers.0.join("node"));
    tsc.arg(servers.0.join("npm/node_modules/typescript/bin/tsc"));
    tsc.args(["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022"]);
    let output = tsc.args(files).current_dir(directory).output().expect("the compiler starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(output.status.success(), lines.is_empty(), "{text}");
    lines
}

/// Returns the lines of `wrong.ts` with compiler errors.
fn error_lines(errors: &[String]) -> Vec<&str> {
    let places = errors.iter().filter_map(|line| line.strip_prefix("wrong.ts(")?.split_once(','));
    places.map(|(line, _)| line).collect()
}

#[test]
fn the_generated_types_of_real_servers_compile_and_reject_wrong_use() {
    let servers = Installed::find();
    let metamcp = Daemon::with(servers.config_with("prewarm")).ready();
    let directory = tempfile::tempdir().expect("a directory");
    let (file, socket) = (directory.path().join("tools.d.ts"), metamcp.control());
    let (file, socket) = (file.display().to_string(), socket.display().to_string());
    let typegen = || daemon::run(&["typegen", "--socket", &socket, "--output", &file]);

    let (code, stdout, stderr) = typegen();

    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.contains("written"), "{stdout}");
    let (_, again, _) = typegen();
    assert!(again.contains("unchanged"), "{again}");
    for (name, text) in [
        (
            "right.ts",
            r#"import type { MetamcpCall, MetamcpTool } from "./tools";
export async function use(call: MetamcpCall): Promise<string[]> {
  const tool: MetamcpTool = "git/git_log";
  await call(tool, { repo_path: "/x", max_count: 3 });
  const sum = await call("everything/get-sum", { a: 1, b: 2 });
  const weather = await call("everything/get-structured-content", { location: "Chicago" });
  const degrees: number | undefined = weather.structuredContent?.temperature;
  return [...sum.content.map((part) => part.type), String(degrees)];
}
"#,
        ),
        (
            "wrong.ts",
            r#"import type { MetamcpCall } from "./tools";
export async function use(call: MetamcpCall): Promise<void> {
  await call("git/no_such_tool", {});
  await call("everything/get-sum", { a: "one", b: 2 });
  await call("everything/get-sum", { a: 1 });
  await call("everything/get-structured-content", { location: "Atlantis" });
}
"#,
        ),
    ] {
        fs::write(directory.path().join(name), text).expect("written");
    }
    assert_eq!(compiler_errors(&servers, directory.path(), &["tools.d.ts", "right.ts"]), [""; 0]);
    let wrong = compiler_errors(&servers, directory.path(), &["wrong.ts"]);
    assert_eq!(error_lines(&wrong), ["3", "4", "5", "6"], "{wrong:#?}");
}

/// Returns tools with hostile schemas, and with names that become the same type name.
fn hostile_tools() -> Vec<Tool> {
    let choice = |keyword: &str| {
        let all = (0..100).map(|n| {
            json!({ "properties": { format!("{keyword}{n}"): { "const": n } }, "required": [format!("{keyword}{n}")] })
        });
        json!({ "anyOf": all.collect::<Vec<_>>() })
    };
    let words = [
        "new",
        "get",
        "set",
        "readonly",
        "static",
        "constructor",
        "__proto__",
        "a-b",
        "0",
        "1e3",
        "",
        "größe",
        "\u{2028}\u{202e}\"\\\n",
        "$ok",
        "async",
        "in",
        "accessor",
        "[key: string]",
    ];
    let words: serde_json::Map<String, Value> =
        words.iter().map(|word| ((*word).to_owned(), json!({ "type": "string" }))).collect();
    let schemas = [
        json!({ "properties": words, "additionalProperties": { "type": "number" } }),
        json!({ "allOf": [choice("a"), choice("b"), choice("c")] }),
        json!({ "anyOf": [{ "$ref": "#" }, { "type": "null" }] }),
        json!({
            "$ref": "#/$defs/a",
            "$defs": {
                "a": { "anyOf": [{ "$ref": "#/$defs/b" }, { "type": "string" }] },
                "b": { "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/c" }] },
                "c": { "type": "array", "items": { "$ref": "#/$defs/c" } },
                "d": { "type": "array", "prefixItems": [{ "$ref": "#/$defs/d" }], "items": { "$ref": "#/$defs/d" } },
            },
            "properties": { "d": { "$ref": "#/$defs/d" }, "self": { "$ref": "#" } },
            "additionalProperties": { "$ref": "#" },
        }),
        json!({ "enum": ["*/", "`", "'", "\"", "\\", "\u{2029}", 1e300, -1, -0.0, 18_446_744_073_709_551_615_u64, null, [], {}, [1, { "a": true }]] }),
        json!({ "type": "object", "description": "*/ @ts-expect-error", "properties": {
            "a": { "type": "string", "description": "@ts-expect-error" },
            "b": { "description": "@ts-nocheck\n*/\n/* @ts-ignore", "pattern": "^*/$", "type": ["array", "null"], "items": { "anyOf": [] } },
        } }),
        (0..200).fold(
            json!(true),
            |inner, _| json!({ "type": "array", "items": { "properties": { "x": inner } } }),
        ),
        json!(false),
        json!([1, 2]),
    ];
    let tool = |(n, schema): (usize, &Value)| Tool {
        server: "nasty".to_owned(),
        name: "-".repeat(n),
        description: Some("@ts-expect-error */ `\u{2028}".to_owned()),
        input: Some(schema.clone()),
        output: Some(schema.clone()),
    };
    schemas.iter().enumerate().map(tool).collect()
}

#[test]
fn the_generated_types_of_hostile_schemas_compile() {
    let servers = Installed::find();
    let directory = tempfile::tempdir().expect("a directory");
    let tools = hostile_tools();
    fs::write(directory.path().join("nasty.ts"), declarations(&tools)).expect("written");
    assert_eq!(compiler_errors(&servers, directory.path(), &["nasty.ts"]), [""; 0]);
    fs::write(directory.path().join("none.ts"), declarations(&[])).expect("written");
    assert_eq!(compiler_errors(&servers, directory.path(), &["none.ts"]), [""; 0]);
}

/// Returns the declarations of tools for a script, each tool in at most so many bytes.
fn script_types(tools: &[Tool], bytes_max: usize) -> String {
    let mut types = ScriptTypes::default();
    for tool in tools {
        let declaration = types.declare(tool, bytes_max);
        types.add(declaration);
    }
    types.text()
}

#[test]
fn the_types_of_hostile_schemas_for_a_script_compile() {
    let servers = Installed::find();
    let directory = tempfile::tempdir().expect("a directory");
    let mut tools = hostile_tools();
    for name in
        ["call", "then", "toJSON", "new", "get", "constructor", "__proto__", "", "1", "\u{2028}"]
    {
        tools.push(Tool { name: name.to_owned(), ..tools[0].clone() });
        tools.push(Tool { server: name.to_owned(), ..tools[0].clone() });
    }
    for bytes_max in [usize::MAX, 1000, 0] {
        fs::write(directory.path().join("nasty.d.ts"), script_types(&tools, bytes_max))
            .expect("written");
        assert_eq!(compiler_errors(&servers, directory.path(), &["nasty.d.ts"]), [""; 0]);
    }
    fs::write(directory.path().join("none.d.ts"), script_types(&[], 0)).expect("written");
    assert_eq!(compiler_errors(&servers, directory.path(), &["none.d.ts"]), [""; 0]);
}

#[tokio::test]
async fn a_script_with_the_types_of_real_tools_compiles_and_wrong_use_is_rejected() {
    let servers = Installed::find();
    let metamcp = Daemon::with(servers.config_with("prewarm")).ready();
    let client = metamcp.client("/meta");
    let types = async |server: &str| -> String {
        let arguments = json!({ "server": server, "detail": "types", "limit": 100 });
        let found = client.call("mcp_discover", arguments).await;
        found["types"].as_str().unwrap_or_else(|| panic!("types: {found}")).to_owned()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        fs::write(directory.path().join(name), text).expect("written");
    };
    write("everything.d.ts", &types("everything").await);
    write("git.d.ts", &types("git").await);
    assert_eq!(compiler_errors(&servers, directory.path(), &["git.d.ts"]), [""; 0]);
    write(
        "right.ts",
        r#"export async function script(): Promise<unknown> {
  const weather = await servers.everything["get-structured-content"]({ location: "Chicago" });
  const degrees: number = weather.temperature;
  const sums = await Promise.all([1, 2].map((a) => servers.everything["get-sum"]({ a, b: 2 })));
  const words: string[] = sums.map((sum) => sum.trim());
  const found = await searchTools("weather", { server: "everything", limit: 3 });
  await sleep(10);
  progress(1, 2, "half");
  console.log(words, found[0].tool);
  await describeTool("everything", "get-sum");
  return runChain([{ tool_id: "everything/get-sum", args: { a: degrees, b: 1 } }]);
}
"#,
    );
    write(
        "wrong.ts",
        r#"export async function script(): Promise<void> {
  await servers.nothing.log({});
  await servers.everything["get-sum"]({ a: "one", b: 2 });
  await servers.everything["get-sum"]();
  await servers.everything["get-structured-content"]({ location: "Atlantis" });
  await sleep("long");
}
"#,
    );
    let right = compiler_errors(&servers, directory.path(), &["everything.d.ts", "right.ts"]);
    assert_eq!(right, [""; 0]);
    let wrong = compiler_errors(&servers, directory.path(), &["everything.d.ts", "wrong.ts"]);
    assert_eq!(error_lines(&wrong), ["2", "3", "4", "5", "6"], "{wrong:#?}");
}
