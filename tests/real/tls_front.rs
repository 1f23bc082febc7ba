//! Real TLS in front of plain servers: nginx, and certificates of an authority of our own.

use std::{
    fs,
    net::TcpListener,
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
};

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::process::{Pid, Signal, kill_process};

/// The program, which is not in the `PATH` of every user.
const NGINX: &str = "/usr/sbin/nginx";

/// The certificate that clients with the authority accept.
const GOOD: &str = "good";

/// One port of nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsPort {
    /// The authorization server.
    Authorization,
    /// The resource server over HTTP/1.1 and HTTP/2.
    Http2,
    /// The resource server over HTTP/1.1 only.
    Http1,
    /// The resource server with a certificate that has expired.
    Expired,
    /// The resource server with a certificate for another name.
    WrongName,
    /// The resource server with a certificate of an authority that no client knows.
    UnknownAuthority,
    /// The resource server over TLS 1.1 only.
    OldProtocol,
}

impl TlsPort {
    const ALL: [Self; 7] = [
        Self::Authorization,
        Self::Http2,
        Self::Http1,
        Self::Expired,
        Self::WrongName,
        Self::UnknownAuthority,
        Self::OldProtocol,
    ];

    /// Returns the name of the certificate, and the settings of the port besides.
    fn settings(self) -> (&'static str, &'static str) {
        match self {
            Self::Authorization | Self::Http2 | Self::Http1 => (GOOD, ""),
            Self::Expired => ("expired", ""),
            Self::WrongName => ("elsewhere", ""),
            Self::UnknownAuthority => ("unknown", ""),
            // OpenSSL refuses signatures of TLS 1.1 at its usual level of security.
            Self::OldProtocol => (GOOD, "ssl_protocols TLSv1.1; ssl_ciphers DEFAULT:@SECLEVEL=0;"),
        }
    }

    /// Returns the socket of the server behind the port.
    fn upstream(self) -> &'static str {
        match self {
            Self::Authorization => "authorization-server.sock",
            _ => "resource-server.sock",
        }
    }
}

/// A running nginx with all ports.
pub(crate) struct TlsFront {
    process: Child,
    ports: Vec<(TlsPort, u16)>,
}

impl TlsFront {
    /// Starts nginx in front of the servers whose sockets are in `directory`.
    pub(crate) fn start(directory: &Path) -> Self {
        create_certificates(directory);
        let (sockets, ports): (Vec<OwnedFd>, Vec<(TlsPort, u16)>) = TlsPort::ALL
            .into_iter()
            .map(|port| {
                let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
                // nginx takes it as it is.
                listener.set_nonblocking(true).expect("a socket option");
                let number = listener.local_addr().expect("it is bound").port();
                (OwnedFd::from(listener), (port, number))
            })
            .unzip();
        fs::write(directory.join("nginx.conf"), configuration(directory, &ports)).expect("written");
        let mappings: Vec<_> = sockets
            .into_iter()
            .zip(3..)
            .map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd })
            .collect();
        let inherited: String = mappings.iter().map(|it| format!("{};", it.child_fd)).collect();
        let mut command = Command::new(NGINX);
        command.arg("-p").arg(directory).args(["-c", "nginx.conf"]).env("NGINX", inherited);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.fd_mappings(mappings).expect("each descriptor once").spawn();
        Self { process: process.expect("nginx starts"), ports }
    }

    /// Returns the address of a port, without a path.
    pub(crate) fn origin(&self, port: TlsPort) -> String {
        let (_, number) = self.ports.iter().find(|(it, _)| *it == port).expect("all are there");
        format!("https://localhost:{number}")
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        // SIGTERM, because only the main process knows its workers.
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process id"), Signal::TERM).ok();
        self.process.wait().ok();
    }
}

/// Returns the configuration of nginx.
fn configuration(directory: &Path, ports: &[(TlsPort, u16)]) -> String {
    let at = directory.display();
    let servers: String = ports
        .iter()
        .map(|(port, number)| {
            let (certificate, settings) = port.settings();
            let http2 = if *port == TlsPort::Http1 { "" } else { "http2" };
            let upstream = port.upstream();
            format!(
                "server {{ listen 127.0.0.1:{number} ssl {http2}; {settings}
                    ssl_certificate {at}/{certificate}.pem; ssl_certificate_key {at}/{certificate}.key;
                    location / {{ proxy_pass http://unix:{at}/{upstream}; }} }}\n"
            )
        })
        .collect();
    format!(
        "daemon off; user root root; worker_processes 1; pid {at}/nginx.pid; error_log {at}/nginx.error;
        events {{ worker_connections 1024; }}
        http {{
            log_format versions '$server_port $server_protocol $status $uri'; access_log {at}/nginx.access versions;
            client_body_temp_path {at}/nginx-body; proxy_temp_path {at}/nginx-proxy;
            fastcgi_temp_path {at}/nginx-fastcgi; uwsgi_temp_path {at}/nginx-uwsgi; scgi_temp_path {at}/nginx-scgi;
            proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 1h;
            proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Host $http_host;
            proxy_set_header X-Forwarded-Proto https; proxy_set_header Connection '';
            {servers}
        }}\n"
    )
}

/// Creates `ca.pem`, and the certificates and keys of all ports.
fn create_certificates(directory: &Path) {
    for authority in ["ca", "other-ca"] {
        let subject = format!("/CN={authority}");
        let output = format!("{authority}.pem");
        let arguments = ["-x509", "-days", "2", "-subj", &subject, "-out", &output];
        create_key(directory, authority, &arguments);
    }
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    sign(directory, GOOD, "ca", "2", names);
    // `openssl x509` of Debian 12 has no other way to set an end in the past.
    sign(directory, "expired", "ca", "-1", names);
    sign(directory, "elsewhere", "ca", "2", "subjectAltName=DNS:elsewhere.example");
    sign(directory, "unknown", "other-ca", "2", names);
}

/// Creates a certificate with these subject names, signed by an authority.
fn sign(directory: &Path, name: &str, authority: &str, days: &str, subject_names: &str) {
    let request = format!("{name}.request");
    create_key(directory, name, &["-new", "-subj", &format!("/CN={name}"), "-out", &request]);
    fs::write(directory.join("extensions"), subject_names).expect("written");
    let (ca, ca_key) = (format!("{authority}.pem"), format!("{authority}.key"));
    let output = format!("{name}.pem");
    let mut arguments = vec!["x509", "-req", "-in", &request, "-CA", &ca, "-CAkey", &ca_key];
    arguments.extend(["-days", days, "-extfile", "extensions", "-out", &output]);
    openssl(directory, &arguments);
}

/// Creates the key `NAME.key`, and what `arguments` of `openssl req` say.
fn create_key(directory: &Path, name: &str, arguments: &[&str]) {
    let key = format!("{name}.key");
    let mut all = vec!["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    all.extend(["-keyout", &key]);
    all.extend(arguments);
    openssl(directory, &all);
}

fn openssl(directory: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").current_dir(directory).args(arguments).output();
    let output = output.expect("openssl starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments:?}: {errors}");
}
