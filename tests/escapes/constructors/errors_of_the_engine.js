// Attempt: to make code from a string with the constructors of errors that the engine itself throws.
// Contained: they are errors of the script's own world.
// expect: value []
const reached = [];
const failures = [
  () => null.x, () => missing, () => JSON.parse('{'), () => new Array(-1), () => decodeURI('%'),
  () => (function deep() { deep(); })(), () => 'x'.repeat(2 ** 30), () => 1n ** -1n, () => Symbol() + '',
  () => new RegExp('('), () => Reflect.construct(1), () => structuredClone({}), () => BigInt(1.5),
  () => new Proxy({}, { get: () => { throw new RangeError(); } }).x,
];
for (const failure of failures) {
  try {
    failure();
    reached.push('no failure');
  } catch (error) {
    for (let walk = error; walk !== null; walk = Object.getPrototypeOf(walk)) {
      try {
        walk.constructor.constructor('return globalThis')();
        reached.push(String(error));
      } catch (refusal) {
        if (!(refusal instanceof EvalError)) reached.push(`${error}: ${refusal}`);
      }
    }
  }
}
return reached;
