// Attempt: to remove the constructor that refuses, so that the real one shows again.
// Contained: it cannot be removed or replaced, and none is behind it.
// expect: value []
const reached = [];
for (const kind of [function () {}, async function () {}, function* () {}, async function* () {}]) {
  const prototype = Object.getPrototypeOf(kind);
  if (Reflect.deleteProperty(prototype, 'constructor')) reached.push('deleted');
  if (Reflect.defineProperty(prototype, 'constructor', { value: Object })) reached.push('defined');
  if (Reflect.set(prototype, 'constructor', Object)) reached.push('set');
  try {
    prototype.constructor('return globalThis')();
    reached.push('code');
  } catch (error) {
    if (!(error instanceof EvalError)) reached.push(String(error));
  }
}
delete globalThis.Function;
if (typeof Function !== 'undefined') reached.push('a second Function');
return reached;
