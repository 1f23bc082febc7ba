//! `metamcp add`: one more server in the configuration file.

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    FAILED, Failed,
    config_edit::{self, ConfigEdit},
    credential_files::CredentialFiles,
    output,
    secret_input::SecretInput,
    service_target::ServiceTarget,
};
use crate::{
    config::file_edit,
    error_report::chain,
    import::{NewServer, NewServerError},
    server_name::ServerName,
};

/// Add a server to the configuration file
///
/// Adds a program (`metamcp add memory -- npx -y @modelcontextprotocol/server-memory`) or a URL
/// (`metamcp add linear https://mcp.linear.app/mcp`) to the file that the running service reads.
/// Without a service, that is METAMCP_CONFIG, this user's file or this host's. The rest of the file
/// stays as it is. The running service reads it again and connects the server; if it refuses the
/// file, the file is restored.
///
/// A secret is never an argument: with `--env KEY=credential:NAME`, its value is read from standard
/// input, and written to the file NAME in the directory `credentials` beside the configuration.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "metamcp add [OPTIONS] NAME URL\n       metamcp add [OPTIONS] NAME -- COMMAND..."
)]
pub(super) struct Args {
    /// The name of the server
    name: String,
    /// The URL of the server, instead of a program
    #[arg(conflicts_with = "command")]
    url: Option<String>,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A variable of the program: a text, `credential:NAME` or `env:NAME`
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "url")]
    env: Vec<String>,
    /// A header for the URL: a text, `credential:NAME` or `env:NAME`
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "command")]
    header: Vec<String>,
    /// The working directory of the program
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cwd: Option<PathBuf>,
    /// The configuration file to change
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print what would be added, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: ServiceTarget,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let name = server_name(&args.name)?;
    let server = declared(args, &name)?;
    let mut edit = ConfigEdit::find(&args.target, args.config.as_deref())?;
    if edit.is_generated() {
        return Err(on_nix(&edit, &server));
    }
    // Before it asks for a secret.
    edit.check_writable()?;
    let table = server.to_toml();
    let added = |edit: &ConfigEdit<'_>| {
        let text = file_edit::with_server(edit.text(), &name, &table)
            .map_err(|error| config_edit::failed_edit(edit, &error))?;
        edit.check(&text)?;
        Ok(text)
    };
    added(&edit)?;
    if args.dry_run {
        output::eprint(&format!("would be added to `{}`:\n", edit.file.display()));
        output::print(&table);
        return Ok(());
    }
    let mut files = CredentialFiles::beside(&edit.file, edit.service);
    write_credentials(&server, args, &mut files)?;
    let locked = edit.lock().and_then(|()| added(&edit));
    locked.and_then(|text| edit.apply(&text)).inspect_err(|_| files.undo())?;
    if let Some(state) = server.shared_state() {
        output::eprint(&format!(
            "hint: all clients of `{name}` share {state}; with `sharing = \"session\"` each has its own\n"
        ));
    }
    edit.report(&name, "added to", args.json)
}

/// Returns the server name that the user wrote.
pub(super) fn server_name(name: &str) -> Result<ServerName, Failed> {
    ServerName::new(name).map_err(|error| {
        let most = ServerName::LENGTH_MAX;
        Failed::usage(
            chain(&error),
            format!("Use 1 to {most} letters, digits, `-` and single `_`."),
        )
    })
}

/// Returns the server that the arguments declare.
fn declared(args: &Args, name: &ServerName) -> Result<NewServer, Failed> {
    let refused = |error: NewServerError| Failed::usage(error.to_string(), error.hint());
    if let Some((program, rest)) = args.command.split_first() {
        let cwd = args.cwd.as_deref().map(std::path::absolute).transpose();
        let cwd = cwd.map_err(|error| Failed::new(FAILED, format!("cannot use --cwd: {error}")))?;
        let cwd = cwd.map(|cwd| cwd.display().to_string());
        return NewServer::program(name, program, rest, pairs("--env", &args.env)?, cwd)
            .map_err(refused);
    }
    let Some(url) = args.url.as_deref() else {
        let text = format!("server `{name}` has neither a URL nor a program");
        return Err(Failed::usage(text, "Give a URL, or `-- PROGRAM` with its arguments."));
    };
    if !url.contains("://") {
        let text = format!("`{}` is not a URL", output::text(url));
        let hint = format!("Write `metamcp add {name} -- PROGRAM ARGUMENTS` for a program.");
        return Err(Failed::usage(text, hint));
    }
    NewServer::endpoint(name, url, pairs("--header", &args.header)?).map_err(refused)
}

/// Splits `KEY=VALUE` words. No value is quoted, because it may be a secret.
fn pairs(option: &str, words: &[String]) -> Result<BTreeMap<String, String>, Failed> {
    let mut pairs = BTreeMap::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failed::usage(
                format!("a value of `{option}` has no `=`"),
                format!(
                    "Write `{option} KEY=VALUE`, or `{option} KEY=credential:NAME` for a secret."
                ),
            ));
        };
        if pairs.insert(key.to_owned(), value.to_owned()).is_some() {
            let text = format!("`{option}` names `{}` twice", output::text(key));
            return Err(Failed::usage(text, "Remove one of the two."));
        }
    }
    Ok(pairs)
}

/// Asks for the credentials that do not exist yet, in the order of the options, and writes them.
fn write_credentials(
    server: &NewServer,
    args: &Args,
    files: &mut CredentialFiles,
) -> Result<(), Failed> {
    let mut missing = server.credentials();
    missing.retain(|credential| match files.existing(&credential.name) {
        Some(file) => {
            output::eprint(&format!(
                "note: credential `{}` exists already and stays as it is: write a new value to `{}` to replace it\n",
                credential.name,
                file.display()
            ));
            false
        }
        None => true,
    });
    let words: Vec<&String> = args.env.iter().chain(&args.header).collect();
    missing.sort_by_key(|credential| {
        words.iter().position(|word| word.split_once('=').is_some_and(|it| it.0 == credential.key))
    });
    let mut input = SecretInput::open(missing.len())?;
    let mut values = Vec::new();
    for credential in &missing {
        values.push((&credential.name, input.read(&credential.name, &credential.key)?));
    }
    for (name, value) in values {
        files.write(name, &value).inspect_err(|_| files.undo())?;
    }
    Ok(())
}

/// Prints the options that declare the server on NixOS, and returns the failure.
fn on_nix(edit: &ConfigEdit<'_>, server: &NewServer) -> Failed {
    output::print(&server.to_nix());
    let text = format!("`{}` is generated by Nix, so nothing is changed", edit.file.display());
    Failed::new(FAILED, text)
        .hint("Add the options above to your Nix configuration, and switch to it.")
}
