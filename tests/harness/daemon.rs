//! The real binary, started as systemd starts it.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    os::{
        fd::OwnedFd,
        unix::net::{UnixDatagram, UnixListener},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{DEADLINE, client::Client};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_metamcp");

/// A running service on sockets opened before its start; ended and reaped on drop.
pub(crate) struct Daemon {
    process: Child,
    address: SocketAddr,
    // Declared before the directory, which contains its socket.
    notices: Notices,
    directory: TempDir,
    /// The options and the sockets for a restart, if the sockets are kept.
    restart_data: Option<(Start, Sockets)>,
}

/// The options for the start of a daemon.
pub(crate) struct Start {
    config: String,
    environment: Vec<(String, String)>,
    flags: Vec<String>,
    names: &'static str,
    http: &'static str,
    without_file: bool,
    keeps_sockets: bool,
    /// The soft and hard limits of open descriptors.
    descriptors: Option<(u32, u32)>,
}

/// The sockets that a service manager passes.
struct Sockets {
    http: OwnedFd,
    control: OwnedFd,
}

impl Sockets {
    fn copy(&self) -> Self {
        let copy = |socket: &OwnedFd| socket.try_clone().expect("a descriptor");
        Self { http: copy(&self.http), control: copy(&self.control) }
    }
}

impl Start {
    /// Adds an environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<Path>) -> Self {
        self.environment.push((name.into(), value.as_ref().display().to_string()));
        self
    }

    /// Adds flags of `serve`.
    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// Binds the HTTP socket to this address instead of a port of 127.0.0.1.
    pub(crate) fn at(mut self, address: &'static str) -> Self {
        self.http = address;
        self
    }

    /// Passes the sockets with these names, in order; the service knows `http` and `control`.
    pub(crate) fn socket_names(mut self, names: &'static str) -> Self {
        self.names = names;
        self
    }

    /// Starts the service without `--config`.
    pub(crate) fn without_file(mut self) -> Self {
        self.without_file = true;
        self
    }

    /// Limits the number of open descriptors of the service.
    pub(crate) fn descriptors(mut self, soft: u32, hard: u32) -> Self {
        self.descriptors = Some((soft, hard));
        self
    }

    /// Keeps the sockets open when the service ends, so that it can be restarted.
    pub(crate) fn keep_sockets(mut self) -> Self {
        self.keeps_sockets = true;
        self
    }

    /// Starts the process and returns at once: clients wait in the backlog.
    pub(crate) fn spawn(self) -> Daemon {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = directory.path().join("metamcp.toml");
        fs::write(&config, &self.config).expect("the configuration is written");
        let http = TcpListener::bind(self.http).expect("a free port");
        let address = http.local_addr().expect("it is bound");
        let control = UnixListener::bind(directory.path().join("control.sock")).expect("a socket");
        let notices = Notices::listen(&directory.path().join("notify.sock"));
        let sockets = Sockets { http: http.into(), control: control.into() };
        let kept = self.keeps_sockets.then(|| sockets.copy());
        let process = self.launch(directory.path(), sockets);
        let restart_data = kept.map(|sockets| (self, sockets));
        Daemon { process, directory, address, notices, restart_data }
    }

    fn launch(&self, directory: &Path, sockets: Sockets) -> Child {
        let log = fs::File::options().create(true).append(true).open(directory.join("log"));
        let (mut http, mut control) = (Some(sockets.http), Some(sockets.control));
        let mappings = self.names.split(':').zip(3..).map(|(name, child_fd)| FdMapping {
            // Any name but `control` gets the TCP socket, so that tests can use wrong names.
            parent_fd: if name == "control" { control.take() } else { http.take() }
                .expect("each kind of socket once"),
            child_fd,
        });
        let mappings: Vec<FdMapping> = mappings.collect();
        let mut command = match self.descriptors {
            None => Command::new(PROGRAM),
            Some((soft, hard)) => {
                let limited =
                    format!(r#"ulimit -S -n {soft} && ulimit -H -n {hard} && exec "$0" "$@""#);
                let mut command = Command::new("sh");
                command.args(["-c", &limited, PROGRAM]);
                command
            }
        };
        command.arg("serve");
        match self.without_file {
            false => command.arg("--config").arg(directory.join("metamcp.toml")),
            true => command.env("XDG_CONFIG_HOME", directory.join("none")),
        };
        command
            .args(&self.flags)
            // `listenfd` accepts a missing LISTEN_PID, which only the child could know.
            .env("LISTEN_FDS", mappings.len().to_string())
            .env("LISTEN_FDNAMES", self.names)
            .env("NOTIFY_SOCKET", directory.join("notify.sock"))
            .env("STATE_DIRECTORY", directory)
            // A separate cache by default: daemons must not share what they learned.
            .env("CACHE_DIRECTORY", directory.join("cache"))
            // Tests count the processes started for their requests.
            .env("METAMCP_CATALOG_PRIME", "false")
            .env_remove("WATCHDOG_PID")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log file"))
            .fd_mappings(mappings)
            .expect("no descriptor is used twice")
            .spawn()
            .expect("the program starts")
    }

    /// Starts the process and waits until it reports readiness.
    #[track_caller]
    pub(crate) fn ready(self) -> Daemon {
        let mut daemon = self.spawn();
        daemon.wait_ready();
        daemon
    }
}

impl Daemon {
    /// Prepares a start with this configuration.
    pub(crate) fn with(config: impl Into<String>) -> Start {
        Start {
            config: config.into(),
            environment: Vec::new(),
            flags: Vec::new(),
            names: "http:control",
            http: "127.0.0.1:0",
            without_file: false,
            keeps_sockets: false,
            descriptors: None,
        }
    }

    /// Waits until the service reports readiness.
    #[track_caller]
    pub(crate) fn wait_ready(&mut self) {
        self.wait_notice("READY=1", |notice| notice.lines().any(|line| line == "READY=1"));
    }

    /// Waits for a notice to the service manager, and returns all notices so far.
    #[track_caller]
    pub(crate) fn wait_notice(
        &mut self,
        name: &str,
        is_expected: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(notices) = self.notices.wait(&is_expected) {
                return notices;
            }
            let exited = self.process.try_wait().expect("it can be waited for");
            assert!(
                exited.is_none() && Instant::now() < deadline,
                "no notice `{name}`; the exit status of the service is {exited:?}\n{}",
                self.log()
            );
        }
    }

    /// Returns a client for this path without a session id.
    pub(crate) fn client(&self, path: &str) -> Client {
        Client::new(self.url(path))
    }

    /// Returns the address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the address for clients.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns the control socket.
    pub(crate) fn control(&self) -> PathBuf {
        self.directory.path().join("control.sock")
    }

    /// Replaces the configuration file.
    pub(crate) fn rewrite(&self, config: &str) {
        fs::write(self.directory.path().join("metamcp.toml"), config).expect("written");
    }

    /// Returns the log of the service so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).expect("readable")
    }

    /// Waits until the log contains `text`.
    #[track_caller]
    pub(crate) fn wait_log(&self, text: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !self.log().contains(text) {
            assert!(Instant::now() < deadline, "`{text}` is not in the log:\n{}", self.log());
            std::thread::yield_now();
        }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        self::signal(self.pid(), signal);
    }

    /// Triggers a reload and waits for its end; returns the notices since then.
    #[track_caller]
    pub(crate) fn reload(&mut self) -> Vec<String> {
        let n_before = self.notices.len();
        self.signal(Signal::HUP);
        let is_new_ready = |notices: &[String]| {
            let reloading = notices.iter().position(|notice| notice.contains("RELOADING=1"));
            reloading
                .is_some_and(|at| notices[at..].iter().any(|notice| notice.contains("READY=1")))
        };
        let deadline = Instant::now() + DEADLINE;
        loop {
            let notices = self.notices.since(n_before);
            if is_new_ready(&notices) {
                return notices;
            }
            assert!(Instant::now() < deadline, "no reload: {notices:?}\n{}", self.log());
            std::thread::yield_now();
        }
    }

    /// Waits until connections are refused.
    #[track_caller]
    pub(crate) fn wait_refused(&self) {
        let deadline = Instant::now() + DEADLINE;
        while TcpStream::connect(self.address).is_ok() {
            assert!(Instant::now() < deadline, "connections are still accepted\n{}", self.log());
            std::thread::yield_now();
        }
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        exit_in_time(&mut self.process)
            .unwrap_or_else(|| panic!("the service does not exit\n{}", self.log()))
    }

    /// Restarts the ended service on its sockets, as a service manager does for a connection.
    pub(crate) fn restart(&mut self) {
        let ended = self.process.try_wait().expect("it can be waited for");
        assert!(ended.is_some(), "the service is still running");
        let (start, sockets) = self.restart_data.as_ref().expect("its sockets are kept");
        self.process = start.launch(self.directory.path(), sockets.copy());
    }

    /// Stops the service, waits for its end, and returns its exit status.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait_exit()
    }

    /// Returns all notices of the service to its manager.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.notices.since(0)
    }
}

impl Drop for Daemon {
    #[expect(clippy::print_stderr, reason = "the test harness shows it with the failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of the service\n{}---", self.log());
        }
        if self.process.try_wait().ok().flatten().is_some() {
            return;
        }
        // SIGTERM first, so that it ends its children.
        self.signal(Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if self.process.try_wait().ok().flatten().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The service manager's end of `NOTIFY_SOCKET`.
struct Notices {
    received: Arc<(Mutex<Vec<String>>, Condvar)>,
    path: PathBuf,
    reader: Option<JoinHandle<()>>,
}

/// The datagram that ends the reader; no service sends it.
const QUIT: &[u8] = b"X_QUIT=1";

impl Notices {
    fn listen(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a notify socket");
        let received: Arc<(Mutex<Vec<String>>, Condvar)> = Arc::default();
        let shared = Arc::clone(&received);
        // Read continuously: a full socket would block the service.
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n_bytes) = socket.recv(&mut buffer) {
                if &buffer[..n_bytes] == QUIT {
                    return;
                }
                let notice = String::from_utf8_lossy(&buffer[..n_bytes]).trim_end().to_owned();
                shared.0.lock().expect("not poisoned").push(notice);
                shared.1.notify_all();
            }
        });
        Self { received, path: path.to_owned(), reader: Some(reader) }
    }

    /// Waits briefly for a notice, and returns all notices if it arrived.
    fn wait(&self, is_expected: &impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let has_arrived = |notices: &Vec<String>| notices.iter().any(|notice| is_expected(notice));
        let notices = self.received.0.lock().expect("not poisoned");
        let (notices, _) = self
            .received
            .1
            .wait_timeout_while(notices, Duration::from_millis(100), |all| !has_arrived(all))
            .expect("not poisoned");
        has_arrived(&notices).then(|| notices.clone())
    }

    fn since(&self, n_before: usize) -> Vec<String> {
        self.received.0.lock().expect("not poisoned")[n_before..].to_vec()
    }

    fn len(&self) -> usize {
        self.received.0.lock().expect("not poisoned").len()
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        let sent = UnixDatagram::unbound().and_then(|sender| sender.send_to(QUIT, &self.path));
        if let (Ok(_), Some(reader)) = (sent, self.reader.take()) {
            reader.join().ok();
        }
    }
}

/// Starts the service as a shell does, without passed sockets. The caller waits for its end.
pub(crate) fn serve(config: &Path) -> Child {
    Command::new(PROGRAM)
        .args(["serve", "--config"])
        .arg(config)
        .env("STATE_DIRECTORY", config.parent().expect("it is in a directory"))
        .env("CACHE_DIRECTORY", config.parent().expect("it is in a directory").join("cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Waits for the end of a process; `None` if it does not end in time.
pub(crate) fn exit_in_time(process: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        if let Some(status) = process.try_wait().expect("it can be waited for") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Sends a signal to a process that is not reaped yet. A child that is stopped has stopped on return.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("it has a pid");
    kill_process(pid, signal).expect("it is not reaped");
    if signal == Signal::STOP {
        // One thread takes the signal and stops the others, which may answer until then.
        let until_stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), until_stopped).expect("it is a child");
    }
}

/// Returns the program with these arguments, isolated from a service of the user.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env("XDG_RUNTIME_DIR", "/nonexistent")
        .env_remove("METAMCP_SOCKET")
        .env_remove("NO_COLOR");
    command
}

/// Runs the program to its end and returns code, standard output and standard error.
pub(crate) fn run(arguments: &[&str]) -> (i32, String, String) {
    finish(command(arguments))
}

/// Runs the program with these variables in this directory, like [`run`].
pub(crate) fn run_in(
    directory: &Path,
    environment: &[(&str, &str)],
    arguments: &[&str],
) -> (i32, String, String) {
    let mut command = command(arguments);
    command.envs(environment.iter().copied()).current_dir(directory);
    finish(command)
}

/// Runs the program with `input` on its standard input.
pub(crate) fn run_with(input: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut file = tempfile::tempfile().expect("a file");
    std::io::Write::write_all(&mut file, input.as_bytes()).expect("written");
    std::io::Seek::rewind(&mut file).expect("rewound");
    let mut command = command(arguments);
    command.stdin(file);
    finish(command)
}

/// Runs a command to its end and returns code, standard output and standard error.
pub(crate) fn finish(mut command: Command) -> (i32, String, String) {
    let output = command.output().expect("the program starts");
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
