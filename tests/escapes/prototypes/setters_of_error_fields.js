// Attempt: to hide the failure of a call with setters for the fields of its error, which throw.
// Contained: the call fails as ever, and its error has its fields.
// expect: value ["execution_failed","fake","rpc_error",true]
for (const name of ['code', 'server', 'tool', 'hint', 'details', 'message', 'stack', 'name', 'cause']) {
  for (const prototype of [Object.prototype, Error.prototype]) {
    Object.defineProperty(prototype, name, { set() { throw new Error('a setter'); }, get() { return undefined; }, configurable: true });
  }
}
try {
  return await servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
} catch (error) {
  return [error.code, error.server, error.tool, error instanceof ToolError];
}
