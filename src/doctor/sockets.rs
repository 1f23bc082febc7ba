//! The checks of the service's sockets: whether the service answers, and to which requests.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::{BoxFuture, Shared};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
    time::{self, Instant},
};

use super::{
    finding::{Finding, FindingArea::Sockets, FindingSeverity, Repair},
    script_isolation::{ServiceIsolation, ServiceLayers},
    service_login::ServiceLogin,
};
use crate::{
    config::{ListenConfig, defaults},
    control::{
        service_environment::ServiceEnvironment,
        socket_client::{self, ControlClientError, ControlConnection},
        socket_file,
        socket_file::SocketDenial,
    },
    error_report::chain,
    protocol::payloads::method::PING,
    server_name::ServerName,
};

/// The answers of a running service.
#[derive(Debug, Default)]
pub(super) struct ServiceReport {
    /// Its version.
    pub(super) version: Option<String>,
    /// The isolation of scripts, if the service reports it.
    pub(super) isolation: Option<ServiceIsolation>,
    /// The servers that need a secret, with `true` if the service has it.
    pub(super) secrets: BTreeMap<ServerName, bool>,
    /// The logins at servers that have asked for one.
    pub(super) logins: BTreeMap<ServerName, ServiceLogin>,
    /// The state of each server.
    pub(super) states: BTreeMap<ServerName, ServiceState>,
    /// The TCP addresses that it listens at; none from an older version.
    pub(super) addresses: Vec<SocketAddr>,
    /// The environment of the service; `None` from an older version.
    pub(super) environment: Option<ServiceEnvironment>,
    /// The time that the service took to report them.
    pub(super) took: Duration,
}

/// The state of a server in the running service.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceState {
    /// `connected`, `connecting`, `needs login`, `error`, `closed` or `configured`.
    pub(super) status: String,
    /// The reason why the last attempt to connect failed, or the last connection ended.
    pub(super) error: Option<String>,
}

/// The presence of a service behind the control socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServicePresence {
    /// A service answers.
    Answers,
    /// There is no service.
    Absent,
    /// There may be a service that does not answer this user.
    Unknown,
    /// A service accepts connections and does not answer.
    Hangs,
}

const GROUP: &str = "users.users.YOU.extraGroups = [ \"metamcp\" ];";
const RESTART: &str = "Read `metamcp logs`, then run `systemctl restart metamcp`.";
const OTHER_PORT: &str = "services.metamcp.settings.listen.http = \"127.0.0.1:12012\";";

/// The result for the control socket, for several readers.
pub(super) type ServiceAnswer = Shared<BoxFuture<'static, Arc<ControlExamination>>>;

/// The result of the examination of the control socket.
pub(super) struct ControlExamination {
    /// The report of the service, if it answers.
    pub(super) report: Option<ServiceReport>,
    pub(super) presence: ServicePresence,
    pub(super) finding: Finding,
}

/// Examines the control socket. Cancel safe.
pub(super) async fn control(path: PathBuf) -> ControlExamination {
    let path = path.as_path();
    let name = path.display();
    let (finding, presence) = match std::fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            let finding = Finding::error(Sockets, format!("`{name}` is not a socket"))
                .fix("Remove it, or set `listen.control` to another path.");
            (finding, ServicePresence::Unknown)
        }
        Ok(_) => match soon(UnixStream::connect(path)).await {
            Ok(_) => match ask(path).await {
                Ok(report) => {
                    let (finding, presence) = (version(&report), ServicePresence::Answers);
                    return ControlExamination { report: Some(report), presence, finding };
                }
                Err(error @ ControlClientError::Silent { .. }) => {
                    let finding = Finding::error(Sockets, chain(&error));
                    (finding.fix(error.hint().unwrap_or_default()), ServicePresence::Hangs)
                }
                Err(error) => {
                    let what = format!("the service at `{name}` does not answer");
                    let finding = Finding::error(Sockets, what).because(chain(&error)).fix(RESTART);
                    (finding, ServicePresence::Unknown)
                }
            },
            Err(error) => unreachable_socket(path, &error),
        },
        Err(error) => unreachable_socket(path, &error),
    };
    ControlExamination { report: None, presence, finding }
}

fn unreachable_socket(path: &Path, error: &io::Error) -> (Finding, ServicePresence) {
    let name = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let what = format!("no service is running: `{name}` does not exist");
            let finding = Finding::note(Sockets, what)
                .fix("Start it with `systemctl start metamcp` or `metamcp serve`, or name its socket with --socket.")
                .nix("services.metamcp.enable = true;");
            (finding, ServicePresence::Absent)
        }
        io::ErrorKind::ConnectionRefused => {
            let finding = Finding::warning(Sockets, format!("no service listens at `{name}`"))
                .because("A service that was killed left the socket behind.")
                .fix("Start the service: it replaces the socket. `metamcp doctor --fix` removes the socket.");
            let repair = Repair::RemoveSocket(path.to_owned());
            match socket_file::is_served(path) {
                Some(true) => (finding, ServicePresence::Unknown),
                Some(false) | None => (finding.repair(repair), ServicePresence::Absent),
            }
        }
        io::ErrorKind::PermissionDenied => {
            let SocketDenial { text, hint } = SocketDenial::examine(path);
            (Finding::error(Sockets, text).fix(hint).nix(GROUP), ServicePresence::Unknown)
        }
        _ => {
            let finding = Finding::error(Sockets, format!("cannot connect to `{name}`"));
            (finding.because(error.to_string()).fix(RESTART), ServicePresence::Unknown)
        }
    }
}

/// Waits for an operation on a socket, at most [`defaults::DOCTOR_TIMEOUT`].
async fn soon<T>(trying: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let tried = time::timeout(defaults::DOCTOR_TIMEOUT, trying).await;
    tried.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn ask(path: &Path) -> Result<ServiceReport, ControlClientError> {
    // A service that hangs is found at once; one that is only slow gets more time.
    let mut pinged = ControlConnection::open(path).await?;
    match pinged.ask(PING, "{}", defaults::DOCTOR_TIMEOUT).await {
        // An older service knows no `ping`.
        Ok(_) | Err(ControlClientError::Refused(_)) => {}
        Err(error) => return Err(error),
    }
    let status = socket_client::ask(path, "daemon/status", None).await?;
    let version = status["version"].as_str().map(str::to_owned);
    let isolation = status["scripts"].is_object().then(|| {
        let reason = status["scripts"]["isolationError"].as_str();
        let layers = ServiceLayers { has_cgroups: status["scripts"]["cgroups"] == true };
        reason.map_or(Ok(layers), |reason| Err(reason.to_owned()))
    });
    let begin = Instant::now();
    let states = socket_client::ask(path, "auth/status", None).await.unwrap_or_default();
    let took = begin.elapsed();
    let mut report = ServiceReport { version, isolation, took, ..ServiceReport::default() };
    report.environment = environment(path, defaults::DOCTOR_TIMEOUT).await;
    let addresses = status["addresses"].as_array().into_iter().flatten();
    report.addresses = addresses.filter_map(|address| address.as_str()?.parse().ok()).collect();
    for entry in status["servers"].as_array().into_iter().flatten() {
        let name = entry["name"].as_str().and_then(|name| ServerName::new(name).ok());
        let text = |member: &str| entry[member].as_str().map(str::to_owned);
        let state =
            ServiceState { status: text("status").unwrap_or_default(), error: text("error") };
        report.states.extend(name.map(|name| (name, state)));
    }
    for entry in states.as_array().into_iter().flatten() {
        let server = entry["server"].as_str().and_then(|name| ServerName::new(name).ok());
        let (Some(server), auth) = (server, &entry["auth"]) else { continue };
        let has_tokens = auth["hasTokens"] == Value::Bool(true);
        match auth["type"].as_str() {
            Some("credential" | "environment") => drop(report.secrets.insert(server, has_tokens)),
            Some("oauth") => drop(report.logins.insert(server, ServiceLogin::read(auth))),
            _ => {}
        }
    }
    Ok(report)
}

/// Asks the service at `path` for its environment; `None` if there is no answer within `timeout`.
pub(super) async fn environment(path: &Path, timeout: Duration) -> Option<ServiceEnvironment> {
    let asking = socket_client::ask(path, "daemon/environment", None);
    let answer = time::timeout(timeout, asking).await.ok()?.ok()?;
    serde_json::from_value(answer).ok()
}

fn version(report: &ServiceReport) -> Finding {
    let ours = env!("CARGO_PKG_VERSION");
    match report.version.as_deref() {
        Some(theirs) if theirs != ours => {
            let what = format!("the service is metamcp {theirs}, and this program is {ours}");
            Finding::warning(Sockets, what)
                .because("The service was started before this version was installed, or from another place.")
                .fix("Restart it: `systemctl restart metamcp`.")
        }
        _ => Finding::ok(Sockets, "the service answers at its control socket"),
    }
}

/// Examines the address for clients: that of the running service, else the configured one.
/// `presence` is the result for the control socket.
pub(super) async fn http(
    listen: &ListenConfig,
    service: Option<&ServiceReport>,
    presence: ServicePresence,
    found: &mut Vec<Finding>,
) {
    let served = service.map_or(&[][..], |service| &service.addresses);
    let is_elsewhere = !served.is_empty() && !served.contains(&listen.http);
    if is_elsewhere && listen.http.port() != 0 {
        found.push(elsewhere(served[0], listen.http));
    }
    let address = if is_elsewhere { served[0] } else { listen.http };
    // The system chooses the port, which is unknown here.
    if address.port() == 0 {
        return;
    }
    let answer = match listen.tls {
        // With TLS, only the connection is tested.
        Some(_) => soon(TcpStream::connect(address)).await.map(|_| None),
        None => health(address, &address.to_string()).await.map(Some),
    };
    let is_absent = presence == ServicePresence::Absent;
    let finding = match answer {
        // The finding about the control socket reports the same cause.
        Err(error)
            if presence == ServicePresence::Hangs
                && error.kind() != io::ErrorKind::ConnectionRefused =>
        {
            return;
        }
        Err(error) => unanswered(address, presence, &error),
        Ok(None) if is_absent => taken(address, "a program"),
        Ok(None) => {
            let what = format!("{address} accepts connections; with TLS, nothing else is checked");
            Finding::note(Sockets, what)
        }
        Ok(Some(answer)) if !is_ours(&answer) => {
            Finding::error(Sockets, format!("another program listens at {address}"))
                .fix(
                    "Stop it (`ss -ltnp` shows which it is), or set `listen.http` to another port.",
                )
                .nix(OTHER_PORT)
        }
        Ok(Some(_)) if is_absent => taken(address, "another metamcp"),
        Ok(Some(_)) => {
            let finding = host_names(address).await;
            if finding.level == FindingSeverity::Ok {
                found.extend(token(listen, address).await);
            }
            finding
        }
    };
    found.push(finding);
}

/// Returns the finding about a service that listens at another address than the configured one.
fn elsewhere(served: SocketAddr, configured: SocketAddr) -> Finding {
    let what = format!("the service listens at {served}, and the configuration says {configured}");
    Finding::warning(Sockets, what)
        .because("`ListenStream=` of metamcp.socket, a variable or a flag decides.")
        .fix("Make them agree: `systemctl cat metamcp.socket` shows the unit. `metamcp connect` uses the address of the service.")
}

/// Returns the finding about an address that does not answer.
fn unanswered(address: SocketAddr, presence: ServicePresence, error: &io::Error) -> Finding {
    if error.kind() != io::ErrorKind::ConnectionRefused {
        return Finding::error(Sockets, format!("{address} does not answer"))
            .because(error.to_string())
            .fix("Run `ss -ltnp` to see which program listens there.");
    }
    if presence != ServicePresence::Answers {
        return Finding::ok(Sockets, format!("{address} is free"));
    }
    Finding::error(Sockets, format!("no program listens at {address}"))
        .because("The service answers at its control socket, but clients cannot reach it.")
        .fix("Make `ListenStream=` of metamcp.socket and `listen.http` agree: `systemctl status metamcp.socket`.")
}

/// Checks that the service refuses a foreign host name, as a DNS rebinding attack sends it.
async fn host_names(address: SocketAddr) -> Finding {
    match health(address, "example.org").await {
        Ok(answer) if answer.starts_with("HTTP/1.1 403") => {
            Finding::ok(Sockets, format!("{address} answers clients, and refuses foreign host names"))
        }
        Ok(_) => Finding::warning(Sockets, format!("{address} accepts every host name"))
            .because("A web page may call the tools under a host name of its own (DNS rebinding).")
            .fix("Remove `example.org` from `listen.allowed_hosts`, or let the proxy in front of metamcp check the name.")
            .nix("services.metamcp.settings.listen.allowed_hosts = [ ];"),
        Err(error) => Finding::warning(Sockets, format!("{address} answers only some requests"))
            .because(error.to_string())
            .fix("Read `metamcp logs`."),
    }
}

/// Returns the finding that a program other than the expected service uses the address.
fn taken(address: SocketAddr, program: &str) -> Finding {
    let what = format!("{program} listens at {address}, but no service at the control socket");
    Finding::error(Sockets, what)
        .because("A service with this configuration cannot listen there.")
        .fix("If it is your service, name its socket with --socket. Otherwise stop it (`ss -ltnp` shows which it is), or set `listen.http` to another port.")
        .nix(OTHER_PORT)
}

/// Returns a finding if a running service does not require the declared token.
async fn token(listen: &ListenConfig, address: SocketAddr) -> Option<Finding> {
    listen.token.as_ref()?;
    let answer = get(address, &address.to_string(), "/readyz").await.ok()?;
    (!answer.starts_with("HTTP/1.1 401")).then(|| {
        Finding::error(Sockets, format!("{address} requires no token"))
            .because("`listen.token` is set, but the service runs with another configuration.")
            .fix("Run `systemctl reload metamcp`; if it refuses, read `metamcp logs`.")
    })
}

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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_service_that_hangs_takes_little_of_the_time_of_an_examination() {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("control.sock");
        let _listener = UnixListener::bind(&socket).expect("bound");
        let begin = Instant::now();
        assert!(environment(&socket, defaults::DOCTOR_FILE_TIMEOUT).await.is_none());
        assert!(begin.elapsed() < Duration::from_secs(1), "the first finding waits for it");
        let examined = control(socket).await;
        assert!(begin.elapsed() < Duration::from_secs(3));
        assert_eq!(examined.finding.level, FindingSeverity::Error);
        assert!(examined.finding.what.ends_with(" within 2 s: it hangs or is stopped"));
        assert!(examined.finding.fix.is_some_and(|fix| fix.contains("kill -KILL ")));
    }
}
