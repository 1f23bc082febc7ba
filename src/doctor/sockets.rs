//! The checks of the service's sockets: whether the service answers, and to which requests.

use std::{collections::BTreeMap, io, net::SocketAddr, os::unix::fs::FileTypeExt as _, path::Path};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
    time,
};

use super::finding::{Finding, FindingArea};
use crate::{
    config::{ListenConfig, defaults},
    control::socket_client,
    error_report::chain,
    server_name::ServerName,
};

/// The answers of a running service.
#[derive(Debug, Default)]
pub(super) struct ServiceReport {
    /// Its version.
    pub(super) version: Option<String>,
    /// The servers that need a secret, with `true` if the service has it.
    pub(super) secrets: BTreeMap<ServerName, bool>,
}

/// The presence of a service behind the control socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServicePresence {
    /// A service answers.
    Answers,
    /// There is no service.
    Nobody,
    /// There may be a service that does not answer this user.
    Unknown,
}

/// Examines the control socket; returns the report of the service, if it answers.
pub(super) async fn control(
    path: &Path,
    found: &mut Vec<Finding>,
) -> (Option<ServiceReport>, ServicePresence) {
    let name = path.display();
    let mut presence = ServicePresence::Unknown;
    let finding = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            presence = ServicePresence::Nobody;
            Finding::note(FindingArea::Sockets, format!("no service runs: there is no `{name}`"))
                .fix("Start it with `systemctl start metamcp` or `metamcp serve`, or name its socket with --socket.")
                .nix("services.metamcp.enable = true;")
        }
        Err(error) => Finding::error(FindingArea::Sockets, format!("`{name}` cannot be looked at"))
            .because(error.to_string())
            .fix(ACCESS)
            .nix(GROUP),
        Ok(file) if !file.file_type().is_socket() => {
            Finding::error(FindingArea::Sockets, format!("`{name}` is no socket"))
                .fix("Remove it, or set `listen.control` to another path.")
        }
        Ok(_) => match soon(UnixStream::connect(path)).await {
            Ok(_) => match ask(path).await {
                Ok(told) => {
                    found.push(version(&told));
                    return (Some(told), ServicePresence::Answers);
                }
                Err(why) => Finding::error(
                    FindingArea::Sockets,
                    format!("the service at `{name}` does not answer"),
                )
                .because(why)
                .fix("See `metamcp logs`; `systemctl restart metamcp` starts it anew."),
            },
            Err(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused => {
                    presence = ServicePresence::Nobody;
                    Finding::warning(FindingArea::Sockets, format!("nobody listens at `{name}`"))
                        .because("It is left over from a service that was killed.")
                        .fix("Start the service: it replaces the socket.")
                }
                io::ErrorKind::PermissionDenied => Finding::error(
                    FindingArea::Sockets,
                    format!("`{name}` may not be used by this user"),
                )
                .fix(ACCESS)
                .nix(GROUP),
                _ => {
                    Finding::error(FindingArea::Sockets, format!("`{name}` cannot be connected to"))
                        .because(error.to_string())
                        .fix("See `metamcp logs`; `systemctl restart metamcp` starts it anew.")
                }
            },
        },
    };
    found.push(finding);
    (None, presence)
}

const ACCESS: &str = "Use it as root, or let a group in: `listen.control_group`, or `SocketGroup=` in a drop-in of metamcp-control.socket.";
const GROUP: &str = "users.users.YOU.extraGroups = [ \"metamcp\" ];";

/// Waits for an operation on a socket, at most [`defaults::DOCTOR_PATIENCE`].
async fn soon<T>(trying: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let tried = time::timeout(defaults::DOCTOR_PATIENCE, trying).await;
    tried.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn ask(path: &Path) -> Result<ServiceReport, String> {
    let status =
        socket_client::ask(path, "daemon/status", None).await.map_err(|error| chain(&error))?;
    let version = status["version"].as_str().map(str::to_owned);
    let secrets = socket_client::ask(path, "auth/status", None).await.unwrap_or_default();
    let secrets = secrets.as_array().into_iter().flatten().filter_map(|entry| {
        let server = ServerName::new(entry["server"].as_str()?).ok()?;
        let is_needed = matches!(entry["auth"]["type"].as_str()?, "credential" | "environment");
        is_needed.then_some((server, entry["auth"]["hasTokens"] == Value::Bool(true)))
    });
    Ok(ServiceReport { version, secrets: secrets.collect() })
}

fn version(told: &ServiceReport) -> Finding {
    let ours = env!("CARGO_PKG_VERSION");
    match told.version.as_deref() {
        Some(theirs) if theirs != ours => Finding::warning(
            FindingArea::Sockets,
            format!("the service is metamcp {theirs}, this is {ours}"),
        )
        .because("It was started before this one was installed, or from another place.")
        .fix("Restart it: `systemctl restart metamcp`."),
        Some(_) | None => {
            Finding::ok(FindingArea::Sockets, "the service answers at its control socket")
        }
    }
}

/// Examines the address for clients; `presence` is the result for the control socket.
pub(super) async fn http(
    listen: &ListenConfig,
    presence: ServicePresence,
    found: &mut Vec<Finding>,
) {
    let address = listen.http;
    // The system chooses the port, which is unknown here.
    if address.port() == 0 {
        return;
    }
    let answered = match listen.tls {
        // With TLS, only the connection is tested.
        Some(_) => soon(TcpStream::connect(address)).await.map(|_| String::new()),
        None => health(address, &address.to_string()).await,
    };
    let finding = match answered {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let what = format!("nobody listens at {address}");
            match presence {
                ServicePresence::Answers => Finding::error(FindingArea::Sockets, what)
                    .because("The service answers at its control socket, and clients cannot reach it.")
                    .fix("Check that metamcp.socket listens where `listen.http` says: `systemctl status metamcp.socket`."),
                ServicePresence::Nobody | ServicePresence::Unknown => {
                    Finding::ok(FindingArea::Sockets, format!("{address} is free"))
                }
            }
        }
        Err(error) => Finding::error(FindingArea::Sockets, format!("{address} does not answer"))
            .because(error.to_string())
            .fix("See which program listens there: `ss -ltnp`."),
        Ok(_) if presence == ServicePresence::Nobody && listen.tls.is_some() => {
            taken(address, "a program")
        }
        Ok(answer) if presence == ServicePresence::Nobody && is_ours(&answer) => {
            taken(address, "another metamcp")
        }
        Ok(_) if listen.tls.is_some() => Finding::note(
            FindingArea::Sockets,
            format!("{address} is connected to; it speaks TLS, and is not asked more"),
        ),
        Ok(answer) if is_ours(&answer) => {
            // DNS rebinding: a request with a foreign host name must be rejected.
            match health(address, "example.org").await {
                Ok(other) if other.starts_with("HTTP/1.1 403") => {
                    found.extend(token(listen, address).await);
                    Finding::ok(FindingArea::Sockets, format!("clients are answered at {address}, and strangers are not"))
                }
                Ok(_) => Finding::warning(FindingArea::Sockets, format!("{address} serves any name of a host"))
                    .because("A page in a browser may reach the tools under a name of its own.")
                    .fix("Remove `example.org` from `listen.allowed_hosts`, or have the proxy before it check the name.")
                    .nix("services.metamcp.settings.listen.allowed_hosts = [ ];"),
                Err(error) => Finding::warning(FindingArea::Sockets, format!("{address} answers one time and not the next"))
                    .because(error.to_string())
                    .fix("See `metamcp logs`."),
            }
        }
        Ok(_) => {
            Finding::error(FindingArea::Sockets, format!("another program listens at {address}"))
                .fix("Stop it, or set `listen.http` to another port: `ss -ltnp` tells which it is.")
                .nix(OTHER_PORT)
        }
    };
    found.push(finding);
}

/// Returns the finding that a program other than the expected service uses the address.
fn taken(address: SocketAddr, who: &str) -> Finding {
    Finding::error(FindingArea::Sockets, format!("{who} listens at {address}, and no service at the control socket"))
        .because("A service with this configuration cannot listen there.")
        .fix("Name its socket with --socket if it is the one that is meant; else stop it, or set `listen.http` to another port: `ss -ltnp` tells which it is.")
        .nix(OTHER_PORT)
}

/// Returns a finding if a running service does not require the declared token.
async fn token(listen: &ListenConfig, address: SocketAddr) -> Option<Finding> {
    listen.token.as_ref()?;
    let answer = get(address, &address.to_string(), "/readyz").await.ok()?;
    (!answer.starts_with("HTTP/1.1 401")).then(|| {
        Finding::error(FindingArea::Sockets, format!("{address} asks nobody for the token"))
            .because("`listen.token` is set, and the service that runs was told something else.")
            .fix("Reload it: `systemctl reload metamcp`; see `metamcp logs` if it refuses that.")
    })
}

const OTHER_PORT: &str = "services.metamcp.settings.listen.http = \"127.0.0.1:12012\";";

/// Returns `true` if an answer to `/healthz` comes from metamcp.
fn is_ours(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 ") && answer.contains(r#""name":"metamcp""#)
}

/// Requests `/healthz` with the host name `host`, and returns the raw answer.
async fn health(address: SocketAddr, host: &str) -> io::Result<String> {
    get(address, host, "/healthz").await
}

/// Requests `path` with the host name `host`, and returns the raw answer.
async fn get(address: SocketAddr, host: &str, path: &str) -> io::Result<String> {
    soon(async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(defaults::DOCTOR_ANSWER_BYTES_MAX as u64).read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    })
    .await
}
