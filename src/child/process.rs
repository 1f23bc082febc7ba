//! One child process and its end.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt as _,
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    time,
};
use tokio_util::sync::CancellationToken;

use super::{
    SpawnError,
    descendants::ProcessDescendants,
    environment,
    environment_marker::ChildMarker,
    escalation::Escalation,
    orphan_reaper::{self, AwaitedChild},
    process_ancestry,
    process_table::ProcessEntry,
};
use crate::{config::defaults, descriptor_limit};

/// A program to start. It holds secrets in plain text: do not log it.
#[derive(Clone)]
pub struct ChildProgram {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beyond the inherited ones.
    pub env: BTreeMap<String, String>,
    /// Its working directory; that of the service if absent.
    pub cwd: Option<PathBuf>,
}

/// The outcome of a child process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
    /// It ended with this status.
    Status(ExitStatus),
    /// It ended with an unknown status.
    Unknown,
    /// It has not ended yet.
    Pending,
}

impl fmt::Display for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::os::unix::process::ExitStatusExt as _;
        match self {
            Self::Status(status) => match (status.code(), status.signal()) {
                (Some(code), _) => write!(f, "exited with code {code}"),
                (None, Some(signal)) => write!(f, "was ended by signal {signal}"),
                (None, None) => f.write_str("ended"),
            },
            Self::Unknown => f.write_str("ended"),
            Self::Pending => f.write_str("has not ended yet"),
        }
    }
}

impl fmt::Debug for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The pipes of a child that has just started.
#[derive(Debug)]
pub struct ChildPipes {
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error.
    pub stderr: ChildStderr,
}

/// A running child in a process group of its own.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    group: Pid,
    descendants: ProcessDescendants,
    _awaited: AwaitedChild,
}

impl Child {
    /// Starts `program` with piped standard streams.
    ///
    /// # Errors
    ///
    /// [`SpawnError`], which names the program and the reason.
    pub fn spawn(program: &ChildProgram) -> Result<(Self, ChildPipes), SpawnError> {
        process_ancestry::note_server_started();
        let marker = ChildMarker::next();
        #[expect(clippy::disallowed_methods, reason = "the one place that starts processes")]
        let mut command = Command::new(&program.command);
        command
            .args(&program.args)
            .env_clear()
            .envs(environment::inherited())
            .envs(&program.env)
            .envs(marker.map(|marker| (environment::MARKER, marker.to_string())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Its own group, so that a signal reaches the processes that it starts. Also, ctrl-c in
            // the terminal does not reach it before metamcp has drained.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = &program.cwd {
            command.current_dir(cwd);
        }
        let failed = |source: io::Error| SpawnError::explain(program, source);
        let spawned = orphan_reaper::spawn_awaited(|| command.spawn());
        let (mut process, group, awaited) = spawned.map_err(failed)?;
        let pipes = match (process.stdin.take(), process.stdout.take(), process.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => ChildPipes { stdin, stdout, stderr },
            _ => return Err(failed(io::ErrorKind::BrokenPipe.into())),
        };
        descriptor_limit::restore(group);
        let since = ProcessEntry::read(group).ok().flatten().map_or(0, |process| process.started);
        let descendants = ProcessDescendants::Child { group, marker, since };
        Ok((Self { process, group, descendants, _awaited: awaited }, pipes))
    }

    /// Runs `program` to its end without input and returns its standard output, or the last
    /// `bytes_max` bytes of it; `None` if the program failed. Cancel safe: dropping the future
    /// kills the process.
    pub async fn output(program: &ChildProgram, bytes_max: usize) -> Option<String> {
        let (mut child, ChildPipes { stdin, stdout, mut stderr }) = Self::spawn(program).ok()?;
        drop(stdin);
        let mut sink = tokio::io::sink();
        let (read, _drained) =
            tokio::join!(read_end(stdout, bytes_max), tokio::io::copy(&mut stderr, &mut sink));
        let output = read.ok()?;
        match child.wait().await {
            ChildExit::Status(status) if status.success() => {
                Some(String::from_utf8_lossy(&output).into_owned())
            }
            ChildExit::Status(_) | ChildExit::Unknown | ChildExit::Pending => None,
        }
    }

    /// Returns the process id, which is also the id of its group.
    pub fn pid(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the process ends by itself. Cancel safe: you can call it again.
    pub async fn wait(&mut self) -> ChildExit {
        self.process.wait().await.map_or(ChildExit::Unknown, ChildExit::Status)
    }

    /// Terminates the process and all its descendants. It waits and signals as [`Escalation`] says,
    /// with the long waits until `skip_drain` is cancelled.
    ///
    /// The caller must have closed its end of the child's standard input. Returns when the process
    /// is reaped and no descendant runs, or [`defaults::AFTER_KILL`] after SIGKILL: a process that
    /// hangs in the kernel cannot be waited for. Not cancel safe: it kills the process, but not its
    /// descendants.
    pub async fn terminate(mut self, skip_drain: CancellationToken) -> ChildExit {
        let mut escalation = Escalation::new(skip_drain);
        while let Some(step) = tokio::select! {
            biased;
            exit = self.all_gone(None) => return exit,
            step = escalation.next() => step,
        } {
            self.signal(step.signal()).await;
        }
        let end = self.all_gone(Some(Signal::KILL));
        time::timeout(defaults::AFTER_KILL, end).await.unwrap_or_else(|_| {
            let pid = self.pid();
            tracing::error!(
                child_pid = pid,
                "process {pid} or its descendants still run after SIGKILL"
            );
            ChildExit::Pending
        })
    }

    /// Waits until the process and all its descendants have ended.
    async fn all_gone(&mut self, signal: Option<Signal>) -> ChildExit {
        let exit = self.wait().await;
        self.descendants.wait_until_gone(signal).await;
        exit
    }

    async fn signal(&self, signal: Signal) {
        // Until the process is reaped, no other group can have this number. A signal to a group
        // also reaches processes that are just being forked.
        let group = self.process.id().map(|_| self.group);
        if let Some(group) = group {
            // Fails only when no process is left to signal.
            let _gone = kill_process_group(group, signal);
        }
        self.descendants.signal(signal, group).await;
    }
}

/// Reads everything, so that the writer never blocks, and returns the last `bytes_max` bytes.
async fn read_end(mut stdout: ChildStdout, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut end = Vec::with_capacity(bytes_max);
    while stdout.read_buf(&mut end).await? > 0 {
        if end.len() >= 2 * bytes_max {
            end.drain(..end.len() - bytes_max);
        }
    }
    end.drain(..end.len().saturating_sub(bytes_max));
    Ok(end)
}

#[cfg(test)]
mod tests;
