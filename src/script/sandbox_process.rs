//! The sandbox of one script, as the service sees it: a process and the pipe to it.

use std::{
    collections::VecDeque,
    fmt, io,
    os::fd::OwnedFd,
    os::unix::{net::UnixStream as StdUnixStream, process::ExitStatusExt as _},
    process::{ExitStatus, Stdio},
    sync::{OnceLock, mpsc},
    thread,
};

use bytes::{Buf as _, Bytes};
use rustix::process::Pid;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
    task::coop,
};

use super::sandbox_cgroup::{DelegatedCgroup, SandboxCgroup};
use crate::{
    child::orphan_reaper::{self, AwaitedChild},
    compute_pool::read_in_place,
    sandbox::message::{FrameBuffer, FrameError, HostMessage, SandboxMessage, frame},
};

/// The way in which sandboxes are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxLauncher {
    /// A confined process for each script.
    Confined,
    /// A process without confinement.
    Unconfined,
    /// A thread of this process.
    #[cfg(test)]
    Thread,
}

/// The sandbox of one script. Dropping it kills it.
pub(super) struct SandboxProcess {
    process: Option<SpawnedSandbox>,
    reader: OwnedReadHalf,
    received: FrameBuffer,
    writer: OwnedWriteHalf,
    unsent: VecDeque<Bytes>,
}

/// The reason why a sandbox cannot be used, or not any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum SandboxProcessError {
    /// It cannot be started.
    #[error("its process cannot be started: {0}")]
    Start(io::Error),
    /// It has ended.
    #[error("its process {0}")]
    Ended(SandboxExit),
    /// The kernel has ended it: it needed more memory than its control group has.
    #[error("its process needed too much memory")]
    OutOfMemory,
    /// It sent something else than a message.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The pipe failed.
    #[error("the pipe to it failed: {0}")]
    Pipe(io::Error),
}

/// The exit of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SandboxExit(Option<ExitStatus>);

impl SandboxExit {
    /// Returns whether the kernel ended it because it made a forbidden system call.
    pub(super) fn is_violation(self) -> bool {
        self.signal() == Some(rustix::process::Signal::SYS.as_raw())
    }

    fn signal(self) -> Option<i32> {
        self.0.and_then(|status| status.signal())
    }
}

impl fmt::Display for SandboxExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.and_then(|status| status.code()), self.signal()) {
            _ if self.is_violation() => {
                f.write_str("was ended by the kernel: it made a forbidden system call")
            }
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => write!(f, "was ended by signal {signal}"),
            (None, None) => f.write_str("ended"),
        }
    }
}

impl SandboxProcess {
    /// Starts a sandbox for an engine with this memory. Cancel safe: one that has started is killed.
    pub(super) async fn start(
        launcher: SandboxLauncher,
        engine_bytes: usize,
    ) -> Result<Self, SandboxProcessError> {
        let (ours, theirs) = StdUnixStream::pair().map_err(SandboxProcessError::Start)?;
        ours.set_nonblocking(true).map_err(SandboxProcessError::Start)?;
        let process = match launcher {
            SandboxLauncher::Confined => {
                let cgroups = DelegatedCgroup::of_service().map(|cgroups| (cgroups, engine_bytes));
                Some(spawn(theirs, "standard", cgroups).await?)
            }
            SandboxLauncher::Unconfined => Some(spawn(theirs, "dev", None).await?),
            #[cfg(test)]
            SandboxLauncher::Thread => {
                let wait = || loop {
                    thread::park();
                };
                let run = move || drop(crate::sandbox::run_script(theirs, wait));
                let thread = thread::Builder::new().stack_size(8 << 20).spawn(run);
                thread.map_err(SandboxProcessError::Start)?;
                None
            }
        };
        let ours = UnixStream::from_std(ours).map_err(SandboxProcessError::Start)?;
        let (reader, writer) = ours.into_split();
        let (received, unsent) = (FrameBuffer::default(), VecDeque::new());
        Ok(Self { process, reader, received, writer, unsent })
    }

    /// Queues a message.
    pub(super) fn queue(&mut self, message: &HostMessage) -> Result<(), SandboxProcessError> {
        self.unsent.push_back(Bytes::from(frame(message)?));
        Ok(())
    }

    /// Waits for the next message, and sends the queued ones meanwhile. Returns it with its size in
    /// bytes. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<(SandboxMessage, usize), SandboxProcessError> {
        loop {
            if let Some(length) = self.received.first_frame()? {
                // A script that sends without a pause must not keep its event loop.
                coop::consume_budget().await;
                let message = read_in_place(length, || self.received.take_message())?;
                if let Some(message) = message {
                    return Ok((message, length));
                }
            }
            let Self { reader, received, writer, unsent, .. } = self;
            tokio::select! {
                read = reader.read_buf(received.bytes_mut()) => match read {
                    Ok(0) => return Err(self.ended().await),
                    Ok(_) => {}
                    Err(error) => return Err(self.failed(error).await),
                },
                written = write_some(writer, unsent), if !unsent.is_empty() => {
                    match written {
                        Ok(()) => {}
                        // It has ended. Its last messages may still have to be read.
                        Err(error) if is_closed(&error) => unsent.clear(),
                        Err(error) => return Err(SandboxProcessError::Pipe(error)),
                    }
                }
            }
        }
    }

    /// Returns the bytes that have arrived and were not taken.
    pub(super) fn n_received(&self) -> usize {
        self.received.n_bytes()
    }

    async fn failed(&mut self, error: io::Error) -> SandboxProcessError {
        if is_closed(&error) { self.ended().await } else { SandboxProcessError::Pipe(error) }
    }

    /// Returns the exit of a process that has closed its pipe.
    async fn ended(&mut self) -> SandboxProcessError {
        let Some(SpawnedSandbox { child, cgroup, .. }) = &mut self.process else {
            return SandboxProcessError::Ended(SandboxExit(None));
        };
        let status = child.wait().await.ok();
        if cgroup.as_ref().is_some_and(SandboxCgroup::has_exhausted_memory) {
            return SandboxProcessError::OutOfMemory;
        }
        SandboxProcessError::Ended(SandboxExit(status))
    }
}

/// Returns whether the other end of the pipe is closed.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

async fn write_some(writer: &mut OwnedWriteHalf, unsent: &mut VecDeque<Bytes>) -> io::Result<()> {
    let Some(first) = unsent.front_mut() else { return Ok(()) };
    let n = writer.write(first).await?;
    first.advance(n);
    if first.is_empty() {
        unsent.pop_front();
    }
    Ok(())
}

/// A sandbox to start.
struct SpawnRequest {
    stdin: OwnedFd,
    profile: &'static str,
    cgroups: SandboxCgroups,
    runtime: Handle,
    started: oneshot::Sender<io::Result<SpawnedSandbox>>,
}

/// The group for groups of sandboxes, with the memory of the next engine; where there is one.
type SandboxCgroups = Option<(&'static DelegatedCgroup, usize)>;

/// The process of a sandbox. Dropping it kills it.
struct SpawnedSandbox {
    child: Child,
    /// Its control group, where there is one. It is removed once the process has ended.
    cgroup: Option<SandboxCgroup>,
    /// Keeps its exit for this value.
    _awaited: AwaitedChild,
}

/// Starts the process of a sandbox, which talks over `pipe`.
async fn spawn(
    pipe: StdUnixStream,
    profile: &'static str,
    cgroups: SandboxCgroups,
) -> Result<SpawnedSandbox, SandboxProcessError> {
    let (started, spawned) = oneshot::channel();
    let (stdin, runtime) = (OwnedFd::from(pipe), Handle::current());
    let request = SpawnRequest { stdin, profile, cgroups, runtime, started };
    let no_thread = || SandboxProcessError::Start(io::Error::other("no thread can be started"));
    let spawner = spawner().ok_or_else(no_thread)?;
    spawner.send(request).map_err(|_| no_thread())?;
    spawned.await.map_err(|_| no_thread())?.map_err(SandboxProcessError::Start)
}

/// Returns the channel to the thread that starts all sandboxes. The kernel kills a sandbox when the
/// thread that has started it ends, and this one never does. Source: `PR_SET_PDEATHSIG` in
/// prctl(2).
fn spawner() -> Option<&'static mpsc::Sender<SpawnRequest>> {
    static SPAWNER: OnceLock<Option<mpsc::Sender<SpawnRequest>>> = OnceLock::new();
    let start = || {
        let (requests, received) = mpsc::channel::<SpawnRequest>();
        let run = move || {
            for SpawnRequest { stdin, profile, cgroups, runtime, started } in received {
                let _context = runtime.enter();
                let spawned = orphan_reaper::spawn_awaited(|| command(stdin, profile).spawn());
                let spawned = spawned.map(|(child, process, awaited)| {
                    let cgroup = cgroup_of(process, cgroups);
                    SpawnedSandbox { child, cgroup, _awaited: awaited }
                });
                let _gone = started.send(spawned);
            }
        };
        thread::Builder::new().name("sandboxes".to_owned()).spawn(run).ok().map(|_| requests)
    };
    SPAWNER.get_or_init(start).as_ref()
}

/// Moves a process to a control group of its own, where there is one. The other layers hold without.
fn cgroup_of(process: Pid, cgroups: SandboxCgroups) -> Option<SandboxCgroup> {
    let (cgroups, engine_bytes) = cgroups?;
    let group = cgroups.isolate(process, engine_bytes);
    let report = |error: &io::Error| {
        tracing::warn!(%error, "a script runs without a control group of its own: {error}");
    };
    group.inspect_err(report).ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a sandbox is no server: it starts nothing, and ends with its parent or its pipe"
)]
fn command(stdin: OwnedFd, profile: &str) -> Command {
    // The program that runs now, also if its file was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["sandbox", profile, &std::process::id().to_string()])
        .env_clear()
        // Without files about time zones.
        .env("TZ", "UTC0")
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}
