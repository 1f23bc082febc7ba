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
pub enum SpawnError {
    /// There is no such program.
    #[error("start `{command}`: no such program")]
    NotFound {
        /// The program.
        command: String,
    },
    /// There is no file at the path.
    #[error("start `{command}`: there is no such file")]
    NoFile {
        /// The path.
        command: String,
    },
    /// A directory in the path does not exist.
    #[error("start `{command}`: there is no directory `{}`", missing.display())]
    NoPath {
        /// The path.
        command: String,
        /// Its first part that is not a directory.
        missing: PathBuf,
    },
    /// The program is a whole shell command line.
    #[error("start `{command}`: no such program")]
    CommandLine {
        /// The command line.
        command: String,
        /// The program at the start of the line.
        program: String,
    },
    /// The working directory does not exist.
    #[error("start `{command}`: no working directory `{}`", cwd.display())]
    NoDirectory {
        /// The program.
        command: String,
        /// The directory.
        cwd: PathBuf,
    },
    /// The script names an interpreter that does not exist.
    #[error("start `{command}`: its interpreter `{}` is not there", interpreter.escape_debug())]
    NoInterpreter {
        /// The script.
        command: String,
        /// The interpreter, as its first line names it.
        interpreter: String,
    },
    /// The binary names a loader that does not exist.
    #[error("start `{command}`: the loader that it was built for is not there")]
    NoLoader {
        /// The program.
        command: String,
    },
    /// The path is a directory.
    #[error("start `{command}`: it is a directory")]
    Directory {
        /// The directory.
        command: String,
    },
    /// The file may not be executed.
    #[error("start `{command}`: it is not executable")]
    NotExecutable {
        /// The program.
        command: String,
    },
    /// The file has no format that the system can run.
    #[error(
        "start `{command}`: it is neither a program of this system nor a script with an interpreter line"
    )]
    NoProgram {
        /// The file.
        command: String,
    },
    /// The arguments and variables exceed the limit of the system.
    #[error("start `{command}`: its arguments and variables are too long")]
    TooLong {
        /// The program.
        command: String,
    },
    /// The limit on processes is reached.
    #[error("start `{command}`: there are as many processes as there may be")]
    TooManyProcesses {
        /// The program.
        command: String,
    },
    /// The limit on open files is reached.
    #[error("start `{command}`: there are as many open files as there may be")]
    TooManyFiles {
        /// The program.
        command: String,
    },
    /// The system refused for another reason.
    #[error("start `{command}`")]
    Os {
        /// The program.
        command: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl SpawnError {
    /// Returns whether another attempt right after this one may succeed without a change by the
    /// operator.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::TooManyProcesses { .. } | Self::TooManyFiles { .. } | Self::Os { .. } => true,
            Self::NotFound { .. }
            | Self::NoFile { .. }
            | Self::NoPath { .. }
            | Self::CommandLine { .. }
            | Self::NoDirectory { .. }
            | Self::NoInterpreter { .. }
            | Self::NoLoader { .. }
            | Self::Directory { .. }
            | Self::NotExecutable { .. }
            | Self::NoProgram { .. }
            | Self::TooLong { .. } => false,
        }
    }

    /// Derives the reason why `program` did not start from the error of the system.
    pub(super) fn explain(program: &ChildProgram, source: io::Error) -> Self {
        let command = program.command.clone();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR) => Self::missing(program),
            Some(Errno::ACCESS | Errno::PERM) => match found(program) {
                Some(file) if file.is_dir() => Self::Directory { command },
                _ => Self::NotExecutable { command },
            },
            Some(Errno::ISDIR) => Self::Directory { command },
            Some(Errno::NOEXEC) => Self::NoProgram { command },
            Some(Errno::TOOBIG) => Self::TooLong { command },
            Some(Errno::AGAIN) => Self::TooManyProcesses { command },
            Some(Errno::MFILE | Errno::NFILE) => Self::TooManyFiles { command },
            _ => Self::Os { command, source },
        }
    }

    /// Returns the error for a missing directory, program, or file that the program needs.
    fn missing(program: &ChildProgram) -> Self {
        let command = program.command.clone();
        if let Some(cwd) = program.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Self::NoDirectory { command, cwd: cwd.clone() };
        }
        if let Some(file) = found(program) {
            let mut start = Vec::new();
            let read = File::open(&file)
                .and_then(|file| file.take(INTERPRETER_LINE_BYTES_MAX).read_to_end(&mut start));
            if read.is_ok() && start.starts_with(b"\x7fELF") {
                return Self::NoLoader { command };
            }
            if let Some(interpreter) = interpreter(&start) {
                return Self::NoInterpreter { command, interpreter };
            }
        }
        match command.split_once(char::is_whitespace) {
            // A path may have spaces in it.
            Some((first, _))
                if !first.is_empty() && (!first.contains('/') || is_file(first, program)) =>
            {
                let first = first.to_owned();
                Self::CommandLine { command, program: first }
            }
            _ if command.contains('/') => {
                let path = place(program).join(&command);
                let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
                above.retain(|part| !part.as_os_str().is_empty());
                match above.into_iter().rev().find(|part| !part.is_dir()) {
                    Some(missing) => Self::NoPath { command, missing: missing.to_owned() },
                    None => Self::NoFile { command },
                }
            }
            _ => Self::NotFound { command },
        }
    }

    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> Cow<'static, str> {
        let hint = match self {
            Self::NotFound { .. } => {
                "Install the program, or write its absolute path as `command`: the service's PATH is not your shell's."
            }
            Self::NoFile { .. } => {
                "Install the program, or correct the path in `command`; a link there may lead nowhere."
            }
            Self::NoPath { .. } => "Install the program, or correct the path in `command`.",
            Self::CommandLine { command, program } => {
                let args: Vec<&str> = command.split_whitespace().skip(1).collect();
                return format!(
                    "`command` is the program alone: write `command = {program:?}` and `args = {args:?}`."
                )
                .into();
            }
            Self::NoDirectory { .. } => "Create the directory or change `cwd`.",
            Self::NoInterpreter { interpreter, .. } if interpreter.ends_with('\r') => {
                "Save the script with the line ends of Unix: its first line ends with a carriage return."
            }
            Self::NoInterpreter { .. } => {
                "Install the interpreter, or change the first line of the script: `#!/usr/bin/env NAME` finds it in PATH."
            }
            Self::NoLoader { .. } => {
                "It was built for another system: use a package of this one. NixOS needs nix-ld for it."
            }
            Self::Directory { .. } => "Name the program in it as `command`.",
            Self::NotExecutable { .. } => {
                "Make the file executable, or name its interpreter as `command` and the file in `args`."
            }
            Self::NoProgram { .. } => {
                "Begin a script with `#!` and its interpreter, or name that as `command` and the file in `args`; a binary must be built for this machine."
            }
            Self::TooLong { .. } => "Shorten `args` and `env` of this server.",
            Self::TooManyProcesses { .. } => {
                "Raise `LimitNPROC=` or `TasksMax=` of the service, or run fewer servers."
            }
            Self::TooManyFiles { .. } => {
                "Raise `LimitNOFILE=` of the service, or run fewer servers."
            }
            Self::Os { .. } => "Check `command` for this server in the configuration.",
        };
        hint.into()
    }
}

/// Returns the directory that a relative path of the program starts from.
fn place(program: &ChildProgram) -> &Path {
    program.cwd.as_deref().unwrap_or(Path::new(""))
}

fn is_file(path: &str, program: &ChildProgram) -> bool {
    place(program).join(path).is_file()
}

/// Returns the file to start, if it exists.
fn found(program: &ChildProgram) -> Option<PathBuf> {
    let command = Path::new(&program.command);
    if program.command.contains('/') {
        return Some(place(program).join(command)).filter(|file| file.exists());
    }
    let path = program.env.get("PATH").map(OsString::from).or_else(|| std::env::var_os("PATH"))?;
    std::env::split_paths(&path).map(|place| place.join(command)).find(|file| file.exists())
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
    use crate::child::Child;

    fn program(command: &str) -> ChildProgram {
        ChildProgram { command: command.into(), args: vec![], env: BTreeMap::new(), cwd: None }
    }

    /// Starts a program that cannot start, and returns the message and the hint.
    #[track_caller]
    fn refused(program: &ChildProgram) -> (String, String) {
        let error = Child::spawn(program).expect_err("it cannot be started");
        (error.to_string(), error.hint().into_owned())
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named_with_what_is_missing() {
        let (message, _) = refused(&program("no-such-program"));
        assert_eq!(message, "start `no-such-program`: no such program");

        let (message, hint) = refused(&program("npx -y  some-server"));
        assert_eq!(message, "start `npx -y  some-server`: no such program");
        assert!(hint.contains(r#"`command = "npx"` and `args = ["-y", "some-server"]`"#), "{hint}");

        let nowhere = ChildProgram { cwd: Some("/no/such".into()), ..program("sh") };
        assert_eq!(refused(&nowhere).0, "start `sh`: no working directory `/no/such`");

        assert_eq!(refused(&program("/etc")).0, "start `/etc`: it is a directory");
    }

    #[tokio::test]
    async fn a_path_is_told_with_the_part_of_it_that_is_not_there() {
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
            assert_eq!(message, format!("start `{command}`: {expected}"));
            assert!(!hint.contains("PATH") && hint.contains("correct the path"), "{hint}");
        }
        let relative = ChildProgram { cwd: Some(directory.path().into()), ..program("bin/server") };
        assert_eq!(refused(&relative).0, format!("start `bin/server`: {}", no_directory("/bin")));
        assert_eq!(refused(&program("./server")).0, "start `./server`: there is no such file");

        let (_, hint) = refused(&program("/bin/sh -c true"));
        assert!(hint.contains(r#"`command = "/bin/sh"`"#), "{hint}");
    }

    #[tokio::test]
    async fn a_script_that_cannot_be_run_is_named_with_its_interpreter() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |text: &[u8], mode| {
            let path = directory.path().join("server");
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            ChildProgram { cwd: Some(directory.path().into()), ..program("./server") }
        };
        let (message, hint) = refused(&file(b"#! /no/such/python -u\nprint()\n", 0o755));
        assert_eq!(message, "start `./server`: its interpreter `/no/such/python` is not there");
        assert!(hint.contains("#!/usr/bin/env"), "{hint}");

        let (message, hint) = refused(&file(b"#!/bin/sh\r\necho\r\n", 0o755));
        assert_eq!(message, "start `./server`: its interpreter `/bin/sh\\r` is not there");
        assert!(hint.contains("carriage return"), "{hint}");

        let (message, hint) = refused(&file(b"#!/bin/sh\n", 0o644));
        assert_eq!(message, "start `./server`: it is not executable");
        assert!(hint.contains("Make the file executable"), "{hint}");

        let in_path = file(b"#!/no/such/node\n", 0o755);
        let path = directory.path().display().to_string();
        let in_path = ChildProgram { env: [("PATH".into(), path)].into(), ..in_path };
        let (message, _) = refused(&ChildProgram { command: "server".into(), ..in_path });
        assert_eq!(message, "start `server`: its interpreter `/no/such/node` is not there");
    }

    #[tokio::test]
    async fn arguments_that_are_too_long_are_named() {
        let long = ChildProgram { args: vec!["x".repeat(4 << 20)], ..program("true") };
        let (message, hint) = refused(&long);
        assert_eq!(message, "start `true`: its arguments and variables are too long");
        assert!(hint.contains("`args`"), "{hint}");
    }

    #[test]
    fn a_spawn_error_of_the_system_is_explained_with_its_remedy() {
        for (errno, words, remedy) in [
            (Errno::NOEXEC, "neither a program of this system nor a script", "`#!`"),
            (Errno::TOOBIG, "too long", "`env`"),
            (Errno::AGAIN, "as many processes", "`LimitNPROC=`"),
            (Errno::MFILE, "as many open files", "`LimitNOFILE=`"),
            (Errno::NFILE, "as many open files", "`LimitNOFILE=`"),
            (Errno::PERM, "not executable", "executable"),
            (Errno::IO, "start `true`", "`command`"),
        ] {
            let error = SpawnError::explain(&program("true"), errno.into());
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.hint().contains(remedy), "{}", error.hint());
        }
    }

    #[test]
    fn a_binary_without_its_loader_is_told_from_a_file_that_is_not_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("server");
        fs::write(&path, b"\x7fELF\x02\x01\x01").expect("written");
        let error = SpawnError::explain(&program(&path.display().to_string()), Errno::NOENT.into());
        assert!(matches!(error, SpawnError::NoLoader { .. }), "{error}");
    }
}
