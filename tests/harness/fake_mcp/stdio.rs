//! Newline-delimited messages on standard input and output.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    sync::mpsc,
};

use crate::{
    era::Probe,
    exit,
    fake::Fake,
    message::{self, Fault, Message, quoted},
    session::{PIPE, Session},
    wire::{Wire, Write},
};

/// The number of yields at the end of the input, so that earlier tasks can run.
const FINAL_YIELDS: usize = 64;

/// Serves until the input ends.
pub(crate) async fn serve(fake: Arc<Fake>) -> io::Result<()> {
    let (wire, writes) = Wire::new();
    fake.state().sessions.insert(PIPE.to_owned(), Session::listening(wire.clone()));
    fake.tasks.spawn(write(fake.clone(), writes));
    let mut reader = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).await? > 0 {
        if message::depth(&line) > fake.options.depth_max {
            exit(&fake, 3);
        }
        receive(&fake, &line, &wire).await;
        line.clear();
    }
    fake.log("eof", "");
    if fake.options.no_eof_exit {
        return std::future::pending().await;
    }
    // By then, calls that need not wait have queued their answers; the exit follows them.
    for _ in 0..FINAL_YIELDS {
        tokio::task::yield_now().await;
    }
    wire.send(Write::Exit(0)).await;
    std::future::pending().await
}

async fn receive(fake: &Arc<Fake>, line: &[u8], wire: &Wire) {
    match serde_json::from_slice::<Message<'_>>(line) {
        Ok(message) if let Some(probe) = fake.spoils(&message) => {
            fake.note(message.method.as_deref().unwrap_or_default());
            let code = match probe {
                Probe::Silent => return,
                Probe::Exit => return wire.send(Write::Exit(3)).await,
                Probe::Refuse(code) => code,
                Probe::Spoil => -32600,
            };
            if let Some(id) = message.id {
                wire.send(Write::Answer(Fault::new(code, "No.").answer(id.get()))).await;
            }
        }
        Ok(message) if fake.is_modern_pipe(&message) => fake.receive_modern(&message, wire).await,
        Ok(message) => fake.receive(&message, None, wire),
        Err(_) => {
            fake.unreadable();
            let answer = Fault::new(-32700, "Parse error").answer("null");
            wire.send(Write::Answer(answer)).await;
        }
    }
}

/// Writes the queue: the only task that uses standard output.
///
/// A client that stops reading ends the process, unless the options forbid it.
async fn write(fake: Arc<Fake>, writes: mpsc::Receiver<Write>) {
    let Err(error) = write_all(&fake, writes).await else { return };
    fake.log("unwritable", &format!(r#","error":{}"#, quoted(&error.to_string())));
    if !fake.options.no_eof_exit {
        exit(&fake, 1);
    }
}

async fn write_all(fake: &Fake, mut writes: mpsc::Receiver<Write>) -> io::Result<()> {
    let mut stdout = tokio::io::stdout();
    while let Some(write) = writes.recv().await {
        let (bytes, code) = match write {
            Write::Answer(line) | Write::Aside(line) | Write::Noise(line) => {
                (spoiled(format!("{line}\n")), None)
            }
            Write::Partial { message, n_bytes } => {
                let mut bytes = format!("{message}\n").into_bytes();
                bytes.truncate(n_bytes);
                (bytes, Some(1))
            }
            Write::Prime { .. } | Write::Endpoint(_) => continue,
            Write::Exit(code) => (Vec::new(), Some(code)),
        };
        stdout.write_all(&bytes).await?;
        stdout.flush().await?;
        if let Some(code) = code {
            exit(fake, code);
        }
    }
    Ok(())
}

/// Returns the bytes of `line`, with an invalid UTF-8 byte for each U+10FFFF.
fn spoiled(line: String) -> Vec<u8> {
    let parts: Vec<&[u8]> = line.split('\u{10ffff}').map(str::as_bytes).collect();
    parts.join(&0xff)
}
