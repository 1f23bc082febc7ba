//! A socket unit with `Accept=yes`, as systemd runs it: one fake per connection.

use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt as _, net::UnixListener},
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use super::fake::{Fakes, program};

/// A socket that starts a fake per connection; all are killed and reaped on drop.
pub(crate) struct SocketUnit {
    socket: PathBuf,
    shared: Arc<Mutex<Instances>>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Instances {
    instances: Vec<Child>,
    is_stopped: bool,
}

impl SocketUnit {
    /// Listens on `NAME.sock` next to the logs of `fakes`. Connections beyond `MaxConnections=` are
    /// closed at once.
    pub(crate) fn start(fakes: &Fakes, name: &str, options: &[&str], max: usize) -> Self {
        let socket = fakes.path(&format!("{name}.sock"));
        let listener = UnixListener::bind(&socket).expect("a socket");
        Self::serve(fakes, name, options, max, listener)
    }

    /// Serves on an existing listener for `NAME.sock`.
    pub(crate) fn serve(
        fakes: &Fakes,
        name: &str,
        options: &[&str],
        max: usize,
        listener: UnixListener,
    ) -> Self {
        let socket = fakes.path(&format!("{name}.sock"));
        let shared = Arc::<Mutex<Instances>>::default();
        let log = fakes.path(&format!("{name}.log"));
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let mut shared = accepting.lock().expect("not poisoned");
                if shared.is_stopped {
                    return;
                }
                shared.instances.retain_mut(|one| one.try_wait().expect("waited for").is_none());
                if shared.instances.len() >= max {
                    continue;
                }
                let input = OwnedFd::from(stream.try_clone().expect("a descriptor"));
                let instance = Command::new(program())
                    .args(["stdio", "--log"])
                    .arg(&log)
                    .args(&options)
                    .stdin(input)
                    .stdout(OwnedFd::from(stream))
                    .stderr(Stdio::null())
                    .spawn();
                shared.instances.push(instance.expect("the fake starts"));
            }
        });
        Self { socket, shared, acceptor: Some(acceptor) }
    }

    /// Returns the configuration table of a server that is this unit.
    pub(crate) fn server(&self, name: &str, more: &str) -> String {
        format!("[servers.{name}]\nsocket = {:?}\n{more}\n", self.socket)
    }
}

impl Drop for SocketUnit {
    fn drop(&mut self) {
        {
            let mut shared = self.shared.lock().expect("not poisoned");
            shared.is_stopped = true;
            for instance in &mut shared.instances {
                instance.kill().ok();
                instance.wait().ok();
            }
        }
        let woken = std::os::unix::net::UnixStream::connect(&self.socket);
        if let (Ok(_), Some(acceptor)) = (woken, self.acceptor.take()) {
            acceptor.join().ok();
        }
    }
}

/// Returns the script of a `journalctl` that prints these lines, each with its unit.
pub(crate) fn journal(lines: &[(&str, &str)]) -> String {
    let line = |(unit, message): &(&str, &str)| {
        let line = serde_json::json!({ "_SYSTEMD_UNIT": unit, "MESSAGE": message });
        format!("echo '{line}'\n")
    };
    lines.iter().map(line).collect()
}

/// Creates a directory for `PATH` with a `journalctl`, which logs its arguments to
/// `journalctl.asked` and runs this shell script.
pub(crate) fn journalctl(fakes: &Fakes, script: &str) -> PathBuf {
    let directory = fakes.path("bin");
    fs::create_dir_all(&directory).expect("a directory");
    let asked = fakes.path("journalctl.asked");
    let program = directory.join("journalctl");
    let script = format!("#!/bin/sh\necho \"$@\" >>{}\n{script}\n", asked.display());
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    directory
}
