// Attempt: to make code from a string with the constructors of a failed tool's error and of its parts.
// Contained: the error is of the script's own world.
// expect: value []
const reached = [];
const visit = (name, part) => {
  if (part === undefined) return;
  for (let walk = Object(part); walk !== null; walk = Object.getPrototypeOf(walk)) {
    try {
      walk.constructor.constructor('return globalThis')();
      reached.push(name);
    } catch (error) {
      if (!(error instanceof EvalError)) reached.push(`${name}: ${error}`);
    }
  }
};
try {
  await servers.fake.rpc_error({ code: -32000, message: 'on purpose' });
  reached.push('the call succeeded');
} catch (error) {
  visit('error', error);
  for (const key of Reflect.ownKeys(error)) visit(String(key), error[key]);
  visit('details', error.details);
  if (!(error instanceof ToolError && error instanceof Error)) reached.push('another kind of error');
}
return reached;
