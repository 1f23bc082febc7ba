//! nginx on a socket that is open before its start.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Stdio},
};

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::process::{Pid, Signal, kill_process};

use crate::process;

/// The program, which is not in the `PATH` of every user.
const PROGRAM: &str = "/usr/sbin/nginx";

/// The descriptor of the socket in nginx.
const SOCKET: i32 = 3;

/// A running nginx; terminated and reaped on drop.
pub(crate) struct Nginx {
    process: Child,
    address: SocketAddr,
}

impl Nginx {
    /// Starts nginx, with files in `directory`. `options` follow the address that it listens on, and
    /// `server` and `http` are the contents of these blocks.
    pub(crate) fn start(directory: &Path, options: &str, server: &str, http: &str) -> Self {
        fs::create_dir_all(directory).expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        // nginx takes it as it is.
        listener.set_nonblocking(true).expect("a socket option");
        let address = listener.local_addr().expect("it is bound");
        let at = directory.display();
        let config = format!(
            "daemon off; user root root; worker_processes auto; pid {at}/pid; error_log {at}/error;
            events {{ worker_connections 1024; }}
            http {{
                access_log off; keepalive_requests 100000000; client_max_body_size 0;
                client_body_temp_path {at}/body; proxy_temp_path {at}/proxy;
                fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
                proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering off;
                {http}
                server {{ listen {address} {options}; {server} }}
            }}\n"
        );
        fs::write(directory.join("nginx.conf"), config).expect("the configuration can be written");
        let socket = FdMapping { parent_fd: OwnedFd::from(listener), child_fd: SOCKET };
        let mut command = process::command(Path::new(PROGRAM));
        command.arg("-p").arg(directory).args(["-c", "nginx.conf"]);
        command.env("NGINX", format!("{SOCKET};")).stdin(Stdio::null()).stderr(Stdio::null());
        let process = command.fd_mappings(vec![socket]).expect("one descriptor").spawn();
        Self {
            process: process.expect("start nginx, which Debian's package of this name has"),
            address,
        }
    }

    /// Returns the address that it listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the process ids of its main process and of its workers.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let main = self.process.id();
        let workers = fs::read_to_string(format!("/proc/{main}/task/{main}/children"));
        let workers = workers.expect("the main process runs");
        let workers = workers.split_whitespace().filter_map(|pid| pid.parse().ok());
        workers.chain([main]).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // SIGTERM, because only the main process knows its workers.
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        let _gone_already = pid.map(|pid| kill_process(pid, Signal::TERM));
        let _reaped = self.process.wait();
    }
}
