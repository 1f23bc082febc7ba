// Attempt: to call the real constructor of functions as the parent of a class, or with another `new.target`.
// Contained: only the constructor that refuses is reachable.
// expect: value []
const reached = [];
const attempts = [
  () => new (class extends Function { constructor() { super('return globalThis'); } })(),
  () => new (class extends (async () => {}).constructor { constructor() { super('return globalThis'); } })(),
  () => new (class extends Object.getPrototypeOf(function* () {}).constructor { constructor() { super('return 1'); } })(),
  () => Reflect.construct(Function, ['return globalThis'], Object),
  () => Reflect.construct(Function, ['return globalThis'], Array),
  () => Object.create(Function.prototype).constructor('return globalThis'),
  () => Object.getPrototypeOf(class extends Function {})('return globalThis'),
  () => Function.prototype.constructor.call(class {}, 'return globalThis'),
];
for (const attempt of attempts) {
  try {
    reached.push(String(attempt()));
  } catch (error) {
    if (!(error instanceof EvalError)) reached.push(String(error));
  }
}
return reached;
