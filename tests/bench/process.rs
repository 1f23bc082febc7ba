//! The processes of a run, which end with their owner.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{io::AsyncReadExt as _, net::TcpListener, time::Instant};

/// The optimised build of the service.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_metamcp");

/// A process, killed and reaped on drop, even when a measurement fails.
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: Option<SocketAddr>,
}

impl Process {
    /// Starts this benchmark program with other arguments.
    pub(crate) fn ourselves(name: &'static str, arguments: &[&str]) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        Self::start(name, command(&program).args(arguments))
    }

    /// Starts the service with the command line `words` plus `serve`; its log goes to `log`.
    pub(crate) fn service(words: &[&OsStr], config: &Path, log: &Path) -> Self {
        let state = log.parent().expect("it is in a directory");
        let log = File::create(log).expect("the log can be written");
        let (program, arguments) = words.split_first().expect("there is a program");
        Self::start(
            "metamcp",
            command(Path::new(program))
                .args(arguments)
                .arg("serve")
                .arg("--config")
                .arg(config)
                .env("STATE_DIRECTORY", state)
                .env("CACHE_DIRECTORY", state.join("cache"))
                .stderr(log),
        )
    }

    /// Terminates the process, and waits for its end.
    pub(crate) fn stop(mut self) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::TERM).expect("it runs");
        self.child.wait().expect("it can be waited for");
    }

    fn start(name: &'static str, command: &mut Command) -> Self {
        // The pipe closes when this process ends for any reason; the started programs then end.
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("start {name}: {error}"));
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { name, child, stdout, address: None }
    }

    /// Returns the address that it listens on, once it has printed it.
    pub(crate) fn address(&mut self) -> SocketAddr {
        if let Some(address) = self.address {
            return address;
        }
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.stdout.read_line(&mut line).expect("readable");
            assert!(length > 0, "{} has ended before it listened", self.name);
            let address = line.split_once("http://").map(|(_, rest)| rest.trim_end());
            if let Some(address) = address.and_then(|text| text.trim_end_matches('/').parse().ok())
            {
                return *self.address.insert(address);
            }
        }
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Runs a command against the service at `socket` and returns its duration; `None` if it fails.
pub(crate) fn timed(arguments: &[&str], socket: &Path) -> Option<Duration> {
    let mut command = command(Path::new(PROGRAM));
    command.args(arguments).env("METAMCP_SOCKET", socket);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().expect("metamcp starts");
    status.success().then(|| start.elapsed())
}

/// Runs cargo in this project; its messages go to standard error.
pub(crate) fn run_cargo(arguments: &[&str]) {
    let mut cargo = command(Path::new(env!("CARGO")));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    assert!(cargo.status().expect("cargo starts").success(), "cargo {arguments:?} fails");
}

#[expect(clippy::disallowed_methods, reason = "this is where the benchmark starts its processes")]
pub(crate) fn command(program: &Path) -> Command {
    Command::new(program)
}

/// Prints the address for the process that started this one.
pub(crate) fn announce(listener: &TcpListener) {
    let address = listener.local_addr().expect("it is bound");
    print(&format!("http://{address}/\n"));
}

/// Waits until the parent process is gone.
pub(crate) async fn parent_gone() {
    let mut byte = [0; 1];
    while tokio::io::stdin().read(&mut byte).await.is_ok_and(|length| length > 0) {}
}

/// Prints raw text to standard output. A closed reader is not an error.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout();
    let _reader_gone = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Prints the progress of a run to standard error.
pub(crate) fn progress(what: &str) {
    let _reader_gone = writeln!(io::stderr(), "{what}");
}
