//! The engine of a script: QuickJS, without anything but the language and one pipe.
//!
//! ```text
//!  start ──▶ run jobs ──▶ the script has ended ──▶ its value, or its failure
//!               ▲  │
//!    settlement ╰──┴──▶ it waits: idle ──▶ read
//! ```
//!
//! A run depends on its [`ScriptStart`] and on the settlements in their order, and on nothing else:
//! no clock, no chance, no collector of garbage that a script could notice. The same start and the
//! same settlements lead to the same operations. [`script`](crate::script) relies on it.

use std::{
    cell::{Cell, RefCell},
    io::{self, Read, Write},
    rc::Rc,
};

use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Function, Object, Promise, Runtime, Value,
    context::EvalOptions, function::Func, promise::PromiseState,
};
use serde_json::value::RawValue;

use super::{
    bounded_allocator::{BoundedAllocator, EngineMemory},
    message::{
        CodePlace, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FailureKind, FrameError, HostMessage,
        OperationOutcome, PROGRESS_TEXT_BYTES_MAX, SandboxMessage, ScriptFailure, ScriptOperation,
        ScriptProgress, ScriptStart, Settlement, frame, frame_length, read_message,
    },
    thrown_value::{SCRIPT, ThrownValue},
    type_stripping::strip_types,
    unicode_escapes::without_lone_surrogates,
};

/// The name of the prelude in traces.
const PRELUDE: &str = "prelude.js";

/// The code before that of the script: one line.
const HEAD: &str = "(async()=>{\"use strict\";\n";

/// The code after that of the script, which may end with a comment.
const TAIL: &str = "\n})";

/// The most bytes of one message of console output: with all characters escaped, it fits a frame.
const PRINTED_BYTES_MAX: usize = 1 << 20;

/// The stack of the engine, in bytes. A thread has eight times as much.
const STACK_BYTES: usize = 1 << 20;

/// The reason why a sandbox ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The pipe has failed, or the service has closed it.
    #[error("the pipe to the service failed: {0}")]
    Pipe(#[from] io::Error),
    /// The service has sent something else than a message.
    #[error("the service sent no message: {0}")]
    Frame(#[from] FrameError),
    /// The engine itself has failed, and not the script.
    #[error("the script engine failed: {0}")]
    Engine(String),
}

impl From<rquickjs::Error> for SandboxError {
    fn from(error: rquickjs::Error) -> Self {
        Self::Engine(error.to_string())
    }
}

/// Runs the one script that the service sends over `pipe`, to its end.
///
/// `end_process` is called once the service knows that the script has used its memory. The engine
/// does not go on from there, so that no script can be in the way of its own end.
///
/// # Errors
///
/// [`SandboxError`] if the pipe or the engine fails. A failure of the script is a message.
pub fn run_script<P: Read + Write + 'static>(
    pipe: P,
    end_process: fn() -> !,
) -> Result<(), SandboxError> {
    let pipe = ScriptPipe { pipe: Rc::new(RefCell::new(pipe)), is_broken: Rc::default() };
    let start = match pipe.receive()? {
        HostMessage::Start(start) => *start,
        HostMessage::Settle(_) => return Err(SandboxError::Engine("no script came first".into())),
    };
    let to = pipe.clone();
    let memory = EngineMemory::new(start.limits.memory_bytes, move || {
        let message = "it needs more memory than it may have";
        let _closed = to.send(&failed(FailureKind::Memory, message.to_owned(), None));
        end_process();
    });
    let runtime = Runtime::new_with_alloc(BoundedAllocator(Rc::clone(&memory)))?;
    runtime.set_max_stack_size(STACK_BYTES);
    // A script cannot catch this. The service has gone.
    let is_broken = Rc::clone(&pipe.is_broken);
    runtime.set_interrupt_handler(Some(Box::new(move || is_broken.get())));
    let n_unseen = Rc::new(Cell::new(0_usize));
    let n_tracked = Rc::clone(&n_unseen);
    // A promise that was rejected unseen may be awaited later.
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |_, _, _, is_seen| {
        let n = n_tracked.get();
        n_tracked.set(if is_seen { n.saturating_sub(1) } else { n.saturating_add(1) });
    })));
    let context = Context::full(&runtime)?;
    let end = context.with(|ctx| run(&ctx, &pipe, &memory, &start))?;
    if let (SandboxMessage::Returned(_), n @ 1..) = (&end, n_unseen.get()) {
        let text =
            format!("[failures that were not seen, because the script did not await them: {n}]\n");
        pipe.send(&SandboxMessage::Print(text))?;
    }
    match pipe.send(&end) {
        Err(SandboxError::Frame(FrameError::TooLong)) => {
            pipe.send(&failed(FailureKind::Output, "its value is too large".to_owned(), None))
        }
        sent => sent,
    }
}

/// Both directions of the pipe.
struct ScriptPipe<P> {
    pipe: Rc<RefCell<P>>,
    /// A message could not be sent.
    is_broken: Rc<Cell<bool>>,
}

impl<P> Clone for ScriptPipe<P> {
    fn clone(&self) -> Self {
        Self { pipe: Rc::clone(&self.pipe), is_broken: Rc::clone(&self.is_broken) }
    }
}

impl<P: Read + Write> ScriptPipe<P> {
    fn send(&self, message: &SandboxMessage) -> Result<(), SandboxError> {
        let frame = frame(message)?;
        Ok(self.pipe.borrow_mut().write_all(&frame)?)
    }

    /// Sends a message of the script. Returns `false` if it is too long. If the pipe fails, the
    /// script is interrupted.
    fn send_or_break(&self, message: &SandboxMessage) -> bool {
        match self.send(message) {
            Ok(()) => true,
            Err(SandboxError::Frame(_)) => false,
            Err(SandboxError::Pipe(_) | SandboxError::Engine(_)) => {
                self.is_broken.set(true);
                true
            }
        }
    }

    fn receive(&self) -> Result<HostMessage, SandboxError> {
        let mut pipe = self.pipe.borrow_mut();
        let mut head = [0; FRAME_HEAD_BYTES];
        pipe.read_exact(&mut head)?;
        let mut text = vec![0; frame_length(head)?];
        pipe.read_exact(&mut text)?;
        Ok(read_message(&text)?)
    }
}

/// Runs the script, and returns its last message.
fn run<'js, P: Read + Write + 'static>(
    ctx: &Ctx<'js>,
    pipe: &ScriptPipe<P>,
    memory: &EngineMemory,
    start: &ScriptStart,
) -> Result<SandboxMessage, SandboxError> {
    let world = World::new(ctx, pipe, start)?;
    let code = match strip_types(&start.code) {
        Ok(code) => code,
        Err(unsupported) => {
            let message = unsupported.to_string();
            return Ok(failed(FailureKind::Syntax, message, Some(unsupported.place)));
        }
    };
    let code = &*code;
    let main = match world.main(ctx, code) {
        Ok(main) => main,
        Err(failure) => return Ok(*failure),
    };
    let mut n_settled = 0;
    loop {
        while ctx.execute_pending_job() && !pipe.is_broken.get() {}
        match main.state() {
            PromiseState::Resolved => break,
            PromiseState::Rejected => {
                let error = match main.result::<Value<'js>>() {
                    Some(Err(error)) => Err::<(), _>(error).catch(ctx).err(),
                    Some(Ok(_)) | None => None,
                };
                return Ok(match error {
                    Some(error) => world.failure(FailureKind::Exception, error, code),
                    None => failed(FailureKind::Exception, "it failed".to_owned(), None),
                });
            }
            PromiseState::Pending => {}
        }
        if world.n_begun.get().saturating_sub(n_settled) == 0 {
            let message = "it awaits a promise that nothing can settle";
            return Ok(failed(FailureKind::Stuck, message.to_owned(), None));
        }
        pipe.send(&SandboxMessage::Idle(n_settled))?;
        let HostMessage::Settle(settlement) = pipe.receive()? else {
            return Err(SandboxError::Engine("a second script came".into()));
        };
        n_settled += 1;
        world.settle(ctx, memory, settlement)?;
    }
    let value = main.result::<Value<'js>>().and_then(Result::ok);
    let value = value.unwrap_or_else(|| Value::new_undefined(ctx.clone()));
    match ctx.json_stringify(value).catch(ctx) {
        Ok(text) => {
            let text = text.map(|text| text.to_string()).transpose()?;
            let text = text.unwrap_or_else(|| "null".to_owned());
            let value = RawValue::from_string(without_lone_surrogates(&text).into_owned());
            Ok(SandboxMessage::Returned(value.map_err(FrameError::Json)?))
        }
        Err(error) => Ok(world.failure(FailureKind::Value, error, code)),
    }
}

fn failed(kind: FailureKind, message: String, place: Option<CodePlace>) -> SandboxMessage {
    let failure = ScriptFailure { kind, message, place, stack: String::new(), cause: None };
    SandboxMessage::Failed(failure)
}

fn evaluate<'js, V: rquickjs::FromJs<'js>>(
    ctx: &Ctx<'js>,
    name: &str,
    source: impl Into<Vec<u8>>,
) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(source, options)
}

/// The functions between a script and the pipe.
struct World<'js> {
    settle: Function<'js>,
    describe: Function<'js>,
    is_whole: Function<'js>,
    /// The number of operations that the script has begun.
    n_begun: Rc<Cell<u32>>,
}

impl<'js> World<'js> {
    /// Evaluates the prelude, which leaves a script what it may reach.
    fn new<P: Read + Write + 'static>(
        ctx: &Ctx<'js>,
        pipe: &ScriptPipe<P>,
        start: &ScriptStart,
    ) -> Result<Self, SandboxError> {
        let n_begun = Rc::new(Cell::new(0));
        let host = host_functions(ctx, pipe, start, &n_begun)?;
        let limits = Object::new(ctx.clone())?;
        limits.set("pendingMax", start.limits.pending_max)?;
        limits.set("sleepMaxMs", start.limits.sleep_max_ms as f64)?;
        limits.set("messageBytesMax", FRAME_BYTES_MAX as f64)?;
        let prelude: Function<'js> = evaluate(ctx, PRELUDE, include_str!("prelude.js"))?;
        let world: Object<'js> =
            prelude.call((host, limits, start.now_ms as f64, start.args.clone()))?;
        let function = |name| world.get::<_, Function<'js>>(name);
        let (settle, describe) = (function("settle")?, function("describe")?);
        Ok(Self { settle, describe, is_whole: function("isWhole")?, n_begun })
    }

    /// Begins a script. Returns its promise, or the message with which it has failed already.
    fn main(&self, ctx: &Ctx<'js>, code: &str) -> Result<Promise<'js>, Box<SandboxMessage>> {
        let source = [HEAD, code, TAIL].concat();
        let failure = |error| Box::new(self.failure(FailureKind::Syntax, error, code));
        let main = evaluate::<Value<'js>>(ctx, SCRIPT, source.as_str()).catch(ctx);
        let main = main.map_err(failure)?;
        // The whole source without its parentheses. Code with a `}` too many ends its function, and
        // goes on outside of it.
        let whole = &source[1..source.len() - 1];
        let is_whole = self.is_whole.call::<_, bool>((main.clone(), whole)).unwrap_or(false);
        match main.as_function() {
            Some(main) if is_whole => main.call(()).catch(ctx).map_err(failure),
            _ => {
                let message = "a `}` in it closes nothing that it has opened".to_owned();
                Err(Box::new(failed(FailureKind::Syntax, message, None)))
            }
        }
    }

    /// Settles an operation of the script.
    fn settle(
        &self,
        ctx: &Ctx<'js>,
        memory: &EngineMemory,
        settlement: Settlement,
    ) -> Result<(), SandboxError> {
        let Settlement { operation, now_ms, outcome } = settlement;
        let (is_value, text) = match outcome {
            OperationOutcome::Value(value) => (true, value.get().to_owned()),
            OperationOutcome::Failure(failure) => {
                (false, serde_json::to_string(&failure).map_err(FrameError::Json)?)
            }
        };
        let now = now_ms as f64;
        // A result that is too large for the script ends only its call.
        let value = memory.leniently(|| ctx.json_parse(text).catch(ctx));
        let settled = match value {
            Ok(value) => self.settle.call::<_, ()>((operation, now, is_value, value)).catch(ctx),
            Err(_) => {
                let error = Object::new(ctx.clone()).and_then(|failure| {
                    failure.set("code", "limit_exceeded")?;
                    failure.set("message", "the result is too large or too deep for the script")?;
                    Ok(failure)
                });
                self.settle.call::<_, ()>((operation, now, false, error?)).catch(ctx)
            }
        };
        settled.map_err(|error| SandboxError::Engine(error.to_string()))
    }

    /// Describes the exception that ended a script.
    fn failure(&self, kind: FailureKind, error: CaughtError<'js>, code: &str) -> SandboxMessage {
        let thrown = match error {
            CaughtError::Exception(exception) => exception.into_value(),
            CaughtError::Value(value) => value,
            CaughtError::Error(error) => return failed(kind, error.to_string(), None),
        };
        let described = self.describe.call::<_, String>((thrown,)).ok();
        let described = described.and_then(|text| serde_json::from_str::<ThrownValue>(&text).ok());
        let Some(thrown) = described else {
            let message = "it threw a value that cannot be described";
            return failed(kind, message.to_owned(), None);
        };
        SandboxMessage::Failed(thrown.into_failure(kind, code))
    }
}

/// Returns the functions that the prelude calls.
fn host_functions<'js, P: Read + Write + 'static>(
    ctx: &Ctx<'js>,
    pipe: &ScriptPipe<P>,
    start: &ScriptStart,
    n_begun: &Rc<Cell<u32>>,
) -> Result<Object<'js>, SandboxError> {
    let host = Object::new(ctx.clone())?;
    let random = RefCell::new(fastrand::Rng::with_seed(start.seed));
    host.set("random", Func::from(move || random.borrow_mut().f64()))?;
    let (to, n_begun) = (pipe.clone(), Rc::clone(n_begun));
    // Returns whether the operation begins: its arguments may be too large.
    let begin = move |operation: u32, kind: String, server: String, tool: String, args: String| {
        let Some(what) = operation_of(&kind, server, tool, args) else { return false };
        let is_sent = to.send_or_break(&SandboxMessage::Begin { operation, what });
        n_begun.set(n_begun.get() + u32::from(is_sent));
        is_sent
    };
    host.set("begin", Func::from(begin))?;
    let to = pipe.clone();
    let print = move |text: String| {
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let piece = beginning(rest, PRINTED_BYTES_MAX);
            to.send_or_break(&SandboxMessage::Print(piece.to_owned()));
            rest = &rest[piece.len()..];
        }
    };
    host.set("print", Func::from(print))?;
    let to = pipe.clone();
    let progress = move |done: f64, total: f64, message: String| {
        let total = (total >= 0.0).then_some(total);
        let message = beginning(&message, PROGRESS_TEXT_BYTES_MAX).to_owned();
        let progress = ScriptProgress { done, total, message };
        to.send_or_break(&SandboxMessage::Progress(progress));
    };
    host.set("progress", Func::from(progress))?;
    Ok(host)
}

fn operation_of(kind: &str, server: String, tool: String, args: String) -> Option<ScriptOperation> {
    if kind == "sleep" {
        return Some(ScriptOperation::Sleep(args.parse().ok()?));
    }
    let args = RawValue::from_string(without_lone_surrogates(&args).into_owned()).ok()?;
    Some(match kind {
        "tool" => ScriptOperation::Tool { server, tool, args },
        "describe" => ScriptOperation::Describe { server, tool },
        "search" => ScriptOperation::Search(args),
        _ => ScriptOperation::Chain(args),
    })
}

/// Returns the longest beginning of `text` that has at most `n_bytes`.
fn beginning(text: &str, n_bytes: usize) -> &str {
    let is_end = |at: &usize| text.is_char_boundary(*at);
    let end = (0..=n_bytes.min(text.len())).rev().find(is_end);
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    /// The oldest version of QuickJS-ng that has the fixes of all known advisories: CVE-2026-0821,
    /// -0822, -1145, -120438 and -120439. Programs in `tests/escapes/advisories` restate them. Raise
    /// it with each new advisory.
    const VERSION_MIN: [u32; 3] = [0, 16, 2];

    #[test]
    #[expect(unsafe_code, reason = "only the C library knows its version")]
    fn the_bundled_engine_has_the_fixes_of_all_known_advisories() {
        // SAFETY: it returns a constant text of the library.
        let version = unsafe { CStr::from_ptr(rquickjs::qjs::JS_GetVersion()) };
        let version = version.to_str().expect("ASCII");
        let numbers: Vec<u32> = version.split('.').map_while(|part| part.parse().ok()).collect();
        assert_eq!(numbers.len(), 3, "{version}");
        assert!(numbers[..] >= VERSION_MIN[..], "{version}");
    }
}
