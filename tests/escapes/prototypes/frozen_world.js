// Attempt: to break the service's code by freezing all that it could change.
// Contained: calls and failures are as before.
// expect: value [7,"execution_failed"]
for (const made of [Object, Array, Promise, Error, ToolError, Function, Map, Set, String, Number, Date, RegExp]) {
  Object.freeze(made);
  Object.freeze(made.prototype);
}
const { value } = await servers.fake.echo({ value: 7 });
try {
  await servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
  return 'success';
} catch (error) {
  return [value, error.code];
}
