//! Newline-delimited messages on standard input and output.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    sync::mpsc,
};

use crate::{
    era::ProbeMode,
    exit,
    fake::Fake,
    message::{self, Message, RpcError, quoted},
    output::{Output, OutputSender},
    session::{PIPE, Session},
};

/// The number of yields at the end of the input, so that earlier tasks can run.
const FINAL_YIELDS: usize = 64;

/// Serves until the input ends.
pub(crate) async fn serve(fake: Arc<Fake>) -> io::Result<()> {
    let (output, receiver) = OutputSender::new();
    fake.state().sessions.insert(PIPE.to_owned(), Session::listening(output.clone()));
    fake.tasks.spawn(write(fake.clone(), receiver));
    let mut reader = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).await? > 0 {
        if message::depth(&line) > fake.options.depth_max {
            exit(&fake, 3);
        }
        receive(&fake, &line, &output).await;
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
    output.send(Output::Exit(0)).await;
    std::future::pending().await
}

async fn receive(fake: &Arc<Fake>, line: &[u8], output: &OutputSender) {
    match serde_json::from_slice::<Message<'_>>(line) {
        Ok(message) if let Some(probe) = fake.probe_mode(&message) => {
            fake.count_method(message.method.as_deref().unwrap_or_default());
            let code = match probe {
                ProbeMode::Silent => return,
                ProbeMode::Exit => return output.send(Output::Exit(3)).await,
                ProbeMode::Refuse(code) => code,
                ProbeMode::Spoil => -32600,
            };
            if let Some(id) = message.id {
                output.send(Output::Response(RpcError::new(code, "No.").answer(id.get()))).await;
            }
        }
        Ok(message) if fake.is_modern_pipe(&message) => fake.receive_modern(&message, output).await,
        Ok(message) => fake.receive(&message, None, output),
        Err(_) => {
            fake.count_unreadable();
            let answer = RpcError::new(-32700, "Parse error").answer("null");
            output.send(Output::Response(answer)).await;
        }
    }
}

/// Writes the queue: the only task that uses standard output.
///
/// A client that stops reading ends the process, unless the options forbid it.
async fn write(fake: Arc<Fake>, receiver: mpsc::Receiver<Output>) {
    let Err(error) = write_all(&fake, receiver).await else { return };
    fake.log("unwritable", &format!(r#","error":{}"#, quoted(&error.to_string())));
    if !fake.options.no_eof_exit {
        exit(&fake, 1);
    }
}

async fn write_all(fake: &Fake, mut receiver: mpsc::Receiver<Output>) -> io::Result<()> {
    let mut stdout = tokio::io::stdout();
    while let Some(write) = receiver.recv().await {
        let (bytes, code) = match write {
            Output::Response(line) | Output::ServerMessage(line) | Output::Noise(line) => {
                (with_invalid_utf8(format!("{line}\n")), None)
            }
            Output::Partial { message, n_bytes } => {
                let mut bytes = format!("{message}\n").into_bytes();
                bytes.truncate(n_bytes);
                (bytes, Some(1))
            }
            Output::Prime { .. } | Output::Endpoint(_) => continue,
            Output::Exit(code) => (Vec::new(), Some(code)),
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
fn with_invalid_utf8(line: String) -> Vec<u8> {
    let parts: Vec<&[u8]> = line.split('\u{10ffff}').map(str::as_bytes).collect();
    parts.join(&0xff)
}
