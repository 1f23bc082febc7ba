//! `metamcp import`: the declarations of other clients, as a metamcp configuration.

use std::{
    env, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use super::{CONFIG, FAILED, Failed, output};
use crate::{
    config::{self, defaults, load},
    error_report::chain,
    files,
    import::{
        self, FileRoot, FileRoots, ForeignServer, ImportContext, ImportPlan, ImportReadError,
        ImportState, ImportedServer, KnownClient,
    },
    similar_names,
};

/// Print the servers that other clients declare as a configuration
///
/// Reads the files of Claude Code, Claude Desktop, Cursor, VS Code, Codex, Gemini CLI, OpenCode,
/// Windsurf, Zed, Goose, Cline, Copilot CLI, Kiro, Amp and Roo Code: the named files, or those in
/// their usual places. These files are not changed. Secrets are not printed: they become references
/// to credentials, and standard error lists the credentials to create. Servers that are disabled,
/// or cannot be used as declared, are printed as comments with the reason.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of other clients; default: all files in their usual places below the home and the
    /// current directory
    files: Vec<PathBuf>,
    /// Read all files in their usual places, the default
    #[arg(long, conflicts_with = "files")]
    all: bool,
    /// The client that the files belong to, such as claude-code, cursor, vscode or codex; default:
    /// detected from each file
    #[arg(long, requires = "files", value_name = "CLIENT", value_parser = client)]
    format: Option<KnownClient>,
    /// Print a module for NixOS that sets services.metamcp
    #[arg(long, conflicts_with = "json")]
    nix: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Add the servers to the configuration file of metamcp; those with a name that it has already
    /// are left out
    #[arg(long, conflicts_with_all = ["nix", "json"])]
    write: bool,
    /// The configuration file for --write; default: METAMCP_CONFIG, then this user's, then this
    /// host's
    #[arg(long, value_name = "FILE", requires = "write")]
    config: Option<PathBuf>,
}

/// Parses the word for a client.
pub(super) fn client(word: &str) -> Result<KnownClient, String> {
    KnownClient::of_word(word).ok_or_else(|| {
        let words = || KnownClient::ALL.into_iter().map(KnownClient::word);
        let all = format!("use one of {}", words().collect::<Vec<&str>>().join(", "));
        let longer: Vec<&str> = words().filter(|name| name.starts_with(word)).collect();
        if !longer.is_empty() && !word.is_empty() {
            return format!("use {}", longer.join(" or "));
        }
        let similar = similar_names::nearest(word, words().map(str::to_owned));
        similar_names::did_you_mean(&similar, &all)
    })
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
    if args.write {
        return add(import, args.config.clone());
    }
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

/// Adds the servers to the end of the configuration file. All of its text stays.
fn add(mut import: ImportPlan, file: Option<PathBuf>) -> Result<(), Failed> {
    let own = || {
        let directory = files::own_directory("XDG_CONFIG_HOME", ".config");
        directory.map(|directory| directory.join("metamcp/metamcp.toml"))
    };
    let file = file.or_else(config::usual_file).or_else(own);
    let file = file.ok_or_else(super::configuration::no_file)?;
    let known = match read_text(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unreadable(&file, &error)),
    };
    let checked =
        |text: &str| load::content(&file, text).map_err(|error| Failed::new(CONFIG, chain(&error)));
    let declared = checked(&known)?.servers;
    let (kept, new): (Vec<_>, Vec<_>) =
        import.servers.into_iter().partition(|server| declared.contains_key(&server.name));
    import.servers = new;
    let is_left = |name: &str| import.servers.iter().any(|server| server.name.as_str() == name);
    import.notes.retain(|note| is_left(&note.server));
    let names = |servers: Vec<&ImportedServer>| {
        servers.iter().map(|server| server.name.as_str()).collect::<Vec<&str>>().join(", ")
    };
    if !kept.is_empty() {
        let names = names(kept.iter().collect());
        output::eprint(&format!("declared already, and left as they are: {names}\n"));
    }
    let active = |server: &&ImportedServer| server.state == ImportState::Active;
    let added: Vec<&ImportedServer> = import.servers.iter().filter(active).collect();
    if added.is_empty() {
        output::print(&format!("nothing is added to {}\n", file.display()));
        return Ok(());
    }
    let mut text = known;
    if !text.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str(&import.to_toml());
    checked(&text).map_err(|failed| {
        failed.hint("Nothing is changed. Add the output of `metamcp import` by hand.")
    })?;
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).map_err(|error| unwritable(&file, &error))?;
    }
    files::publish(&file, text.as_bytes()).map_err(|error| unwritable(&file, &error))?;
    output::eprint(&import.to_text(false));
    output::print(&format!("added to {}: {}\n", file.display(), names(added)));
    output::print("`metamcp reload` applies it to a running service.\n");
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Failed {
    Failed::new(FAILED, format!("cannot write `{}`: {error}", path.display()))
        .hint("Run the command as the owner of the file, or name another with --config.")
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
    client: Option<KnownClient>,
) -> Result<Vec<ForeignServer>, Failed> {
    let mut found = Vec::new();
    for path in files {
        let text = read_text(path).map_err(|error| unreadable(path, &error))?;
        let context = context(path);
        let servers = import::read(path, &text, client, &context);
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
    let roots = FileRoots::of_process();
    let mut found = Vec::new();
    let (mut n_read, mut failed) = (0, None);
    for (client, file) in import::places() {
        let Some(path) = roots.path(file) else { continue };
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                failed = Some(warned(unreadable(&path, &error)));
                continue;
            }
        };
        let context = match file.root {
            FileRoot::Project => context(&path),
            FileRoot::Home | FileRoot::Config => ImportContext { project: None, ..context(&path) },
        };
        match import::read(&path, &text, Some(client), &context) {
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
