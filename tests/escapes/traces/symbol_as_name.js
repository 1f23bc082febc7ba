// Attempt: to have the engine itself throw while it makes a trace, by an error whose name is a symbol.
// Contained: the engine's errors are of the script's own world.
// expect: value []
const reached = [];
const error = new Error('x');
error.name = Symbol('x');
for (const read of [() => error.stack, () => String(error), () => `${error.message}`, () => Error.prototype.toString.call(error)]) {
  try {
    read();
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) reached.push(String(thrown));
    try {
      thrown.constructor.constructor('return globalThis')();
      reached.push('code');
    } catch (refusal) {
      if (!(refusal instanceof EvalError)) reached.push(String(refusal));
    }
  }
}
return reached;
