//! The edit of a configuration file: found, checked, written, applied by a reload, and undone if the
//! service refuses it.

use std::{
    fs, io,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use rustix::fs::Access;
use serde_json::{Value, json};

use super::{
    CONFIG, FAILED, Failed, UNAVAILABLE, output, quantity,
    service_target::{self, ServiceTarget},
    unwritable,
};
use crate::{
    config::{self, Config, defaults, file_edit::FileEditError, load},
    error_report::chain,
    files::{EditedFile, FileWriteError},
    server_name::ServerName,
    similar_names,
    systemd::own_unit::SystemdUnit,
};

/// The directory of files that Nix generates.
const NIX_STORE: &str = "/nix/store";

/// The configuration file that a command edits.
pub(super) struct ConfigEdit<'a> {
    target: &'a ServiceTarget,
    /// The file.
    pub(super) file: PathBuf,
    edited: EditedFile,
    /// The user and group of the running service, if it reads this file.
    pub(super) service: Option<(u32, u32)>,
    /// Another service runs, which does not read this file.
    is_beside_service: bool,
    /// The service serves the demonstration servers, and is told to read this file instead.
    replaces_demonstration: bool,
}

impl<'a> ConfigEdit<'a> {
    /// Finds the file: the named one, that of the running service, or the usual one.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the service of another user has no file, or the file cannot be read.
    pub(super) fn find(target: &'a ServiceTarget, named: Option<&Path>) -> Result<Self, Failed> {
        let status = running(target)?;
        let read = status.as_ref().and_then(|status| status["configFile"].as_str());
        let replaces_demonstration =
            named.is_none() && status.as_ref().is_some_and(|status| status["configFile"].is_null());
        let file = match (named, read) {
            (Some(named), _) => {
                let named = std::path::absolute(named).map_err(|error| {
                    Failed::new(FAILED, format!("cannot resolve the path of the file: {error}"))
                })?;
                // The service reads credentials beside the path it knows, which may be a link.
                let known = read.map(PathBuf::from).or_else(config::usual_file);
                known.filter(|known| is_same(known, &named)).unwrap_or(named)
            }
            (None, Some(read)) => PathBuf::from(read),
            (None, None) => {
                if replaces_demonstration && !may_choose_file(status.as_ref()) {
                    return Err(demonstration());
                }
                let usual = config::usual_file().or_else(config::own_file);
                usual.ok_or_else(super::configuration::no_file)?
            }
        };
        let is_read =
            replaces_demonstration || read.is_some_and(|read| is_same(Path::new(read), &file));
        let id = |member: &str| status.as_ref()?[member].as_u64().and_then(|id| id.try_into().ok());
        let service = id("uid").zip(id("gid")).filter(|_| is_read);
        let edited = EditedFile::read(file.clone(), defaults::CONFIG_BYTES_MAX).map_err(
            |error| match error.kind() {
                io::ErrorKind::PermissionDenied => unwritable::foreign(&file),
                io::ErrorKind::InvalidData => {
                    Failed::new(CONFIG, format!("`{}` is not UTF-8", file.display()))
                }
                _ => {
                    let text = format!("cannot read configuration `{}`: {error}", file.display());
                    Failed::new(FAILED, text)
                }
            },
        )?;
        let is_beside_service = status.is_some() && !is_read;
        Ok(Self { target, file, edited, service, is_beside_service, replaces_demonstration })
    }

    /// Returns whether Nix generates the file.
    pub(super) fn is_generated(&self) -> bool {
        fs::canonicalize(&self.file).is_ok_and(|file| file.starts_with(NIX_STORE))
    }

    /// Checks that this user may replace the file.
    ///
    /// # Errors
    ///
    /// [`Failed`] with the owner, and with the command that works.
    pub(super) fn check_writable(&self) -> Result<(), Failed> {
        unwritable::check(&self.file)
    }

    /// Returns the text of the file.
    pub(super) fn text(&self) -> &str {
        self.edited.text().unwrap_or_default()
    }

    /// Checks the new text as `metamcp check` does, and returns the configuration.
    ///
    /// # Errors
    ///
    /// [`Failed`] with the mistake and its place.
    pub(super) fn check(&self, text: &str) -> Result<Config, Failed> {
        load::content(&self.file, text).map_err(|error| {
            let was_valid = load::content(&self.file, self.text()).is_ok();
            Failed::new(CONFIG, chain(&error)).hint(match was_valid {
                true => "Nothing is changed: the result is invalid.",
                false => "Nothing is changed: the file was invalid before. Correct it, then run the command again.",
            })
        })
    }

    /// Waits until no other command edits the file, and reads it again.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the file cannot be locked or read.
    pub(super) fn lock(&mut self) -> Result<(), Failed> {
        self.edited.lock().map_err(|error| not_written(&self.file, &error.into()))
    }

    /// Writes the new text, and has the service read it. If the service refuses it, the old text is
    /// restored. Then other commands may edit the file.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the file cannot be written or is refused; nothing has changed then.
    pub(super) fn apply(&mut self, text: &str) -> Result<(), Failed> {
        let locked = self.edited.lock_unchanged();
        locked.map_err(|error| not_written(&self.file, &error))?;
        // Held until the service has read the file, so that a restored text is no other edit's.
        let applied = self.write(text);
        self.edited.unlock();
        applied
    }

    fn write(&self, text: &str) -> Result<(), Failed> {
        let written = self.edited.replace(Some(text));
        written.map_err(|error| not_written(&self.file, &error.into()))?;
        if self.service.is_none() {
            return Ok(());
        }
        let path = self.replaces_demonstration.then_some(&self.file);
        let params = json!({ "configPath": path });
        let Err(refused) = self.target.call_service("config/reload", &params) else {
            return Ok(());
        };
        if let Err(error) = self.edited.replace(self.edited.text()) {
            return Err(
                refused.detail(format!("cannot restore `{}`: {error}", self.file.display()))
            );
        }
        if self.edited.text().is_some() && !self.replaces_demonstration {
            // The service forgets the refusal.
            let _refused_again = self.target.call_service("config/reload", &json!({}));
        }
        Err(refused.detail(format!("`{}` is as before", self.file.display())))
    }

    /// Returns the number of tools of a server that the service has just learned of; `None` if the
    /// server needs a login first.
    ///
    /// # Errors
    ///
    /// [`Failed`] with the reason why it cannot be connected.
    pub(super) fn connect(&self, server: &ServerName) -> Result<Option<usize>, Failed> {
        let tools = self.target.call_service("tools/list", &json!({ "server": server }));
        match tools {
            Ok(tools) => {
                let tools: Value = service_target::value(&tools)?;
                Ok(Some(output::items(&tools).len()))
            }
            Err(failed)
                if failed.hint.as_ref().is_some_and(|hint| hint.contains("metamcp login")) =>
            {
                Ok(None)
            }
            Err(failed) => Err(failed),
        }
    }

    /// Reports an edit that made a server available: connects it, and prints the number of its
    /// tools.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the server cannot be connected. The edit stays.
    pub(super) fn report(
        &self,
        server: &ServerName,
        change: &str,
        is_json: bool,
    ) -> Result<(), Failed> {
        let done = format!("server `{server}` is {change} `{}`", self.file.display());
        if self.service.is_none() {
            return self.report_without_service(server, &done, is_json);
        }
        let connected = self.connect(server);
        if self.replaces_demonstration && !is_json {
            output::eprint(
                "The service reads this file from now on, and no longer serves the demonstration servers.\n",
            );
        }
        if is_json {
            let error = connected.as_ref().err().map(|failed| failed.text.clone());
            let mut answer = self.to_json(server);
            answer["tools"] = json!(connected.as_ref().ok().copied().flatten());
            answer["error"] = json!(error);
            output::print(&format!("{answer:#}\n"));
            return connected.map(drop).map_err(|_| Failed::printed(FAILED));
        }
        match connected {
            Ok(Some(n_tools)) => {
                output::print(&format!("{done}: {}\n", quantity::count(n_tools, "tool")));
                Ok(())
            }
            Ok(None) => {
                output::print(&format!(
                    "{done}. It needs a login: run `metamcp login {server}`.\n"
                ));
                Ok(())
            }
            Err(mut failed) => {
                if let Some(hint) = failed.hint.take() {
                    failed = failed.detail(hint);
                }
                Err(failed.detail(format!("{done}, and stays there")).hint(format!(
                    "Run `metamcp doctor --server {server}` to examine it, or `metamcp remove {server}`."
                )))
            }
        }
    }

    fn report_without_service(
        &self,
        server: &ServerName,
        done: &str,
        is_json: bool,
    ) -> Result<(), Failed> {
        if is_json {
            output::print(&format!("{:#}\n", self.to_json(server)));
        } else {
            output::print(&format!("{done}. {}\n", self.next_step()));
        }
        Ok(())
    }

    /// Returns the sentence about a file that no running service reads.
    pub(super) fn next_step(&self) -> String {
        let file = self.file.display();
        if self.is_beside_service {
            return format!(
                "The running service reads another file: `metamcp reload --config {file}` makes it read this one."
            );
        }
        format!("No service is running: start it with `{}`.", start_command(Some(&self.file)))
    }

    /// Returns the edit as JSON.
    pub(super) fn to_json(&self, server: &ServerName) -> Value {
        json!({ "server": server, "file": self.file, "reloaded": self.service.is_some() })
    }
}

/// Returns the command that starts a service with this configuration file, or the usual one.
pub(super) fn start_command(file: Option<&Path>) -> String {
    let is_usual = |file: &Path| config::usual_file().is_some_and(|usual| is_same(&usual, file));
    match (file.filter(|file| !is_usual(file)), SystemdUnit::installed()) {
        (Some(file), _) => format!("metamcp serve --config {}", file.display()),
        (None, Some(_)) => "systemctl start metamcp".to_owned(),
        (None, None) => "metamcp serve".to_owned(),
    }
}

/// Returns the failure of an edit of the text.
pub(super) fn failed_edit(edit: &ConfigEdit<'_>, error: &FileEditError) -> Failed {
    let file = &edit.file;
    let text = format!("{error} in `{}`", file.display());
    match error {
        FileEditError::Syntax => {
            Failed::new(CONFIG, format!("`{}` is not valid TOML", file.display()))
                .hint(format!("Run `metamcp check {}`.", file.display()))
        }
        FileEditError::Declared(name) => Failed::new(FAILED, text)
            .hint(format!("Choose another name, or run `metamcp remove {name}` first.")),
        FileEditError::NotDeclared(name) => {
            let config = load::content(file, edit.text()).ok();
            let known = config.iter().flat_map(Config::declared_servers);
            let similar =
                similar_names::nearest(name.as_str(), known.map(|(name, _)| name.to_string()));
            let hint = "Run `metamcp servers` to see those that are.";
            Failed::new(FAILED, text).hint(similar_names::did_you_mean(&similar, hint))
        }
    }
}

/// Returns the status of the running service, if one answers.
pub(super) fn running(target: &ServiceTarget) -> Result<Option<Value>, Failed> {
    match target.call_service("daemon/status", &json!({})) {
        Ok(status) => service_target::value(&status).map(Some),
        Err(failed) if failed.code == UNAVAILABLE => {
            let socket = target.path();
            match rustix::fs::access(&socket, Access::WRITE_OK) {
                Err(rustix::io::Errno::ACCESS) => {
                    Err(failed.hint(format!("Run `{}`.", unwritable::sudo_line())))
                }
                // A service that accepts connections but does not answer may read another file.
                Ok(()) | Err(_) => match UnixStream::connect(&socket) {
                    Ok(_) => Err(failed),
                    Err(_) => Ok(None),
                },
            }
        }
        Err(failed) => Err(failed),
    }
}

/// Returns the failure of a file that is not written.
pub(super) fn not_written(path: &Path, error: &FileWriteError) -> Failed {
    let path = path.display();
    match error {
        FileWriteError::Io(error) => {
            Failed::new(FAILED, format!("cannot write `{path}`: {}", chain(error)))
        }
        FileWriteError::Changed => {
            Failed::new(FAILED, format!("another program has changed `{path}` meanwhile"))
                .hint("Nothing is changed: run the command again.")
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

/// Returns whether this user may tell the service which file to read.
fn may_choose_file(status: Option<&Value>) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || status.is_some_and(|status| status["uid"] == user.as_raw())
}

fn demonstration() -> Failed {
    let text = "the running service has no configuration file: it serves the demonstration servers";
    Failed::new(FAILED, text)
        .hint("Only its own user and root can give it one: run this command as one of them.")
}
