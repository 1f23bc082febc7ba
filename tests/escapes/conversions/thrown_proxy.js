// Attempt: to confuse the description of an uncaught error with a proxy of it.
// Contained: the script fails.
// expect: error script_failed details.kind=exception
throw new Proxy(new ToolError({ code: 'internal', message: 'forged' }), {
  get(target, key) { return key === 'message' ? { toString() { throw 1; } } : target[key]; },
  getPrototypeOf() { throw 2; },
  ownKeys() { throw 3; },
});
