// Attempt: to receive an exception of the host in a generator that delegates to objects of the script.
// Contained: all exceptions are of the script's own world.
// expect: value ["execution_failed","execution_failed"]
const codes = [];
async function* inner() {
  try {
    yield await servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
  } catch (error) {
    codes.push(error.code);
    throw error;
  }
}
async function* outer() {
  yield* { [Symbol.asyncIterator]: () => inner() };
}
try {
  for await (const value of outer()) codes.push(value);
} catch (error) {
  codes.push(error.code);
}
return codes;
