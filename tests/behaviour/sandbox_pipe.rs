//! The pipe of a sandbox: the real process on a socket, with a test in the place of the service.

use serde_json::{Value, json};

use crate::harness::sandbox_peer::{SandboxPeer, frame};

/// The exit code of a sandbox that has failed without a failure of its script.
const FAILED: Option<i32> = Some(1);

/// The memory of a script.
const MEMORY_BYTES: u64 = 16 << 20;

/// Returns the end of an operation: its arguments, or a failure of the tool `fail`.
fn answer(what: &Value) -> Value {
    match what["tool"]["tool"].as_str() {
        Some("fail") => json!({ "failure": { "code": "execution_failed", "message": "no" } }),
        Some(_) => json!({ "value": what["tool"]["args"] }),
        None => json!({ "value": null }),
    }
}

fn start(code: &str) -> Value {
    SandboxPeer::start_message(code, MEMORY_BYTES)
}

#[test]
fn a_sandbox_that_receives_no_script_ends_with_its_exit_code() {
    let whole = frame(start("return 1").to_string().as_bytes());
    let with = |change: &dyn Fn(&mut Value)| {
        let mut message = start("return 1");
        change(&mut message["start"]);
        frame(message.to_string().as_bytes())
    };
    let deep = "[".repeat(1 << 20);
    for (name, bytes) in [
        ("nothing", Vec::new()),
        ("half of a head", vec![1, 2]),
        ("a head", vec![1, 0, 0, 0]),
        ("an empty message", vec![0; 4]),
        ("zeros", vec![0; 4096]),
        ("the largest length", vec![0xff; 64]),
        ("a length beyond the limit", ((16_u32 << 20) + 4097).to_le_bytes().to_vec()),
        ("half of a message", whole[..whole.len() - 1].to_vec()),
        ("a message of the other side", frame(br#"{"idle":0}"#)),
        (
            "a settlement before the script",
            frame(br#"{"settle":{"operation":1,"now_ms":0,"outcome":{"value":1}}}"#),
        ),
        ("text", frame(b"return 1")),
        ("no UTF-8", frame(b"{\"start\":{\"code\":\"\xff\xfe\"}}")),
        ("nested arrays", frame(deep.as_bytes())),
        ("two kinds of message", frame(br#"{"start":1,"settle":2}"#)),
        ("no code", with(&|start| drop(start.as_object_mut().expect("one").remove("code")))),
        ("no limits", with(&|start| start["limits"] = json!({}))),
        ("a negative seed", with(&|start| start["seed"] = json!(-1))),
        ("a time beyond its type", with(&|start| start["now_ms"] = json!(1e300))),
        ("code that is a number", with(&|start| start["code"] = json!(5))),
    ] {
        let mut sandbox = SandboxPeer::start(&[]);
        sandbox.send_bytes(&bytes);
        sandbox.end_input();
        assert_eq!(sandbox.receive(), None, "{name}");
        assert_eq!(sandbox.exit().code(), FAILED, "{name}");
    }
}

#[test]
fn a_sandbox_that_receives_messages_out_of_order_ends() {
    let settle = |operation: u64, outcome: Value| json!({ "settle": { "operation": operation, "now_ms": u64::MAX, "outcome": outcome } });
    let one = json!({ "value": 1 });
    for (name, messages, expected) in [
        ("a second script", vec![start("return 2")], None),
        ("a settlement of nothing", vec![settle(0, one.clone())], Some("failed")),
        (
            "a settlement of another operation",
            vec![settle(u64::from(u32::MAX), one.clone())],
            Some("failed"),
        ),
        ("a number beyond its type", vec![settle(1 << 32, one.clone())], None),
        (
            "the right one twice",
            vec![settle(1, one.clone()), settle(1, one.clone())],
            Some("returned"),
        ),
        ("a failure without fields", vec![settle(1, json!({ "failure": {} }))], None),
        ("neither value nor failure", vec![settle(1, json!({ "success": 1 }))], None),
    ] {
        let mut sandbox = SandboxPeer::start(&[]);
        sandbox.send(&start("return await servers.git.log({})"));
        let begun = sandbox.receive().expect("a call");
        assert_eq!(begun["begin"]["operation"], 1, "{name}: {begun}");
        assert_eq!(sandbox.receive(), Some(json!({ "idle": 0 })), "{name}");
        messages.iter().for_each(|message| sandbox.send(message));
        let last = sandbox.receive();
        let kind = last.as_ref().and_then(|last| last.as_object()?.keys().next());
        assert_eq!(kind.map(String::as_str), expected, "{name}: {last:?}");
        let code = if expected.is_some() { Some(0) } else { FAILED };
        assert_eq!(sandbox.exit().code(), code, "{name}");
    }
}

#[test]
fn a_sandbox_whose_service_has_ended_ends() {
    for code in [
        "for (;;) console.log('x')",
        "for (;;) servers.git.log({})",
        "for (;;) try { progress(1) } catch {}",
        "await servers.git.log({})",
        "await sleep(30_000)",
    ] {
        let mut sandbox = SandboxPeer::start(&[]);
        sandbox.send(&start(code));
        assert!(sandbox.receive().is_some(), "{code}");
        assert_eq!(sandbox.hang_up().code(), FAILED, "{code}");
    }
}

#[test]
fn a_script_that_needs_more_memory_than_there_is_ends_with_that() {
    // Beyond the limit of the process, which the engine does not know.
    for memory_bytes in [0, 1, 1000, 1 << 20, 1 << 40, u64::MAX >> 1] {
        let mut sandbox = SandboxPeer::start(&[]);
        let code = "const kept = []; for (;;) kept.push(new Array(1000).fill(0))";
        let messages = sandbox.run(code, memory_bytes, answer);
        let [last] = &messages[..] else { panic!("{memory_bytes}: {messages:?}") };
        assert_eq!(last["failed"]["kind"], "memory", "{memory_bytes}: {last}");
        assert_eq!(sandbox.exit().code(), Some(0), "{memory_bytes}");
    }
}

#[test]
fn a_script_does_not_lose_a_number_when_an_operation_cannot_begin() {
    let code = "
        const codes = [];
        for (const call of [
            () => servers['\\ud800'].log({}), () => servers.git.log({ value: 'x'.repeat(17 << 20) }),
            () => servers.git.log({ value: 1n }), () => servers.git.call({ toString() { throw 1 } }),
            () => servers.git.log({ toJSON() { servers.git.inner({}); return {} } }),
        ]) await (async () => call())().catch(error => codes.push(error.code ?? error.name ?? error));
        return codes";
    let mut sandbox = SandboxPeer::start(&[]);
    let messages = sandbox.run(code, 64 << 20, answer);
    let begun = messages.iter().filter_map(|message| message["begin"]["operation"].as_u64());
    assert_eq!(begun.collect::<Vec<_>>(), [1, 2, 3]);
    let last = messages.last().expect("an end");
    assert_eq!(last["returned"], json!(["limit_exceeded", "TypeError", 1]), "{last}");
}

/// Scripts that show as much as they can of what may differ between two runs.
const OBSERVERS: [(&str, &str); 13] = [
    ("the depth of the stack", "
        let depth = 0;
        const deep = () => { depth += 1; deep(); };
        try { deep() } catch {}
        async function wait(n) { try { deep() } catch {} ; await servers.git.log({ depth }); return n > 0 ? wait(n - 1) : depth }
        return wait(3)"),
    ("the end of its memory", "
        const kept = [];
        for (let n = 0; ; n++) { kept.push({ n, text: `text ${n}`, list: [n] }); if (n % 100 === 0) console.log(n) }"),
    ("the end of its memory in one step", "
        for (let n = 10; ; n++) { console.log(n); const list = new Array(2 ** n).fill({}); if (n > 20) await servers.git.log({ n }) }"),
    ("random numbers", "
        return [Math.random(), Array.from({ length: 50 }, Math.random), (await servers.git.log({ n: Math.random() })).n, Math.random()]"),
    ("clocks", "
        const times = [Date.now(), new Date(), Date(), new Date().getTimezoneOffset(), new Date(2020, 5, 1).toString(), new Date(0).toLocaleString()];
        for (let n = 0; n < 5; n++) { await sleep(n); times.push(Date.now()) }
        return times"),
    ("the order of keys and entries", "
        const bag = { z: 1, a: 2, 10: 3, 2: 4, [Symbol('s')]: 5 };
        const map = new Map([[{}, 1], [() => {}, 2], [NaN, 3], ['a', 4]]);
        for (let n = 0; n < 500; n++) { bag[`k${n * 7919 % 500}`] = n; map.set({ n }, n); if (n % 3) delete bag[`k${n}`] }
        return [Reflect.ownKeys(bag).map(String), [...map.values()], [...new Set('determinism')], JSON.stringify(Object.groupBy([...'determinism'], c => c))]"),
    ("the steps of sorting", "
        const steps = [];
        const list = Array.from({ length: 300 }, (_, n) => ({ n, key: n * 7919 % 13 }));
        list.sort((one, other) => { steps.push(one.n, other.n); return one.key - other.key });
        new Float64Array(list.map(it => it.n)).sort((one, other) => { steps.push(one); return other - one });
        return [list.map(it => it.n), steps.length, steps.slice(0, 100)]"),
    ("traces and messages", "
        const texts = [];
        const failures = [() => null.x, () => missing, () => JSON.parse('{'), () => decodeURI('%'), () => new Array(-1), () => servers.git.log(1n)];
        for (const failure of failures) try { await failure() } catch (error) { texts.push(String(error), error.stack) }
        try { await servers.git.fail({}) } catch (error) { texts.push(error.stack, JSON.stringify(error)) }
        return [texts, String(sleep), String(servers.git.log), Symbol('s').toString(), Symbol.for('t').description]"),
    ("the order of results", "
        const order = [];
        const calls = Array.from({ length: 20 }, (_, n) => servers.git.log({ n }).then(() => order.push(n)));
        order.push(await Promise.race([sleep(1).then(() => 'sleep'), servers.git.log({}).then(() => 'call')]));
        await Promise.allSettled([...calls, servers.git.fail({})]);
        return order"),
    ("memory that was not written", "
        const bytes = new Uint8Array(5000), floats = new Uint8Array(new Float64Array([NaN, 0 / 0, -NaN, Math.sqrt(-1)]).buffer);
        const grown = new ArrayBuffer(10, { maxByteLength: 9000 }); grown.resize(9000);
        return [bytes.every(byte => byte === 0), [...floats], new Uint8Array(grown.transferToFixedLength(9500)).every(byte => byte === 0), new Array(5)]"),
    ("the collection of garbage", "
        const map = new WeakMap(); let found = 0;
        for (let n = 0; n < 100_000; n++) { const key = { n }; key.key = key; map.set(key, n); found += map.has(key) }
        return [found, typeof WeakRef, typeof FinalizationRegistry]"),
    ("locales", "
        return ['i'.toLocaleUpperCase(), (1234567.891).toLocaleString(), ['z', 'a', 'Z', '\\u00e4'].sort((a, b) => a.localeCompare(b)), 'e\\u0301'.normalize()]"),
    ("the progress of a long computation", "
        let last = 0;
        for (let n = 0; n < 300_000; n++) if (n % 50_000 === 0) progress(last = n, 300_000, `step ${n}`);
        return last"),
];

#[test]
fn a_script_sends_the_same_messages_in_every_run_with_the_same_seed_and_results() {
    for (name, code) in OBSERVERS {
        let run = |environment: &[(&str, &str)]| {
            let mut sandbox = SandboxPeer::start(environment);
            let messages = sandbox.run(code, MEMORY_BYTES, answer);
            assert_eq!(sandbox.exit().code(), Some(0), "{name}");
            messages
        };
        let first = run(&[]);
        let last = first.last().expect("an end");
        let is_end = last.get("returned").is_some() || last["failed"]["kind"] == "memory";
        assert!(is_end, "{name}: {last}");
        // A larger environment moves the stack, and other addresses are random anyway.
        let filler = "x".repeat(10_007);
        for environment in [&[][..], &[("LANG", "tr_TR.UTF-8"), ("FILLER", &filler)]] {
            assert_eq!(run(environment), first, "{name}");
        }
    }
}
