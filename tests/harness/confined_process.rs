//! A confined process that tries system calls, and the things that it tries them on.

use std::{
    fs,
    io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    os::unix::{
        fs::{PermissionsExt as _, chown, symlink},
        net::UnixStream,
        process::{CommandExt as _, ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::process::geteuid;
use tempfile::TempDir;

/// An unprivileged user, which exists on every host.
const OTHER_USER: u32 = 65534;

/// The number of calls that are tried at least.
const ATTEMPTS_MIN: usize = 100;

/// The user that a process of a test has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeUser {
    /// The user of the test.
    Own,
    /// A user without privileges. Only root can start a process for it.
    Unprivileged,
}

impl ProbeUser {
    /// Returns the users for which this test can start processes, and reports a missing one.
    #[expect(clippy::print_stderr, reason = "a reader of the test's output learns of the gap")]
    pub(crate) fn all() -> Vec<Self> {
        if geteuid().is_root() {
            return vec![Self::Own, Self::Unprivileged];
        }
        eprintln!("not checked: confinement of root, because this test is not root");
        vec![Self::Own]
    }
}

/// One attempt, as the program describes it.
pub(crate) struct DescribedAttempt {
    pub(crate) name: String,
    /// True if any process can make the call.
    pub(crate) is_possible: bool,
    /// The layer besides the filter that refuses it.
    pub(crate) layer: String,
}

/// The program, and a directory that it may change.
pub(crate) struct ConfinedProbe {
    program: PathBuf,
    user: ProbeUser,
    directory: TempDir,
    /// The unchanged things.
    before: Vec<String>,
}

impl ConfinedProbe {
    /// Prepares a directory with a file, for processes of `user`.
    pub(crate) fn new(user: ProbeUser) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let things = directory.path().join("things");
        fs::create_dir(&things).expect("created");
        fs::write(things.join("file"), "content").expect("written");
        symlink("file", things.join("link")).expect("linked");
        let mut program = super::fake::program().with_file_name("confined_probe");
        if user == ProbeUser::Unprivileged {
            // The directory of the build may be out of its reach.
            let readable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(directory.path(), readable).expect("it is ours");
            let copy = directory.path().join("confined_probe");
            // A copy by this process would be open for writing in processes that other tests start
            // meanwhile, and such a program cannot be executed.
            let copied = Command::new("cp").args([&program, &copy]).status().expect("it starts");
            assert!(copied.success(), "{copied}");
            program = copy;
            for path in [things.clone(), things.join("file")] {
                chown(path, Some(OTHER_USER), Some(OTHER_USER)).expect("this is root");
            }
        }
        let before = described(&things);
        Self { program, user, directory, before }
    }

    /// Returns the attempts that the program knows.
    pub(crate) fn attempts(&self) -> Vec<DescribedAttempt> {
        let output = self.command(&["list"]).output().expect("it starts");
        let list = String::from_utf8(output.stdout).expect("text");
        let attempt = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
            [name, possible, layer] => DescribedAttempt {
                name: name.to_owned(),
                is_possible: possible == "possible",
                layer: layer.to_owned(),
            },
            _ => panic!("{line}"),
        };
        list.lines().map(attempt).collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        if self.user == ProbeUser::Unprivileged {
            command.uid(OTHER_USER).gid(OTHER_USER);
        }
        command.args(arguments).env_clear();
        command
    }

    /// Starts the program with a socket as descriptor 0 and a file for its other output.
    pub(crate) fn start(&self, arguments: &[&str]) -> ProbeProcess {
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        ours.set_read_timeout(Some(super::DEADLINE)).expect("a socket has timeouts");
        let output = tempfile::tempfile().expect("a file");
        let mut command = self.command(arguments);
        command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
        command.stdout(output.try_clone().expect("a descriptor")).stderr(output);
        let child = command.spawn().expect("it starts");
        ProbeProcess { child, socket: BufReader::new(ours) }
    }

    /// Tries one call in a mode of the program.
    pub(crate) fn attempt(&self, mode: &str, name: &str) -> ProbeOutcome {
        let things = self.things();
        self.start(&[mode, name, things.to_str().expect("UTF-8")]).finish()
    }

    /// Makes each call in a process that is confined as a script is. Returns what goes wrong: a
    /// process that is not killed, or a changed file.
    pub(crate) fn wrong_outcomes_under_all_layers(&self) -> Vec<String> {
        let attempts = self.attempts();
        assert!(attempts.len() >= ATTEMPTS_MIN, "{} attempts", attempts.len());
        let wrong = |DescribedAttempt { name, .. }: DescribedAttempt| {
            let outcome = self.attempt("confined", &name);
            let is_only_line = outcome.text.lines().count() == 1;
            let is_confined = is_only_line && outcome.text.starts_with("confined ");
            let is_right = outcome.is_killed_by_filter() && is_confined && self.is_unchanged();
            (!is_right).then(|| format!("{name}: {outcome:?}"))
        };
        attempts.into_iter().filter_map(wrong).collect()
    }

    /// Makes each call that another layer than the filter must refuse, without the filter. Returns
    /// what goes wrong: a call that does not fail, or a changed file.
    pub(crate) fn wrong_outcomes_without_filter(&self) -> Vec<String> {
        let mut process = self.start(&["serve"]);
        let support = KernelSupport::of(&mut process);
        process.kill();
        let attempts = self.attempts();
        let n_attempts = attempts.len();
        let refused: Vec<_> =
            attempts.into_iter().filter(|attempt| support.refuses(attempt)).collect();
        assert!(2 * refused.len() > n_attempts, "{} of {n_attempts}", refused.len());
        let wrong = |DescribedAttempt { name, .. }: DescribedAttempt| {
            let outcome = self.attempt("unfiltered", &name);
            let has_failed = outcome.text.lines().nth(1).is_some_and(|l| l.starts_with("failed "));
            (!(has_failed && self.is_unchanged())).then(|| format!("{name}: {outcome:?}"))
        };
        refused.into_iter().filter_map(wrong).collect()
    }

    /// Returns whether the file, the link and the directory are as they were.
    pub(crate) fn is_unchanged(&self) -> bool {
        described(&self.things()) == self.before
    }

    fn things(&self) -> PathBuf {
        self.directory.path().join("things")
    }
}

/// Returns the names, modes, owners and contents of everything in a directory.
fn described(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("readable").map(|entry| entry.expect("readable"));
    let describe = |entry: fs::DirEntry| {
        let path = entry.path();
        let metadata = fs::symlink_metadata(&path).expect("it exists");
        // A call without confinement may have made the file unreadable.
        let content = metadata.is_file().then(|| fs::read(&path).ok());
        let (mode, modified) =
            (metadata.permissions().mode(), metadata.modified().expect("a time"));
        format!("{:?} {mode:o} {modified:?} {content:?}", entry.file_name())
    };
    let mut described: Vec<String> = entries.map(describe).collect();
    described.sort();
    described
}

/// A running process of the program.
pub(crate) struct ProbeProcess {
    child: Child,
    socket: BufReader<UnixStream>,
}

/// The end of a process, and everything that it wrote to descriptor 0.
#[derive(Debug)]
pub(crate) struct ProbeOutcome {
    status: ExitStatus,
    pub(crate) text: String,
}

impl ProbeOutcome {
    /// Returns whether the filter of system calls has killed the process.
    pub(crate) fn is_killed_by_filter(&self) -> bool {
        self.status.signal() == Some(libc::SIGSYS)
    }

    /// Returns whether the process ended by itself.
    pub(crate) fn is_success(&self) -> bool {
        self.status.success()
    }
}

impl ProbeProcess {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads a line that the process writes to descriptor 0.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.socket.read_line(&mut line).expect("readable");
        line.trim_end().to_owned()
    }

    /// Writes to descriptor 0 of the process.
    pub(crate) fn write(&mut self, text: &str) {
        self.socket.get_mut().write_all(text.as_bytes()).expect("the process reads");
    }

    /// Kills this process, and reads until no process has its socket.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child");
        self.rest()
    }

    /// Ends the input of the process, and returns its outcome.
    pub(crate) fn finish(mut self) -> ProbeOutcome {
        self.socket.get_mut().shutdown(std::net::Shutdown::Write).expect("connected");
        let text = self.rest();
        let status = self.child.wait().expect("a child");
        ProbeOutcome { status, text }
    }

    /// Reads until no process has the socket.
    fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => {}
            // A process that ends with unread input resets the connection.
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
        }
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// The support of this kernel, which a confined process reports.
#[derive(Clone, Copy)]
pub(crate) struct KernelSupport {
    landlock_version: u32,
    refuses_executable_memory: bool,
}

impl KernelSupport {
    /// Reads the report of a process that has confined itself.
    pub(crate) fn of(process: &mut ProbeProcess) -> Self {
        let line = process.line();
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["confined", version, memory] => Self {
                landlock_version: version.parse().expect("a number"),
                refuses_executable_memory: memory == "1",
            },
            _ => panic!("{line}"),
        }
    }

    /// Returns whether a layer besides the filter must refuse an attempt. Reports an attempt that
    /// needs a newer kernel.
    #[expect(clippy::print_stderr, reason = "a reader of the test's output learns of the gap")]
    fn refuses(self, attempt: &DescribedAttempt) -> bool {
        let is_refused = match attempt.layer.as_str() {
            "filter" => return false,
            "always" => true,
            "executable-memory" => self.refuses_executable_memory,
            layer => {
                let version = layer.strip_prefix("landlock-").expect("a layer");
                version.parse::<u32>().expect("a number") <= self.landlock_version
            }
        };
        if !is_refused {
            let DescribedAttempt { name, layer, .. } = attempt;
            eprintln!("not checked: {name} needs a kernel with {layer}");
        }
        is_refused
    }
}
