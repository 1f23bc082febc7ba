// Attempt: to reach the function that called a function, and so the code of the service.
// Contained: functions do not tell their callers.
// expect: value []
const reached = [];
function inspect() {
  const found = [];
  for (const name of ['caller', 'arguments']) {
    try { found.push(inspect[name]); } catch (error) { if (!(error instanceof TypeError)) found.push(error); }
  }
  return found.some(Boolean);
}
for (const attempt of [
  () => inspect(), () => (function () { return arguments.callee; })(), () => (() => {}).caller,
  () => sleep.caller, () => servers.fake.echo.caller, () => Object.getOwnPropertyDescriptor(Function.prototype, 'caller').get.call(sleep),
]) {
  try {
    if (attempt()) reached.push(String(attempt));
  } catch (error) {
    if (!(error instanceof TypeError)) reached.push(String(error));
  }
}
await searchTools('x', { get limit() { if (inspect()) reached.push('in a getter'); return 1; } });
return reached;
