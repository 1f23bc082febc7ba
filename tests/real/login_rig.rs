//! A real authorization server, and a real MCP server that asks for its tokens, behind real TLS.
//!
//! `login/*.mjs` are the servers. They and nginx keep their files in one directory.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Installed,
    harness::daemon::{Daemon, Start, command, finish},
    tls_front::{TlsFront, TlsPort},
};

/// The name of the resource server in metamcp's configuration.
pub(crate) const SERVER: &str = "remote";

/// The name of the file and of the credential with the secret of the client `machine`.
const MACHINE: &str = "machine";

/// The path at which metamcp takes the answers of authorization servers.
const CALLBACK_PATH: &str = "/oauth/callback";

/// The ports at which the resource server answers.
const RESOURCE_PORTS: [TlsPort; 2] = [TlsPort::Http2, TlsPort::Http1];

/// The servers of a test with logins.
pub(crate) struct LoginRig {
    // Declared before the directory, which contains their files.
    authorization_server: Option<NodeServer>,
    _resource_server: NodeServer,
    front: TlsFront,
    installed: Installed,
    directory: TempDir,
    token_seconds: u32,
}

/// One request for a token that the authorization server has answered.
#[derive(Debug)]
pub(crate) struct TokenRequest {
    pub(crate) grant: String,
    pub(crate) resource: Option<String>,
    pub(crate) status: u64,
}

impl LoginRig {
    /// Starts all servers. Access tokens live for this number of seconds.
    pub(crate) fn start(token_seconds: u32) -> Self {
        let installed = Installed::find();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let secret = random_hex();
        let path = directory.path().join(MACHINE);
        fs::write(&path, &secret).expect("written");
        let front = TlsFront::start(directory.path());
        let mut rig = Self {
            authorization_server: None,
            _resource_server: NodeServer::start(
                &installed,
                directory.path(),
                "resource-server.mjs",
                {
                    let mut arguments = vec![front.origin(TlsPort::Authorization)];
                    arguments.extend(resources(&front));
                    arguments
                },
            ),
            front,
            installed,
            directory,
            token_seconds,
        };
        rig.start_authorization_server();
        rig
    }

    /// Starts the authorization server, with the state of an earlier one.
    pub(crate) fn start_authorization_server(&mut self) {
        let mut arguments =
            vec![self.front.origin(TlsPort::Authorization), self.token_seconds.to_string()];
        arguments.extend(resources(&self.front));
        let directory = self.directory.path();
        let server =
            NodeServer::start(&self.installed, directory, "authorization-server.mjs", arguments);
        self.authorization_server = Some(server);
    }

    /// Stops the authorization server. nginx answers in its place, with an error.
    pub(crate) fn stop_authorization_server(&mut self) {
        self.authorization_server = None;
    }

    /// Returns the table of the server for a login with a browser.
    pub(crate) fn server(&self) -> String {
        self.server_at(TlsPort::Http2)
    }

    /// Returns the table of the server at another port.
    pub(crate) fn server_at(&self, port: TlsPort) -> String {
        format!("[servers.{SERVER}]\nurl = \"{}/mcp\"\n", self.front.origin(port))
    }

    /// Returns the table of the server for a login without a person.
    pub(crate) fn machine_server_at(&self, port: TlsPort) -> String {
        let auth = format!(
            r#"auth = {{ client_id = "{MACHINE}", client_secret = "credential:{MACHINE}", grant = "client_credentials" }}"#
        );
        self.server_at(port) + &auth + "\n"
    }

    /// Starts a metamcp that trusts the authority of all servers. Its log has everything.
    pub(crate) fn metamcp(&self, config: &str) -> Daemon {
        self.prepare(config).env("SSL_CERT_FILE", self.ca()).ready()
    }

    /// Prepares a metamcp that only trusts the authorities of its configuration.
    pub(crate) fn prepare(&self, config: &str) -> Start {
        let credentials = self.directory.path().join("credentials");
        fs::create_dir_all(&credentials).expect("a directory");
        fs::copy(self.directory.path().join(MACHINE), credentials.join(MACHINE)).expect("copied");
        let config = format!("[service]\nlog_level = \"trace\"\n\n{config}");
        Daemon::with(config).env("CREDENTIALS_DIRECTORY", &credentials).keep_sockets()
    }

    /// Returns the address of a port, without a path.
    pub(crate) fn origin(&self, port: TlsPort) -> String {
        self.front.origin(port)
    }

    /// Returns the certificate of the authority of all servers.
    pub(crate) fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Logs in with `metamcp login` and a browser, and returns everything that the command printed.
    #[track_caller]
    pub(crate) fn log_in(&self, metamcp: &Daemon) -> String {
        let login = login_command(metamcp, &[]);
        let (printed, succeeds) = self.run_login(login, |url, _| {
            let page = self.browse(&[url]);
            assert_eq!(page["status"], 200, "{page}");
        });
        assert!(succeeds, "metamcp login:\n{printed}");
        printed
    }

    /// Logs in with a browser that cannot reach metamcp, whose last address goes to `--paste`.
    #[track_caller]
    pub(crate) fn log_in_by_paste(&self, metamcp: &Daemon) {
        let mut login = login_command(metamcp, &["--paste"]);
        login.stdin(Stdio::piped());
        let (printed, succeeds) = self.run_login(login, |url, input| {
            let page = self.browse(&[url, CALLBACK_PATH]);
            let address = page["url"].as_str().expect("an address");
            writeln!(input.expect("a pipe"), "{address}").expect("written");
        });
        assert!(succeeds, "metamcp login --paste:\n{printed}");
    }

    /// Runs a login, calls `visit` with the address that it prints, and returns everything that it
    /// printed and whether it succeeded.
    fn run_login(
        &self,
        mut login: Command,
        visit: impl Fn(&str, Option<&mut ChildStdin>),
    ) -> (String, bool) {
        let issuer = self.front.origin(TlsPort::Authorization);
        let (output, errors) = std::io::pipe().expect("a pipe");
        login.stdout(errors.try_clone().expect("a descriptor")).stderr(errors);
        let mut process = login.spawn().expect("the program starts");
        // Closes the writing ends here, so that the output ends with the process.
        drop(login);
        let mut printed = String::new();
        for line in BufReader::new(output).lines() {
            let line = line.expect("text");
            if let Some(at) = line.find(&issuer) {
                let url = line[at..].split_whitespace().next().expect("not empty");
                visit(url, process.stdin.as_mut());
            }
            printed += &line;
            printed.push('\n');
        }
        (printed, process.wait().expect("it can be waited for").success())
    }

    /// Opens an address in a browser, and returns its last page (see `login/browser.mjs`).
    fn browse(&self, arguments: &[&str]) -> Value {
        let mut browser = self.installed.typescript("login/browser.mjs");
        let output = browser.args(arguments).env("NODE_EXTRA_CA_CERTS", self.ca()).output();
        let output = output.expect("the browser starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {errors}"))
    }

    /// Returns all requests for tokens so far.
    pub(crate) fn token_requests(&self) -> Vec<TokenRequest> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let requests = self.lines("token-requests").into_iter().map(|request| TokenRequest {
            grant: text(&request["grant"]).unwrap_or_default(),
            resource: text(&request["resource"]),
            status: request["status"].as_u64().unwrap_or_default(),
        });
        requests.collect()
    }

    /// Returns the number of requests with this grant.
    pub(crate) fn n_grants(&self, grant: &str) -> usize {
        self.token_requests().iter().filter(|request| request.grant == grant).count()
    }

    /// Returns the ids of all tokens that the resource server has accepted.
    pub(crate) fn accepted_tokens(&self) -> BTreeSet<String> {
        let calls = self.lines("calls").into_iter();
        calls.filter_map(|call| call["token"].as_str().map(str::to_owned)).collect()
    }

    /// Returns the number of calls with this text that the resource server has executed.
    pub(crate) fn n_executed(&self, text: &str) -> usize {
        self.lines("calls").iter().filter(|call| call["text"] == text).count()
    }

    /// Returns all tokens, codes, verifiers and client secrets that the authorization server knows.
    pub(crate) fn secrets(&self) -> BTreeSet<String> {
        let secrets = self.lines("secrets").into_iter();
        let mut secrets: BTreeSet<_> =
            secrets.filter_map(|secret| secret["value"].as_str().map(str::to_owned)).collect();
        secrets.insert(fs::read_to_string(self.directory.path().join(MACHINE)).expect("readable"));
        secrets
    }

    /// Returns the number of refresh tokens that the authorization server would still accept.
    pub(crate) fn n_live_refresh_tokens(&self) -> usize {
        let state = fs::read(self.directory.path().join("state.json")).expect("readable");
        let state: Vec<(String, Value)> = serde_json::from_slice(&state).expect("a list of pairs");
        let is_live = |(name, record): &&(String, Value)| {
            name.starts_with("RefreshToken:") && record["payload"]["consumed"].is_null()
        };
        state.iter().filter(is_live).count()
    }

    /// Revokes all logins at the authorization server.
    pub(crate) fn revoke_all(&self) {
        self.administer("/revoke");
    }

    /// Makes the authorization server lose its next answer with a token.
    pub(crate) fn lose_next_token(&self) {
        self.administer("/lose");
    }

    /// Makes the authorization server hold its next answer with a token.
    pub(crate) fn hold_next_token(&self) {
        self.administer("/hold");
    }

    /// Makes the authorization server send the answer that it holds.
    pub(crate) fn release_token(&self) {
        self.administer("/release");
    }

    /// Returns the protocol, the status and the path of each request that nginx has answered at a port.
    pub(crate) fn answered_at(&self, port: TlsPort) -> Vec<[String; 3]> {
        let log = fs::read_to_string(self.directory.path().join("nginx.access")).expect("readable");
        let origin = self.front.origin(port);
        let (_, number) = origin.rsplit_once(':').expect("a port");
        let rows = log.lines().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        rows.filter_map(|row| <[String; 4]>::try_from(row).ok())
            .filter(|[at, ..]| at == number)
            .map(|[_, protocol, status, path]| [protocol, status, path])
            .collect()
    }

    fn administer(&self, path: &str) {
        let socket = self.directory.path().join("admin.sock");
        let mut stream = UnixStream::connect(socket).expect("the authorization server runs");
        write!(stream, "POST {path} HTTP/1.1\r\nHost: rig\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }

    /// Returns the values of a file with one on each line; none if there is no such file yet.
    fn lines(&self, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.directory.path().join(file)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// Returns `metamcp login` for the service.
fn login_command(metamcp: &Daemon, options: &[&str]) -> Command {
    let mut login = command(&["login", SERVER]);
    login.args(options).arg("--socket").arg(metamcp.control());
    login
}

/// Returns the URLs of the resource server.
fn resources(front: &TlsFront) -> impl Iterator<Item = String> {
    RESOURCE_PORTS.map(|port| format!("{}/mcp", front.origin(port))).into_iter()
}

/// Returns a secret of the client `machine`.
fn random_hex() -> String {
    let mut command = Command::new("openssl");
    command.args(["rand", "-hex", "24"]);
    finish(command).1.trim().to_owned()
}

/// A running script of `login`; killed and reaped on drop.
struct NodeServer {
    process: Child,
    /// Kept open, because a server that cannot print ends.
    _output: BufReader<ChildStdout>,
}

impl NodeServer {
    /// Starts a server and waits until it listens.
    fn start(
        installed: &Installed,
        directory: &Path,
        script: &str,
        arguments: impl IntoIterator<Item = String>,
    ) -> Self {
        let log = fs::File::options().create(true).append(true).open(directory.join("servers.log"));
        let mut command = installed.typescript(&format!("login/{script}"));
        command.arg(directory).args(arguments);
        command.env("NODE_EXTRA_CA_CERTS", directory.join("ca.pem"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.expect("a log file"));
        let mut process = command.spawn().expect("the server starts");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let is_ready = output.by_ref().lines().any(|line| line.expect("text") == "ready");
        let server = Self { process, _output: output };
        let log = fs::read_to_string(directory.join("servers.log")).unwrap_or_default();
        assert!(is_ready, "{script} did not start:\n{log}");
        server
    }
}

impl Drop for NodeServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
