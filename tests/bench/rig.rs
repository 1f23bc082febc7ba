//! The processes of one run, and their addresses.

use std::{ffi::OsStr, net::SocketAddr, time::Duration};

use tempfile::TempDir;
use tokio::time::{self, Instant};

use crate::{
    client::{self, Target},
    process::{self, Process},
};

/// The time limit until the service is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// A measured contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Contestant {
    /// The upstream itself, with no hop.
    Direct,
    /// The bare proxy before the upstream.
    Proxy,
    /// metamcp before the upstream.
    Gateway,
    /// metamcp before a child over stdio, under the merged view.
    Child,
}

/// The upstream, the proxy and the service.
pub(crate) struct Rig {
    upstream: Process,
    proxy: Process,
    gateway: Process,
    proxy_arguments: Vec<String>,
    directory: TempDir,
}

impl Contestant {
    pub(crate) const ALL: [Self; 4] = [Self::Direct, Self::Proxy, Self::Gateway, Self::Child];

    /// Returns the target for its tool `echo`.
    pub(crate) fn target(self, address: SocketAddr) -> Target {
        let (path, tool) = match self {
            Self::Direct | Self::Proxy | Self::Gateway => ("/mcp", "echo"),
            Self::Child => ("/direct", "child__echo"),
        };
        Target { address, path, tool }
    }
}

impl Rig {
    /// Starts all processes and waits until they serve.
    pub(crate) async fn start(with_events: bool, is_single_threaded: bool) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut arguments = vec!["upstream"];
        arguments.extend(with_events.then_some("--events"));
        let mut upstream = Process::ourselves("upstream", &arguments);
        let mut proxy_arguments =
            vec!["proxy".into(), "--upstream".into(), upstream.address().to_string()];
        proxy_arguments.extend(is_single_threaded.then(|| "--single-thread".into()));
        let proxy = proxy(&proxy_arguments);
        let mut gateway = gateway(&directory, upstream.address());
        wait_ready(&mut gateway).await;
        Self { upstream, proxy, gateway, proxy_arguments, directory }
    }

    /// Replaces the proxy and the service by new processes.
    pub(crate) async fn restart(&mut self) {
        self.proxy = proxy(&self.proxy_arguments);
        self.gateway = gateway(&self.directory, self.upstream.address());
        wait_ready(&mut self.gateway).await;
    }

    /// Returns the target for calling `echo` of `contestant`.
    pub(crate) fn target(&mut self, contestant: Contestant) -> Target {
        let process = match contestant {
            Contestant::Direct => &mut self.upstream,
            Contestant::Proxy => &mut self.proxy,
            Contestant::Gateway | Contestant::Child => &mut self.gateway,
        };
        contestant.target(process.address())
    }

    /// Returns the process of the hop, if there is one.
    pub(crate) fn pid(&self, contestant: Contestant) -> Option<u32> {
        match contestant {
            Contestant::Direct => None,
            Contestant::Proxy => Some(self.proxy.pid()),
            Contestant::Gateway | Contestant::Child => Some(self.gateway.pid()),
        }
    }
}

fn proxy(arguments: &[String]) -> Process {
    Process::ourselves("proxy", &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Starts the service with the root view on `upstream` and with a child.
fn gateway(directory: &TempDir, upstream: SocketAddr) -> Process {
    self::service(directory, &both(upstream))
}

/// Starts the service with the root view on `upstream`; returns at once.
pub(crate) fn serve(directory: &TempDir, upstream: SocketAddr, more: &str) -> Process {
    self::service(directory, &(root(upstream) + more))
}

/// Returns the configuration of the root view on `upstream` and of a child.
pub(crate) fn both(upstream: SocketAddr) -> String {
    root(upstream) + &child()
}

/// Returns the configuration of a child of this program, `child`.
pub(crate) fn child() -> String {
    let program = std::env::current_exe().expect("this program has a path");
    format!("[servers.child]\ncommand = {program:?}\nargs = [\"child\"]\nstart = \"prewarm\"\n")
}

/// Returns the configuration of the root view on `upstream`.
pub(crate) fn root(upstream: SocketAddr) -> String {
    format!(
        "root = \"passthrough:up\"\n\n\
         [servers.up]\nurl = \"http://{upstream}/mcp\"\nstart = \"prewarm\"\n\n"
    )
}

/// Starts the service; `config` continues its table `listen`. Returns at once.
pub(crate) fn service(directory: &TempDir, config: &str) -> Process {
    service_by(&[OsStr::new(process::PROGRAM)], directory, config)
}

/// Like [`service`], with the command line `words`.
pub(crate) fn service_by(words: &[&OsStr], directory: &TempDir, config: &str) -> Process {
    let control = directory.path().join("control.sock");
    let config = format!("[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {control:?}\n{config}");
    let path = directory.path().join("metamcp.toml");
    std::fs::write(&path, config).expect("the configuration can be written");
    // A killed service leaves its socket behind, on which the next one would refuse to start.
    let _none_before = std::fs::remove_file(&control);
    Process::service(words, &path, &directory.path().join("metamcp.log"))
}

pub(crate) async fn wait_ready(gateway: &mut Process) {
    let address = gateway.address();
    let deadline = Instant::now() + READY_TIMEOUT;
    while let Err(error) = client::get(address, "/readyz").await {
        assert!(Instant::now() < deadline, "metamcp is not ready: {error}");
        time::sleep(Duration::from_millis(20)).await;
    }
}
