// Attempt: to break or to flood traces with odd limits.
// Contained: a script cannot set the limit, and failures have short traces.
// expect: value [true,"execution_failed"]
let longest = 0;
const deep = (n) => (n === 0 ? new Error('deep') : deep(n - 1));
for (const limit of [Infinity, -1, NaN, 1e9, '5', { valueOf() { throw 1; } }, null]) {
  Error.stackTraceLimit = limit;
  longest = Math.max(longest, deep(100).stack.split('\n').length);
}
try {
  await servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
} catch (error) {
  return [longest <= 12, error.code];
}
