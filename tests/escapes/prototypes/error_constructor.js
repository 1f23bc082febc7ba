// Attempt: to have the service's code make its errors with functions of the script.
// Contained: a failed call still has its error.
// expect: value ["execution_failed","ToolError"]
globalThis.Error = globalThis.TypeError = function () { throw 'no error'; };
Object.prototype.constructor = function () { throw 'no constructor'; };
try {
  return await servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
} catch (error) {
  return [error.code, error.name];
}
