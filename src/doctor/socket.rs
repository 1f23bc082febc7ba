//! The sockets of a service that runs, or that is to run.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::Path,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time,
};

use super::{Finding, Level};
use crate::{
    config::defaults,
    control::client::{self, ClientError},
    report::chain,
};

/// Looks at the control socket and judges it. Also returns whether a service answers there.
///
/// # Cancel safety
///
/// Safe.
pub async fn control(path: &Path) -> (Vec<Finding>, bool) {
    const SUBJECT: &str = "control socket";
    let shown = path.display();
    let Ok(found) = fs::metadata(path) else {
        let none =
            Finding::new(Level::Note, SUBJECT, format!("no service runs: there is no `{shown}`"))
                .fix(
                    "`systemctl start metamcp`, or `metamcp serve`; --socket names another socket.",
                )
                .nix("services.metamcp.enable = true;");
        return (vec![none], false);
    };
    if !found.file_type().is_socket() {
        let wrong = Finding::new(Level::Error, SUBJECT, format!("`{shown}` is no socket"))
            .fix(format!("Move it away: `mv {shown} {shown}.old`."));
        return (vec![wrong], false);
    }
    let mut findings = Vec::new();
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o002 != 0 {
        findings.push(
            Finding::new(Level::Warning, SUBJECT, format!("everybody can open `{shown}`"))
                .why(format!("its mode is {mode:03o}: only the service itself turns others away"))
                .fix("`SocketMode=0660` and `SocketGroup=` in `metamcp-control.socket`.")
                .nix("systemd.sockets.metamcp-control.socketConfig.SocketMode = \"0660\";"),
        );
    }
    let asked =
        time::timeout(defaults::PROBE_SOCKET_PATIENCE, client::ask(path, "daemon/status", None))
            .await;
    match asked {
        Ok(Ok(status)) => {
            findings.extend(answered(&status));
            return (findings, true);
        }
        Ok(Err(ClientError::Unreachable { source, .. }))
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            findings.push(
                Finding::new(Level::Error, SUBJECT, format!("this user may not open `{shown}`"))
                    .why("commands such as `metamcp status` need it")
                    .fix("Join the group of the socket, often `metamcp`, and log in again.")
                    .nix("users.users.NAME.extraGroups = [ \"metamcp\" ];"),
            );
        }
        Ok(Err(ClientError::Unreachable { source, .. }))
            if source.kind() == std::io::ErrorKind::ConnectionRefused =>
        {
            findings.push(
                Finding::new(Level::Warning, SUBJECT, format!("nobody answers at `{shown}`"))
                    .why("a service that was killed has left it behind")
                    .fix("Start the service: it makes the socket anew."),
            );
        }
        Ok(Err(error)) => findings.push(
            Finding::new(Level::Error, SUBJECT, "the service does not answer as it should")
                .why(chain(&error))
                .fix("See its log: `journalctl -u metamcp`."),
        ),
        Err(_) => findings.push(
            Finding::new(Level::Error, SUBJECT, "the service does not answer")
                .why(format!("it took more than {} s", defaults::PROBE_SOCKET_PATIENCE.as_secs()))
                .fix("See its log: `journalctl -u metamcp`; then `systemctl restart metamcp`."),
        ),
    }
    (findings, false)
}

/// Judges a service that answers. Pure.
fn answered(status: &Value) -> Vec<Finding> {
    const SUBJECT: &str = "service";
    let ours = env!("CARGO_PKG_VERSION");
    let version = status["version"].as_str().unwrap_or("unknown");
    let running = format!("version {version} runs, pid {}", status["pid"]);
    vec![match version == ours {
        true => Finding::new(Level::Ok, SUBJECT, running),
        false => Finding::new(Level::Warning, SUBJECT, running)
            .why(format!("this program is version {ours}: one was updated and the other was not"))
            .fix("`systemctl restart metamcp`, or call the program that the service runs.")
            .nix("nixos-rebuild switch restarts the service with services.metamcp.package"),
    }]
}

/// Looks at the address for clients and judges it. `is_running` says that a service answers at the
/// control socket; `is_tls` that it does not speak plain HTTP.
///
/// # Cancel safety
///
/// Safe.
pub async fn http(address: SocketAddr, is_tls: bool, is_running: bool) -> Vec<Finding> {
    const SUBJECT: &str = "http";
    let free = |level, what: String| Finding::new(level, SUBJECT, what);
    let connected =
        time::timeout(defaults::PROBE_SOCKET_PATIENCE, TcpStream::connect(address)).await;
    let Ok(Ok(_)) = connected else {
        return vec![match is_running {
            false => free(Level::Ok, format!("{address} is free")),
            true => free(Level::Warning, format!("nobody listens on {address}"))
                .why("a service runs, and listens elsewhere")
                .fix("Is that the configuration of the running service? See `systemctl cat metamcp.socket`, or name it with --config.")
                .nix("services.metamcp.settings.listen.http"),
        }];
    };
    if is_tls {
        return vec![free(Level::Ok, format!("somebody listens on {address}, with TLS"))];
    }
    let health = ask(address, &address.to_string()).await;
    let Some((200, _)) = health.filter(|(_, body)| body.contains("ok")) else {
        return vec![
            free(Level::Error, format!("another program listens on {address}"))
                .why("`/healthz` is not answered as this service does")
                .fix(format!(
                    "Find it with `ss -ltnp sport = :{}`, or set another `listen.http`.",
                    address.port()
                ))
                .nix("services.metamcp.settings.listen.http"),
        ];
    };
    let mut findings = vec![free(Level::Ok, format!("`/healthz` answers on {address}"))];
    // What a page of another site makes a browser do.
    if address.ip().is_loopback()
        && ask(address, "example.com").await.is_some_and(|(status, _)| status < 400)
    {
        findings.push(
            free(Level::Error, "a foreign host name is served".into())
                .why("a page of another site could reach the tools through a browser")
                .fix("Is there a proxy in front that changes `Host`? It must pass it on.")
                .nix("services.nginx.virtualHosts.<name>.locations.<path>.recommendedProxySettings = true;"),
        );
    }
    findings
}

/// Asks for `/healthz` as `host`; returns the status and the beginning of the body.
async fn ask(address: SocketAddr, host: &str) -> Option<(u16, String)> {
    let asking = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        let limit = u64::try_from(defaults::PROBE_OUTPUT_BYTES_MAX).unwrap_or(u64::MAX);
        stream.take(limit).read_to_end(&mut answer).await.ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    };
    time::timeout(defaults::PROBE_SOCKET_PATIENCE, asking).await.ok()?
}
