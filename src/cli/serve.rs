//! `metamcp serve`: the service itself.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use nix::unistd::{Uid, User};
use tokio::runtime::Builder;

use super::{
    CONFIG, FAILED, Failed, configuration, output, overrides::ConfigOverrides,
    port_holder::PortHolder, runtime, stdio, terminal,
};
use crate::{
    bearer_token::BearerToken,
    config::{
        Config, credential_directories,
        secret::{credentials_directory, exposed_credentials},
    },
    confine::privilege_drop,
    daemon::{Daemon, Listeners, StartError},
    error_report::chain,
    resident_memory,
    server_name::ServerName,
    systemd::inherited_sockets::InheritedSockets,
    telemetry::log,
    tls::TlsIdentity,
    view::ViewChoice,
};

/// Run the service until it is stopped
///
/// Reads the file of --config or of the variable METAMCP_CONFIG, else
/// `~/.config/metamcp/metamcp.toml`, else `/etc/metamcp/metamcp.toml`. Without a file, it serves
/// three demonstration servers.
///
/// Serves on the sockets passed by systemd, identified by the names `http` and `control`, or on
/// those of the configuration. SIGHUP reloads the configuration; SIGTERM and ctrl-c finish the
/// running requests and stop the service.
///
/// Every key of the configuration can also be set by a variable `METAMCP_<SECTION>_<KEY>` and by a
/// flag: defaults < file < variables < flags. Variables and flags still apply after a reload;
/// `metamcp check --effective` shows the source of each value.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file; default: METAMCP_CONFIG, then this user's, then this host's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Same as --config FILE
    #[arg(conflicts_with = "config")]
    file: Option<PathBuf>,
    /// Run as a service that a command has started
    #[arg(long, hide = true)]
    launched: bool,
    #[command(flatten)]
    overrides: ConfigOverrides,
}

/// The time limit for remaining tasks at exit. All essential work is done by then.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn run(mut args: Args) -> Result<(), Failed> {
    args.config = args.config.or(args.file.take());
    if args.overrides.is_stdio() {
        return stdio::standalone(
            configuration::sources(args.config, &args.overrides)?,
            ViewChoice::Root,
        );
    }
    if args.launched {
        // A new session, because the terminal of the command may end its whole session on close. A
        // process that already leads a session keeps it.
        let _is_leader = rustix::process::setsid();
    }
    // This needs a process with one thread.
    resident_memory::configure_allocator();
    // This must precede the reading of any secret.
    forbid_dumps()?;
    // Both affect attributes that threads inherit, so the process must have one thread.
    let inherited = InheritedSockets::take()
        .map_err(|error| Failed::new(CONFIG, chain(&error)).hint(error.hint()))?;
    let n_dropped = privilege_drop::drop_all()
        .map_err(|error| Failed::new(FAILED, format!("cannot drop capabilities: {error}")))?;
    let sources = configuration::sources(args.config, &args.overrides)?;
    let loaded = configuration::load(&sources)?;
    let config = loaded.config;
    if args.overrides.tls && config.listen.tls.is_none() {
        return Err(Failed::usage(
            "`--tls` needs a certificate, and none is configured",
            "Add `--tls-cert FILE --tls-key FILE`, or `[listen.tls]` to the file.",
        ));
    }
    let credentials = credentials_directory();
    let identity = TlsIdentity::load_configured(config.listen.tls.as_ref(), credentials.as_deref())
        .map_err(|error| Failed::new(CONFIG, chain(&error)).hint(error.hint()))?;
    let token = BearerToken::load_configured(config.listen.token.as_ref(), credentials.as_deref())
        .map_err(|error| Failed::new(CONFIG, chain(&error)).hint(error.hint()))?;
    let log = log::start(config.service.log_level);
    log_sources(sources.file.as_deref(), &loaded.unknown_variables, credentials.as_deref());
    if n_dropped > 0 {
        tracing::debug!(n_dropped, "capabilities dropped");
    }
    let runtime = runtime(Builder::new_multi_thread())?;
    let served = runtime.block_on(async move {
        let listeners = Listeners::open(inherited, &config.listen).await.map_err(failed)?;
        if !listeners.was_inherited() {
            output::print(&welcome(&listeners, &config, sources.file.as_deref()));
        }
        let daemon = Daemon::build(config, sources, identity, token, listeners, log);
        let daemon = daemon.map_err(failed)?;
        let daemon = if args.launched { daemon.launched() } else { daemon };
        daemon.run().await;
        Ok(())
    });
    // A running name lookup cannot be cancelled; the exit does not wait for it.
    runtime.shutdown_timeout(EXIT_TIMEOUT);
    served
}

/// Returns the failure of a start.
fn failed(error: StartError) -> Failed {
    // With this exit code the service manager does not restart the service.
    let code = if matches!(error, StartError::Exposed(_)) { CONFIG } else { FAILED };
    let failed = Failed::new(code, chain(&error));
    let StartError::Http(address, source) = &error else { return failed.hint(error.hint()) };
    if source.kind() != io::ErrorKind::AddrInUse {
        return failed.hint(error.hint());
    }
    let found = PortHolder::find(*address);
    let who = match (&found.process, found.uid) {
        (Some((pid, name)), _) => format!("`{}` (pid {pid})", terminal::escape(name)),
        (None, Some(uid)) => {
            let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
            format!("a program of `{}`", user.map_or_else(|| uid.to_string(), |user| user.name))
        }
        (None, None) => "another program".to_owned(),
    };
    if found.is_metamcp {
        return failed.detail(format!("{who} listens there and is a metamcp service")).hint(
            "Run `metamcp status` to see that service. For a second one, set `listen.http` and `listen.control`.",
        );
    }
    let port = address.port();
    let next = format!("set `listen.http`, as in `metamcp serve --port {}`", port.wrapping_add(1));
    let failed = failed.detail(format!("{who} listens there"));
    failed.hint(match found.process {
        Some(_) => format!("End that program, or {next}."),
        None => format!("Run `ss -ltnp 'sport = :{port}'` as root to see that program, or {next}."),
    })
}

/// Logs the configuration file, ignored variables and exposed credentials.
fn log_sources(file: Option<&Path>, unknown: &[String], credentials: Option<&Path>) {
    match file.map(Path::display) {
        Some(file) => tracing::info!(%file, "configuration read from `{file}`"),
        None => tracing::info!("no configuration file found: serving the demonstration servers"),
    }
    for name in unknown {
        tracing::warn!(name, "environment variable `{name}` is ignored: it names no key");
    }
    let beside = credential_directories::beside_config();
    let directories = credentials.into_iter().chain(beside.as_deref());
    for name in directories.flat_map(exposed_credentials) {
        tracing::warn!(
            credential = name,
            "all users can read the credential `{name}`: run `chmod o=` on its file"
        );
    }
}

/// Prevents other processes of the same user from reading this process.
pub(super) fn forbid_dumps() -> Result<(), Failed> {
    let forbidden = privilege_drop::forbid_dumps();
    forbidden.map_err(|error| Failed::new(FAILED, format!("cannot forbid core dumps: {error}")))
}

/// Returns the address for a client on this host: an unspecified address becomes the loopback.
pub(super) fn client_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns the introduction for an operator who starts the service in a shell.
fn welcome(listeners: &Listeners, config: &Config, file: Option<&Path>) -> String {
    let mut text = match file {
        Some(file) => format!("Configuration: {}\n\n", file.display()),
        None => "There is no configuration file: serving the demonstration servers.\n\n".to_owned(),
    };
    let scheme = if config.listen.tls.is_some() { "https" } else { "http" };
    let names: Vec<&str> = config.servers.keys().map(ServerName::as_str).collect();
    text.push_str(&format!("Servers:  {}\n", names.join(", ")));
    for address in listeners.addresses() {
        text.push_str(&format!("Clients:  {scheme}://{address}/\n"));
    }
    if let Some(socket) = listeners.own_socket() {
        text.push_str(&format!("Control:  {}\n", socket.display()));
    }
    if let Some(address) = listeners.addresses().first().copied().map(client_address) {
        let headers = match config.listen.token {
            Some(_) => ", \"headers\": { \"Authorization\": \"Bearer ${METAMCP_TOKEN}\" }",
            None => "",
        };
        text.push_str(&format!(
            "\nPaste into .mcp.json:\n\n{{\n  \"mcpServers\": {{\n    \"metamcp\": {{ \"type\": \"http\", \"url\": \"{scheme}://{address}/\"{headers} }}\n  }}\n}}\n\n"
        ));
        if config.listen.token.is_some() {
            text.push_str("Set METAMCP_TOKEN to the token in the client's environment.\n");
        }
    }
    text.push_str("Stop with ctrl-c.\n");
    text
}
