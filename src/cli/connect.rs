//! `metamcp connect` and `metamcp disconnect`: the entry of metamcp in the files of clients.

use std::{
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
};

use clap::builder::NonEmptyStringValueParser;

use super::{
    FAILED, Failed, client_change::ChangeArgs, client_file::OpenedFile, client_list, config_edit,
    configuration, output, overrides::ConfigOverrides, serve::client_address,
    service_target::ServiceTarget, terminal, text_table::CellColour,
};
use crate::{
    config::{Config, defaults},
    connect::{
        self, ClientFileError, ClientLink, ConnectRequest, DiffLine, FileChange, SwitchedEntry,
        SwitchedHow, TOKEN_VARIABLE,
    },
    import::{self, KnownClient, OwnEndpoints},
    server_name::ServerName,
    similar_names,
};

/// Connect a client to metamcp
///
/// Writes an entry for metamcp into the client's file: shows the difference, asks, and keeps a
/// backup beside the file. Everything else in the file stays, comments included. `disconnect`
/// undoes it. Without a client, lists the clients and whether they are connected.
///
/// The entry leads to the address of the running service, else of the configuration. If a token is
/// required, the entry refers to the variable METAMCP_TOKEN of the client. A client that cannot do
/// that, or that only starts programs, starts `metamcp stdio`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The client, such as claude-code, claude-desktop, cursor, vscode, codex, gemini, opencode,
    /// windsurf, zed, goose or cline
    #[arg(value_parser = super::import::client)]
    client: Option<KnownClient>,
    #[command(flatten)]
    change: ChangeArgs,
    /// Show the client only this server, unchanged
    #[arg(long, value_name = "NAME", requires = "client")]
    server: Option<String>,
    /// Show the client a few tools that find and call all others
    #[arg(long, conflicts_with = "server", requires = "client")]
    meta: bool,
    /// The name of the entry
    #[arg(long, value_name = "ENTRY", default_value = "metamcp", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Switch off the entries of servers that metamcp serves under the same name
    #[arg(long, requires = "client")]
    disable_served: bool,
    /// The configuration file of metamcp; default: that of the running service, METAMCP_CONFIG, then
    /// this user's, then this host's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Disconnect a client from metamcp
///
/// Removes the entry of metamcp from the client's file, and switches on again what `connect
/// --disable-served` has switched off. If the file is as `connect` left it, it becomes exactly what
/// it was.
#[derive(Debug, clap::Args)]
pub(super) struct DisconnectArgs {
    /// The client, as for `connect`
    #[arg(value_parser = super::import::client)]
    client: KnownClient,
    #[command(flatten)]
    change: ChangeArgs,
    /// The configuration file of metamcp, for its address
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let (config, own) = load(args.config.as_deref(), &args.change.target)?;
    let Some(client) = args.client else {
        client_list::print(&args.change, &own);
        return Ok(());
    };
    let (link, notes) = link(args, client, &config, own.addresses[0])?;
    let mut file = OpenedFile::open(client, &args.change)?;
    if args.change.yes {
        file.lock()?;
    }
    let mut served = config;
    // The entry for one server replaces only that one.
    served
        .servers
        .retain(|name, _| args.server.as_deref().is_none_or(|only| only == name.as_str()));
    let request = ConnectRequest {
        client,
        name: &args.name,
        link,
        own: &own,
        served: args.disable_served.then_some(&served),
    };
    let change = connect::connect(&request, file.text());
    let change = change.map_err(|error| refused(&file, &error, &connect::snippet(&request)))?;
    let Some(change) = change else {
        let text = format!("{} is connected already: {}", client.title(), file.path().display());
        output::print(&format!("{text}\n"));
        return Ok(());
    };
    show(&file, &change);
    for note in &notes {
        output::print(&format!("note: {note}\n"));
    }
    if !args.change.is_agreed("Write this?")? {
        return Ok(());
    }
    file.write(&change, &request.link)?;
    report(&file, client, "connected", &change);
    Ok(())
}

pub(super) fn disconnect(args: &DisconnectArgs) -> Result<(), Failed> {
    let client = args.client;
    let mut file = OpenedFile::open(client, &args.change)?;
    // The entries are also found in the record, so a broken configuration does not matter.
    let own = own_endpoints(args.config.as_deref(), &args.change.target);
    if args.change.yes && file.text().is_some() {
        file.lock()?;
    }
    let change = match (file.former(), file.text()) {
        (Some(change), _) => change,
        (None, Some(text)) => connect::disconnect(client, text, file.record.as_ref(), &own)
            .map_err(|error| refused(&file, &error, ""))?,
        (None, None) => FileChange::default(),
    };
    for kept in &change.kept {
        let name = terminal::escape(&kept.name);
        output::print(&format!("`{name}` stays as it is: {}\n", kept.reason));
    }
    if change.is_empty() {
        let path = file.path().display();
        output::print(&format!("{} is not connected: {path}\n", client.title()));
        if !args.change.dry_run {
            file.forget();
        }
        return Ok(());
    }
    show(&file, &change);
    if !args.change.is_agreed(if change.text.is_some() {
        "Write this?"
    } else {
        "Remove this file?"
    })? {
        return Ok(());
    }
    file.undo(&change)?;
    report(&file, client, "disconnected", &change);
    Ok(())
}

/// Returns the ways to metamcp; the usual ones if there is no usable configuration.
pub(super) fn own_endpoints(named: Option<&Path>, target: &ServiceTarget) -> OwnEndpoints {
    load(named, target).map_or_else(
        |_| OwnEndpoints { program: own_program(), ..OwnEndpoints::default() },
        |(_, own)| own,
    )
}

fn own_program() -> Option<String> {
    configuration::own_program().ok().map(|program| program.display().to_string())
}

/// Returns the configuration of metamcp, and the ways for its clients, the preferred address first:
/// those of the running service, unless `named` is another file.
fn load(named: Option<&Path>, target: &ServiceTarget) -> Result<(Config, OwnEndpoints), Failed> {
    let status = match named {
        Some(_) => None,
        None => config_edit::running(target).unwrap_or_else(|failed| {
            // It is no obstacle: the configuration has an address, too.
            let text = "the address of metamcp is that of the configuration";
            output::eprint(&format!("warning: {text}: {}\n", failed.text));
            if let Some(hint) = failed.hint {
                output::hint(&format!("hint: {hint}\n"));
            }
            None
        }),
    };
    let read = status.as_ref().and_then(|status| status["configFile"].as_str());
    let file = named.map(Path::to_owned).or_else(|| Some(PathBuf::from(read?)));
    let sources = configuration::sources(file, &ConfigOverrides::default())?;
    let config = configuration::read(&sources)?.config;
    let served = status.iter().flat_map(|status| output::items(&status["addresses"]));
    let served = served.filter_map(|address| address.as_str()?.parse().ok());
    let addresses = served.chain([config.listen.http]).map(client_address).collect();
    Ok((config, OwnEndpoints { addresses, program: own_program() }))
}

/// Returns the way to metamcp for a client, and notes about it.
fn link(
    args: &Args,
    client: KnownClient,
    config: &Config,
    address: SocketAddr,
) -> Result<(ClientLink, Vec<String>), Failed> {
    if let Some(server) = &args.server {
        let names = || config.servers.keys().map(ServerName::as_str);
        if !names().any(|name| name == server) {
            let similar = similar_names::nearest(server, names().map(str::to_owned));
            let hint =
                similar_names::did_you_mean(&similar, "`metamcp servers` lists the servers.");
            return Err(Failed::new(FAILED, format!("there is no server `{server}`")).hint(hint));
        }
    }
    let (path, mut words) = match (&args.server, args.meta) {
        (Some(server), _) => {
            (format!("servers/{server}"), vec!["--server".to_owned(), server.clone()])
        }
        (None, true) => ("meta".to_owned(), vec!["--view".to_owned(), "meta".to_owned()]),
        (None, false) => (String::new(), Vec::new()),
    };
    let title = client.title();
    let has_token = config.listen.token.is_some();
    let form = client.profile().endpoint.as_ref();
    let reason = match form {
        None => Some(format!("{title} only starts programs")),
        Some(form) if has_token && form.token.is_none() => {
            Some(format!("{title} cannot read a token from a variable"))
        }
        Some(_) if address.port() == 0 => {
            Some("the port of the service is not known before its start".to_owned())
        }
        Some(_) => None,
    };
    if let Some(reason) = reason {
        words.insert(0, "stdio".to_owned());
        if let Some(socket) = &args.change.target.socket {
            words.extend(["--socket".to_owned(), socket.display().to_string()]);
        }
        let command = configuration::own_program()?.display().to_string();
        let note = format!("{reason}, so it starts `metamcp stdio`, which reaches the service");
        return Ok((ClientLink::Program { command, args: words }, vec![note]));
    }
    let mut notes = Vec::new();
    let scheme = if config.listen.tls.is_some() { "https" } else { "http" };
    if config.listen.tls.is_some() {
        notes.push(format!("{title} must trust the certificate of `listen.tls`"));
    }
    if has_token {
        notes.push(format!("set {TOKEN_VARIABLE} to the token in the environment of {title}"));
    }
    if TcpStream::connect_timeout(&address, defaults::DOCTOR_TIMEOUT).is_err() {
        let start = config_edit::start_command(args.config.as_deref());
        notes.push(format!("no service answers at {address}: start it with `{start}`"));
    }
    let url = format!("{scheme}://{address}/{path}");
    Ok((ClientLink::Endpoint { url, has_token }, notes))
}

/// Prints the difference that a change makes, without secrets.
fn show(file: &OpenedFile, change: &FileChange) {
    let before = file.text().unwrap_or_default();
    let after = change.text.as_deref().unwrap_or_default();
    let mut secrets = import::secrets(file.client, before);
    secrets.extend(import::secrets(file.client, after));
    // The name of a variable is no secret.
    secrets.retain(|secret| !secret.contains(TOKEN_VARIABLE));
    let path = file.path().display();
    let name = |text: Option<&str>| match text {
        Some(_) => path.to_string(),
        None => "/dev/null".to_owned(),
    };
    let paint = |colour: CellColour, text: &str| match terminal::is_coloured() {
        true => colour.paint(text),
        false => text.to_owned(),
    };
    let mut shown = format!(
        "{}\n{}\n",
        paint(CellColour::Bold, &format!("--- {}", name(file.text()))),
        paint(CellColour::Bold, &format!("+++ {}", name(change.text.as_deref())))
    );
    let hide = |line: &str| {
        let hidden = secrets.iter().fold(line.to_owned(), |line, secret| {
            let escaped = serde_json::Value::from(secret.as_str()).to_string();
            line.replace(escaped.trim_matches('"'), "***").replace(secret.as_str(), "***")
        });
        terminal::escape_lines(&hidden)
    };
    for line in connect::unified(before, after) {
        shown.push_str(&match line {
            DiffLine::Place(text) => paint(CellColour::Dim, &text),
            DiffLine::Same(text) => format!(" {}", hide(&text)),
            DiffLine::Removed(text) => paint(CellColour::Red, &format!("-{}", hide(&text))),
            DiffLine::Added(text) => paint(CellColour::Green, &format!("+{}", hide(&text))),
        });
        shown.push('\n');
    }
    output::print(&shown);
}

/// Reports a change that was made.
fn report(file: &OpenedFile, client: KnownClient, done: &str, change: &FileChange) {
    output::print(&format!("{} is {done}: {}\n", client.title(), file.path().display()));
    let is_removed = |entry: &&SwitchedEntry| matches!(entry.how, SwitchedHow::Removed { .. });
    let (removed, flagged): (Vec<_>, Vec<_>) = change.switched.iter().partition(is_removed);
    let words = match done {
        "connected" => ["switched off", "removed until `disconnect`"],
        _ => ["switched on again", "restored"],
    };
    for (entries, words) in [flagged, removed].iter().zip(words) {
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        if !names.is_empty() {
            output::print(&format!("{words}: {}\n", terminal::escape(&names.join(", "))));
        }
    }
    let backup = file.record.as_ref().and_then(|record| record.backup.as_ref());
    if let Some(backup) = backup.filter(|path| path.exists()) {
        output::print(&format!("backup: {}\n", backup.display()));
    }
    output::print(&format!("Restart {} to apply the change.\n", client.title()));
}

/// Returns the failure for a file that is not changed, with the entry to paste.
fn refused(file: &OpenedFile, error: &ClientFileError, snippet: &str) -> Failed {
    let failed =
        Failed::new(FAILED, format!("`{}` is not changed: {error}", file.path().display()));
    match error {
        ClientFileError::Taken(_) => {
            failed.hint("Choose another name for the entry of metamcp with --name.")
        }
        _ if snippet.is_empty() => failed.hint("Remove the entry of metamcp by hand."),
        _ => failed
            .hint(format!("Correct the file and try again, or add this by hand:\n\n{snippet}")),
    }
}
