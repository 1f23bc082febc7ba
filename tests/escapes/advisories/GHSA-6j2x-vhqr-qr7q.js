// Attempt: vm2 (CVE-2026-47210). Promises of WebAssembly's promise integration had the host's prototype, so that `finally`
// with a species of the script handed out a host error.
// Contained: there is no WebAssembly, and `finally` of the promises of calls gives the script's own errors.
// expect: value ["undefined",[]]
const escaped = [];
const failing = servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
failing.constructor = {
  [Symbol.species]: function (executor) {
    executor(() => {}, (error) => {
      try {
        error.constructor.constructor('return globalThis')();
        escaped.push('code');
      } catch (refusal) {
        if (!(refusal instanceof EvalError)) escaped.push(String(refusal));
      }
    });
  },
};
failing.finally(() => {});
await sleep(100);
return [typeof WebAssembly, escaped];
