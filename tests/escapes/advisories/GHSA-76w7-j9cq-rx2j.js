// Attempt: vm2 up to 3.11.3 (CVE-2026-47208). Its constructor of promises attached a handler with the host's `then`, which
// built the next promise with the species of the script. So the script got the functions with which the engine rejects,
// and with them a host error: an overflow of the stack at a depth found by trial.
// Contained: there is one world; the error found is the script's own, and its constructors make no code.
// expect: value []
const escaped = [];
let Species;
class FakePromise extends Promise { static get [Symbol.species]() { return Species; } }
function overflow(depth) {
  if (depth > 0) overflow(depth - 1);
  const error = new (class extends Error {})();
  String(error.stack);
  throw error;
}
async function caught(make) {
  const { promise, resolve } = Promise.withResolvers();
  Species = function (executor) { executor(make, resolve); };
  new FakePromise((settle) => settle()).then(make, resolve);
  return Promise.race([promise, sleep(5)]);
}
for (let depth = 1; depth < 4000; depth += 397) {
  const error = await caught(() => overflow(depth));
  if (!error) continue;
  if (error.name === 'RangeError' && !(error instanceof RangeError)) escaped.push('an error of another world');
  try {
    error.constructor.constructor('return globalThis')();
    escaped.push('code');
  } catch (refusal) {
    if (!(refusal instanceof EvalError || refusal instanceof RangeError)) escaped.push(String(refusal));
  }
}
return escaped;
