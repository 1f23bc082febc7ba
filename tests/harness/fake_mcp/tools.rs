//! The tools: each has a behaviour that a real server cannot produce on demand.

mod definitions;
mod input_requests;
mod notices;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt};

use crate::{
    call::Call,
    message::{self, Members, RpcError, quoted},
    methods::GATE_INTERVAL,
    output::Output,
    state::{PingMode, State},
    tasks,
};

pub(crate) use definitions::list;

/// The outcome of a call: its result, or a wait, or the end of the process.
enum Outcome {
    Result(String),
    /// The result is written unchanged.
    Verbatim(String),
    Twice(String),
    AfterCancel(String),
    Meet {
        n_calls: usize,
        value: String,
    },
    Hold(String),
    /// The last output of the process.
    FinalOutput(Output),
}

/// Calls a tool.
pub(crate) async fn run(call: Call, params: &Members) {
    call.fake.count("calls");
    let arguments = Members::read(params.raw("arguments"));
    let outcome = match params.required::<String>("name") {
        Ok(name) => match tasks::check(&call, &name, params) {
            Ok(()) if name.starts_with("ask") => input_requests::ask(&call, &name, params).await,
            Ok(()) if tasks::is_tool(&call.fake, &name) => {
                tasks::start(&call, &name, params).map(Outcome::Result)
            }
            Ok(()) => outcome_of(&call, &name, &arguments).await,
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    match outcome {
        Ok(Outcome::Result(result)) => call.result(&result).await,
        Ok(Outcome::Verbatim(result)) => call.verbatim(&result).await,
        Ok(Outcome::Twice(result)) => {
            call.send(&result).await;
            call.send(&result).await;
        }
        Ok(Outcome::AfterCancel(result)) => {
            call.fake.log("held", "");
            call.cancelled.cancelled().await;
            call.send(&result).await;
        }
        Ok(Outcome::Meet { n_calls, value }) => call.fake.clone().meet(call, n_calls, value).await,
        Ok(Outcome::Hold(key)) => call.fake.clone().hold(call, key),
        Ok(Outcome::FinalOutput(item)) => call.output.send(item).await,
        Err(error) => call.error(&error).await,
    }
}

/// Returns the client capabilities that a tool call requires; `None` for other requests.
pub(crate) fn capabilities_of(method: &str, params: &Members) -> Option<Vec<&'static str>> {
    let name: String = params.required("name").ok().filter(|_| method == "tools/call")?;
    input_requests::capabilities(&name, &Members::read(params.raw("arguments")))
}

async fn outcome_of(call: &Call, name: &str, arguments: &Members) -> Result<Outcome, RpcError> {
    let fake = &call.fake;
    let answer = |data: &str| Ok(Outcome::Result(message::data_result(data)));
    match name {
        "bytes" => Ok(Outcome::Result(text(&"x".repeat(arguments.required("n")?)))),
        "count" | "count_idempotent" | "read_only" => count(call, arguments).await,
        "crash_at" => {
            let message = call.message(&text("this answer is cut short"));
            Ok(Outcome::FinalOutput(Output::Partial {
                message,
                n_bytes: arguments.required("byte")?,
            }))
        }
        "dial" => {
            let (to, text) = (arguments.required("to")?, arguments.required("text")?);
            let replied = dial(to, text).await;
            let replied =
                replied.map_err(|error| RpcError::new(-32603, format!("dial: {error}")))?;
            answer(&json!({ "replied": replied }).to_string())
        }
        "duplicate" => Ok(Outcome::Twice(text("twice"))),
        "echo" => {
            let value: Box<RawValue> = arguments.required("value")?;
            Ok(Outcome::Result(message::structured(
                value.get(),
                &format!(r#"{{"value":{value}}}"#),
            )))
        }
        "change" | "emit" | "end_listens" | "flip_tools" | "log" | "touch" => {
            notices::send(call, name, arguments).await.map(Outcome::Result)
        }
        "env" => {
            let name: String = arguments.required("name")?;
            let value = std::env::var_os(&name).map(|value| value.to_string_lossy().into_owned());
            answer(&json!({ "name": name, "value": value }).to_string())
        }
        "environ" => {
            let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
            let mut names: Vec<String> = names.collect();
            names.sort();
            answer(&json!({ "names": names }).to_string())
        }
        "exit" => Ok(Outcome::FinalOutput(Output::Exit(arguments.required("code")?))),
        "grandchild" => {
            let inherits = arguments.optional("inherit")?.unwrap_or(false);
            let detaches = arguments.optional("detach")?.unwrap_or(false);
            let pid = if detaches { start_daemon() } else { start_grandchild(inherits) };
            let pid =
                pid.map_err(|error| RpcError::new(-32603, format!("start `sleep`: {error}")))?;
            answer(&json!({ "pid": pid }).to_string())
        }
        "held" => {
            let least: usize = arguments.optional("at_least")?.unwrap_or(0);
            wait(call, |state| state.waiting.n_held() >= least).await;
            answer(&fake.state().waiting.held())
        }
        "hold" => match arguments.optional::<PathBuf>("gate")? {
            None => Ok(Outcome::Hold(arguments.required("key")?)),
            Some(gate) => {
                fake.count("gated");
                fake.log("held", "");
                while !gate.exists() {
                    tokio::time::sleep(GATE_INTERVAL).await;
                }
                Ok(Outcome::Result(keyed(&arguments.required::<String>("key")?)))
            }
        },
        "late" => Ok(Outcome::AfterCancel(keyed(&arguments.required::<String>("key")?))),
        "meet" => {
            let value: Box<RawValue> = arguments.required("value")?;
            Ok(Outcome::Meet { n_calls: arguments.required("n")?, value: value.get().to_owned() })
        }
        "noise" => {
            let n_lines: u64 = arguments.required("lines")?;
            for number in 1..=n_lines {
                let line = format!("noise {number}: this is not JSON");
                call.output.send(Output::Noise(line)).await;
            }
            answer(&json!({ "lines": n_lines }).to_string())
        }
        "pings" => {
            let mode: String = arguments.required("mode")?;
            let pings = if mode == "never" { PingMode::Never } else { PingMode::Answer };
            fake.state().pings = pings;
            answer(&json!({ "mode": mode }).to_string())
        }
        "progress" => progress(call, arguments).await,
        "raw" => Ok(Outcome::Verbatim(arguments.required("result")?)),
        "read" => {
            let path: PathBuf = arguments.required("path")?;
            let read = std::fs::read(path).map(|bytes| bytes.len());
            let error = read.as_ref().err().map(|error| format!("{:?}", error.kind()));
            answer(&json!({ "n_bytes": read.ok(), "error": error }).to_string())
        }
        "release" => {
            let key: String = arguments.required("key")?;
            let n_released = fake.release(&key).await;
            answer(&json!({ "key": key, "released": n_released }).to_string())
        }
        "rpc_error" => Err(RpcError {
            code: arguments.required("code")?,
            message: arguments.required("message")?,
            data: arguments.raw("data").map(str::to_owned),
        }),
        "seen" => {
            let mut counts: BTreeMap<String, u64> =
                arguments.optional("counts")?.unwrap_or_default();
            for name in ["cancelled", "meeting"] {
                counts.insert(name.to_owned(), arguments.optional(name)?.unwrap_or(0));
            }
            wait(call, |state| counts.iter().all(|(name, least)| state.n(name) >= *least)).await;
            answer(&fake.state().summary())
        }
        "rows" if fake.options.rich => rows(arguments).map(Outcome::Result),
        "routed" => answer(&format!(r#"{{"arguments":{}}}"#, arguments.text())),
        "stderr" => {
            let n_lines: usize = arguments.required("lines")?;
            let line = arguments.optional("text")?.unwrap_or_else(|| "a line".to_owned());
            let mut stderr = tokio::io::stderr();
            stderr.write_all(format!("{line}\n").repeat(n_lines).as_bytes()).await.ok();
            stderr.flush().await.ok();
            answer(&json!({ "lines": n_lines }).to_string())
        }
        "tool_error" => {
            let result = r#"{"content":[{"type":"text","text":"the tool failed"}],"isError":true}"#;
            Ok(Outcome::Result(result.to_owned()))
        }
        // Everything runs on this thread, so nothing is read or answered afterwards.
        "wedge" => loop {
            fake.log("wedged", "");
            std::thread::park();
        },
        "whoami" => {
            let mut identity = json!({
                "pid": std::process::id(),
                "calls": fake.state().counts.get("calls"),
            });
            if let Some(session) = &call.session {
                identity["session"] = json!(session);
            }
            identity["era"] = json!(if call.client.is_some() { "modern" } else { "legacy" });
            if let Some(client) = &call.client
                && let (Value::Object(identity), Value::Object(report)) =
                    (&mut identity, client.report())
            {
                identity.extend(report);
            }
            answer(&identity.to_string())
        }
        _ if definitions::is_extra(fake, name) => answer(&json!({ "tool": name }).to_string()),
        _ => Err(RpcError::invalid(format!("Unknown tool: {name}"))),
    }
}

/// Returns the rows of a table, as a structured value and as text.
fn rows(arguments: &Members) -> Result<String, RpcError> {
    let table: String = arguments.required("table")?;
    let n_rows: u64 = arguments.optional("n")?.unwrap_or(3);
    let width: usize = arguments.optional("width")?.unwrap_or(0);
    let row =
        |n| json!({ "name": format!("{table} {n}"), "size": n * 10, "more": "x".repeat(width) });
    let rows: Vec<Value> = (1..=n_rows).map(row).collect();
    let mut report = json!({ "total": n_rows, "rows": rows });
    if let Some(previous) = arguments.optional::<Value>("previous")? {
        report["previous"] = previous;
    }
    Ok(message::data_result(&report.to_string()))
}

/// Reports each step with the client's progress token, then answers.
async fn progress(call: &Call, arguments: &Members) -> Result<Outcome, RpcError> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Steps(u64);
    let Steps(n_steps) = arguments.required("steps")?;
    let n: i64 = arguments.optional("n")?.unwrap_or(0);
    let together: u64 = arguments.optional("together")?.unwrap_or(0);
    call.fake.count("progressing");
    wait(call, |state| state.n("progressing") >= together).await;
    if let Some(token) = &call.progress_token {
        for step in 1..=n_steps {
            let message = quoted(&format!("call {n}, step {step}"));
            call.output
                .send(Output::ServerMessage(format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step},"total":{n_steps},"message":{message}}}}}"#
                )))
                .await;
        }
    }
    Ok(Outcome::Result(message::data_result(&json!({ "steps": n_steps, "n": n }).to_string())))
}

/// Sends `text` to a Unix socket or TCP address, and returns the first line of the reply, or the
/// whole reply for HTTP.
async fn dial(to: String, text: String) -> std::io::Result<String> {
    async fn converse<S: AsyncRead + AsyncWrite>(stream: S, text: &str) -> std::io::Result<String> {
        let mut stream = std::pin::pin!(tokio::io::BufStream::new(stream));
        stream.write_all(text.as_bytes()).await?;
        stream.flush().await?;
        let mut replied = String::new();
        match text.starts_with("POST") {
            true => stream.read_to_string(&mut replied).await?,
            false => stream.read_line(&mut replied).await?,
        };
        Ok(replied)
    }
    match to.starts_with('/') {
        true => converse(tokio::net::UnixStream::connect(to).await?, &text).await,
        false => converse(tokio::net::TcpStream::connect(to).await?, &text).await,
    }
}

/// Counts an execution before it continues.
async fn count(call: &Call, arguments: &Members) -> Result<Outcome, RpcError> {
    let key: String = arguments.required("key")?;
    let then: Option<String> = arguments.optional("then")?;
    let n = (call.fake.state().executions.add(&key))
        .map_err(|error| RpcError::new(-32603, format!("append to the state: {error}")))?;
    call.fake.changed();
    if then.as_deref() == Some("tell_and_exit")
        && let Some(token) = &call.progress_token
    {
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        );
        call.output.send(Output::ServerMessage(message)).await;
    }
    Ok(match then.as_deref() {
        Some("hold") => Outcome::Hold(key),
        Some("exit" | "tell_and_exit") => Outcome::FinalOutput(Output::Exit(1)),
        Some("exit_first") if n == 1 => Outcome::FinalOutput(Output::Exit(1)),
        _ => Outcome::Result(message::data_result(&json!({ "key": key, "n": n }).to_string())),
    })
}

/// Waits until the state is reached or the call is cancelled.
async fn wait(call: &Call, is_reached: impl Fn(&State) -> bool) {
    tokio::select! {
        () = call.fake.wait_until(is_reached) => {}
        () = call.cancelled.cancelled() => {}
    }
}

#[expect(clippy::disallowed_methods, reason = "a fake server may start what it likes")]
fn start_grandchild(inherits: bool) -> std::io::Result<u32> {
    let mut command = Command::new("sleep");
    command.arg("infinity").stdin(Stdio::null());
    if !inherits {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    Ok(command.spawn()?.id())
}

/// Starts a detached process in its own session, which ignores SIGTERM.
#[expect(clippy::disallowed_methods, reason = "a fake server may start what it likes")]
fn start_daemon() -> std::io::Result<u32> {
    const SCRIPT: &str = r#"sh -c 'trap "" TERM HUP; echo $$; exec sleep infinity >/dev/null' &"#;
    let mut started = Command::new("setsid")
        .args(["--fork", "sh", "-c", SCRIPT])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    if let Some(stdout) = started.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    started.wait()?;
    line.trim().parse().map_err(std::io::Error::other)
}

fn text(text: &str) -> String {
    json!({ "content": [{ "type": "text", "text": text }] }).to_string()
}

fn keyed(key: &str) -> String {
    message::data_result(&json!({ "key": key }).to_string())
}
