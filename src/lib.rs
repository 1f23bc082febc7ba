//! metamcp: one service per host that runs each MCP server once and serves it to every client.
//!
//! This page is the architecture. `metamcp --help` is the manual, the README the way in.
//!
//! # The idea
//!
//! > One live connection per MCP server, owned by the host, shared by every client.
//!
//! Every session of an MCP client starts its own copy of every server. Here a *server* is declared
//! once, *connected* once unless it is declared to need more, and what clients see at a path is only
//! a *view* over the connections.
//!
//! ```text
//!  clients              ingress            view           call ── pool ── connection ── server
//!  Claude Code, Cursor ─┐                 direct ┐          │       │         │
//!  Codex, Inspector ────┼─ HTTP :12011 ─── meta  ├──────────┤     slot      mux ─ stdio ─ child
//!  anything with curl ──┘       │         passthrough ┘   replay  generation └── HTTP ── upstream
//!                            session         │               ◀── announcements ──┘
//!                                         catalog ── search
//!  metamcp status, call ─┐
//!  metamcp stdio ────────┴─ control.sock ── control ──┬── status, view
//!                                                     └── task ── view
//! ```
//!
//! A client that only speaks over standard input and output comes in by the control socket: its
//! [`bridge`] attaches there, and [`ingress`] serves it as any other.
//!
//! # One request
//!
//! A client POSTs `tools/call` for `git__log`.
//!
//! 1. [`ingress`] checks host, origin, token and size, and has the body scanned by
//!    [`protocol::Message::parse`]. The scan finds the few values that hops rewrite; the message is
//!    never turned into a model, so nothing that we do not know is lost. The client's
//!    [`session::Session`] notes that the request runs, so that a cancellation finds it.
//! 2. [`view`] finds the server by the name, and renames the tool to `log`.
//! 3. [`call::Exchange`] asks the server's [`pool::BreakerGate`] whether it may be asked anything: one that
//!    failed again and again is left alone for a while ([`breaker`]). Then it asks the
//!    [`pool::ServerSlot`] for a [`pool::ConnectionLease`]: of the one connection that all share, or, as the server
//!    declares its `sharing`, of one that nobody else uses now, or of the client's own. Where there
//!    is none it is dialled: once, however many wait for it ([`single_flight`]).
//! 4. [`connection::Connection::call`] gives the request an id that is unique on the connection, and
//!    its progress token too, remembers who waits, and hands it to the link: the pipe of a
//!    [`child`], be it a process or a unit, or a POST with the one pinned session.
//! 5. The link's reader finds who waits by the id of the answer; that of a POST is the asker's own
//!    task. The id that the client chose is put back, byte for byte, and the answer goes out: as JSON
//!    when it comes soon, else as an event stream with progress, questions of the server and signs
//!    of life.
//!
//! A client that goes away drops its reply, and with it everything down to the waiter; the server
//! gets a cancellation, and its answer is drained. One that can resume a stream has some time to come
//! back: a task drives such a reply, and what comes of it is kept for whoever reads it. A server that
//! goes away fails its waiters, each with its own id.
//!
//! # What belongs to no request
//!
//! A notice of a changed list, an updated resource, a log message: the connection announces it, and
//! [`session::SessionRegistry`] puts it into the outbox of every session that it is for, whose GET stream
//! [`ingress`] reads. Between them, the [`catalog`] reads a list again of which its server says that it
//! has changed, and lets the notice through only if clients know another one; each of them hears of
//! it once in a moment, however often that is said.
//!
//! What a session has only once, the log level and the watched resources, clients share: each
//! [`session::Session`] keeps what its client wants, and the pool brings the connection in line with
//! all of that together ([`pool::ClientDemand`]), each new one again.
//!
//! A server may ask its client something only on a connection that is not shared. Such a
//! [`connection::ServerRequest`] goes to the client whose request caused it, and its answer back. What a
//! client can be asked is in its session id, which is signed ([`session::SessionTicket`]): a process that
//! never saw it knows the client all the same.
//!
//! # What is known of a server that is not there
//!
//! The [`catalog`] keeps each list beyond the connection that it was read on, and on the disk beyond
//! the process: one file for each server, under a digest of how it is declared, that is checked as if
//! its server had sent it. So a merged list, a search and a description start nothing, and are there
//! at once after a restart. A server of which nothing is known is asked, all of them at once and each
//! for a bounded time. When a server is connected, whoever needed it, its lists are read and it has
//! the last word: clients that were shown others are told.
//!
//! All that is known at one moment is a [`catalog::CatalogSnapshot`]: immutable, behind one pointer, with a
//! generation that is another one whenever a definition is. It is made away from the loops, and only
//! what has changed of it anew.
//!
//! # Hundreds of tools behind a handful
//!
//! At `/meta` a client sees a few tools of our own, whatever the servers offer ([`meta`]). It calls
//! `mcp_discover` for what it wants to do, and `mcp_call` for `git/log`.
//!
//! 1. [`view`] reads the arguments by the definition of our tool. What makes no sense is an error of
//!    the protocol; all else that fails is a result, which the model reads.
//! 2. [`search`] ranks the tools of a snapshot: by their words, by what those mean as people wrote it
//!    down, and by how much of the request they cover. Vectors of an [`embedding`] model count too
//!    where one is declared: those of tools are learned in the background, that of a query is waited
//!    for only as long as nobody notices, and without them the search goes on.
//! 3. A call finds its tool in the snapshot, has its arguments held against the schema, and becomes
//!    the request that the client could have sent to the server itself: with the same exchange,
//!    progress, questions and cancellation. A [`call::CallContinuation`] decides what becomes of the outcome: the
//!    answer with the fields that were asked for, a preview of one that is large, whose rest is kept for
//!    a while, or the next step of a chain, which is one exchange for its client.
//! 4. `mcp_provision` looks where no tool fits ([`provision`]): servers that the operator has declared
//!    for that are added to the pool when somebody asks for what they do, as any reload would add them;
//!    what a registry lists is told and never run.
//!
//! # The era of a server
//!
//! From protocol version 2026-07-28 on there is no handshake, no session and no server that asks:
//! each request stands for itself. A dial sends `server/discover` first, and `initialize` to a server
//! that does not know it; what came of it is remembered for that version of the server. Requests of
//! clients of the other era are translated by [`era`], so that a connection gets only what its
//! server understands, and what such a server has to tell comes on one subscription of ours.
//!
//! Where a server asks, the eras differ most. A modern one answers with its questions: the exchange
//! puts them to its client and sends the request again ([`call`]). A legacy one waits in the middle of
//! the call, for a client that only ever asks: its call is held until the client comes back with what
//! it was asked ([`session::SessionRegistry::hold`]).
//!
//! # The life of a connection
//!
//! Each connection has a seat, one of `pool.size` for all servers together, from the moment at which
//! its dial begins until its process is reaped or its session ended. Where no seat is free, the idle
//! connection that was used longest ago is closed to make room, unless its server is kept for ever;
//! where all are in use, requests wait in a queue. One that nobody has used for its time is closed,
//! at that very moment. What decides all that is pure, `pool::{life, seats, idle}`; the roster and
//! the keepers drive it.
//!
//! A connection that ends is dialled again by the next request. That of a server that is to be there
//! always, the pool dials itself, with growing pauses; while the breaker is open, such a dial is its
//! probe.
//!
//! # The operator
//!
//! What the service does and what its servers offer is asked on the [`control`] socket: a line for each
//! request, several at a time. A call there goes the way of one through `/meta`, but for the session:
//! [`view::operator`] finds the tool, has its arguments checked, and makes the exchange. What concerns
//! the service as a whole, to read the configuration again or to stop, reaches the main loop of the
//! [`daemon`] over a queue, and is done there as if a signal had asked for it. Where the operator wants
//! it, [`ingress`] carries the same over HTTP.
//!
//! # The modules, in reading order
//!
//! A module uses those above it and never one below; `tests/layering.rs` holds that.
//!
//! | module | what it is |
//! |---|---|
//! | [`name`] | server names and their grammar |
//! | [`holder`] | the parties that capacity is shared between |
//! | [`peer`] | the clients at the other end of connections, as the kernel knows them |
//! | [`backoff`] | pauses between attempts |
//! | [`error_report`] | an error and its causes on one line |
//! | [`files`] | files that are replaced whole, kept for the service itself or for others, and where a user has them |
//! | [`descriptor_limit`] | the limit on open descriptors: raised for the service, restored for children |
//! | [`single_flight`] | work that is done once for all who want it |
//! | [`protocol`] | JSON-RPC, MCP payloads, framings: bytes in, bytes out |
//! | [`era`] | the translation between the two eras of the protocol |
//! | [`unsent_messages`] | lines that wait to be written |
//! | [`search`] | tools found by words, by what they mean, and by pattern |
//! | [`config`] | the TOML file, its defaults and its diagnostics |
//! | [`budget`] | the memory that messages may take, over all clients together |
//! | [`body`] | HTTP bodies: messages in pieces out, whole ones in |
//! | [`resident_memory`] | resident memory that the process gives back to the system |
//! | [`share`] | fair shares: permits that are waited for, and places that can be taken away |
//! | [`redact`] | text from elsewhere, made fit to be shown |
//! | [`compute_pool`] | computations beside the event loops, in turn for each party |
//! | [`import`] | what other clients have declared, read from their files and written as ours |
//! | [`systemd`] | inherited sockets, notices, capabilities, and the unit that a service is in |
//! | [`telemetry`] | logs, and marks that the loops turn |
//! | [`acceptor`] | accept connections, each with a seat |
//! | [`tls`] | the certificate that clients are shown |
//! | [`bearer_token`] | the token that clients must bring |
//! | [`child`] | stdio servers: launch, drain, see off |
//! | [`fault`] | kinds of failures, and which of them count |
//! | [`breaker`] | when a server that fails is left alone |
//! | [`web`] | a client of plain web APIs that answer JSON |
//! | [`embedding`] | vectors of texts, made by a model elsewhere |
//! | [`connection`] | one live MCP link, shared: the mux, stdio, HTTP, the handshake |
//! | [`pool`] | one slot per server: its connections, as it shares them, the dials that make them, and for how long they stay |
//! | [`call`] | the only way from a request to a server, with the replays that are safe |
//! | [`session`] | what is remembered of a client between its requests |
//! | [`catalog`] | what all servers offer, also those that are not there |
//! | [`provision`] | servers that are added when somebody asks for what they do |
//! | [`meta`] | the meta tools: their definitions, arguments, checks and errors |
//! | [`view`] | what a client sees: all servers merged, one as it is, or their tools behind a few of ours |
//! | [`status`] | what the service tells about itself |
//! | [`typegen`] | the types of tools, in TypeScript |
//! | [`task`] | calls that go on without whoever made them |
//! | [`ingress`] | the edge: HTTP, and MCP over a pipe |
//! | [`control`] | what operators ask, on the control socket or over HTTP, and who asks there |
//! | [`bridge`] | a client on standard input and output, and a service that may be restarted |
//! | [`demo`] | three demonstration servers, built on rmcp |
//! | [`daemon`] | the service from its start to its end |
//! | [`doctor`] | what is wrong with a host, and what to do about it |
//! | [`cli`] | the command line |
//!
//! # Invariants
//!
//! - `protocol`, `config` and `search` know no transport, no clock and no task; `meta` is told the
//!   time, and sends nothing.
//! - Only `child::process` starts servers. (`cli::launch` starts the service itself, which is no child
//!   of a command, and `cli::logs` becomes `journalctl`.) Every child has a process group of its own and a mark
//!   that what it starts inherits; both are seen off with it. Its standard error is always read. A
//!   server in a unit of systemd is not ours to signal: it is connected to and hung up on.
//! - Only `connection` writes to a server; every request comes through `call`. The `doctor`, which is
//!   no service, asks on connections of its own.
//! - An id is never used twice on a connection, so an answer cannot reach anybody but its asker.
//! - A request is sent a second time only if it provably was not executed
//!   ([`connection::RequestFailure::is_replayable`]), or if it was interrupted before anything came of it and
//!   only reads, or its tool declares that it may be repeated; or if the operator has declared so
//!   for its server ([`config::RetryPolicy`]).
//! - One request has its server started twice at most, whatever fails.
//! - No message that is nested deeper than [`protocol::nesting_depth::DEPTH_MAX`] levels passes: not from a
//!   client, not from a server, and not where metamcp has assembled it.
//! - There are never more connections than seats, those included that are made or closed just now.
//!   Whoever waits for a seat or a dial may leave, and nobody else loses anything by it.
//! - What kind a failure is of is told by its type, never by a text ([`fault`]). An answer is none,
//!   also if it says that something has failed.
//! - What a server sends for one client waits in a queue with a bound; a client that does not take it
//!   loses its request or its stream, and holds up nobody.
//! - Free capacity is never refused. At a bound, the largest holder makes room with what it left idle,
//!   or requests wait their turn: the holder with the fewest is next ([`share`]). One permit of an
//!   exclusive server is left for others that have used it of late.
//! - Bytes whose size another party chooses count against one [`budget`]. Where it is used up, what is kept
//!   for comfort goes first, then the newest asker is refused; no other client notices.
//! - A TLS handshake is made in the task of its connection, within a bound. A private key is never
//!   printed.
//! - Where a token is declared, nothing is done for a request that does not bring it but to say so; only
//!   whether the service lives is told to everybody. The token is kept nowhere.
//! - Only `ingress` chooses an HTTP status.
//! - Every queue, body, cache, wait and retry has a bound with a name, in [`config::defaults`] unless
//!   it is a detail of one file.
//! - Work that a stranger sizes has a bound, and where it can take over a millisecond it is done by
//!   [`compute_pool`] and never on an event loop. Checking arguments spends steps: where they are spent, the
//!   call goes to its server unchecked, and the caller is told.
//! - No lock is held across an await. Every task has an owner that waits for it.
//! - READY=1 is sent once the accept loops are started; the watchdog is fed only while all loops turn.
//! - A server that this process has started is refused what belongs to the operator. Which process
//!   asks is known by what the kernel says of its socket ([`peer`], [`child::process_ancestry`]).
//! - The service is not dumpable: no process of its user reads its memory and its environment.
//! - Who asks on the control socket is known by what the kernel says of them. One connection there can
//!   neither use up the seats nor wait for ever; nor can many, as long as they have nothing running.
//! - What is known of a server is answered without starting it. It is never the truth: what is on the
//!   disk goes through the checks of what comes from a server, and a server that says otherwise is
//!   right.
//! - A snapshot and an index never change: who holds one finds in it what was found before.
//! - The arguments of a tool of ours are data. Nothing that a client says is run, and no server is
//!   added that is not declared.
//! - What [`web`] asks carries no key and takes no proxy that is not declared, and goes nowhere else.
//! - A literal value of `env` or `headers` is never printed. One that comes from a credential or our
//!   environment is blacked out in what its server writes to standard error or into an error page.
//! - What [`import`] takes for a secret leaves it as the name of a credential, and in no other way.

pub mod acceptor;
pub mod backoff;
pub mod bearer_token;
pub mod body;
pub mod breaker;
pub mod bridge;
pub mod budget;
pub mod call;
pub mod catalog;
pub mod child;
pub mod cli;
pub mod compute_pool;
pub mod config;
pub mod connection;
pub mod control;
pub mod daemon;
pub mod demo;
pub mod descriptor_limit;
pub mod doctor;
pub mod embedding;
pub mod era;
pub mod error_report;
pub mod fault;
pub mod files;
pub mod holder;
pub mod import;
pub mod ingress;
pub mod meta;
pub mod name;
pub mod peer;
pub mod pool;
pub mod protocol;
pub mod provision;
pub mod redact;
pub mod resident_memory;
pub mod search;
pub mod session;
pub mod share;
pub mod single_flight;
pub mod status;
pub mod systemd;
pub mod task;
pub mod telemetry;
pub mod tls;
pub mod typegen;
pub mod unsent_messages;
pub mod view;
pub mod web;
