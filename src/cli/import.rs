//! `metamcp import`: the declarations of other clients, as a metamcp configuration.

use std::{
    env, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use super::{FAILED, Failed, output};
use crate::{
    config::{defaults, load},
    error_report::chain,
    import::{
        self, FileRoot, ForeignServer, ImportContext, ImportFormat, ImportPlan, ImportReadError,
    },
};

/// Print the servers that other clients declare as a configuration
///
/// Reads Claude Code (.mcp.json, .claude.json), Claude Desktop, Cursor, VS Code (mcp.json,
/// settings.json), Windsurf, Codex (config.toml) and OpenCode (opencode.json): the named files, or
/// those in their usual places. The files are not changed. Secrets are not printed: they become
/// references to credentials, and standard error lists the credentials to create. Servers that are
/// disabled, or cannot be used as declared, are printed as comments with the reason.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of other clients; default: all files in their usual places below the home and the
    /// current directory
    files: Vec<PathBuf>,
    /// Read all files in their usual places, the default
    #[arg(long, conflicts_with = "files")]
    all: bool,
    /// The client that the files belong to: claude-code, claude-desktop, cursor, vscode, windsurf,
    /// codex or opencode; default: detected from each file
    #[arg(long, requires = "files", value_parser = format)]
    format: Option<ImportFormat>,
    /// Print a module for NixOS that sets services.metamcp
    #[arg(long, conflicts_with = "json")]
    nix: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

fn format(word: &str) -> Result<ImportFormat, String> {
    let known = || format!("use one of {}", ImportFormat::ALL.map(ImportFormat::word).join(", "));
    ImportFormat::of_word(word).ok_or_else(known)
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let found = match args.files.is_empty() {
        true => read_usual_files()?,
        false => read_named_files(&args.files, args.format)?,
    };
    if found.len() > defaults::IMPORT_SERVERS_MAX {
        return Err(not_imported(None, &ImportReadError::TooMany));
    }
    let import = import::import(found);
    let text = validated_toml(&import)?;
    output::eprint(&import.to_text(args.nix));
    if args.json {
        output::print(&format!("{:#}\n", import.to_json()));
    } else if args.nix {
        output::print(&import.to_nix());
    } else {
        output::print(&text);
    }
    Ok(())
}

/// Returns the configuration, after parsing it as the service would.
fn validated_toml(import: &ImportPlan) -> Result<String, Failed> {
    let text = import.to_toml();
    load::content(Path::new("imported.toml"), &text).map_err(|error| {
        Failed::new(FAILED, format!("the converted configuration is invalid: {}", chain(&error)))
            .hint("This is a bug in metamcp. Import the files one by one to find its cause.")
    })?;
    Ok(text)
}

/// Reads the named files; a file that cannot be read is an error.
fn read_named_files(
    files: &[PathBuf],
    format: Option<ImportFormat>,
) -> Result<Vec<ForeignServer>, Failed> {
    let mut found = Vec::new();
    for path in files {
        let text = read_text(path).map_err(|error| unreadable(path, &error))?;
        let context = context(path);
        let servers = import::read(path, &text, format, &context);
        let servers = servers.map_err(|error| not_imported(Some(path), &error))?;
        if servers.is_empty() {
            output::eprint(&format!("{}: declares no server\n", path.display()));
        }
        found.extend(servers);
    }
    Ok(found)
}

/// Reads the files in their usual places. Reports each unreadable file and continues.
fn read_usual_files() -> Result<Vec<ForeignServer>, Failed> {
    let home = env::home_dir();
    let config = env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| home.as_ref().map(|home| home.join(".config")));
    let project = env::current_dir().ok();
    let mut found = Vec::new();
    let (mut n_read, mut failed) = (0, None);
    for place in import::places() {
        let root = match place.root {
            FileRoot::Home => &home,
            FileRoot::Config => &config,
            // In the home directory, the paths of a project are those of the user.
            FileRoot::Project if project == home => &None,
            FileRoot::Project => &project,
        };
        let Some(path) = root.as_ref().map(|root| root.join(place.path)) else { continue };
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                failed = Some(warned(unreadable(&path, &error)));
                continue;
            }
        };
        let context = match place.root {
            FileRoot::Project => context(&path),
            FileRoot::Home | FileRoot::Config => ImportContext { project: None, ..context(&path) },
        };
        match import::read(&path, &text, Some(place.format), &context) {
            Ok(servers) => {
                n_read += 1;
                found.extend(servers);
            }
            Err(error) => failed = Some(warned(not_imported(Some(&path), &error))),
        }
    }
    match failed {
        _ if n_read > 0 => Ok(found),
        Some(failed) => Err(failed),
        None => Err(Failed::new(FAILED, "no client has a file in its usual place")
            .hint("Name the file: `metamcp import FILE`.")),
    }
}

fn warned(failed: Failed) -> Failed {
    output::eprint(&format!("warning: {}\n", failed.text));
    failed
}

fn read_text(path: &Path) -> io::Result<String> {
    // A file may be endless; one byte over the limit is enough to detect that.
    let most = defaults::IMPORT_BYTES_MAX as u64 + 1;
    let mut text = String::new();
    fs::File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the project and user that a file belongs to.
fn context(path: &Path) -> ImportContext {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    import::context_of(&path, env::home_dir().as_deref())
}

fn unreadable(path: &Path, error: &io::Error) -> Failed {
    Failed::new(FAILED, format!("cannot read `{}`: {error}", path.display()))
}

fn not_imported(path: Option<&Path>, error: &ImportReadError) -> Failed {
    let text = match path {
        Some(path) => format!("cannot read `{}`: {error}", path.display()),
        None => error.to_string(),
    };
    Failed::new(FAILED, text).hint(error.hint())
}
