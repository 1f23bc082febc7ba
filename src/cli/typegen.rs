//! `metamcp typegen`: the tools of all servers, declared for TypeScript.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{FAILED, Failed, output, service};
use crate::typegen::{self, Tool};

/// Print TypeScript declarations of the tools of all servers
///
/// The running service is asked for them; servers that do not run are declared by what is known of
/// them. Arguments and structured results become types, and `MetamcpCall` is how a tool is called.
/// The same tools always make the same text, so it can be kept beside the code that uses it. Exits with
/// 69 when no service answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only the tools of this server
    #[arg(long)]
    server: Option<String>,
    /// Write to this file, if it is to change at all, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: service::Target,
}

/// How deep schemas are wanted: as they are. Ours: nothing is as deep.
const DEPTH: usize = 64;

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({
        "server": args.server, "includeSchema": true, "schemaDepth": DEPTH, "report": true,
    });
    let listed = args.target.ask("tools/list", &params)?;
    let listed = service::value(&listed)?;
    for left_out in listed["unavailable"].as_array().into_iter().flatten() {
        let [server, reason] = ["server", "reason"].map(|name| output::word(&left_out[name]));
        output::complain(&format!("warning: {server} is left out: {reason}\n"));
    }
    let items = listed["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let tools: Vec<Tool> = items.iter().filter_map(tool).collect();
    let text = typegen::declarations(&tools, env!("CARGO_PKG_VERSION"));
    let Some(path) = &args.output else {
        output::print(&text);
        return Ok(());
    };
    let written = write(path, &text)
        .map_err(|error| Failed::new(FAILED, format!("write `{}`: {error}", path.display())))?;
    let n_tools = tools.len();
    let done = if written { "written" } else { "as it was" };
    output::complain(&format!("{}: {n_tools} tools, {done}\n", path.display()));
    Ok(())
}

/// Reads an item of the list.
fn tool(item: &Value) -> Option<Tool> {
    let found = &item["tool"];
    let text = |name: &str| found[name].as_str().map(str::to_owned);
    Some(Tool {
        server: item["server"].as_str()?.to_owned(),
        name: text("name")?,
        description: text("description").or_else(|| text("title")),
        input: found["inputSchema"].clone(),
        output: found.get("outputSchema").filter(|schema| !schema.is_null()).cloned(),
    })
}

/// Puts a text in a file, whole or not at all; tells whether there was another one in it. A file that
/// is there keeps its mode, and one that is a link stays one.
fn write(path: &Path, text: &str) -> io::Result<bool> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let found = fs::read(&path);
    if found.as_ref().is_ok_and(|found| found == text.as_bytes()) {
        return Ok(false);
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let draft = format!(".{}.{}", name.display(), uuid::Uuid::new_v4().simple());
    let draft = path.with_file_name(draft);
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&draft)?;
        file.write_all(text.as_bytes())?;
        if let Ok(found) = fs::metadata(&path) {
            file.set_permissions(found.permissions())?;
        }
        fs::rename(&draft, &path)
    })();
    if written.is_err() {
        let _never_made = fs::remove_file(&draft);
    }
    written.map(|()| true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_written_only_if_it_is_to_change() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, link) = (directory.path().join("tools.d.ts"), directory.path().join("link"));
        assert!(write(&path, "one").expect("written"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).expect("changed");
        let before = fs::metadata(&path).expect("there");
        assert!(!write(&path, "one").expect("left alone"));
        assert_eq!(fs::metadata(&path).expect("there").ino(), before.ino());
        symlink(&path, &link).expect("linked");
        assert!(write(&link, "two").expect("written"));
        let after = fs::metadata(&path).expect("there");
        assert_eq!(after.permissions().mode() & 0o777, 0o664);
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&path).expect("readable"), "two");
        write(&directory.path().join("nowhere/file"), "x").expect_err("there is no directory");
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 2);
    }
}
