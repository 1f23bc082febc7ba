// Attempt: to call without arguments, with several, and on another `this`.
// Contained: arguments are an object, which is empty by default.
// expect: value [true,true,true,"ToolError"]
const outcomes = [];
const { whoami, echo } = servers.fake;
for (const call of [() => whoami(), () => whoami(undefined, 1, 2), () => whoami.call(null, {}), () => echo()]) {
  try {
    outcomes.push(typeof (await call()) === 'object');
  } catch (error) {
    outcomes.push(error.name);
  }
}
return outcomes;
