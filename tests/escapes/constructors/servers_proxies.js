// Attempt: to reach a constructor through the objects that stand for servers.
// Contained: every name is a server or a tool, and an unknown one is an error of its call.
// expect: value ["unavailable","unavailable","unavailable"]
const codes = [];
for (const call of [
  () => servers.constructor.constructor('return globalThis'),
  () => servers.__proto__.constructor({}),
  () => servers.prototype.__defineGetter__({}),
]) {
  try {
    await call();
    codes.push('called');
  } catch (error) {
    codes.push(error instanceof ToolError ? 'unavailable' : String(error));
  }
}
return codes;
