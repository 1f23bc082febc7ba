// Attempt: to make code from a string with the constructor of each function of the host.
// Contained: every constructor refuses.
// expect: value []
const reached = [];
const functions = {
  sleep, progress, searchTools, describeTool, runChain, ToolError, Date, Function,
  log: console.log, error: console.error, now: Date.now, random: Math.random,
};
for (const [name, made] of Object.entries(functions)) {
  for (const constructor of [made.constructor, made.constructor.constructor, Object.getPrototypeOf(made).constructor]) {
    try {
      constructor('return globalThis')();
      reached.push(name);
    } catch (error) {
      if (!(error instanceof EvalError)) reached.push(`${name}: ${error}`);
    }
  }
}
return reached;
