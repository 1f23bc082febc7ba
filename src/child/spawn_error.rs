//! The reasons why a program did not start.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::process::ChildProgram;

/// The bytes of a file that are read for its interpreter line. Source: `execve(2)`.
const INTERPRETER_LINE_BYTES_MAX: u64 = 255;

/// The error of a program that did not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start `{command}`")]
pub struct SpawnError {
    command: String,
    #[source]
    fault: SpawnFault,
}

/// The reason why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnFault {
    /// There is no such program in `PATH`.
    #[error("no such program")]
    NotFound,
    /// There is no file at the path.
    #[error("there is no such file")]
    NoFile,
    /// A directory in the path does not exist: its first part that is not a directory.
    #[error("there is no directory `{}`", .0.display())]
    NoPath(PathBuf),
    /// The command is a whole shell command line, which starts with this program.
    #[error("no such program")]
    CommandLine(String),
    /// The working directory does not exist.
    #[error("no working directory `{}`", .0.display())]
    NoDirectory(PathBuf),
    /// The script names this interpreter, which does not exist.
    #[error("its interpreter `{}` does not exist", .0.escape_debug())]
    NoInterpreter(String),
    /// The binary names a loader that does not exist.
    #[error("the loader that it was built for does not exist")]
    NoLoader,
    /// The path is a directory.
    #[error("it is a directory")]
    Directory,
    /// The file may not be executed.
    #[error("it is not executable")]
    NotExecutable,
    /// The file has no format that the system can run.
    #[error("it is neither a program of this system nor a script with an interpreter line")]
    NoProgram,
    /// The arguments and variables exceed the limit of the system.
    #[error("its arguments and variables are too long")]
    TooLong,
    /// The limit on processes is reached.
    #[error("the limit on processes is reached")]
    TooManyProcesses,
    /// The limit on open files is reached.
    #[error("the limit on open files is reached")]
    TooManyFiles,
    /// The system refused for another reason.
    #[error(transparent)]
    Os(io::Error),
}

impl SpawnError {
    /// Returns the error of `command`.
    pub fn new(command: &str, fault: SpawnFault) -> Self {
        Self { command: command.to_owned(), fault }
    }

    /// Returns whether another attempt right after this one may succeed without a change by the
    /// operator.
    pub fn is_transient(&self) -> bool {
        use SpawnFault::{Os, TooManyFiles, TooManyProcesses};
        matches!(self.fault, TooManyProcesses | TooManyFiles | Os(_))
    }

    /// Derives the reason why `program` did not start from the error of the system.
    pub(super) fn explain(program: &ChildProgram, source: io::Error) -> Self {
        let fault = match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR) => SpawnFault::missing(program),
            Some(Errno::ACCESS | Errno::PERM) => match found(program) {
                Some(file) if file.is_dir() => SpawnFault::Directory,
                _ => SpawnFault::NotExecutable,
            },
            Some(Errno::ISDIR) => SpawnFault::Directory,
            Some(Errno::NOEXEC) => SpawnFault::NoProgram,
            Some(Errno::TOOBIG) => SpawnFault::TooLong,
            Some(Errno::AGAIN) => SpawnFault::TooManyProcesses,
            Some(Errno::MFILE | Errno::NFILE) => SpawnFault::TooManyFiles,
            _ => SpawnFault::Os(source),
        };
        Self::new(&program.command, fault)
    }

    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> Cow<'static, str> {
        let hint = match &self.fault {
            SpawnFault::NotFound => {
                "Install the program, or write its absolute path as `command`: the service's PATH is not your shell's."
            }
            SpawnFault::NoFile => {
                "Install the program, or correct the path in `command`; a link there may lead nowhere."
            }
            SpawnFault::NoPath(_) => "Install the program, or correct the path in `command`.",
            SpawnFault::CommandLine(program) => {
                let args: Vec<&str> = self.command.split_whitespace().skip(1).collect();
                return format!(
                    "`command` is the program alone: write `command = {program:?}` and `args = {args:?}`."
                )
                .into();
            }
            SpawnFault::NoDirectory(_) => "Create the directory or change `cwd`.",
            SpawnFault::NoInterpreter(interpreter) if interpreter.ends_with('\r') => {
                "Save the script with the line ends of Unix: its first line ends with a carriage return."
            }
            SpawnFault::NoInterpreter(_) => {
                "Install the interpreter, or change the first line of the script: `#!/usr/bin/env NAME` finds it in PATH."
            }
            SpawnFault::NoLoader => {
                "Use a package that was built for this system. NixOS needs nix-ld for other programs."
            }
            SpawnFault::Directory => "Write a program in that directory as `command`.",
            SpawnFault::NotExecutable => {
                "Make the file executable, or write its interpreter as `command` and the file in `args`."
            }
            SpawnFault::NoProgram => {
                "Begin a script with `#!` and its interpreter, or write that as `command` and the file in `args`; a binary must be built for this machine."
            }
            SpawnFault::TooLong => "Shorten `args` and `env` of this server.",
            SpawnFault::TooManyProcesses => {
                "Raise `LimitNPROC=` or `TasksMax=` of the service, or run fewer servers."
            }
            SpawnFault::TooManyFiles => {
                "Raise `LimitNOFILE=` of the service, or run fewer servers."
            }
            SpawnFault::Os(_) => "Check `command` for this server in the configuration.",
        };
        hint.into()
    }
}

impl SpawnFault {
    /// Returns the fault of a missing directory, program, or file that the program needs.
    fn missing(program: &ChildProgram) -> Self {
        let command = &program.command;
        if let Some(cwd) = program.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Self::NoDirectory(cwd.clone());
        }
        if let Some(file) = found(program) {
            let mut start = Vec::new();
            let read = File::open(&file)
                .and_then(|file| file.take(INTERPRETER_LINE_BYTES_MAX).read_to_end(&mut start));
            if read.is_ok() && start.starts_with(b"\x7fELF") {
                return Self::NoLoader;
            }
            if let Some(interpreter) = interpreter(&start) {
                return Self::NoInterpreter(interpreter);
            }
        }
        match command.split_once(char::is_whitespace) {
            // A path may have spaces in it.
            Some((first, _))
                if !first.is_empty() && (!first.contains('/') || is_file(first, program)) =>
            {
                Self::CommandLine(first.to_owned())
            }
            _ if command.contains('/') => {
                let path = base(program).join(command);
                let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
                above.retain(|part| !part.as_os_str().is_empty());
                let missing = above.into_iter().rev().find(|part| !part.is_dir());
                missing.map_or(Self::NoFile, |missing| Self::NoPath(missing.to_owned()))
            }
            _ => Self::NotFound,
        }
    }
}

/// Returns the directory that a relative path of the program starts from.
fn base(program: &ChildProgram) -> &Path {
    program.cwd.as_deref().unwrap_or(Path::new(""))
}

fn is_file(path: &str, program: &ChildProgram) -> bool {
    base(program).join(path).is_file()
}

/// Returns the file to start, if it exists.
fn found(program: &ChildProgram) -> Option<PathBuf> {
    let command = Path::new(&program.command);
    if program.command.contains('/') {
        return Some(base(program).join(command)).filter(|file| file.exists());
    }
    let path = program.env.get("PATH").map(OsString::from).or_else(|| std::env::var_os("PATH"))?;
    std::env::split_paths(&path).map(|directory| directory.join(command)).find(|file| file.exists())
}

/// Returns the interpreter that the first line of a script names.
fn interpreter(start: &[u8]) -> Option<String> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let name = line.trim_start_matches([' ', '\t']).split([' ', '\t']).next()?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::{child::Child, error_report::chain};

    fn program(command: &str) -> ChildProgram {
        ChildProgram { command: command.into(), args: vec![], env: BTreeMap::new(), cwd: None }
    }

    /// Starts a program that cannot start, and returns the message and the hint.
    #[track_caller]
    fn refused(program: &ChildProgram) -> (String, String) {
        let error = Child::spawn(program).expect_err("it cannot be started");
        (chain(&error), error.hint().into_owned())
    }

    #[tokio::test]
    async fn a_missing_program_is_reported_with_the_missing_part() {
        let (message, _) = refused(&program("no-such-program"));
        assert_eq!(message, "cannot start `no-such-program`: no such program");

        let (message, hint) = refused(&program("npx -y  some-server"));
        assert_eq!(message, "cannot start `npx -y  some-server`: no such program");
        assert!(hint.contains(r#"`command = "npx"` and `args = ["-y", "some-server"]`"#), "{hint}");

        let nowhere = ChildProgram { cwd: Some("/no/such".into()), ..program("sh") };
        assert_eq!(refused(&nowhere).0, "cannot start `sh`: no working directory `/no/such`");

        assert_eq!(refused(&program("/etc")).0, "cannot start `/etc`: it is a directory");
    }

    #[tokio::test]
    async fn a_missing_path_is_reported_with_its_missing_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().display();
        fs::write(directory.path().join("file"), "").expect("written");
        std::os::unix::fs::symlink("/no/such", directory.path().join("link")).expect("linked");
        let no_file = || "there is no such file".to_owned();
        let no_directory = |part: &str| format!("there is no directory `{root}{part}`");
        for (command, expected) in [
            ("/server", no_file()),
            ("/link", no_file()),
            ("/my server", no_file()),
            ("/file/server", no_directory("/file")),
            ("/no/such/server", no_directory("/no")),
            ("/no/such server", no_directory("/no")),
        ] {
            let command = format!("{root}{command}");
            let (message, hint) = refused(&program(&command));
            assert_eq!(message, format!("cannot start `{command}`: {expected}"));
            assert!(!hint.contains("PATH") && hint.contains("correct the path"), "{hint}");
        }
        let relative = ChildProgram { cwd: Some(directory.path().into()), ..program("bin/server") };
        assert_eq!(
            refused(&relative).0,
            format!("cannot start `bin/server`: {}", no_directory("/bin"))
        );
        assert_eq!(
            refused(&program("./server")).0,
            "cannot start `./server`: there is no such file"
        );

        let (_, hint) = refused(&program("/bin/sh -c true"));
        assert!(hint.contains(r#"`command = "/bin/sh"`"#), "{hint}");
    }

    #[tokio::test]
    async fn an_unusable_script_is_reported_with_its_interpreter() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |text: &[u8], mode| {
            let path = directory.path().join("server");
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            ChildProgram { cwd: Some(directory.path().into()), ..program("./server") }
        };
        let (message, hint) = refused(&file(b"#! /no/such/python -u\nprint()\n", 0o755));
        assert_eq!(
            message,
            "cannot start `./server`: its interpreter `/no/such/python` does not exist"
        );
        assert!(hint.contains("#!/usr/bin/env"), "{hint}");

        let (message, hint) = refused(&file(b"#!/bin/sh\r\necho\r\n", 0o755));
        assert_eq!(message, "cannot start `./server`: its interpreter `/bin/sh\\r` does not exist");
        assert!(hint.contains("carriage return"), "{hint}");

        let (message, hint) = refused(&file(b"#!/bin/sh\n", 0o644));
        assert_eq!(message, "cannot start `./server`: it is not executable");
        assert!(hint.contains("Make the file executable"), "{hint}");

        let in_path = file(b"#!/no/such/node\n", 0o755);
        let path = directory.path().display().to_string();
        let in_path = ChildProgram { env: [("PATH".into(), path)].into(), ..in_path };
        let (message, _) = refused(&ChildProgram { command: "server".into(), ..in_path });
        assert_eq!(
            message,
            "cannot start `server`: its interpreter `/no/such/node` does not exist"
        );
    }

    #[tokio::test]
    async fn arguments_that_are_too_long_are_reported() {
        let long = ChildProgram { args: vec!["x".repeat(4 << 20)], ..program("true") };
        let (message, hint) = refused(&long);
        assert_eq!(message, "cannot start `true`: its arguments and variables are too long");
        assert!(hint.contains("`args`"), "{hint}");
    }

    #[test]
    fn a_spawn_error_of_the_system_is_explained_with_its_remedy() {
        for (errno, words, remedy) in [
            (Errno::NOEXEC, "neither a program of this system nor a script", "`#!`"),
            (Errno::TOOBIG, "too long", "`env`"),
            (Errno::AGAIN, "limit on processes", "`LimitNPROC=`"),
            (Errno::MFILE, "limit on open files", "`LimitNOFILE=`"),
            (Errno::NFILE, "limit on open files", "`LimitNOFILE=`"),
            (Errno::PERM, "not executable", "executable"),
            (Errno::IO, "cannot start `true`", "`command`"),
        ] {
            let error = SpawnError::explain(&program("true"), errno.into());
            assert!(chain(&error).contains(words), "{}", chain(&error));
            assert!(error.hint().contains(remedy), "{}", error.hint());
        }
    }

    #[test]
    fn a_binary_without_its_loader_is_not_reported_as_a_missing_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("server");
        fs::write(&path, b"\x7fELF\x02\x01\x01").expect("written");
        let error = SpawnError::explain(&program(&path.display().to_string()), Errno::NOENT.into());
        assert!(matches!(error.fault, SpawnFault::NoLoader), "{error:?}");
    }
}
