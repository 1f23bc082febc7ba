//! The fuzz targets for the pipe between the service and the sandbox of a script.

use std::{
    cell::RefCell,
    io::{self, Cursor, Read, Write},
    rc::Rc,
};

use metamcp::{
    sandbox::{
        message::{FrameBuffer, HostMessage, SandboxLimits, SandboxMessage, ScriptStart, frame},
        run_script,
    },
    script::check_sandbox_bytes,
};

/// A script that waits for three operations, and says what came of them.
const CODE: &str = "const calls = [servers.a.b({ n: 1 }), sleep(5), searchTools('x')];
    const ends = await Promise.allSettled(calls);
    console.log(ends.length, Date.now());
    return ends.map(end => end.value ?? [end.reason.code, end.reason.message, end.reason.details])";

/// Checks that a script survives any bytes of its sandbox.
pub(super) fn sandbox_output(data: &[u8]) {
    check_sandbox_bytes(data);
}

/// Checks that a sandbox survives any bytes of the service, and sends whole messages until its end.
pub(super) fn sandbox_input(data: &[u8]) {
    let mut frames = FrameBuffer::default();
    frames.bytes_mut().extend_from_slice(data);
    while let Ok(Some(message)) = frames.take_message::<HostMessage>() {
        assert!(frame(&message).is_ok(), "a message that was read can be written");
    }
    let limits = SandboxLimits { memory_bytes: 64 << 20, sleep_max_ms: 10, pending_max: 10 };
    let code = CODE.to_owned();
    let start = ScriptStart { code, args: None, seed: 1, now_ms: 0, limits };
    let start = frame(&HostMessage::Start(Box::new(start))).expect("a short message");
    let input = Cursor::new([&start, data].concat());
    let pipe = MemoryPipe { input, output: Rc::default() };
    let output = Rc::clone(&pipe.output);
    let outcome = run_script(pipe, || panic!("the input is far smaller than the memory"));
    let mut sent = FrameBuffer::default();
    sent.bytes_mut().extend_from_slice(&output.borrow());
    let mut last = None;
    while let Some(message) = sent.take_message::<SandboxMessage>().expect("whole messages") {
        last = Some(message);
    }
    assert!(sent.bytes_mut().is_empty(), "no part of a message is left");
    let has_ended = matches!(last, Some(SandboxMessage::Returned(_) | SandboxMessage::Failed(_)));
    assert_eq!(outcome.is_ok(), has_ended, "{outcome:?} {last:?}");
}

/// A pipe whose input is known.
struct MemoryPipe {
    input: Cursor<Vec<u8>>,
    output: Rc<RefCell<Vec<u8>>>,
}

impl Read for MemoryPipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

impl Write for MemoryPipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
