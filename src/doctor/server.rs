//! One server, started in isolation: how long it takes, what it says besides, and what it offers.

use std::{path::Path, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Finding, Level, names, tee::Listener, unpinned};
use crate::{
    config::{Secret, Server, Transport, defaults},
    connection::{Dialer, Event, Limits, Party},
    name::ServerName,
    protocol::{
        Message,
        jsonrpc::Part,
        mcp::{List, Page, method},
    },
    redact::{self, Redactor},
    report::chain,
};

/// How long one step took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Phase {
    /// The step.
    pub name: &'static str,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// What was seen of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The steps that were made, in their order.
    pub phases: Vec<Phase>,
    /// Why it went no further, and what to do about it.
    pub failure: Option<(String, String)>,
    /// A value that it needs and only the service can read.
    pub unresolved: Option<String>,
    /// The first lines on standard error.
    pub stderr: Vec<String>,
    /// The first lines on standard output that are no messages.
    pub noise: Vec<String>,
    /// The protocol version and the era.
    pub speaks: Option<String>,
    /// The names of its tools.
    pub tools: Option<Vec<String>>,
}

/// Starts a server, lists its tools, and ends it.
///
/// # Cancel safety
///
/// Not safe: dropped halfway, the process may be left behind.
pub async fn look_at(name: &ServerName, declared: &Server, credentials: Option<&Path>) -> Seen {
    let mut seen = Seen::default();
    let secrets = match secrets(declared, credentials) {
        Ok(secrets) => secrets,
        Err(reason) => {
            seen.unresolved = Some(reason);
            return seen;
        }
    };
    let redactor = Redactor::new(secrets.iter());
    let (listener, tasks) = (Arc::new(Listener::default()), TaskTracker::new());
    let (announcements, mut announced) = mpsc::channel(defaults::ANNOUNCEMENT_QUEUE);
    // Nobody is told of what it announces.
    let ignored = tasks.spawn(async move { while announced.recv().await.is_some() {} });
    let launcher = Arc::<Listener>::clone(&listener);
    let dialer = Dialer::new(credentials.map(Path::to_owned), tasks.clone(), announcements)
        .with_launcher(launcher);
    let closing = CancellationToken::new();
    let begun = Instant::now();
    let until = begun + defaults::PROBE_PATIENCE;
    let dialled = {
        let dial = dialer.dial(name, declared, 1, Party::Shared, closing.clone(), begun);
        tokio::pin!(dial);
        match time::timeout_at(until, &mut dial).await {
            Ok(dialled) => Some(dialled),
            Err(_) => {
                // It ends the dial, and what was started.
                closing.cancel();
                let _closed = dial.await;
                None
            }
        }
    };
    let started = listener.heard().started;
    if let Some(started) = started {
        seen.phases.push(phase("spawn", started - begun));
    }
    let shaken = Instant::now();
    match dialled {
        None => {
            let text =
                format!("it is not connected after {} s", defaults::PROBE_PATIENCE.as_secs());
            let fix = "Run its command in a shell and see what it waits for: often it fetches itself first, or asks something on its terminal.";
            seen.failure = Some((text, fix.to_owned()));
        }
        Some(Err(error)) => {
            seen.failure = Some((redactor.quote(&chain(&error)), error.hint().into_owned()));
        }
        Some(Ok(connection)) => {
            let step = if started.is_some() { "handshake" } else { "connect and handshake" };
            seen.phases.push(phase(step, shaken - started.unwrap_or(begun)));
            seen.speaks = connection
                .profile()
                .map(|profile| format!("{} ({})", profile.protocol_version, profile.era().name()));
            let offers_tools = connection.profile().is_some_and(|profile| profile.has("tools"));
            if offers_tools {
                let left = until.saturating_duration_since(Instant::now());
                match list(&connection, Limits { silence: left, total: left }).await {
                    Ok(tools) => {
                        seen.phases.push(phase(method::TOOLS_LIST, shaken.elapsed()));
                        seen.tools = Some(tools);
                    }
                    Err(reason) => {
                        let fix = "Look at what it writes to standard error, and tell whoever maintains it.";
                        seen.failure = Some((redactor.quote(&reason), fix.to_owned()));
                    }
                }
            }
            connection.close();
        }
    }
    closing.cancel();
    drop(dialer);
    tasks.close();
    let _left_behind = time::timeout(defaults::FAREWELL, tasks.wait()).await;
    ignored.abort();
    let heard = listener.heard();
    seen.stderr = lines(&heard.stderr, &redactor, |_| true);
    if !matches!(declared.transport, Transport::Http { .. }) {
        seen.noise = lines(&heard.stdout, &redactor, |line| {
            serde_json::from_str::<serde::de::IgnoredAny>(line).is_err()
        });
    }
    seen
}

/// Reads all pages of the list of tools.
async fn list(
    connection: &Arc<crate::connection::Connection>,
    limits: Limits,
) -> Result<Vec<String>, String> {
    let mut tools = Vec::new();
    let mut params = None::<String>;
    for _ in 0..defaults::LIST_PAGES_MAX {
        let request = Message::request(method::TOOLS_LIST, params.as_deref());
        let mut call =
            connection.call_of_ours(&request, limits).await.map_err(|error| chain(&error))?;
        let answer = loop {
            match call.next().await.map_err(|error| chain(&error))? {
                Event::Answer(answer) => break answer,
                Event::Aside(_) | Event::Deferred => {}
            }
        };
        let Some(result) = answer.part(Part::Result) else {
            return Err("it answers `tools/list` with an error".to_owned());
        };
        let Ok(page) = Page::read(List::Tools, result) else {
            return Err("its answer to `tools/list` is no list".to_owned());
        };
        tools.extend(page.items.iter().map(|item| item.key.clone()));
        match page.next {
            Some(cursor) => params = Some(serde_json::json!({ "cursor": cursor }).to_string()),
            None => return Ok(tools),
        }
    }
    Ok(tools)
}

fn phase(name: &'static str, took: Duration) -> Phase {
    Phase { name, ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX) }
}

/// Returns the values that must not be shown, or why one is not to be had.
fn secrets(declared: &Server, credentials: Option<&Path>) -> Result<Vec<String>, String> {
    let values: Vec<&Secret> = match &declared.transport {
        Transport::Stdio { env, .. } => env.values().collect(),
        Transport::Http { headers, .. } => headers.values().collect(),
        Transport::Unit { .. } => Vec::new(),
    };
    let resolved = values.into_iter().map(|value| value.resolve(credentials));
    resolved.collect::<Result<_, _>>().map_err(|error| chain(&error))
}

/// Returns the first lines of a text that are wanted, fit to be shown.
fn lines(bytes: &[u8], redactor: &Redactor, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let wanted = text.lines().filter(|line| !line.trim().is_empty() && is_wanted(line));
    let shown = wanted.take(defaults::PROBE_LINES_SHOWN);
    shown
        .map(|line| {
            let line = redactor.quote(line);
            redact::tame(redact::cut(&line, defaults::QUOTE_BYTES_MAX)).into_owned()
        })
        .collect()
}

/// Judges what was seen of a server. Pure.
pub fn judged(name: &ServerName, declared: &Server, seen: &Seen) -> Vec<Finding> {
    let subject = format!("server {name}");
    let option = format!("services.metamcp.settings.servers.{name}");
    let finding = |level, what: String| Finding::new(level, &subject, what);
    let mut findings = Vec::new();
    if let Some(reason) = &seen.unresolved {
        findings.push(
            finding(Level::Note, "it was not started: a value that it needs is not to be had here".into())
                .why(reason.clone())
                .fix("Only the service has its credentials. Set $CREDENTIALS_DIRECTORY to a directory with the same files to look at the server from here.")
                .nix(format!("services.metamcp.credentials, for what `{option}` refers to")),
        );
    }
    let timing: Vec<String> =
        seen.phases.iter().map(|phase| format!("{} {} ms", phase.name, phase.ms)).collect();
    let timing = timing.join(", ");
    match (&seen.failure, &seen.tools) {
        (Some((what, fix)), _) => {
            let mut failed = finding(Level::Error, what.clone())
                .fix(fix.clone())
                .nix(format!("{option}: {fix}"));
            if !timing.is_empty() {
                failed = failed.why(format!("it took {timing}"));
            }
            findings.push(failed);
        }
        (None, Some(tools)) => {
            let speaks = seen.speaks.as_deref().unwrap_or("an unknown version");
            let what = format!("{} tools, protocol {speaks}", tools.len());
            findings.push(finding(Level::Ok, what).why(timing));
            findings.extend(names(name, tools));
        }
        (None, None) if seen.unresolved.is_none() => {
            findings.push(finding(Level::Ok, "it has no tools".into()).why(timing));
        }
        (None, None) => {}
    }
    let slow_ms = u64::try_from(defaults::PROBE_SLOW.as_millis()).unwrap_or(u64::MAX);
    if let Some(slow) = seen.phases.iter().find(|phase| phase.ms > slow_ms)
        && seen.failure.is_none()
    {
        findings.push(
            finding(Level::Warning, format!("it is slow: {} takes {} ms", slow.name, slow.ms))
                .why("a first list is waited for 4 s; then clients see it without this server's tools until it is there")
                .fix(format!("Have it started with the service: `start = \"eager\"` in [servers.{name}]."))
                .nix(format!("{option}.start = \"eager\";")),
        );
    }
    if !seen.noise.is_empty() {
        let mut noisy = finding(
            Level::Warning,
            "it writes lines to standard output that are no messages".into(),
        )
        .fix("They are skipped. Have the server log to standard error instead: standard output is for messages alone.")
        .nix(format!("{option}.args or .env: have the server log to standard error"));
        for line in &seen.noise {
            noisy = noisy.why(format!("stdout: {line}"));
        }
        findings.push(noisy);
    }
    if !seen.stderr.is_empty() {
        let mut said =
            finding(Level::Note, "it writes to standard error, which goes to the log".into());
        for line in &seen.stderr {
            said = said.why(format!("stderr: {line}"));
        }
        findings.push(said);
    }
    if let Transport::Stdio { command, args, .. } = &declared.transport
        && let Some(package) = unpinned(command, args)
    {
        let package =
            redact::tame(redact::cut(&package, defaults::SUGGESTION_BYTES_MAX)).into_owned();
        let program = command.rsplit('/').next().unwrap_or(command);
        findings.push(
            finding(Level::Warning, format!("`{program}` fetches `{package}` in whatever version there is"))
                .why("each start may run another program, needs the network, and is slow when there is a new one")
                .fix("Name the version, as in `package@1.2.3` or `package==1.2.3`, or install it and name its program.")
                .nix(format!("{option}.command: use a package of nixpkgs, or name the version in `.args`")),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(command: &str, args: &[&str]) -> Server {
        Server::new(Transport::Stdio {
            command: command.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: [("TOKEN".to_owned(), Secret::Literal("hush".to_owned()))].into(),
            cwd: None,
        })
    }

    fn levels(seen: &Seen) -> Vec<Level> {
        let name = ServerName::new("git").expect("a name");
        let declared = declared("npx", &["-y", "server"]);
        judged(&name, &declared, seen).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn what_was_seen_is_judged() {
        let phase = |name, ms| Phase { name, ms };
        let well = Seen {
            phases: vec![phase("spawn", 1), phase("handshake", 20), phase("tools/list", 3)],
            tools: Some(vec!["log".to_owned()]),
            ..Seen::default()
        };
        let unpinned = Level::Warning;
        assert_eq!(levels(&well), [Level::Ok, unpinned]);
        let slow =
            Seen { phases: vec![phase("spawn", 1), phase("handshake", 4001)], ..well.clone() };
        assert_eq!(levels(&slow), [Level::Ok, Level::Warning, unpinned]);
        let loud = Seen { noise: vec!["hello".into()], stderr: vec!["hm".into()], ..well };
        assert_eq!(levels(&loud), [Level::Ok, Level::Warning, Level::Note, unpinned]);
        let failed = Seen { failure: Some(("it ended".into(), "mend it".into())), ..slow };
        assert_eq!(levels(&failed), [Level::Error, unpinned]);
        let unresolved = Seen { unresolved: Some("no credential".into()), ..Seen::default() };
        assert_eq!(levels(&unresolved), [Level::Note, unpinned]);
        assert_eq!(levels(&Seen::default()), [Level::Ok, unpinned], "it may offer something else");
    }

    #[test]
    fn lines_show_no_secret_and_steer_no_terminal() {
        let declared = declared("git", &[]);
        let secrets = secrets(&declared, None).expect("a literal");
        let redactor = Redactor::new(secrets.iter());
        let text = b"\n the word is hush\x1b[2J\n\n2\n3\n4\n5\n6\n";
        let shown = lines(text, &redactor, |_| true);
        assert_eq!(shown.len(), defaults::PROBE_LINES_SHOWN);
        assert!(!shown[0].contains("hush") && !shown[0].contains('\u{1b}'), "{shown:?}");
    }
}
