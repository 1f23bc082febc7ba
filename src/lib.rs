//! metamcp: one service per host that runs each MCP server once and serves it to every client.
//!
//! This page is the architecture. `metamcp --help` and `docs/` are the manual; start at the README.
//!
//! ```text
//!  clients              ingress            view   forward ── call ── pool ── connection ── server
//!  Claude Code, Cursor ─┐                 direct ┐   │         │       │         │
//!  Codex, Inspector ────┼─ HTTP :12011 ─── meta  ├───┘         │     slot      mux ─ stdio ─ child
//!  anything with curl ──┘       │         passthrough ┘      retry  supervisor   └ HTTP ─ upstream
//!                            session         │             ◀── announcements ──┘
//!                                         catalog ── search
//!  metamcp status, call ─┐
//!  metamcp stdio ────────┴─ control.sock ── control ──┬── status, view
//!                                                     └── task ── view
//! ```
//!
//! # The path of one request
//!
//! A client POSTs `tools/call` for `git__log`.
//!
//! 1. [`ingress`] checks host, origin, token and size. [`view::ViewChoice`] is the table from paths
//!    to views. [`protocol::Message::parse`] scans the body for the few values that metamcp rewrites;
//!    all other bytes pass as they are. The client's [`session::Session`] registers the request, so
//!    that a cancellation finds it.
//! 2. [`view::Views`] dispatches to the view. The direct view finds the server by the prefix, renames
//!    the tool to `log`, and hands both to the [`forward::Forwarder`], which returns an exchange.
//! 3. [`call::Exchange`] makes attempts. Each passes the server's [`pool::BreakerGate`], and takes a
//!    [`pool::ConnectionLease`] from the [`pool::ServerSlot`]: shared, exclusive or per session, as
//!    the server's `sharing` says. Without a connection, one attempt serves all waiting requests.
//! 4. [`connection::Connection::call`] replaces request id and progress token by unique ones, in the
//!    mux's module, and hands the message to the link: a pipe to a [`child`], or a POST in the
//!    pinned session.
//! 5. The reader of the link finds the waiter by the id of the answer. The ingress restores the
//!    client's id byte for byte, and the answer leaves as JSON, or as an event stream if it takes
//!    long.
//!
//! A client that disconnects drops its reply and everything below it; the server receives a
//! cancellation. A server that ends fails its waiters, each with the id of its own request.
//!
//! # Terminology
//!
//! | noun | meaning |
//! |---|---|
//! | account | the user or token that capacity is shared between; its members are sessions and connections |
//! | admission | the decision which request gets one of `pool.size` permits, and which idle connection is evicted for it |
//! | alias | the name of a tool whose `SERVER__NAME` is too long for clients |
//! | authorizer | the tokens of one server, and the way to the next ones |
//! | breaker | the state that keeps requests from a server that failed repeatedly |
//! | catalog | the lists of all servers, in memory and on disk, also of servers without a connection |
//! | census | the clients that are present at one moment, by name |
//! | child | a process that metamcp spawned and that speaks MCP over its pipes |
//! | caller | the client of a call, as its record names it |
//! | call record | one call as operators see it: who, what, how long, and why not |
//! | cold start | the time in which servers connect for the first time |
//! | connection | one live MCP session with a server, shared by clients through a mux |
//! | connector | the trust, the proxy and the policy for addresses with which connections to one server are made |
//! | continuation | the code that turns the outcome of an exchange into an answer, or into the next request |
//! | client profile | the description of one client: its files, and the form of its declarations |
//! | control interface | JSON-RPC for operators, on a Unix socket or at `/rpc` |
//! | credential | a secret in a file of its own: in systemd's directory, or beside the configuration |
//! | demand | the log level and the resources that clients want a connection to report |
//! | directory | the tools of all servers, by name and by search |
//! | era | `legacy` (versions up to 2025-11-25, with a handshake) or `modern` (2026-07-28, without) |
//! | exchange | one request and its answer, over as many attempts and connections as it takes |
//! | finding | one result of `metamcp doctor`: its severity, its reason, its remedy, and its repair if doctor can apply it |
//! | forwarder | the services that lead from a request and a slot to an exchange |
//! | forwarded headers | the headers of a client's request that go on to a server |
//! | generation | the number of a connection, or of a catalog snapshot, that grows with each new one |
//! | held call | a call of a legacy server that waits for the answers of a modern client |
//! | holder | the account and the member that a permit, a stream or a request counts for |
//! | issuer | the URL that identifies an authorization server |
//! | item | a tool, prompt, resource or resource template |
//! | lease | the use of a connection by one request |
//! | link | the transport below a connection: stdio or HTTP |
//! | log ring | the last log lines of the service, in memory |
//! | login | the agreement of a person, or of an operator, that metamcp uses a server in their name |
//! | mux | the table that maps ids on a connection to waiting requests |
//! | notice | a notification that belongs to no request, such as `list_changed` |
//! | observed call | a call under way, whose end makes its record |
//! | origin | the scheme, host and port of a URL |
//! | outage | the time in which a server has no connection, although one is wanted or was lost |
//! | outbox | the buffered notices of one session |
//! | owner | the client that a connection belongs to, where it is not shared |
//! | permit | the right to have one connection, request or stream; dropping it returns it |
//! | priming | connecting servers with unknown lists once the service is ready |
//! | provisioning | starting a declared server because a client asks for what it does |
//! | reload | the replacement of the configuration while the service runs |
//! | server | one declared `[servers.NAME]`, whatever runs it |
//! | session | the state of one client between its requests |
//! | slot | the place of one server in the pool, with its connections |
//! | snapshot | an immutable view of the catalog with its search index |
//! | supervisor | the driver that connects, watches, closes and reconnects one connection |
//! | task | a call or a script that continues without its caller, or a server's own MCP task |
//! | unit | a systemd unit that runs a server, reached over its socket |
//! | upstream | an MCP server over HTTP |
//! | view | what a client sees at a path: `direct`, `meta`, or one server; operators have one, too |
//!
//! # The modules, in reading order
//!
//! A module uses those above it and never one below; `tests/layering.rs` holds that.
//!
//! | module | contents |
//! |---|---|
//! | [`server_name`] | server names and their grammar |
//! | [`capacity_holder`] | the parties that capacity is shared between |
//! | [`peer_process`] | the process at the other end of a connection, as the kernel reports it |
//! | [`backoff`] | pauses between attempts |
//! | [`similar_names`] | known names that are similar to an unknown one |
//! | [`error_report`] | an error and its causes on one line |
//! | [`time_format`] | times and durations as people read them |
//! | [`files`] | private files, trusted files, atomic replacement, the user's directories |
//! | [`descriptor_limit`] | the limit on open descriptors: raised for the service, restored for children |
//! | [`name_sources`] | the sources of users, groups and hosts in a static program |
//! | [`single_flight`] | work that runs once for all callers that want it |
//! | [`protocol`] | JSON-RPC, MCP payloads, framings: bytes in, bytes out |
//! | [`era`] | the translation between the two eras of the protocol |
//! | [`unsent_messages`] | lines that wait for a slow reader |
//! | [`search`] | the search over tools: words, synonyms, vectors and patterns |
//! | [`config`] | the TOML file, its defaults and its diagnostics |
//! | [`memory_budget`] | the memory that messages may take, over all clients together |
//! | [`http_body`] | HTTP bodies, in and out |
//! | [`resident_memory`] | resident memory that the process returns to the system |
//! | [`fair_share`] | fair shares: queues for permits, and evictable permits |
//! | [`redact`] | foreign text made safe to show: no secrets, no control characters |
//! | [`compute_pool`] | computations beside the event loops, in turn for each account |
//! | [`import`] | the clients and their files; their configurations, converted to that of metamcp |
//! | [`connect`] | the entry of metamcp in the files of clients |
//! | [`confine`] | the confinement of a process before it runs untrusted code; dropped capabilities |
//! | [`systemd`] | inherited sockets, notifications, the service's own unit |
//! | [`telemetry`] | logs, also in memory, measured durations, and the liveness of the event loops |
//! | [`accept_loop`] | the accept loop, with a permit for each connection |
//! | [`tls`] | the certificate of the service |
//! | [`bearer_token`] | the token that clients must send |
//! | [`reconfigure`] | the reload: what has changed, and the trait of the parts that apply it |
//! | [`sandbox`] | the process that runs one script: its engine and its pipe |
//! | [`child`] | stdio servers: child processes and systemd units |
//! | [`fault_class`] | kinds of failures, and which of them the breaker counts |
//! | [`call_record`] | the records of calls: who called what, how long it took, and why it failed |
//! | [`breaker`] | the circuit breaker of a server |
//! | [`http_client`] | the one HTTP client: TLS, HTTP/2, proxies, and the addresses that it may connect to |
//! | [`trace_export`] | the spans of calls, sent to a collector |
//! | [`oauth`] | logins at servers: discovery, registration, tokens and their refresh |
//! | [`embedding`] | vectors of texts from an embedding endpoint |
//! | [`connection`] | one shared MCP connection: mux, stdio, HTTP, handshake |
//! | [`pool`] | all connections: slots, supervisors, admission, idle timeouts |
//! | [`call`] | the only way from a request to a server, with the retries that are safe |
//! | [`session`] | the state of clients between requests |
//! | [`script`] | scripts: their operations, their record, and their end |
//! | [`forward`] | the services of all views: from a request and a server to an exchange |
//! | [`catalog`] | the lists of all servers, also without a connection |
//! | [`tool`] | the tools of servers: ids, resolution, search, checked arguments, errors for models |
//! | [`provision`] | servers that start when a client asks for what they do |
//! | [`typegen`] | TypeScript declarations of tools |
//! | [`meta`] | the meta-tools: definitions, arguments, execution, replies |
//! | [`view`] | the views: merged, one server, operators; the table of paths, and the dispatch |
//! | [`status`] | the state of the service, for systemd, probes and operators |
//! | [`metrics`] | the metrics of the service, for Prometheus |
//! | [`task`] | calls and scripts that continue without their callers |
//! | [`status_page`] | the page that shows the service in a browser |
//! | [`ingress`] | HTTP, and MCP over a pipe |
//! | [`control`] | the control interface |
//! | [`bridge`] | a stdio client in front of a service that may restart |
//! | [`demo`] | three demonstration servers, built on rmcp |
//! | [`daemon`] | the service from its start to its end |
//! | [`doctor`] | diagnosis of a host, with remedies |
//! | [`manual`] | the manual pages, and the parts of `docs/` that follow from code |
//! | [`cli`] | the command line |
//!
//! # Invariants
//!
//! - `protocol`, `config` and `search` know no transport, no clock and no task.
//! - Only `child::process` starts servers. Every child has a process group and an environment
//!   marker; both are terminated with it. metamcp connects to a unit and never signals it.
//! - Only `connection` writes to a server, and only `call` sends requests of clients and operators
//!   through it. The catalog and the supervisor send requests of metamcp itself.
//! - An id is never used twice on a connection, so an answer cannot reach another request.
//! - A request is sent again only if it provably was not executed, if it only reads or its tool is
//!   declared idempotent, or if the operator allows it ([`config::RetryPolicy`]).
//! - One request starts its server twice at most.
//! - No message deeper than [`protocol::nesting_depth::DEPTH_MAX`] levels passes.
//! - There are never more connections than permits, including those that open or close.
//! - The kind of a failure is a type, never a text ([`fault_class`]). An answer is not a failure.
//! - Every queue, body, cache, wait, retry and computation has a named bound, in
//!   [`config::defaults`] unless only one file uses it. At a bound, the largest holder makes room.
//! - Memory that another party sizes counts against one [`memory_budget`].
//! - Work that a stranger sizes and that can exceed 1 ms runs in the [`compute_pool`].
//! - A URL that came over the network leads only to the internet, unless the declared server is on
//!   this host or a private network ([`http_client::AddressPolicy`]).
//! - A slow or hostile client loses its own request or stream, and delays no other client.
//! - Only `ingress` chooses an HTTP status.
//! - A reload checks the file, certificate, token and addresses before it changes anything. Its parts implement [`reconfigure::Reconfigure`];
//!   one that the daemon forgets does not compile.
//! - Where a token is set, only clients that send it are served.
//! - The kernel identifies the caller on the control socket and on loopback ([`peer_process`]).
//!   Methods for operators are refused to a server that metamcp started.
//! - Snapshots and indexes are immutable. What the disk says is checked as if a server had sent it.
//! - Nothing that a client sends is run, and no undeclared server is started.
//! - No secret is printed: literals of `env` and `headers`, tokens and private keys are redacted.
//! - No lock is held across an await. Every task has an owner that waits for it.
//! - `READY=1` follows the start of the accept loops. The watchdog is fed while all event loops turn.

pub mod accept_loop;
pub mod backoff;
pub mod bearer_token;
pub mod breaker;
pub mod bridge;
pub mod call;
pub mod call_record;
pub mod capacity_holder;
pub mod catalog;
pub mod child;
pub mod cli;
pub mod compute_pool;
pub mod config;
pub mod confine;
pub mod connect;
pub mod connection;
pub mod control;
pub mod daemon;
pub mod demo;
pub mod descriptor_limit;
pub mod doctor;
pub mod embedding;
pub mod era;
pub mod error_report;
pub mod fair_share;
pub mod fault_class;
pub mod files;
pub mod forward;
pub mod http_body;
pub mod http_client;
pub mod import;
pub mod ingress;
pub mod manual;
pub mod memory_budget;
pub mod meta;
pub mod metrics;
pub mod name_sources;
pub mod oauth;
pub mod peer_process;
pub mod pool;
pub mod protocol;
pub mod provision;
pub mod reconfigure;
pub mod redact;
pub mod resident_memory;
pub mod sandbox;
pub mod script;
pub mod search;
pub mod server_name;
pub mod session;
pub mod similar_names;
pub mod single_flight;
pub mod status;
pub mod status_page;
pub mod systemd;
pub mod task;
pub mod telemetry;
pub mod time_format;
pub mod tls;
pub mod tool;
pub mod trace_export;
pub mod typegen;
pub mod unsent_messages;
pub mod view;
